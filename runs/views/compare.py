"""Runs side by side, as a page and as a file: `?run=…&run=…`, differences only unless `all=1`."""

from typing import Any

from django.http import HttpResponseBase
from django.shortcuts import render

from runs.models import Run
from runs.queries.compare import MOST_RUNS, Comparison, compare, find_runs
from workspaces.pages import PageRequest
from workspaces.views.csv_file import Piece, csv_file


def run_compare(request: PageRequest) -> HttpResponseBase:
    asked = request.GET.getlist("run")
    if not asked:
        return render(request, "runs/compare.html", {"comparison": None, "is_all": False})
    found = compare(find_runs(asked))
    shows_all = _shows_all(request, found)
    context: dict[str, Any] = {
        "comparison": found,
        "columns": [(run, score, _without(request, found, run)) for run, score in zip(found.runs, found.scores, strict=True)],
        "sections": _sections(found, shows_all),
        "is_all": shows_all,
        "is_cut": len(set(asked)) > MOST_RUNS,
        "most": MOST_RUNS,
    }
    return render(request, "runs/compare.html", context)


def run_compare_csv(request: PageRequest) -> HttpResponseBase:
    found = compare(find_runs(request.GET.getlist("run")))
    shows_all = _shows_all(request, found)

    def piece(cursor: str) -> Piece:
        scores = ("score", "", *(score.value if score else None for score in found.scores))
        return [scores, *((row.section, row.name, *row.values) for row in found.rows if shows_all or row.differs)], ""

    head = ("section", "name", *(run.public_id for run in found.runs))
    return csv_file(f"{request.workspace.slug}-compare", head, piece, workspace_id=request.workspace.pk)


def _sections(found: Comparison, shows_all: bool) -> list[tuple[str, list[Any]]]:
    sections: dict[str, list[Any]] = {}
    for row in found.rows:
        if shows_all or row.differs:
            sections.setdefault(row.section, []).append(row)
    return list(sections.items())


def _shows_all(request: PageRequest, found: Comparison) -> bool:
    """Asked for, or nothing to differ from."""
    return request.GET.get("all") == "1" or len(found.runs) == 1


def _without(request: PageRequest, found: Comparison, left_out: Run) -> str:
    """The address without one of the runs; empty where it is the last."""
    query = request.GET.copy()
    query.setlist("run", [run.public_id for run in found.runs if run != left_out])
    return f"?{query.urlencode()}" if len(found.runs) > 1 else ""
