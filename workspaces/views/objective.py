"""Pages of the objective."""

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from workspaces.commands.objective import set_objective
from workspaces.forms.resource import ObjectiveForm
from workspaces.models import Benchmark
from workspaces.pages import PageRequest, redirect
from workspaces.queries.objective import current_objective, earlier_objectives
from workspaces.views.form_page import form_page


def objective(request: PageRequest) -> HttpResponseBase:
    return render(request, "workspaces/objective.html", {"objective": current_objective(), "earlier": list(earlier_objectives()[:50])})


def objective_set(request: PageRequest) -> HttpResponseBase:
    now = current_objective()
    shown = (
        {"statement": now.statement, "benchmark": now.benchmark.slug if now.benchmark else "", "target": now.target, "due_on": now.due_on}
        if now
        else {}
    )
    form = ObjectiveForm(request.POST or None, initial=shown, benchmarks=list(Benchmark.objects.order_by("name", "slug")[:500]))

    def save(form: ObjectiveForm) -> HttpResponseBase:
        set_objective(actor=request.actor, **form.cleaned_data)
        return redirect("objective", request.workspace.slug)

    above = reverse("objective", args=[request.workspace.slug])
    lead = "The one before stays on the record with its dates."
    return form_page(
        request, form, save, title="Set the objective", submit="Set objective", lead=lead, trail=(("Objective", above),), back=above
    )
