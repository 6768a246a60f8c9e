"""The home page of a workspace, and the part of it that follows what is under way."""

from typing import Any

from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from runs.queries.home import aim, blocks, board, burn, decisions, growth, running_now, standing_limits
from runs.queries.recent import recent_changes
from runs.views.live import live
from workspaces.access import Kind, Permission
from workspaces.pages import PageRequest
from workspaces.queries.chain import last_finding


def home(request: PageRequest) -> HttpResponseBase:
    if request.GET.get("part") == "live":
        return live(request, "runs/home_live.html", _now(request, is_part=True))
    aimed = aim()
    context = _now(request, is_part=False) | {
        "aim": aimed,
        "decisions": decisions(request.actor, may_approve=request.rights.allows(Permission.APPROVE, Kind.APPROVAL)),
        "board": board(aimed),
        "growth": growth(),
        "events": recent_changes(),
        "record": last_finding(),
    }
    return render(request, "runs/home.html", context)


def _now(request: PageRequest, *, is_part: bool) -> dict[str, Any]:
    now = timezone.now()
    running = running_now()
    limits = standing_limits(request.workspace, running, now)
    return {
        "now": running,
        "rows": [(row, row.seconds(now)) for row in running.rows],
        "burn": burn(limits, running, now),
        "blocks": blocks(request.workspace, limits, running, now),
        "is_part": is_part,
    }
