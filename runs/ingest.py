"""What runs write while they run, into PostgreSQL in bulk: metric points as arrays, event lines as they are. Telemetry: no audit events.

The position that has been read moves in the same transaction as what was read, so that a killed watcher neither loses nor doubles a line.
Values of the run's secrets are blotted out of every text before it is kept.
One call reads at most `MAX_PIECES` pieces of a file, so that a run that floods does not hold up those beside it.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, replace

from django.db import transaction
from django.utils import timezone

from runs.models import Attempt, MetricChunk, MetricSeries, Run, RunLine, Watch
from runs.pools.base import NotPlain, Pool
from runs.pools.events import (
    ApiSpend,
    Artifact,
    DatasetFile,
    Done,
    Event,
    Input,
    MemoryRead,
    MemoryWrite,
    Note,
    Progress,
    Score,
    Unknown,
)
from runs.pools.lines import PIECE_BYTES, BadLine, BadLines, Point, parse_events, parse_metrics
from runs.pools.sampling import PREFIX
from runs.queries.secret import redactor_of
from runs.redaction import Redactor
from workspaces import kept_query, scope
from workspaces.canonical import plain

MAX_SERIES = 1000  # keys of metrics a run may have; the rest is counted as bad lines
MAX_LINES = 20_000  # event lines kept of an attempt that only tell, and as many again of those that are acted upon
API_LINES = 1_000_000_000  # lines that come by the API are numbered from here, apart from those of the file
MAX_PIECES = 16  # pieces of a file read in one go
MAX_FILE_BYTES = 128 * 2**20  # of each file; what follows is kept as a file and not taken in
MAX_DEPTH = 32  # of a value within an event
MAX_API_MICROS = 10**13  # spend that is counted of an attempt: ten million units of the currency

# Names of contracts.md G. Lines of the second list are looked up when the run ends, and are not pushed out by chatter.
TELLING: dict[type[Event], str] = {Note: "note", Progress: "progress", ApiSpend: "api_spend"}
ACTED_UPON: dict[type[Event], str] = {
    Artifact: "artifact",
    DatasetFile: "dataset",
    Score: "score",
    Input: "input",
    MemoryRead: "memory_read",
    MemoryWrite: "memory_write",
    Done: "done",
}

Take = Callable[[Watch, Attempt, bytes, Redactor], int]  # how much of a piece was taken in


def read_metrics(place: Pool, attempt: Attempt, watch: Watch, *, to_end: bool = False) -> bool:
    """Take in what metrics.jsonl has gained since `watch` was read; True where nothing more is there now. `to_end`: it has ended, its last
    line may have no end. Raises PoolError where the pool does not say what there is: that is no end of the file."""
    return _follow(place, attempt, watch, "metrics", _take_metrics, to_end)


def read_events(place: Pool, attempt: Attempt, watch: Watch, *, to_end: bool = False) -> bool:
    """Take in what events.jsonl has gained; as `read_metrics`."""
    return _follow(place, attempt, watch, "events", _take_events, to_end)


def read_samples(place: Pool, attempt: Attempt, watch: Watch, *, to_end: bool = False) -> bool:
    """Take in what the launcher has measured since; as `read_metrics`. Where nothing was measured there are no points."""
    return _follow(place, attempt, watch, "samples", _take_samples, to_end)


def add_points(run: Run, points: list[Point], *, attempt_number: int) -> int:
    """Append points to their series; returns how many found no room (too many keys). Wants a transaction with the run's watch locked."""
    by_key: dict[str, list[Point]] = {}
    for point in points:
        by_key.setdefault(point.key, []).append(point)
    series = {row.key: row for row in MetricSeries.objects.filter(run=run, key__in=list(by_key))}
    room = MAX_SERIES - MetricSeries.objects.filter(run=run).count()
    fresh = [MetricSeries(run=run, key=key) for key in by_key if key not in series][: max(0, room)]
    series |= {row.key: row for row in fresh}
    now = timezone.now().timestamp()
    chunks = []
    for key, row in series.items():
        found = by_key[key]
        chunks.append(
            MetricChunk(
                series=row,
                attempt_number=attempt_number,
                steps=[point.step for point in found],
                values=[point.value for point in found],
                times=[point.time if point.time is not None else now for point in found],
            )
        )
        finite = [point.value for point in found if math.isfinite(point.value)]
        row.count += len(found)
        row.last, row.last_step = found[-1].value, found[-1].step
        row.minimum = min([*finite, *([row.minimum] if row.minimum is not None else [])], default=None)
        row.maximum = max([*finite, *([row.maximum] if row.maximum is not None else [])], default=None)
    summary = ["count", "last", "last_step", "minimum", "maximum"]
    # One statement for new rows and known ones; Django's own bulk_update takes seconds for a thousand rows.
    MetricSeries.objects.bulk_create(series.values(), update_conflicts=True, unique_fields=["id"], update_fields=summary)
    MetricChunk.objects.bulk_create(chunks)
    return sum(len(found) for key, found in by_key.items() if key not in series)


