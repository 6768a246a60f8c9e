"""A dataset: what is in it, where from, whether it may be used, and what used it."""

from django.http import HttpResponseBase
from django.shortcuts import render

from runs.queries.dataset_use import uses_of
from workspaces.access import Kind, Permission
from workspaces.models import Dataset
from workspaces.pages import PageRequest
from workspaces.queries.registry import files_of, find_version, versions_of


def dataset(request: PageRequest, dataset: str) -> HttpResponseBase:
    found = Dataset.objects.find(dataset)
    rows = versions_of(found)
    chosen = find_version(found, request.GET["version"]) if "version" in request.GET else rows[0].version if rows else None
    sees_runs = request.rights.allows(Permission.VIEW, Kind.RUN)
    uses, use_count = uses_of(found) if sees_runs else ([], 0)
    context = {
        "dataset": found,
        "rows": rows,
        "chosen": chosen,
        "files": files_of(chosen) if chosen else [],
        "uses": uses,
        "use_count": use_count,
        "sees_runs": sees_runs,
    }
    return render(request, "runs/dataset.html", context)
