"""Why runs fail: the groups, newest first, and one group with its runs and the lines that show it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet

from runs.models import Failure, FailureGroup, Run
from workspaces import kept_query
from workspaces.models import Agent
from workspaces.queries.paging import Page, newest_first

ROWS = 50
REPEATED = 3  # from so many on runs fail repeatedly, and home says it
OPEN = Q(acknowledged_at=None) | Q(last_at__gt=F("acknowledged_at"))


@dataclass(frozen=True, slots=True)
class Group:
    """One group with a page of its runs, newest first."""

    group: FailureGroup
    failures: Page[Failure]
    newest: Run | None


def failure_groups(*, agent: str = "", is_open: bool = False) -> QuerySet[FailureGroup]:
    """Groups, the last to fail first; those of the agent of that slug, those that nobody has taken note of."""
    rows = FailureGroup.objects.select_related("agent", "acknowledged_by")
    rows = rows.filter(agent__slug=agent) if agent else rows
    return (rows.filter(OPEN) if is_open else rows).order_by("-last_at", "-pk")


def failing_agents() -> list[tuple[str, str]]:
    """Slug and name of agents whose runs have failed."""
    return list(Agent.objects.filter(pk__in=FailureGroup.objects.values("agent")).order_by("name", "slug").values_list("slug", "name"))


def failure_group(text: str, *, cursor: str = "", size: int = ROWS) -> Group:
    """Raises NotFound where there is no such group here, BadCursor for a cursor of another list."""
    group = FailureGroup.objects.find(text, "agent", "acknowledged_by")
    rows = Failure.objects.filter(group=group).select_related("run__requested_by")
    page = newest_first(rows.defer("run__frozen", "run__parameters"), cursor=cursor, size=size)
    newest = page.items[0].run if page.items and not cursor else None
    return Group(group, page, newest)


def failure_of(run: Run) -> FailureGroup | None:
    """The group that a run which failed stands in."""
    found = Failure.objects.filter(run=run).select_related("group").first()
    return found.group if found is not None else None


def repeated_failures(since: datetime, limit: int = 3) -> list[FailureGroup]:
    """Open groups that have failed repeatedly and lately, the most numerous first."""
    return kept_query.ask(_repeated, limit, since=since)


def _repeated(limit: int, since: Any) -> "QuerySet[FailureGroup]":
    return failure_groups(is_open=True).filter(count__gte=REPEATED, last_at__gte=since).order_by("-count", "-last_at")[:limit]
