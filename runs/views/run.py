"""The page of one run, its live part, and what may be done to it."""

from dataclasses import replace
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from runs.admission import EVALUATE
from runs.commands.launch import retry_run
from runs.commands.lost import declare_lost, may_declare_lost
from runs.commands.run import cancel, may_cancel
from runs.models import MetricSeries, Run, RunLine
from runs.queries.artifact import uses_of_run
from runs.queries.bad_lines import bad_lines_of, count_of
from runs.queries.failure import failure_of
from runs.queries.launch_again import launch_query
from runs.queries.metric import curves, series_of
from runs.queries.queue import waiting_of
from runs.queries.recent import EventLine
from runs.queries.run_list import FAILURES
from runs.queries.run_page import (
    RunState,
    artifacts_of,
    entries_of,
    events_of,
    figures_of,
    find_run,
    inputs_shown,
    lines_of,
    stamp_of,
    stamp_of_rows,
    state_of,
)
from runs.queries.undeclared import undeclared_inputs
from runs.views.live import live, live_since
from runs.views.log import log_context
from runs.views.metric import metrics_context
from runs.views.once import form_key, id_of
from workspaces.access import Kind, Permission
from workspaces.checklist import checks
from workspaces.forms.resource import ReasonForm
from workspaces.models import Workspace
from workspaces.pages import PageRequest, redirect
from workspaces.queries.withdrawal import withdrawals_on
from workspaces.views.form_page import form_page

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
LINES_SHOWN = 8
COLUMNS = 120  # of a curve that is half as wide as the page's main column


def run_page(request: PageRequest, run: str) -> HttpResponseBase:
    found = find_run(run)
    tab = request.GET.get("tab", "overview")
    tab = tab if tab in TABS else "overview"
    part = request.GET.get("part", "")
    if part == "live":
        return _live_part(request, found, tab)
    if part == "tab" and tab in LIVE_TABS:
        return _tab_part(request, found, tab)
    state, inputs = state_of(found), inputs_shown(found)
    figures = figures_of(found, state.attempts)
    withdrawn_by = withdrawals_on("run", found.pk)
    context = _live(request.workspace, state, tab, is_part=False) | {
        "tabs": TABS,
        "tab_template": f"runs/run_{tab}.html",
        "inputs": inputs,
        "outputs": figures.outputs,
        "events_count": figures.events,
        "newest_contract": figures.newest_contract,
        "may_cancel": may_cancel(request.actor, request.rights, found),
        "may_declare_lost": state.is_unanswered and may_declare_lost(request.rights, found),
        "may_score": not withdrawn_by and _may_score(request, state, figures.outputs.count),
        "withdrawn_by": withdrawn_by,
        "once": form_key(request),
        "may_retry": found.is_terminal and request.rights.allows(Permission.LAUNCH_RUN, Kind.RUN),
        "again_query": launch_query(found, inputs),
    }
    return render(request, "runs/run.html", context | _of_tab(request, state, tab))


def run_cancel(request: PageRequest, run: str) -> HttpResponseBase:
    found = find_run(run)
    reason = request.POST.get("reason", "").replace("\x00", "").strip()[:1000]
    cancel(actor=request.actor, run=found, reason=reason)
    return redirect("run", request.workspace.slug, found.public_id)


def run_lost(request: PageRequest, run: str) -> HttpResponseBase:
    found = find_run(run)
    form = ReasonForm(request.POST or None)

    def save(form: ReasonForm) -> HttpResponseBase:
        declare_lost(actor=request.actor, run=found, reason=form.cleaned_data["reason"])
        return redirect("run", request.workspace.slug, found.public_id)

    lead = (
        "Its pool does not answer. The run ends now, its places are free and its budget is settled; its program may still run there until "
        "its wall limit. This cannot be undone."
    )
    above = reverse("run", args=[request.workspace.slug, found.public_id])
    trail = (("Runs", reverse("run-list", args=[request.workspace.slug])), (f"#{found.number}", above))
    return form_page(request, form, save, title="Declare this run lost", submit="Declare lost", lead=lead, trail=trail, back=above)


