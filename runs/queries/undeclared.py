"""What is not known of a run's inputs: what it read without having declared it, and whether it could have read more than it says."""

from dataclasses import dataclass

from runs.models import Run, UndeclaredInput
from workspaces.models import Pool

SHOWN = 5  # of the versions that hold one content
THING = ("kind", "uri", "what", "sha256")  # what is the same in all rows of one thing that was read


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing that was read, with the newest versions that hold it (or the artifact), and how many more do."""

    first: UndeclaredInput
    shown: tuple[UndeclaredInput, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Undeclared:
    """`is_open`: the run was not isolated, so that it could read anything on its machine, said or not."""

    inputs: tuple[UndeclaredInput, ...]
    is_open: bool

    @property
    def things(self) -> tuple[Thing, ...]:
        found: dict[tuple[str, ...], list[UndeclaredInput]] = {}
        for row in self.inputs:
            found.setdefault(tuple(getattr(row, name) for name in THING), []).append(row)
        return tuple(Thing(rows[0], tuple(rows[:SHOWN]), len(rows[SHOWN:])) for rows in found.values())

    @property
    def is_none(self) -> bool:
        """Nothing was read undeclared, and nothing can have been."""
        return not self.inputs and not self.is_open


def undeclared_inputs(run: Run) -> Undeclared:
    """Of a run that has ended; what one under way has read is noted at its end."""
    rows = UndeclaredInput.objects.filter(run=run).select_related("dataset_version__dataset", "artifact").order_by("pk")
    return Undeclared(tuple(rows), run.isolation == Pool.Isolation.NONE)
