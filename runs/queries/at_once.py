"""How many runs of the workspace are at work, and how many may be: the one count that admission, dispatch and pages go by."""

from django.db.models import Exists, OuterRef, Q

from runs.lifecycle import ACTIVE, RunStatus
from runs.models import Attempt, Run
from runs.start import AtOnce
from workspaces.models import Limit, Unit


def runs_at_once() -> AtOnce:
    """Runs that hold, or may hold, a process somewhere, against the limit. A command counts under the ledger's lock."""
    limit = Limit.objects.filter(unit=Unit.RUNS, window=Limit.Window.NOW, mode=Limit.Mode.STOP).values_list("amount", flat=True)
    return AtOnce(running=count_at_work(), allowed=limit.first())


def count_at_work() -> int:
    """What was cancelled before it started holds nothing, and is on its way out."""
    never_started = Q(status=RunStatus.CANCELLING) & ~Exists(Attempt.objects.filter(run=OuterRef("pk")))
    return Run.objects.filter(status__in=sorted(ACTIVE)).exclude(never_started).count()
