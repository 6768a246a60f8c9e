"""What archiving the open workspace would end: shown before it is done."""

from dataclasses import dataclass

from django.db.models import Count, Q

from runs.lifecycle import ACTIVE, WAITING
from runs.models import Run, Sweep
from workspaces.units import plural


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Work of the workspace that has not ended."""

    waiting: int
    running: int
    sweeps: int

    @property
    def words(self) -> str:
        """What archiving would do to it, in sentences."""
        waiting = f"{plural(self.waiting, 'run that waits', 'runs that wait')} will be cancelled, and what is reserved released."
        sweeps = f" {plural(self.sweeps, 'sweep', 'sweeps')} will launch no more members." if self.sweeps else ""
        running = f" {plural(self.running, 'run is', 'runs are')} at work: choose below." if self.running else " Nothing is at work."
        return (waiting if self.waiting else "Nothing waits.") + sweeps + running


def unfinished() -> Unfinished:
    waiting = Q(status__in=sorted(WAITING))
    counts = Run.objects.aggregate(waiting=Count("pk", filter=waiting), running=Count("pk", filter=Q(status__in=sorted(ACTIVE))))
    return Unfinished(counts["waiting"], counts["running"], Sweep.objects.filter(status=Sweep.Status.RUNNING).count())
