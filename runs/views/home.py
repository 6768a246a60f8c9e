"""The home page of a workspace, and the part of it that follows what is under way."""

from datetime import datetime
from typing import Any

from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from runs.lifecycle import RunStatus
from runs.queries.hold import queue_hold
from runs.queries.home_aim import aim
from runs.queries.home_blocked import blocks
from runs.queries.home_budget import burn, standing_limits
from runs.queries.home_changes import recent_changes
from runs.queries.home_growth import growing
from runs.queries.home_memory import newest_memory
from runs.queries.home_now import Now, NowRow, decided_alone, decisions, ended_since, newest_end, running_now
from runs.queries.home_scores import boards, promotable
from runs.queries.home_waiting import Queued, queued
from runs.queries.policy_use import at_rest
from runs.queries.utilisation import open_pools, pool_uses
from runs.views.live import live
from runs.views.visit import note_visit, since_last_visit
from workspaces.access import Kind, Permission
from workspaces.pages import PageRequest
from workspaces.queries.approval_rule import roles_reached
from workspaces.queries.budget import reached
from workspaces.queries.chain import last_finding
from workspaces.queries.objective import current_objective

POOLS_SHOWN = 4
NOTHING_RUNS = Now(rows=[], running=0, waiting=0, held=0, reserved=0)
KIND_OF_PAGE = {
    "pool": Kind.POOL,
    "budget": Kind.BUDGET,
    "ledger": Kind.BUDGET,
    "run": Kind.RUN,
    "run-list": Kind.RUN,
    "queue": Kind.RUN,
    "failure": Kind.RUN,
    "policy": Kind.POLICY,
}  # that blocks lead to


def home(request: PageRequest) -> HttpResponseBase:
    now = timezone.now()
    if request.GET.get("part") == "live":
        under_way = _now(request, now, is_part=True)
        return live(request, "runs/home_live.html", under_way | _new_scores(request, under_way["newest_end"], now))
    since = since_last_visit(request, now)
    context = _now(request, now, is_part=False) | _group(request, since.moment, now) | {"since": since, "record": last_finding()}
    response = render(request, "runs/home.html", context)
    note_visit(request, response, since)
    return response


def _now(request: PageRequest, now: datetime, *, is_part: bool) -> dict[str, Any]:
    """What is under way, which the page asks for again and again."""
    sees = {kind: _may_see(request, kind) for kind in (Kind.RUN, Kind.BUDGET, Kind.APPROVAL, Kind.POOL, Kind.POLICY)}
    running = running_now() if sees[Kind.RUN] else NOTHING_RUNS
    limits = standing_limits(request.workspace, running, now) if sees[Kind.BUDGET] or running.waiting else []
    queue = queued(limits, running.running) if running.waiting else None
    hold = queue.now.hold if queue is not None else queue_hold()
    held_up = blocks(request.workspace, limits, running, queue, now, hold=hold)
    return {
        "now": running,
        "rows": [(row, row.seconds(now), _waits(queue, row)) for row in running.rows],
        "burn": burn(limits, running, now) if sees[Kind.BUDGET] else None,
        "reached": reached(now) if sees[Kind.BUDGET] else [],
        "blocks": [block for block in held_up if block.page not in KIND_OF_PAGE or sees[KIND_OF_PAGE[block.page]]],
        "policies": at_rest() if sees[Kind.POLICY] and not running.rows else (0, 0),
        "newest_end": newest_end() if sees[Kind.RUN] else "",
        "uses": pool_uses(open_pools(POOLS_SHOWN)) if sees[Kind.POOL] else [],
        "sees": sees,
        "is_part": is_part,
    }


def _new_scores(request: PageRequest, newest: str, now: datetime) -> dict[str, Any]:
    """The scoreboards, where a run has ended since the page showed them: what leaves the runs under way is found there."""
    if request.GET.get("ended", newest) == newest or not _may_see(request, Kind.EVALUATION):
        return {}
    since = since_last_visit(request, now)
    objective = current_objective()
    scored = boards(since.moment, first=objective.benchmark_id if objective else None)
    return {"since": since, "boards": [board for board in scored if board.total], "has_boards": True}


def _waits(queue: Queued | None, row: NowRow) -> str:
    return queue.reason(row.run) if queue is not None and row.run.status == RunStatus.QUEUED else ""


def _group(request: PageRequest, since: datetime, now: datetime) -> dict[str, Any]:
    """What the group tries, decides, learns and changes. Of kinds that the reader's role is not about there is nothing."""
    zone = request.workspace.zone or "UTC"
    objective = current_objective()
    sees_scores = _may_see(request, Kind.EVALUATION)
    first = objective.benchmark_id if objective else None
    scored = boards(since, first=first) if sees_scores else []
    roles = roles_reached(request.rights)
    return {
        "alone": decided_alone(now) if roles else [],
        "aim": aim(objective, scored),
        "boards": [board for board in scored if board.total],
        "promotable": promotable(scored) if _may_see(request, Kind.ARTIFACT) else [],
        "ended": ended_since(since, zone) if _may_see(request, Kind.RUN) else None,
        "decisions": decisions(request.actor, roles=roles) if _may_see(request, Kind.APPROVAL) else None,
        "growing": growing(since, now=now, zone=zone) if _may_see(request, Kind.DATASET) else [],
        "memory": newest_memory() if _may_see(request, Kind.MEMORY) else [],
        "changes": recent_changes(since, zone=zone, may_see=lambda kind: _may_see(request, kind)),
    }


def _may_see(request: PageRequest, kind: Kind) -> bool:
    return request.rights.allows(Permission.VIEW, kind)
