"""Sweeps: the list, one with its members as lines and as a table, a new one, and the end of one."""

from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from runs.commands.sweep import create_sweep, may_stop, stop
from runs.forms.sweep import PREFIX, SweepForm
from runs.models import Sweep
from runs.parallel import parallel
from runs.queries.compare import CURVED_RUNS
from runs.queries.launch_choices import launch_choices
from runs.queries.sweep import MEMBERS_SHOWN, SweepTable, find_sweep, list_sweeps, progress_of, table_of, words_of
from runs.queries.sweep_plan import SweepPlan, plan_sweep
from runs.queries.sweep_waits import why_it_waits
from runs.reservation import cost_micros
from runs.search_space import arithmetic
from runs.views.launch import FIELDS, place_missing
from runs.views.live import live
from runs.views.once import form_key, id_of
from workspaces.audit import Refusal
from workspaces.models import NotFound, User
from workspaces.pages import PageRequest, is_fragment, redirect
from workspaces.queries.paging import BadCursor
from workspaces.views.csv_file import Piece, csv_file


def sweep_list(request: PageRequest) -> HttpResponseBase:
    try:
        page = list_sweeps(cursor=request.GET.get("after", ""))
    except BadCursor:
        page = list_sweeps()
    progress = progress_of(page.items)
    rows = [(sweep, progress[sweep.pk], words_of(sweep)) for sweep in page.items]
    return render(request, "runs/sweep_list.html", {"rows": rows, "next_cursor": page.next or ""})


def sweep_page(request: PageRequest, sweep: str) -> HttpResponseBase:
    found = find_sweep(sweep)
    context = _shown(request, found)
    if request.GET.get("part") == "live":
        response = live(request, "runs/sweep_live.html", context)
        if not context["is_live"]:
            response["HX-Refresh"] = "true"  # what may be done with it has changed as well
        return response
    return render(request, "runs/sweep.html", context)


def sweep_csv(request: PageRequest, sweep: str) -> HttpResponseBase:
    found = find_sweep(sweep)
    table = _table(request, found, most=found.members)
    head = ("member", "run", "state", *table.axes, table.contract.metric, "standard error", *table.metrics, "GPU ms spent")

    def piece(cursor: str) -> Piece:
        return [
            (
                row.number, row.run.public_id, row.run.status, *(row.parameters[name] for name in table.axes),
                row.score.value if row.score else None, row.score.standard_error if row.score else None,
                *(row.metrics.get(key) for key in table.metrics), row.run.spent_gpu_ms,
            )
            for row in table.rows
        ], ""  # fmt: skip

    return csv_file(f"{request.workspace.slug}-sweep-{found.number}", head, piece, workspace_id=request.workspace.pk)


def sweep_new(request: PageRequest) -> HttpResponseBase:
    """GET shows the form, filled from the address; POST with `act=launch` asks for the sweep, `act=check` looks what it would be, and any other is
    a draft: looked at as far as it goes, without complaints about what comes next."""
    given = request.POST if request.method == "POST" else request.GET
    act = "" if is_fragment(request) else request.POST.get("act", "")
    form = SweepForm(
        given if given or request.method == "POST" else None, launch_choices(given.get("find", "")), is_draft=act not in ("check", "launch")
    )
    if request.method != "POST":
        return _form(request, form)
    if not form.is_valid():
        return _form(request, form, status=422)
    if act != "launch":
        plan = _plan(form, request.user)
        return _form(request, form, plan, status=422 if form.errors else 200)
    try:
        made = create_sweep(actor=request.actor, sweep_id=id_of(request, form_key(request)), **form.asked())
    except NotFound as missing:
        place_missing(form, missing)
        return _form(request, form, status=422)
    except Refusal as refusal:
        _place(form, refusal)
        return _form(request, form, status=409)
    return redirect("sweep", request.workspace.slug, made.public_id)


def sweep_stop(request: PageRequest, sweep: str) -> HttpResponseBase:
    found = find_sweep(sweep)
    reason = request.POST.get("reason", "").replace("\x00", "").strip()[:1000]
    stop(actor=request.actor, sweep=found, reason=reason)
    return redirect("sweep", request.workspace.slug, found.public_id)


def _plan(form: SweepForm, person: User) -> SweepPlan | None:
    """What stands in the form, as a plan; a draft that names nothing to vary yet has none, and nothing is said about it."""
    if form.is_draft and not form.has_space:
        return None
    try:
        return plan_sweep(form.request(), form.space(), person=person)
    except NotFound as missing:
        place_missing(form, missing)
    except Refusal as refusal:
        _place(form, refusal)
    return None


def _place(form: SweepForm, refusal: Refusal) -> None:
    """Each reason beside the field that it is about, where there is one."""
    for reason in refusal.reasons:
        axis = reason.partition(":")[0] if refusal.field == "parameters" else refusal.field.removeprefix("space.")
        names = (f"{PREFIX}{axis}", axis, FIELDS.get(refusal.field, ""))
        form.add_error(next((name for name in names if name in form.fields), None), reason)


def _form(request: PageRequest, form: SweepForm, plan: SweepPlan | None = None, *, status: int = 200) -> HttpResponse:
    template = "runs/sweep_form.html" if is_fragment(request) else "runs/sweep_new.html"
    cost = cost_micros(plan.gpu_ms, plan.prepared.pool.price_micros_per_gpu_hour) if plan else 0
    context = {"form": form, "once": form_key(request), "plan": plan, "cost_micros": cost}
    return render(request, template, context, status=status)


def _shown(request: PageRequest, sweep: Sweep) -> dict[str, Any]:
    table = _table(request, sweep)
    drawn = [name for name in table.axes if len({repr(row.parameters[name]) for row in table.rows}) > 1]  # one value for all says nothing
    members = [(row.run.public_id, [*(row.parameters[name] for name in drawn), table.value(row)]) for row in table.rows]
    now = timezone.now()
    progress = progress_of([sweep])[sweep.pk]
    return {
        "sweep": sweep,
        "progress": progress,
        "words": arithmetic(table.space),
        "table": table,
        "rows": [
            (row, [row.parameters[name] for name in table.axes], [row.metrics.get(key) for key in table.metrics], row.seconds(now))
            for row in table.rows
        ],
        # Another head asks for what its metric's name says is good, the one that orders now for the other way round.
        "heads": [(key, ("high" if table.descends else "low") if key == table.by else None) for key in table.metrics],
        "chart": parallel([*drawn, table.result], members, descends=table.descends),
        "waits": why_it_waits(sweep, progress.launched),
        "is_cut": progress.launched > len(table.rows),
        "compared": [row.run.public_id for row in table.rows[:CURVED_RUNS]],
        "is_live": sweep.status == Sweep.Status.RUNNING or progress.waiting + progress.active > 0,
        "may_stop": may_stop(request.actor, request.rights, sweep),
    }


def _table(request: PageRequest, sweep: Sweep, most: int | None = None) -> SweepTable:
    return table_of(sweep, by=request.GET.get("by", "")[:250], best=request.GET.get("best", ""), most=most or MEMBERS_SHOWN)
