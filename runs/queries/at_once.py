"""How many runs of the workspace are at work, and how many may be: the one count that admission, dispatch and pages go by."""

from collections.abc import Iterable

from django.db.models import Exists, OuterRef, Q

from runs.lifecycle import ACTIVE, RunStatus
from runs.models import Attempt, Run
from runs.start import AtOnce
from workspaces.models import Limit, Unit
from workspaces.standings import Standing


def at_once_of(limits: Iterable[Standing], running: int) -> AtOnce:
    """So many runs at work, against the hard stop on them among limits."""
    stops = (limit.amount for limit in limits if (limit.unit, limit.window, limit.mode) == (Unit.RUNS, Limit.Window.NOW, Limit.Mode.STOP))
    return AtOnce(running, next(stops, None))


def count_at_work() -> int:
    """Runs that hold, or may hold, a process somewhere; a command counts under the ledger's lock. What was cancelled before it started holds
    nothing, and is on its way out."""
    never_started = Q(status=RunStatus.CANCELLING) & ~Exists(Attempt.objects.filter(run=OuterRef("pk")))
    return Run.objects.filter(status__in=sorted(ACTIVE)).exclude(never_started).count()
