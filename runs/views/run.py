"""The page of one run, its live part, and the two things that may be done to it."""

from typing import Any

from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from runs.commands.launch import retry_run
from runs.commands.run import cancel_any_run, cancel_run
from runs.models import Run
from runs.queries.launch_again import launch_query
from runs.queries.metric import points, series_of
from runs.queries.run_page import (
    artifacts_of,
    attempts_of,
    count_events,
    entries_of,
    events_of,
    find_run,
    inputs_of,
    lines_of,
    newest_contract,
    outputs_of,
    state_of,
)
from runs.views.certificate import checks
from runs.views.live import live
from runs.views.log import log_context
from runs.views.metric import drawn, metrics_context
from workspaces.access import Kind, Permission
from workspaces.pages import PageRequest, redirect

TABS = {
    "overview": "Overview",
    "log": "Log",
    "metrics": "Metrics",
    "files": "Inputs & outputs",
    "certificate": "Certificate",
    "cost": "Cost",
    "audit": "Audit",
}
# Tabs that go on by themselves while the run is under way, and the fragment that each asks for.
LIVE_TABS = {"log": "runs/run_log.html", "metrics": "runs/run_curves.html"}
CURVES_SHOWN = 6


def run_page(request: PageRequest, run: str) -> HttpResponseBase:
    found = find_run(run)
    tab = request.GET.get("tab", "overview")
    tab = tab if tab in TABS else "overview"
    if request.GET.get("part") == "live":
        response = live(request, "runs/run_live.html", _live(request, found, tab, is_part=True))
        if found.is_terminal:
            response["HX-Refresh"] = "true"  # what may be done with it has changed as well: the whole page is asked for anew
        return response
    if request.GET.get("part") == "tab" and tab in LIVE_TABS:
        return live(request, LIVE_TABS[tab], {"run": found, "is_live": not found.is_terminal} | _of_tab(request, found, tab))
    context = _live(request, found, tab, is_part=False) | {
        "tabs": TABS,
        "tab_template": f"runs/run_{tab}.html",
        "inputs": inputs_of(found),
        "outputs": outputs_of(found),
        "events_count": count_events(found),
        "newest_contract": newest_contract(found),
        "may_cancel": _may_cancel(request, found),
        "may_retry": found.is_terminal and request.rights.allows(Permission.LAUNCH_RUN, Kind.RUN),
        "again_query": launch_query(found),
    }
    return render(request, "runs/run.html", context | _of_tab(request, found, tab))


def run_cancel(request: PageRequest, run: str) -> HttpResponseBase:
    found = find_run(run)
    reason = request.POST.get("reason", "").replace("\x00", "").strip()[:1000]
    cancel = cancel_run if request.actor.user is not None and found.requested_by_id == request.actor.user.pk else cancel_any_run
    cancel(actor=request.actor, run=found, reason=reason)
    return redirect("run", request.workspace.slug, found.public_id)


def run_retry(request: PageRequest, run: str) -> HttpResponseBase:
    launched = retry_run(actor=request.actor, run=find_run(run))
    return redirect("run", request.workspace.slug, launched.run.public_id)


def _may_cancel(request: PageRequest, run: Run) -> bool:
    if run.is_terminal or run.status == Run.Status.CANCELLING:
        return False
    own = request.actor.user is not None and run.requested_by_id == request.actor.user.pk
    return request.rights.allows(Permission.CANCEL_RUN if own else Permission.MANAGE_QUEUE, Kind.RUN)


def _live(request: PageRequest, run: Run, tab: str, *, is_part: bool) -> dict[str, Any]:
    state = state_of(run)
    context: dict[str, Any] = {
        "run": run,
        "state": state,
        "tab": tab,
        "seconds": state.seconds(timezone.now()),
        "percent": None if state.share_done is None else int(state.share_done * 100),
        "is_live": not run.is_terminal,
        "is_part": is_part,
    }
    if tab == "overview":
        series = series_of(run)
        curves = points(run, [entry.key for entry in series[:CURVES_SHOWN]])
        context |= {
            "series": series,
            "charts": [(entry.key, [(entry.key, drawn(curves.get(entry.key, []), "step"))]) for entry in series[:CURVES_SHOWN]],
            "attempts": attempts_of(run),
            "lines": lines_of(run)[:8],
        }
    return context


def _of_tab(request: PageRequest, run: Run, tab: str) -> dict[str, Any]:
    match tab:
        case "log":
            return log_context(request, run)
        case "metrics":
            return metrics_context(request, run)
        case "files":
            return {"artifacts": artifacts_of(run), "lines": lines_of(run)}
        case "certificate":
            return {"checks": checks(run.certificate.lines)}
        case "cost":
            return {"entries": entries_of(run), "attempts": attempts_of(run)}
        case "audit":
            return {"events": events_of(run)}
    return {}
