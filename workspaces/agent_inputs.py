"""What an agent version says of its inputs: what a run must be given, or may be. Pure: values in, values out.

A need is met by one input of its kind, its role and its name, each where it says one; several needs want as many inputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

DATASET, ARTIFACT = "dataset", "artifact"
ROLES = ("train", "validation", "holdout")  # of datasets; an artifact's role is its kind, such as model
ANY_ROLE = "any"
LINE = "Each line is dataset or artifact, then perhaps its role, perhaps named and a dataset, perhaps optional; not"


@dataclass(frozen=True, slots=True)
class Need:
    """`role`, `name`: empty where any will do. A name is that of a dataset, or of the live dataset that a window was cut from."""

    kind: str
    role: str = ""
    name: str = ""
    required: bool = True

    @property
    def words(self) -> str:
        """With its article: `a dataset of role train`, `an artifact of kind model`, `the dataset self-play`."""
        if self.name:
            return f"the dataset {self.name}{f' of role {self.role}' if self.role else ''}"
        if self.kind == DATASET:
            return f"a dataset of role {self.role}" if self.role else "a dataset"
        return f"an artifact of kind {self.role}" if self.role else "an artifact"


@dataclass(frozen=True, slots=True)
class Given:
    """One input of a run: `names` are all that a need may know it by."""

    label: str
    kind: str
    role: str
    names: tuple[str, ...] = ()


def needs_from(kept: Sequence[dict[str, Any]]) -> tuple[Need, ...]:
    return tuple(Need(**need) for need in kept)


def need_of(line: str) -> Need:
    """A line of the form of agent versions: `dataset train`, `artifact model optional`, `dataset named self-play`. Raises ValueError."""
    kind, *words = line.split()
    required = words[-1:] != ["optional"]
    words = words if required else words[:-1]
    name = words.pop() if len(words) > 1 and words[-2] == "named" else ""
    words = words[:-1] if name else words
    if kind not in (DATASET, ARTIFACT) or len(words) > 1:
        raise ValueError(f"{LINE} {line[:80]}.")
    return Need(kind, words[0] if words else "", name, required)


def unmet(needs: Sequence[Need], given: Sequence[Given]) -> list[Need]:
    """The required needs that no input is left for, however inputs are shared out."""
    meets = [[index for index, one in enumerate(given) if _meets(one, need)] for need in needs]
    taken: dict[int, int] = {}  # input -> need

    def place(need: int, seen: set[int]) -> bool:
        for index in meets[need]:
            if index in seen:
                continue
            seen.add(index)
            if index not in taken or place(taken[index], seen):
                taken[index] = need
                return True
        return False

    return [need for number, need in enumerate(needs) if need.required and not place(number, set())]


def listed(needs: Sequence[Need]) -> str:
    """Needs in words: `a dataset of role train, a dataset of role holdout and an artifact`."""
    *before, last = [need.words for need in needs]
    return f"{', '.join(before)} and {last}" if before else last


def _meets(one: Given, need: Need) -> bool:
    return (
        one.kind == need.kind
        and (not need.role or one.role in ((need.role, ANY_ROLE) if need.kind == DATASET else (need.role,)))
        and (not need.name or need.name in one.names)
    )
