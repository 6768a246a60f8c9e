"""What a version shares with the holdouts: the records that show it, checking anew, and what people say of it."""

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from runs.commands.overlap import ask_overlap_check, overrule_verdict, set_reusable
from runs.forms.overlap import ReuseForm, VerdictForm
from runs.queries.overlap import find_check
from runs.queries.overlap_records import SHOWN, pairs_of
from runs.queries.verdict import verdict_of
from runs.views.numbers import whole_number
from workspaces.models import Dataset, DatasetVersion
from workspaces.pages import PageRequest, redirect
from workspaces.queries.registry import find_version
from workspaces.views.form_page import form_page


def overlap(request: PageRequest, overlap: str) -> HttpResponseBase:
    check = find_check(overlap)
    start = min(whole_number(request.GET.get("after")) or 0, len(check.pairs))
    pairs = pairs_of(check, start=start)
    following = start + SHOWN
    context = {
        "check": check,
        "verdict": verdict_of(check.version),
        "pairs": pairs,
        "kept": len(check.pairs),
        "next_cursor": str(following) if following < len(check.pairs) else "",
    }
    return render(request, "runs/overlap.html", context)


def overlap_check(request: PageRequest, dataset: str, version: str) -> HttpResponseBase:
    found, frozen = _version(dataset, version)
    ask_overlap_check(actor=request.actor, version=frozen)
    return redirect("dataset", request.workspace.slug, found.slug, query=f"version={frozen.number}")


def verdict_overrule(request: PageRequest, dataset: str, version: str) -> HttpResponseBase:
    found, frozen = _version(dataset, version)
    known = verdict_of(frozen)
    form = VerdictForm(request.POST or None, initial={"verdict": known.ruling.verdict if known.ruling else ""})

    def save(form: VerdictForm) -> HttpResponseBase:
        overrule_verdict(actor=request.actor, version=frozen, **form.cleaned_data)
        return redirect("dataset", request.workspace.slug, found.slug, query=f"version={frozen.number}")

    lead = f"The checks say: {known.checked}. {known.checked_reason}"
    trail, back = _around(request, found, frozen)
    title = f"Verdict on {frozen.label}"
    return form_page(request, form, save, title=title, submit="Overrule the checks", lead=lead, trail=trail, back=back)


def version_reuse(request: PageRequest, dataset: str, version: str) -> HttpResponseBase:
    found, frozen = _version(dataset, version)
    known = verdict_of(frozen)
    initial = {} if known.is_reusable is None else {"is_reusable": "yes" if known.is_reusable else "no"}
    form = ReuseForm(request.POST or None, initial=initial)

    def save(form: ReuseForm) -> HttpResponseBase:
        set_reusable(actor=request.actor, version=frozen, **form.cleaned_data)
        return redirect("dataset", request.workspace.slug, found.slug, query=f"version={frozen.number}")

    trail, back = _around(request, found, frozen)
    return form_page(request, form, save, title=f"Reuse of {frozen.label}", submit="Save", trail=trail, back=back)


def _version(dataset: str, version: str) -> tuple[Dataset, DatasetVersion]:
    found = Dataset.objects.find(dataset)
    frozen = find_version(found, version)
    frozen.dataset = found
    return found, frozen


def _around(request: PageRequest, dataset: Dataset, version: DatasetVersion) -> tuple[tuple[tuple[str, str], ...], str]:
    address = reverse("dataset", args=[request.workspace.slug, dataset.slug])
    trail = (("Datasets", reverse("dataset-list", args=[request.workspace.slug])), (dataset.name, address))
    return trail, f"{address}?version={version.number}"
