"""Datasets: what is in each, where from, how it grows, whether it may be used beside the holdouts, and what used it."""

from zoneinfo import ZoneInfo

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from runs.commands.egress import set_egress
from runs.queries.dataset_import import imports_of
from runs.queries.dataset_use import makers_of, source_artifact_of, uses_of
from runs.queries.overlap import first_checks_of
from runs.queries.verdict import verdict_of, verdicts_of
from runs.queries.withdrawn_content import withdrawn_content
from workspaces.access import Kind, Permission
from workspaces.forms.dataset import EgressForm
from workspaces.models import Dataset, DatasetFile
from workspaces.pages import PageRequest, redirect
from workspaces.queries.expected_growth import expected_of
from workspaces.queries.growth import growth_of, said_in
from workspaces.queries.preview import preview_of
from workspaces.queries.registry import dataset_rows, files_of, find_version, versions_of
from workspaces.queries.withdrawal import withdrawals_on
from workspaces.views.form_page import form_page
from workspaces.views.registry_list import list_query

SNIPPET = '{"type": "dataset", "name": "NAME", "path": "games.sgf", "records": 12}'

CHECKS = 20  # shown on the page; the API lists all


def dataset_list(request: PageRequest) -> HttpResponseBase:
    text, cursor = list_query(request)
    page = dataset_rows(text=text, cursor=cursor, folds_windows=True)
    verdicts = verdicts_of(row.version for row in page.items if row.version is not None and not row.dataset.is_live)
    rows = [(row, verdicts.get(row.version.pk) if row.version is not None else None) for row in page.items]
    return render(request, "runs/dataset_list.html", {"rows": rows, "next_cursor": page.next or "", "text": text})


def dataset(request: PageRequest, dataset: str) -> HttpResponseBase:
    found = Dataset.objects.find(dataset, "window_of")
    rows = versions_of(found)
    chosen = find_version(found, request.GET["version"]) if "version" in request.GET else rows[0].version if rows else None
    sees_runs = request.rights.allows(Permission.VIEW, Kind.RUN)
    uses, use_count = uses_of(found) if sees_runs else ([], 0)
    files = files_of(chosen) if chosen else []
    checks = first_checks_of(chosen, CHECKS + 1) if chosen else []
    shown = _shown(files, request.GET.get("file", ""))
    makers, makers_count = makers_of(found) if found.window_of_id and sees_runs else ([], 0)
    zone = request.workspace.zone or "UTC"
    withdrawn_by = withdrawals_on("dataset_version", chosen.pk) if chosen else []
    context = {
        "dataset": found,
        "rows": rows,
        "chosen": chosen,
        "files": files,
        "verdict": verdict_of(chosen) if chosen else None,
        "checks": checks[:CHECKS],
        "has_more_checks": len(checks) > CHECKS,
        "shown_file": shown,
        "preview": preview_of(shown.blob, shown.path) if shown else None,
        "growth": growth_of(found, zone=zone, today=timezone.now().astimezone(ZoneInfo(zone)).date()) if found.is_live else None,
        "expected": expected_of([found], now=timezone.now()).get(found.pk),
        "growth_snippet": SNIPPET.replace("NAME", found.slug),
        "source_artifact": source_artifact_of(chosen) if chosen and sees_runs else None,
        "imports": imports_of(found),
        "said_records": said_in(found) if found.window_of_id else 0,
        "makers": makers,
        "makers_count": makers_count,
        "uses": uses,
        "use_count": use_count,
        "sees_runs": sees_runs,
        "withdrawn_by": withdrawn_by,
        "withdrawn_content": withdrawn_content(chosen) if chosen and not withdrawn_by else None,
    }
    return render(request, "runs/dataset.html", context)


def dataset_egress(request: PageRequest, dataset: str) -> HttpResponseBase:
    found = Dataset.objects.find(dataset)
    form = EgressForm(request.POST or None, initial={"egress": found.egress})

    def save(form: EgressForm) -> HttpResponseBase:
        set_egress(actor=request.actor, dataset=found, **form.cleaned_data)
        return redirect("dataset", request.workspace.slug, found.slug)

    slug = request.workspace.slug
    back = reverse("dataset", args=[slug, found.slug])
    trail = (("Datasets", reverse("dataset-list", args=[slug])), (found.name, back))
    return form_page(request, form, save, title=f"What may leave with {found.name}", submit="Save", trail=trail, back=back)


def _shown(files: list[DatasetFile], path: str) -> DatasetFile | None:
    """The file whose beginning is shown: the one asked for, else the first that holds anything."""
    return next((file for file in files if file.path == path), next((file for file in files if file.blob.bytes), None))
