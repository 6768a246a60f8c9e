"""What runs write while they run, into PostgreSQL in bulk: metric points as arrays, event lines as they are. Telemetry: no audit events.

The position that has been read moves in the same transaction as what was read, so that a killed watcher neither loses nor doubles a line.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.db import transaction
from django.utils import timezone

from runs.models import Attempt, MetricChunk, MetricSeries, Run, RunLine, Watch
from runs.pools.base import Pool, PoolError
from runs.pools.events import ApiSpend, Done, Event, Progress, Unknown
from runs.pools.lines import PIECE_BYTES, BadLines, Point, parse_events, parse_metrics
from workspaces import scope
from workspaces.audit import plain

MAX_SERIES = 1000  # keys of metrics a run may have; the rest is counted as bad lines
MAX_LINES = 20_000  # event lines kept of an attempt
API_LINES = 1_000_000_000  # lines that come by the API are numbered from here, apart from those of the file
MAX_PIECES = 64  # pieces of a file read in one go, so that a flood does not hold the watcher


def read_metrics(place: Pool, attempt: Attempt, *, to_end: bool = False) -> None:
    """Take in what metrics.jsonl has gained."""
    _follow(place, attempt, "metrics", _take_metrics, to_end)


def read_events(place: Pool, attempt: Attempt, *, to_end: bool = False) -> None:
    """Take in what events.jsonl has gained."""
    _follow(place, attempt, "events", _take_events, to_end)


def add_points(run: Run, points: list[Point], *, attempt_number: int) -> int:
    """Append points to their series; returns how many found no room (too many keys). Wants a transaction with the run's watch locked."""
    by_key: dict[str, list[Point]] = {}
    for point in points:
        by_key.setdefault(point.key, []).append(point)
    series = {row.key: row for row in MetricSeries.objects.filter(run=run, key__in=by_key)}
    count = MetricSeries.objects.filter(run=run).count()
    left_out = 0
    for key, found in by_key.items():
        row = series.get(key)
        if row is None:
            if count >= MAX_SERIES:
                left_out += len(found)
                continue
            row, count = MetricSeries.objects.create(run=run, key=key), count + 1
        now = timezone.now().timestamp()
        MetricChunk.objects.create(
            series=row,
            attempt_number=attempt_number,
            steps=[point.step for point in found],
            values=[point.value for point in found],
            times=[point.time if point.time is not None else now for point in found],
        )
        finite = [point.value for point in found if math.isfinite(point.value)]
        row.count += len(found)
        row.last, row.last_step = found[-1].value, found[-1].step
        row.minimum = min([*finite, *([row.minimum] if row.minimum is not None else [])], default=None)
        row.maximum = max([*finite, *([row.maximum] if row.maximum is not None else [])], default=None)
        row.save(update_fields=["count", "last", "last_step", "minimum", "maximum"])
    return left_out


def add_lines(watch: Watch, attempt: Attempt, events: list[tuple[int, Event]]) -> None:
    """Keep event lines and what they say about progress, spend and completion. Wants the watch locked."""
    RunLine.objects.bulk_create(
        [
            RunLine(attempt=attempt, number=number, type=_type(event)[:60], body=_body(event))
            for number, event in events
            if number <= MAX_LINES or number > API_LINES
        ],
        ignore_conflicts=True,
    )
    for _, event in events:
        match event:
            case Progress():
                watch.progress_done, watch.progress_total, watch.progress_text = event.done, event.total, event.text[:300]
            case ApiSpend():
                watch.api_spend_micros += event.micros
            case Done():
                watch.said_done = event.status != "failed"
    watch.save(update_fields=["progress_done", "progress_total", "progress_text", "api_spend_micros", "said_done"])


def _follow(place: Pool, attempt: Attempt, name: str, take: Callable[[Watch, Attempt, bytes], int], to_end: bool) -> None:
    workspace = scope.current_id().hex
    for _ in range(100 * MAX_PIECES if to_end else MAX_PIECES):
        with transaction.atomic():
            watch = Watch.objects.select_for_update().get(attempt=attempt)
            offset = getattr(watch, f"{name}_offset")
            try:
                chunk = place.read(workspace, attempt.key, f"{name}.jsonl", offset=offset, limit=PIECE_BYTES)
            except PoolError as error:
                _note_bad(watch, name, BadLines(), error.reason)
                return
            consumed = take(watch, attempt, chunk) if chunk else 0
            if to_end and not consumed and chunk:
                consumed = take(watch, attempt, chunk + b"\n") - 1  # a last line without its end
            setattr(watch, f"{name}_offset", offset + consumed)
            watch.save(update_fields=[f"{name}_offset", f"{name}_lines", f"{name}_bad", "bad_lines"])
        if consumed == 0 or (len(chunk) < PIECE_BYTES and not to_end):
            return


def _take_metrics(watch: Watch, attempt: Attempt, chunk: bytes) -> int:
    points, bad, consumed, lines = parse_metrics(chunk, watch.metrics_lines + 1)
    left_out = add_points(Run.objects.get(pk=attempt.run_id), points, attempt_number=attempt.number) if points else 0
    watch.metrics_lines += lines
    watch.metrics_bad += bad.count + left_out
    _note_bad(watch, "metrics", bad, f"more than {MAX_SERIES} keys" if left_out else "")
    return consumed


def _take_events(watch: Watch, attempt: Attempt, chunk: bytes) -> int:
    events, bad, consumed, lines = parse_events(chunk, watch.events_lines + 1)
    if events:
        add_lines(watch, attempt, events)
    watch.events_lines += lines
    watch.events_bad += bad.count
    _note_bad(watch, "events", bad, "")
    return consumed


def _note_bad(watch: Watch, name: str, bad: BadLines, reason: str) -> None:
    """Keep the first bad lines of each file with their numbers."""
    known = [entry for entry in watch.bad_lines if entry["file"] == name]
    for line in bad.first[: max(0, 20 - len(known))]:
        watch.bad_lines.append({"file": name, "number": line.number, "reason": line.reason})
    if reason and not any(entry["reason"] == reason for entry in watch.bad_lines):
        watch.bad_lines.append({"file": name, "number": None, "reason": reason})
    if reason or bad.first:
        watch.save(update_fields=["bad_lines"])


def _type(event: Event) -> str:
    return event.type if isinstance(event, Unknown) else type(event).__name__.lower()


def _body(event: Event) -> dict[str, Any]:
    return dict(plain(asdict(event)))
