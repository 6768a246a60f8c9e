"""The launch page: the form, the estimate with the certificate before anything is written, and the launch itself."""

from typing import Any

from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import render

from runs.admission import Answer
from runs.commands.launch import launch_run
from runs.forms.launch import LaunchForm
from runs.forms.parameters import PREFIX
from runs.models import Certificate
from runs.queries.estimate import Estimate, estimate
from runs.queries.launch_again import evaluate_again
from runs.queries.launch_choices import launch_choices
from runs.queries.launch_score import Scoring, score_launch
from runs.queries.parameters import parameter_faults
from runs.views.once import form_key, id_of
from workspaces.audit import Refusal
from workspaces.checklist import checks
from workspaces.models import NotFound, User
from workspaces.pages import PageRequest, is_fragment, redirect

FIELDS = {"benchmark_id": "benchmark", "agent_id": "agent", "compute_pool_id": "pool", "dataset_ids": "datasets", "budget": "gpu_hours"}
# What an estimate can be made without: a fault in them is said beside the field, and the estimate goes on as if it were empty.
OPTIONAL = frozenset({"gpu_hours", "datasets"})


def run_launch(request: PageRequest) -> HttpResponseBase:
    """GET shows the form, filled from the address (`scores=<run>`: to score that run, `again=<evaluation>`: to measure the same again); POST with
    `act=check` looks, with `act=launch` launches.
    Any other POST is a draft, `act=find` as well: `find` narrows the datasets that it offers."""
    scoring = score_launch(request.GET["scores"]) if request.method != "POST" and "scores" in request.GET else None
    given = request.POST if request.method == "POST" else QueryDict(scoring.query) if scoring else _asked(request.GET)
    act = "" if is_fragment(request) else request.POST.get("act", "")
    form = LaunchForm(
        given if given or request.method == "POST" else None, launch_choices(given.get("find", "")), is_draft=act not in ("check", "launch")
    )
    if request.method != "POST":
        return _page(request, form, _look(form, request.user) if form.is_bound else None, scoring=scoring)
    if not form.is_valid():
        return _page(request, form, _look(form, request.user), status=422)
    if act != "launch":
        found = _look(form, request.user)
        return _page(request, form, found, status=422 if form.errors else 200)
    try:
        launched = launch_run(actor=request.actor, request=form.request(), run_id=id_of(request, form_key(request)))
    except NotFound as missing:
        place_missing(form, missing)
        return _page(request, form, None, status=422)
    except Refusal as refusal:
        if refusal.certificate:
            return _page(request, form, _look(form, request.user), status=409, refused=Certificate.objects.find(refusal.certificate))
        _place(form, refusal)
        return _page(request, form, _look(form, request.user), status=409)
    return redirect("run", request.workspace.slug, launched.run.public_id)


def _asked(given: QueryDict) -> QueryDict:
    return QueryDict(evaluate_again(str(given["again"]))) if "again" in given else given


def _look(form: LaunchForm, person: User) -> Estimate | None:
    """The estimate of what stands in the form, as far as it can be made; what is wrong is said beside its field."""
    form.is_valid()
    asked = form.request()
    if not (asked.benchmark and asked.agent):
        return None
    for without in (frozenset[str](), OPTIONAL):
        try:
            found = estimate(form.request(without=without), person=person, is_draft=True)
        except NotFound as missing:
            place_missing(form, missing)
            return None
        except Refusal as refusal:
            _place(form, refusal)
            if FIELDS.get(refusal.field) not in OPTIONAL:
                return None
        else:
            _place_faults(form, found)
            return found
    return None


def _place_faults(form: LaunchForm, found: Estimate) -> None:
    """What the agent's schema says against the parameters, unless something is already said there; nothing is missing from a draft."""
    try:
        faults = parameter_faults(form.request().parameters, found.agent_version)
    except Refusal as refusal:
        _place(form, refusal)
        return
    for fault in faults:
        name = f"{PREFIX}{fault.name}"
        if fault.is_missing and form.is_draft:
            continue
        _say(form, name if name in form.fields else "parameters", fault.words if name in form.fields else str(fault))


def _place(form: LaunchForm, refusal: Refusal) -> None:
    """Each reason beside the field that it is about, where there is one."""
    for reason in refusal.reasons:
        about, _, words = reason.partition(": ")
        if refusal.field == "parameters" and f"{PREFIX}{about}" in form.fields:
            _say(form, f"{PREFIX}{about}", words)
        else:
            _say(form, FIELDS.get(refusal.field, refusal.field), reason)


def place_missing(form: LaunchForm, missing: NotFound) -> None:
    form.add_error(None, f"There is no such {missing.noun} here any more; choose anew.")


def _say(form: LaunchForm, name: str, words: str) -> None:
    """Say it once, at the field or, where there is none, above the form."""
    if name not in form.fields:
        if words not in form.non_field_errors():
            form.add_error(None, words)
    elif name not in form.errors:
        form.add_error(name, words)


def _page(
    request: PageRequest,
    form: LaunchForm,
    found: Estimate | None,
    *,
    status: int = 200,
    refused: Certificate | None = None,
    scoring: Scoring | None = None,
) -> HttpResponse:
    lines = refused.lines if refused is not None else found.verdict.as_json() if found is not None else []
    context: dict[str, Any] = {
        "form": form,
        "once": form_key(request),
        "estimate": found,
        "checks": checks(lines),
        "refused": refused,
        "scoring": scoring,
        "waits": found is not None and found.verdict.answer == Answer.APPROVAL,
        "would_refuse": found is not None and found.verdict.answer == Answer.REFUSE,
        "is_partial": found is not None and bool(form.errors),
    }
    template = "runs/launch_form.html" if is_fragment(request) else "runs/launch.html"
    return render(request, template, context, status=status)
