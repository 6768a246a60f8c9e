"""Runs side by side, as a page and as a file: `?run=…&run=…`, differences only unless `all=1`."""

from typing import Any

from django.http import HttpResponseBase
from django.shortcuts import render

from runs.queries.compare import MOST_RUNS, Comparison, compare, find_runs
from workspaces.pages import PageRequest
from workspaces.views.csv_file import Piece, csv_file


def run_compare(request: PageRequest) -> HttpResponseBase:
    asked = request.GET.getlist("run")
    if not asked:
        return render(request, "runs/compare.html", {"comparison": None, "is_all": False})
    found = compare(find_runs(asked))
    shows_all = request.GET.get("all") == "1" or len(found.runs) == 1
    context: dict[str, Any] = {
        "comparison": found,
        "columns": [(run, score, _without(request, run.public_id)) for run, score in zip(found.runs, found.scores, strict=True)],
        "sections": _sections(found, shows_all),
        "is_all": shows_all,
        "is_cut": len(set(asked)) > MOST_RUNS,
        "most": MOST_RUNS,
    }
    return render(request, "runs/compare.html", context)


def run_compare_csv(request: PageRequest) -> HttpResponseBase:
    found = compare(find_runs(request.GET.getlist("run")))
    shows_all = request.GET.get("all") == "1"

    def piece(cursor: str) -> Piece:
        rows: Piece = ([], "")
        scores = [score.value if score else None for score in found.scores]
        rows[0].append(("score", "", *scores))
        rows[0].extend((row.section, row.name, *row.values) for row in found.rows if shows_all or row.differs)
        return rows

    head = ("section", "name", *(run.public_id for run in found.runs))
    return csv_file(f"{request.workspace.slug}-compare", head, piece, workspace_id=request.workspace.pk)


def _sections(found: Comparison, shows_all: bool) -> list[tuple[str, list[Any]]]:
    sections: dict[str, list[Any]] = {}
    for row in found.rows:
        if shows_all or row.differs:
            sections.setdefault(row.section, []).append(row)
    return list(sections.items())


def _without(request: PageRequest, run: str) -> str:
    """The address without one of the runs; empty where it is the last."""
    query = request.GET.copy()
    kept = [text for text in query.getlist("run") if text not in (run, run.removeprefix("run_"))]
    query.setlist("run", kept)
    return f"?{query.urlencode()}" if kept else ""
