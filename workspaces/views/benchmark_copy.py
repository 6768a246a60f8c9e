"""Public definitions of benchmarks: the page that anyone reads, opening and closing it, and frozen copies in other workspaces."""

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from workspaces.audit import Refusal
from workspaces.commands.benchmark_copy import follow_source, import_benchmark
from workspaces.commands.share import grant_share, revoke_share
from workspaces.forms.benchmark_copy import BenchmarkImportForm, PublicForm
from workspaces.models import Benchmark, NotFound, Workspace
from workspaces.pages import PageRequest, redirect
from workspaces.queries.public_benchmark import find_public, is_open_to_all, public_definition, standing_grant
from workspaces.queries.registry import current_contract
from workspaces.queries.source_difference import difference
from workspaces.queries.workspace import find_workspace
from workspaces.views.form_page import form_page


def public_benchmark(request: PageRequest, workspace: str, benchmark: str) -> HttpResponseBase:
    """Anyone may read it, signed in or not; what is not public looks like what is not there."""
    giver = find_workspace(workspace)
    if giver is None:
        raise NotFound("benchmark")
    return render(request, "workspaces/public_benchmark.html", {"definition": public_definition(giver, find_public(giver, benchmark))})


def benchmark_public(request: PageRequest, benchmark: str) -> HttpResponseBase:
    """Open the definition to everyone, or close it again."""
    found, grant = Benchmark.objects.find(benchmark), standing_grant(Benchmark.objects.find(benchmark))
    form = PublicForm(request.POST or None)

    def save(form: PublicForm) -> HttpResponseBase:
        reason = form.cleaned_data["reason"]
        if grant is not None:
            revoke_share(actor=request.actor, grant=grant, reason=reason)
        else:
            grant_share(
                actor=request.actor, object_type="benchmark", object_id=found.public_id, to_workspace=None, expires_at=None, reason=reason
            )
        return redirect("benchmark", request.workspace.slug, found.slug)

    lead = "Anyone reads metrics, terms and instants of its contract, and may copy it; runs, scores and data stay private."
    if request.workspace.visibility != Workspace.Visibility.PUBLIC_BENCHMARKS:
        lead = "This workspace shows nothing in public, whatever is granted: its settings say whether its benchmarks may be public."
    elif is_open_to_all(request.workspace, found):
        lead = f"Anyone reads it at {reverse('public-benchmark', args=[request.workspace.slug, found.slug])}. Copies that were made stay."
    title = f"{'Close' if grant else 'Open'} the definition of {found.name}"
    above = reverse("benchmark", args=[request.workspace.slug, found.slug])
    submit = "Close the public page" if grant else "Open it to everyone"
    trail = ((found.name, above),)
    return form_page(request, form, save, title=title, submit=submit, lead=lead, trail=trail, back=above)


def benchmark_import(request: PageRequest) -> HttpResponseBase:
    asked = {name: request.GET[name] for name in ("workspace", "benchmark") if name in request.GET}
    form = BenchmarkImportForm(request.POST or None, initial=asked)

    def save(form: BenchmarkImportForm) -> HttpResponseBase:
        try:
            copy = import_benchmark(actor=request.actor, **form.cleaned_data)
        except NotFound:
            raise Refusal("No public benchmark has this id in that workspace.", field="benchmark") from None
        return redirect("benchmark", request.workspace.slug, copy.slug)

    above = reverse("benchmark-list", args=[request.workspace.slug])
    lead = (
        "A frozen copy of the contract, with the hash that it has at its source. Data does not travel: a holdout is used where this workspace has a"
        " version with the same content."
    )
    return form_page(
        request,
        form,
        save,
        title="Import a public benchmark",
        submit="Import benchmark",
        lead=lead,
        trail=(("Benchmarks", above),),
        back=above,
    )


def benchmark_source(request: PageRequest, benchmark: str) -> HttpResponseBase:
    """What the source of a copy says now, beside what the copy says. Any other benchmark has no source: it leads to its own page."""
    found = Benchmark.objects.find(benchmark)
    if not found.source:
        return redirect("benchmark", request.workspace.slug, found.slug)
    context = {"benchmark": found, "difference": difference(found, current_contract(found.pk))}
    return render(request, "workspaces/benchmark_source.html", context)


def benchmark_follow(request: PageRequest, benchmark: str) -> HttpResponseBase:
    """Take over what the source of a copy says now."""
    found = Benchmark.objects.find(benchmark)
    follow_source(actor=request.actor, benchmark=found)
    return redirect("benchmark", request.workspace.slug, found.slug)
