"""Metrics of a run: the tab with its curves, one series as a table, and as a file."""

import math
from typing import Any

from django.http import HttpResponseBase

from runs.models import Run
from runs.queries.metric import MetricPoint, find_series, points, series_of
from runs.queries.run_page import find_run
from workspaces.models import NotFound
from workspaces.pages import PageRequest
from workspaces.views.csv_file import Piece, csv_file

CURVES_A_PAGE = 12
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
        if find_series(run, key) is None:
            raise NotFound("metric")
        written = points(run, [key]).get(key, [])
        return context | {"points": written[:ROWS_SHOWN], "points_count": len(written)}
    shown = series[:CURVES_A_PAGE]
    curves = points(run, [entry.key for entry in shown])
    return context | {"charts": [(entry.key, [(entry.key, drawn(curves.get(entry.key, []), x))]) for entry in shown]}


def run_metric_csv(request: PageRequest, run: str) -> HttpResponseBase:
    found = find_run(run)
    key = request.GET.get("key", "")[:250]
    if find_series(found, key) is None:
        raise NotFound("metric")

    def piece(cursor: str) -> Piece:
        return [(point.step, _spelled(point.value), point.seconds) for point in points(found, [key]).get(key, [])], ""

    return csv_file(f"{found.public_id}-metric", ("step", "value", "seconds UTC"), piece, workspace_id=request.workspace.pk)


def drawn(written: list[MetricPoint], x: str) -> list[tuple[float, float]]:
    """Points as a chart takes them, in order of x."""
    if x == "step":
        return [(float(point.step), point.value) for point in written]
    timed = [point for point in written if math.isfinite(point.seconds)]
    first = min((point.seconds for point in timed), default=0.0)
    return sorted((point.seconds - first, point.value) for point in timed)


def _spelled(value: float) -> float | str:
    """The names that metrics.jsonl uses; a spreadsheet must not read `-inf` as a formula."""
    if math.isnan(value):
        return "NaN"
    return ("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else value
