"""`/failures`: why runs fail, by cause; the same as the pages say."""

from datetime import datetime
from typing import Any

from django.conf import settings
from ninja import Schema

from runs.api.schema import ReasonIn
from runs.commands.failure import acknowledge_failure
from runs.models import FailureGroup
from runs.queries.failure import failure_group, failure_groups
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Size
from workspaces.queries.paging import newest_first

routes = Routes("failures")


class FailureRow(Schema):
    id: str
    uuid: str
    agent_id: str
    title: str
    fingerprint: str
    reason_code: str
    runs: int
    first_at: datetime
    last_at: datetime
    is_open: bool
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    acknowledged_reason: str


class FailurePage(Schema):
    items: list[FailureRow]
    next: str | None


class FailedRunOut(Schema):
    run_id: str
    failed_at: datetime
    lines: list[str]


class FailureOut(FailureRow):
    items: list[FailedRunOut]
    next: str | None


@routes.get("/failures", needs=Permission.VIEW, kind=Kind.RUN, response=FailurePage)
def list_failures(request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE, is_open: bool = False) -> dict[str, Any]:
    """Causes for which runs failed, the newest cause first; with `is_open` those alone that nobody has taken note of."""
    page = newest_first(failure_groups(is_open=is_open), cursor=cursor, size=limit)
    return {"items": [_row(group) for group in page.items], "next": page.next}


@routes.get("/failures/{failure}", needs=Permission.VIEW, kind=Kind.RUN, response=FailureOut)
def get_failure(request: ApiRequest, failure: str, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """One cause with a page of its runs, newest first, and the lines that each wrote about it."""
    found = failure_group(failure, cursor=cursor, size=limit)
    runs = [{"run_id": one.run.public_id, "failed_at": one.created_at, "lines": one.lines} for one in found.failures.items]
    return _row(found.group) | {"items": runs, "next": found.failures.next}


@routes.post("/failures/{failure}/acknowledge", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, response=FailureRow)
def acknowledge(request: ApiRequest, failure: str, body: ReasonIn) -> dict[str, Any]:
    """Say that somebody has taken note, and what comes of it."""
    acknowledge_failure(actor=request.actor, group=FailureGroup.objects.find(failure), reason=body.reason)
    return _row(failure_group(failure, size=1).group)


def _row(group: FailureGroup) -> dict[str, Any]:
    copied = ("title", "fingerprint", "reason_code", "first_at", "last_at", "is_open", "acknowledged_at", "acknowledged_reason")
    return {name: getattr(group, name) for name in copied} | {
        "id": group.public_id,
        "uuid": str(group.pk),
        "agent_id": group.agent.public_id,
        "runs": group.count,
        "acknowledged_by": group.acknowledged_by.username if group.acknowledged_by else None,
    }
