"""Pages of benchmarks but for the scoreboard, which stands in runs/views/benchmark.py."""

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from workspaces.commands.benchmark import change_benchmark, create_benchmark, publish_contract
from workspaces.forms.benchmark import BenchmarkEditForm, BenchmarkForm, ContractForm
from workspaces.models import Benchmark
from workspaces.pages import PageRequest, redirect
from workspaces.queries.registry import benchmark_rows, contract_choices, contracts_of
from workspaces.views.form_page import form_page
from workspaces.views.registry_list import list_query


def benchmark_list(request: PageRequest) -> HttpResponseBase:
    text, cursor = list_query(request)
    page = benchmark_rows(text=text, cursor=cursor)
    return render(request, "workspaces/benchmark_list.html", {"rows": page.items, "next_cursor": page.next or "", "text": text})


def benchmark_new(request: PageRequest) -> HttpResponseBase:
    form = BenchmarkForm(request.POST or None, choices=contract_choices())

    def save(form: BenchmarkForm) -> HttpResponseBase:
        benchmark = create_benchmark(actor=request.actor, contract=form.contract(), **form.benchmark())
        return redirect("benchmark", request.workspace.slug, benchmark.slug)

    above = reverse("benchmark-list", args=[request.workspace.slug])
    lead = "What is measured, in which direction, on what. Scores compare only under one version of the contract."
    return form_page(
        request, form, save, title="New benchmark", submit="Create benchmark", lead=lead, trail=(("Benchmarks", above),), back=above
    )


def benchmark_edit(request: PageRequest, benchmark: str) -> HttpResponseBase:
    found = Benchmark.objects.find(benchmark)
    initial = {"name": found.name, "description": found.description, "is_public": found.is_public}
    form = BenchmarkEditForm(request.POST or None, initial=initial)

    def save(form: BenchmarkEditForm) -> HttpResponseBase:
        change_benchmark(actor=request.actor, benchmark=found, **form.cleaned_data)
        return redirect("benchmark", request.workspace.slug, found.slug)

    return form_page(
        request, form, save, title=f"Change {found.name}", submit="Save changes", trail=_trail(request, found), back=_url(request, found)
    )


def contract_new(request: PageRequest, benchmark: str) -> HttpResponseBase:
    found = Benchmark.objects.find(benchmark)
    newest = next(iter(contracts_of(found)), None)
    initial = ContractForm.filled(newest) if newest is not None else {}
    form = ContractForm(request.POST or None, choices=contract_choices(), initial=initial)

    def save(form: ContractForm) -> HttpResponseBase:
        publish_contract(actor=request.actor, benchmark=found, reason=form.cleaned_data["reason"], **form.contract())
        return redirect("benchmark", request.workspace.slug, found.slug)

    number = newest.version + 1 if newest else 1
    lead = "From then on only scores under this version compare; older ones stay, marked as such."
    title = f"Contract version {number} of {found.name}"
    return form_page(
        request,
        form,
        save,
        title=title,
        submit=f"Publish version {number}",
        lead=lead,
        trail=_trail(request, found),
        back=_url(request, found),
    )


def _trail(request: PageRequest, benchmark: Benchmark) -> tuple[tuple[str, str], ...]:
    return (("Benchmarks", reverse("benchmark-list", args=[request.workspace.slug])), (benchmark.name, _url(request, benchmark)))


def _url(request: PageRequest, benchmark: Benchmark) -> str:
    return reverse("benchmark", args=[request.workspace.slug, benchmark.slug])
