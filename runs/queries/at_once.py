"""How many runs of the workspace are at work, and how many may be: the one count that admission, dispatch and pages go by."""

from dataclasses import dataclass

from runs.lifecycle import ACTIVE
from runs.models import Run
from workspaces.models import Limit, Unit


@dataclass(frozen=True, slots=True)
class AtOnce:
    """`allowed` is the hard stop, at which runs wait; None without one. A limit that only warns lets them start."""

    running: int
    allowed: int | None

    @property
    def is_full(self) -> bool:
        return self.allowed is not None and self.running >= self.allowed

    @property
    def words(self) -> str:
        """Why one more has to wait, where it is full."""
        return f"{self.running} of {self.allowed} runs run at once."


def runs_at_once() -> AtOnce:
    """Runs that hold, or may hold, a process somewhere, against the limit. A command counts under the ledger's lock."""
    limit = Limit.objects.filter(unit=Unit.RUNS, window=Limit.Window.NOW, mode=Limit.Mode.STOP).values_list("amount", flat=True)
    return AtOnce(running=count_at_work(), allowed=limit.first())


def count_at_work() -> int:
    return Run.objects.filter(status__in=sorted(ACTIVE)).count()