def add_lines(watch: Watch, attempt: Attempt, events: list[tuple[int, Event]]) -> int:
    """Keep event lines and what they say about progress, spend and completion; returns how many found no room. Wants the watch locked."""
    last = max(number for number, _ in events) % API_LINES
    room = MAX_LINES
    if last > MAX_LINES:
        room -= RunLine.objects.filter(attempt=attempt, type__in=list(ACTED_UPON.values())).count()
    rows = []
    for number, event in events:
        acted_upon = type(event) in ACTED_UPON
        if room > 0 if acted_upon else number % API_LINES <= MAX_LINES:
            rows.append(RunLine(attempt=attempt, number=number, type=type_of(event)[:60], body=dict(plain(asdict(event)))))
            room -= acted_upon
        match event:
            case Progress():
                watch.progress_done, watch.progress_total, watch.progress_text = event.done, event.total, event.text[:300]
            case ApiSpend() if event.currency != attempt.run.frozen["pool"]["currency"]:
                watch.has_foreign_spend = True  # no limit can count it: the watch ends the run
                _note_bad(watch, "events", BadLines(), "spend in another currency than that of the run's limits is not counted")
            case ApiSpend():
                watch.api_spend_micros = min(watch.api_spend_micros + event.micros, MAX_API_MICROS)
            case Done():
                watch.said_done = event.status != "failed"
    RunLine.objects.bulk_create(rows, ignore_conflicts=True)
    watch.save(update_fields=["progress_done", "progress_total", "progress_text", "api_spend_micros", "has_foreign_spend", "said_done"])
    return len(events) - len(rows)


def type_of(event: Event) -> str:
    """The event's type as contracts.md G names it, or as the run wrote it where it is none of them."""
    if isinstance(event, Unknown):
        return event.type
    return TELLING.get(type(event)) or ACTED_UPON[type(event)]


def is_too_deep(value: object) -> bool:
    """Is a value nested deeper than `MAX_DEPTH`? Deeper ones end the recursion of whoever copies or shows them."""
    layer = [value]
    for _ in range(MAX_DEPTH):
        layer = [
            item
            for one in layer
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]  # fmt: skip
        if not layer:
            return False
    return True


