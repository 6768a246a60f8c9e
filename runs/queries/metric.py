"""Curves of a run: its series with their summaries, and the points of one series in order."""

from dataclasses import dataclass

from runs.models import MetricChunk, MetricSeries, Run


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """`step` as the run wrote it, `value` a number, NaN or an infinity, `seconds` UTC."""

    step: int
    value: float
    seconds: float


def series_of(run: Run, text: str = "") -> list[MetricSeries]:
    """The run's series by name; `text` narrows to those whose name holds it."""
    rows = MetricSeries.objects.filter(run=run).order_by("key")
    return list(rows.filter(key__icontains=text) if text else rows)


def find_series(run: Run, key: str) -> MetricSeries | None:
    return MetricSeries.objects.filter(run=run, key=key).first()


def curve(run: Run, key: str) -> list[tuple[int, float]]:
    """(step, value) of one series, by step."""
    return [(point.step, point.value) for point in points(run, [key]).get(key, [])]


def points(run: Run, keys: list[str]) -> dict[str, list[MetricPoint]]:
    """The points of several series by one query.

    A later attempt that goes over steps again replaces what an earlier one wrote from there on: the curve is what the run stands on.
    """
    written: dict[str, dict[int, list[MetricPoint]]] = {}
    chunks = MetricChunk.objects.filter(series__run=run, series__key__in=keys).order_by("series", "pk")
    for key, attempt, steps, values, times in chunks.values_list("series__key", "attempt_number", "steps", "values", "times"):
        written.setdefault(key, {}).setdefault(attempt, []).extend(map(MetricPoint, steps, values, times))
    return {key: _joined(attempts) for key, attempts in written.items()}


def _joined(attempts: dict[int, list[MetricPoint]]) -> list[MetricPoint]:
    kept: list[MetricPoint] = []
    for _, written in sorted(attempts.items()):
        begins = min(point.step for point in written) if written else 0
        kept = [*(point for point in kept if point.step < begins), *written] if written else kept
    return sorted(kept, key=lambda point: point.step)
