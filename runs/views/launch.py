"""The launch page: the form, the estimate with the certificate before anything is written, and the launch itself."""

from typing import Any

from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import render

from runs.admission import Answer
from runs.commands.launch import launch_run
from runs.forms.launch import LaunchForm
from runs.models import Certificate
from runs.queries.estimate import Estimate, estimate
from runs.queries.launch_choices import launch_choices
from runs.views.certificate import checks
from workspaces.audit import Refusal
from workspaces.models import NotFound
from workspaces.pages import PageRequest, redirect

FIELDS = {"benchmark_id": "benchmark", "agent_id": "agent", "compute_pool_id": "pool", "dataset_ids": "datasets", "budget": "gpu_hours"}


def run_launch(request: PageRequest) -> HttpResponseBase:
    """GET shows the form, filled from the address; POST with `act=check` looks, with `act=launch` launches."""
    given = request.POST if request.method == "POST" else request.GET
    form = LaunchForm(given if given else None, launch_choices())
    if request.method != "POST":
        return _page(request, form, _look(request, form) if form.is_bound and _has_enough(given) else None)
    if not form.is_valid():
        return _page(request, form, None, status=422)
    if request.POST.get("act") != "launch":
        found = _look(request, form)
        return _page(request, form, found, status=200 if found is not None else 422)
    try:
        launched = launch_run(actor=request.actor, request=form.request())
    except NotFound as missing:
        form.add_error(None, f"There is no such {missing.noun} here any more; choose anew.")
        return _page(request, form, None, status=422)
    except Refusal as refusal:
        if not refusal.certificate:
            _place(form, refusal)
            return _page(request, form, None, status=409)
        return _page(request, form, _look(request, form), status=409, refused=Certificate.objects.find(refusal.certificate))
    return redirect("run", request.workspace.slug, launched.run.public_id)


def _look(request: PageRequest, form: LaunchForm) -> Estimate | None:
    if not form.is_valid():
        return None
    try:
        return estimate(request.actor, form.request())
    except NotFound as missing:
        form.add_error(None, f"There is no such {missing.noun} here any more; choose anew.")
    except Refusal as refusal:
        _place(form, refusal)
    return None


def _place(form: LaunchForm, refusal: Refusal) -> None:
    """Each reason beside the field that it is about, where there is one."""
    named = FIELDS.get(refusal.field, refusal.field)
    for reason in refusal.reasons:
        name = f"p.{reason.partition(':')[0]}" if refusal.field == "parameters" else named
        form.add_error(name if name in form.fields else None, reason)


def _has_enough(given: QueryDict) -> bool:
    return bool(given.get("benchmark") and given.get("agent"))


def _page(
    request: PageRequest, form: LaunchForm, found: Estimate | None, *, status: int = 200, refused: Certificate | None = None
) -> HttpResponse:
    lines = refused.lines if refused is not None else found.verdict.as_json() if found is not None else []
    context: dict[str, Any] = {
        "form": form,
        "estimate": found,
        "checks": checks(lines),
        "refused": refused,
        "waits": found is not None and found.verdict.answer == Answer.APPROVAL,
        "would_refuse": found is not None and found.verdict.answer == Answer.REFUSE,
        "has_choices": bool(form.fields["benchmark"].choices[1:] and form.fields["agent"].choices[1:]),  # type: ignore[attr-defined]  # both are ChoiceFields
    }
    template = "runs/launch_form.html" if request.htmx and not request.htmx.boosted else "runs/launch.html"
    return render(request, template, context, status=status)