def _follow(place: Pool, attempt: Attempt, known: Watch, name: str, take: Take, to_end: bool) -> bool:
    workspace, redactor = scope.current_id().hex, None
    for piece in range(MAX_PIECES):
        if piece:
            [known] = kept_query.rows(Watch, attempt=attempt)
        offset = getattr(known, f"{name}_offset")
        chunk, fault = b"", ""
        if offset >= MAX_FILE_BYTES:
            fault = f"more than {MAX_FILE_BYTES // 2**20} MB; what follows was not taken in"
        else:
            try:
                chunk = place.read(workspace, attempt.key, f"{name}.jsonl", offset=offset, limit=PIECE_BYTES)
            except NotPlain as error:
                fault = error.reason
        if not chunk and not fault:
            return True
        redactor = redactor or redactor_of(attempt)
        with transaction.atomic():
            watch = Watch.objects.select_for_update(no_key=True).get(attempt=attempt)
            if getattr(watch, f"{name}_offset") != offset:
                continue  # another watcher has taken this piece in
            if fault:
                _note_bad(watch, name, BadLines(), fault)
                return True
            consumed = take(watch, attempt, chunk, redactor)
            if to_end and not consumed:
                consumed = take(watch, attempt, chunk + b"\n", redactor) - 1  # a last line without its end
            setattr(watch, f"{name}_offset", offset + consumed)
            watch.save(update_fields=[f"{name}_offset", f"{name}_lines", f"{name}_bad", "bad_lines"])
        if consumed == 0 or (len(chunk) < PIECE_BYTES and not to_end):
            return True
    return False


def _take_metrics(watch: Watch, attempt: Attempt, chunk: bytes, redactor: Redactor) -> int:
    found, bad, consumed, lines = parse_metrics(chunk, watch.metrics_lines + 1)
    if redactor.may_be_in(chunk):
        found = [replace(point, key=redactor.blot_text(point.key)) for point in found]
    points = [point for point in found if not point.key.startswith(PREFIX)]
    left_out = add_points(Run.objects.get(pk=attempt.run_id), points, attempt_number=attempt.number) if points else 0
    watch.metrics_lines += lines
    watch.metrics_bad += bad.count + left_out + len(found) - len(points)
    if len(points) < len(found):
        _note_bad(watch, "metrics", BadLines(), f"keys below {PREFIX} are what labsite measures")
    _note_bad(watch, "metrics", bad, f"more than {MAX_SERIES} keys" if left_out else "")
    return consumed


def _take_samples(watch: Watch, attempt: Attempt, chunk: bytes, redactor: Redactor) -> int:
    found, bad, consumed, lines = parse_metrics(chunk, watch.samples_lines + 1)
    points = [point for point in found if point.key.startswith(PREFIX)]
    if points:
        add_points(Run.objects.get(pk=attempt.run_id), points, attempt_number=attempt.number)
    watch.samples_lines += lines
    watch.samples_bad += bad.count + len(found) - len(points)
    return consumed


def _take_events(watch: Watch, attempt: Attempt, chunk: bytes, redactor: Redactor) -> int:
    events, bad, consumed, lines = parse_events(chunk, watch.events_lines + 1)
    may_tell = redactor.may_be_in(chunk)
    sound = []
    for number, event in events:
        if is_too_deep(list(vars(event).values())):
            bad.count += 1
            bad.first.append(BadLine(number, f"nested deeper than {MAX_DEPTH}"))
        else:
            sound.append((number, redactor.blot_fields(event) if may_tell else event))
    left_out = add_lines(watch, attempt, sound) if sound else 0
    watch.events_lines += lines
    watch.events_bad += bad.count
    _note_bad(watch, "events", bad, f"more than {MAX_LINES:,} lines: not all are kept one by one" if left_out else "")
    return consumed


def _note_bad(watch: Watch, name: str, bad: BadLines, reason: str) -> None:
    """Keep the first bad lines of each file with their numbers."""
    known = [entry for entry in watch.bad_lines if entry["file"] == name]
    for line in bad.first[: max(0, 20 - len(known))]:
        watch.bad_lines.append({"file": name, "number": line.number, "reason": line.reason})
    if reason and not any(entry["file"] == name and entry["reason"] == reason for entry in watch.bad_lines):
        watch.bad_lines.append({"file": name, "number": None, "reason": reason})
    if reason or bad.first:
        watch.save(update_fields=["bad_lines"])
