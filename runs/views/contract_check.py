"""Contract checks: set up from an evaluation, one result with what it is held against, and stopping."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from runs.commands.contract_check import set_contract_check, stop_contract_check
from runs.forms.contract_check import CheckForm
from runs.models import Evaluation
from runs.queries.contract_check import find_result, find_standing, results_of
from workspaces.forms.resource import ReasonForm
from workspaces.models import Benchmark
from workspaces.pages import PageRequest, redirect
from workspaces.queries.registry import current_contract
from workspaces.units import number
from workspaces.views.form_page import form_page


def contract_check_new(request: PageRequest, evaluation: str) -> HttpResponseBase:
    found = Evaluation.objects.find(evaluation, "run", "benchmark", "contract", "subject_artifact")
    error = found.standard_error
    form = CheckForm(request.POST or None, initial={"tolerance": 2 * error if error is not None else None})
    slug, back = request.workspace.slug, reverse("evaluation", args=[request.workspace.slug, found.public_id])

    def save(form: CheckForm) -> HttpResponseBase:
        set_contract_check(actor=request.actor, evaluation=found, **form.cleaned_data)
        messages.success(
            request, f"{found.benchmark.name} is checked every {form.cleaned_data['interval_days']} days, for the first time now."
        )
        return redirect("benchmark", slug, found.benchmark.slug)

    lead = (
        f"What this evaluation measured is measured again on a schedule, by ordinary runs under your rights and within your budget; {found.metric} "
        f"{number(found.value, error)} is expected. You are told where the benchmark does not measure what it did."
    )
    trail = ((found.benchmark.name, reverse("benchmark", args=[slug, found.benchmark.slug])),)
    title = f"Check {found.benchmark.name} with this evaluation"
    return form_page(request, form, save, title=title, submit="Check it on a schedule", lead=lead, trail=trail, back=back)


def check(request: PageRequest, check: str) -> HttpResponseBase:
    found = find_result(check)
    return render(request, "runs/check.html", {"result": found, "check": found.contract_check, "results": results_of(found.contract_check)})


def contract_check_stop(request: PageRequest, benchmark: str) -> HttpResponseBase:
    found = Benchmark.objects.find(benchmark)
    standing = find_standing(current_contract(found.pk))
    back = reverse("benchmark", args=[request.workspace.slug, found.slug])

    def save(form: ReasonForm) -> HttpResponseBase:
        stop_contract_check(actor=request.actor, check=standing, reason=form.cleaned_data["reason"])
        messages.success(request, f"{found.name} is checked no more.")
        return redirect("benchmark", request.workspace.slug, found.slug)

    lead = "Nothing is launched for it any more. A run that is under way goes on."
    return form_page(
        request, ReasonForm(request.POST or None), save, title=f"Stop checking {found.name}", submit="Stop the check", lead=lead,
        trail=((found.name, back),), back=back,
    )  # fmt: skip