def run_retry(request: PageRequest, run: str) -> HttpResponseBase:
    launched = retry_run(actor=request.actor, run=find_run(run), run_id=id_of(request, form_key(request)))
    return redirect("run", request.workspace.slug, launched.run.public_id)


def _may_score(request: PageRequest, state: RunState, outputs: int) -> bool:
    """It left something and neither has a score of its own nor is there to give one to others."""
    run = state.run
    is_open = run.status == Run.Status.SUCCEEDED and run.kind != EVALUATE and state.score is None and outputs > 0
    return is_open and request.rights.allows(Permission.LAUNCH_RUN, Kind.RUN)


def _live_part(request: PageRequest, run: Run, tab: str) -> HttpResponse:
    state = state_of(run)
    series, lines = (series_of(run), _said(state)) if tab == "overview" else ([], [])
    stamp = stamp_of(state, timezone.now(), series, lines)
    response = live_since(
        request, "runs/run_live.html", stamp, lambda: _live(request.workspace, state, tab, is_part=True, series=series, lines=lines)
    )
    if run.is_terminal:
        response["HX-Refresh"] = "true"  # what may be done with it has changed as well: the whole page is asked for anew
    return response


def _tab_part(request: PageRequest, run: Run, tab: str) -> HttpResponse:
    def context() -> dict[str, Any]:
        return {"run": run, "is_live": not run.is_terminal} | _of_tab(request, state_of(run), tab)

    if tab != "metrics":
        return live(request, LIVE_TABS[tab], context())
    return live_since(request, LIVE_TABS[tab], f"{run.is_terminal} {stamp_of_rows(series_of(run))}", context)


def _live(
    workspace: Workspace,
    state: RunState,
    tab: str,
    *,
    is_part: bool,
    series: list[MetricSeries] | None = None,
    lines: list[RunLine] | None = None,
) -> dict[str, Any]:
    context: dict[str, Any] = {
        "run": state.run,
        "state": state,
        "tab": tab,
        "seconds": state.seconds(timezone.now()),
        "percent": None if state.share_done is None else int(state.share_done * 100),
        "is_live": not state.run.is_terminal,
        "is_part": is_part,
        "waiting": waiting_of(state.run, workspace) if state.run.status == Run.Status.QUEUED else None,
    }
    if tab == "overview":
        series = series_of(state.run) if series is None else series
        drawn = curves(series[:CURVES_SHOWN], columns=COLUMNS)
        context |= {
            "series": series,
            "charts": [(key, [(key, curve)]) for key, curve in drawn.items()],
            "attempts": state.attempts,
            "lines": _said(state) if lines is None else lines,
            **_bad(state),
            "failure": failure_of(state.run) if state.run.status in FAILURES else None,
        }
    return context


def _said(state: RunState) -> list[RunLine]:
    return lines_of(state.attempts, LINES_SHOWN)


def _bad(state: RunState) -> dict[str, Any]:
    found = bad_lines_of(state.run.pk) if state.attempts else []
    return {"bad_files": found, "bad_count": count_of(found)}


def _events(request: PageRequest, state: RunState) -> list[EventLine]:
    """Each leads to its place in the record, for those who may read that."""
    found = events_of(state.run, state.attempts)
    if not request.rights.allows(Permission.VIEW_AUDIT, Kind.AUDIT):
        return [line for _, line in found]
    return [replace(line, url=reverse("event", args=[request.workspace.slug, event.public_id])) for event, line in found]


def _of_tab(request: PageRequest, state: RunState, tab: str) -> dict[str, Any]:
    run = state.run
    match tab:
        case "log":
            return log_context(request, run)
        case "metrics":
            return metrics_context(request, run) | {"attempts": state.attempts} | _bad(state)
        case "files":
            return {
                "artifacts": artifacts_of(run),
                "attempts": state.attempts,
                "lines": lines_of(state.attempts),
                **_bad(state),
                "uses": uses_of_run(run),
                "undeclared": undeclared_inputs(run),
            }
        case "certificate":
            return {"checks": checks(run.certificate.lines)}
        case "cost":
            return {"entries": entries_of(run), "attempts": state.attempts}
        case "audit":
            return {"events": _events(request, state)}
    return {}
