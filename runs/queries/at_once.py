"""How many runs of the workspace are at work, and how many may be: the one count that admission, dispatch and pages go by."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from runs.lifecycle import ACTIVE, RunStatus
from runs.models import Attempt, Run
from runs.start import AtOnce
from workspaces import kept_query
from workspaces.models import Limit, Unit
from workspaces.standings import Standing


def at_once_of(limits: Iterable[Standing], running: int) -> AtOnce:
    """So many runs at work, against the hard stop on them among limits."""
    stops = (limit.amount for limit in limits if (limit.unit, limit.window, limit.mode) == (Unit.RUNS, Limit.Window.NOW, Limit.Mode.STOP))
    return AtOnce(running, next(stops, None))


def count_at_work(found: list[Any] | None = None) -> int:
    """Runs that hold, or may hold, a process somewhere; a command counts under the ledger's lock. What was cancelled before it started holds
    nothing, and is on its way out. `found` is what `at_work` has found."""
    return sum(count for _, count in (kept_query.ask(_at_work) if found is None else found))


def at_work() -> kept_query.Question:
    """What `count_at_work` asks, for one who asks for more in the same round trip."""
    return kept_query.Question(_at_work, (), {})


def _at_work() -> "QuerySet[Any, Any]":
    never_started = Q(status=RunStatus.CANCELLING) & ~Exists(Attempt.objects.filter(run=OuterRef("pk")))
    runs = Run.objects.filter(status__in=sorted(ACTIVE)).exclude(never_started)
    return runs.order_by().values_list("status").annotate(Count("pk"))
