"""Metrics of a run: the tab with its curves, one series as a table, and as a file."""

from typing import Any

from django.http import HttpResponseBase

from runs.models import Run
from runs.queries.metric import curves, find_series, points, points_in_pieces, series_of
from runs.queries.run_page import find_run
from workspaces.models import NotFound
from workspaces.pages import PageRequest
from workspaces.views.csv_file import Piece, csv_file

CURVES_A_PAGE = 12
COLUMNS = 400  # of a curve as wide as the page's main column
ROWS_SHOWN = 1_000
AXES = {"step": "step", "time": "seconds since the first value"}


def metrics_context(request: PageRequest, run: Run) -> dict[str, Any]:
    """What the tab shows: curves of the series whose name holds `q`, over `x`, `y` linear or logarithmic; or one series as a table."""
    text = request.GET.get("q", "")[:250]
    key = request.GET.get("key", "")[:250]
    series = series_of(run, text)
    x = request.GET.get("x", "step") if request.GET.get("x") in AXES else "step"
    context: dict[str, Any] = {
        "series": series,
        "text": text,
        "x": x,
        "x_words": AXES[x],
        "is_log": request.GET.get("y") == "log",
        "key": key,
    }
    if key:
        found = find_series(run, key)
        if found is None:
            raise NotFound("metric")
        written = points(found, limit=ROWS_SHOWN)
        return context | {"points": written.items, "points_count": written.count}
    drawn = curves(series[:CURVES_A_PAGE], columns=COLUMNS, by_time=x == "time", is_log=context["is_log"])
    return context | {"charts": [(key, [(key, curve)]) for key, curve in drawn.items()]}


def run_metric_csv(request: PageRequest, run: str) -> HttpResponseBase:
    found = find_run(run)
    series = find_series(found, request.GET.get("key", "")[:250])
    if series is None:
        raise NotFound("metric")

    pieces = points_in_pieces(series)

    def piece(cursor: str) -> Piece:
        rows = next(pieces, [])
        return list(rows), "more" if rows else ""

    return csv_file(f"{found.public_id}-metric", ("step", "value", "seconds UTC"), piece, workspace_id=request.workspace.pk)
