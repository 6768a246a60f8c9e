"""What a policy decides upon, as it was at one instant: kept with the decision, so that it can be decided again, by this version or another."""

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

FORM = 1  # raised when what is kept changes its meaning


@dataclass(frozen=True, slots=True)
class Cause:
    """What a policy is asked about: a row of `type`, an instant of its schedule, or a person's asking. `at`: when a row's cause arose."""

    type: str
    id: uuid.UUID
    label: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One run of the action's agent on its benchmark. `value` is None where it ended without a finite score, or has not ended."""

    run: str
    label: str
    parameters: dict[str, Any]
    value: float | None
    is_ended: bool = True


@dataclass(frozen=True, slots=True)
class Measured:
    """An artifact with its score under the contract that holds, and the standard error of that where it is known."""

    artifact: str
    label: str
    value: float | None
    error: float | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Amounts in GPU milliseconds; instants as ISO 8601 with their offset. None: nobody could tell, which no check takes for yes.

    `candidate` is what would be promoted, `standing` what stands under that name. `of` says which agent and benchmark `results` are of; a document
    that asks about others finds none. `week_gpu_ms` is the week's smallest hard limit, `left_gpu_ms` what that leaves, `gpu_ms_each` what one launch
    reserves at most. `memory`: the entries that it read, and how many failed attempts were hidden from it (`runs.policy.memory`). `gates` holds, by
    the name of a check, what that check alone looks at (`runs.policy.gates`, `.measured`); `said` what each expression of the policy gave.
    `site`: the rules of the installation that held (`version`, `document`) and how often the policy acted in 24 hours (`acted_lately`); empty where
    there were none. `has_older`: there are results before the newest ones, which are all that is weighed and kept.
    """

    at: str
    cause: dict[str, str]
    of: dict[str, str] = field(default_factory=dict)
    acted: int = 0
    failures: int = 0
    last_acted_at: str | None = None
    under_way: int = 0
    spent_gpu_ms: int = 0
    spent_week_gpu_ms: int = 0
    left_gpu_ms: int | None = None
    week_gpu_ms: int | None = None
    gpu_ms_each: int | None = None
    waiting_runs: int | None = None
    direction: str = "maximize"
    target: float | None = None
    best: float | None = None
    results: tuple[Result, ...] = ()
    has_older: bool = False
    candidate: Measured | None = None
    standing: Measured | None = None
    datasets: tuple[dict[str, str], ...] = ()
    artifacts: tuple[dict[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    memory: dict[str, Any] | None = None
    gates: dict[str, Any] = field(default_factory=dict)
    site: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"form": FORM, **asdict(self)}


def facts_from(stored: Mapping[str, Any]) -> Facts:
    """Facts as a decision keeps them. Raises ValueError where they are of another form."""
    if stored.get("form") != FORM:
        raise ValueError(f"These facts are of form {stored.get('form')}; this version reads form {FORM}.")
    rest = {name: value for name, value in stored.items() if name not in ("form", "results")}
    for name in ("candidate", "standing"):
        rest[name] = Measured(**rest[name]) if rest.get(name) else None
    for name in ("datasets", "artifacts", "missing", "problems"):
        rest[name] = tuple(rest.get(name, ()))
    return Facts(**rest, results=tuple(Result(**entry) for entry in stored["results"]))
