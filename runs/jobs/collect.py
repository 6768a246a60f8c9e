"""What an ended attempt leaves: its outputs and logs into the store, its words from the lines that were taken in."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from runs import ingest
from runs.commands.attempt import Collected, Harvest
from runs.models import Attempt, RunLine, Watch
from runs.pools.base import READABLE, Pool, PoolError
from runs.pools.events import Score
from workspaces import scope, store
from workspaces.models import Workspace

CHUNK = 1 << 20
MAX_OUTPUTS = 2_000


def harvest(place: Pool, attempt: Attempt) -> Harvest:
    """Store every output once the end is confirmed. Doing it twice stores nothing twice: the store is named by content."""
    workspace = Workspace.objects.get(pk=scope.current_id())
    key, room = attempt.key, workspace.pk.hex
    lines = list(RunLine.objects.filter(attempt=attempt, type__in=["artifact", "score"]).order_by("number"))
    # A run may name its file as it stands in its folder, or below outputs/.
    named = {line.body["path"].removeprefix("outputs/"): line.body for line in lines if line.type == "artifact"}
    listed = place.outputs(room, key)
    kept: list[Collected] = []
    unreadable: list[str] = []
    for entry in listed[:MAX_OUTPUTS]:
        said = named.get(entry.path, {})
        try:
            with place.open_output(room, key, entry.path) as file:
                sha256, size = store.put_stream(workspace.region, workspace.pk, _pieces(file))
        except PoolError:
            unreadable.append(entry.path)
            continue
        name = str(said.get("name") or entry.path.rsplit("/", 1)[-1])
        kept.append(Collected(entry.path, name, str(said.get("kind") or "file"), dict(said.get("metadata") or {}), sha256, size))
    for name in sorted(READABLE):
        sha256, size = store.put_stream(workspace.region, workspace.pk, _read(place, room, key, name))
        if size:
            path = f".labsite/attempt-{attempt.number}/{name}"
            kept.append(Collected(path, name, "log" if name.endswith(".log") else "lines", {"attempt": attempt.number}, sha256, size))
    watch = Watch.objects.get(attempt=attempt)
    notes = {
        "outputs_left_out": len(listed) - MAX_OUTPUTS if len(listed) > MAX_OUTPUTS else 0,
        "outputs_not_plain_files": getattr(listed, "skipped", 0),
        "outputs_unreadable": unreadable[:20],
        "bad_lines": watch.metrics_bad + watch.events_bad,
    }
    scores = tuple(_score(line.body) for line in lines if line.type == "score")
    return Harvest(artifacts=tuple(kept), scores=scores, said_done=watch.said_done, api_micros=watch.api_spend_micros, notes=notes)


def keep_lines(place: Pool, attempt: Attempt) -> None:
    """Take in what an attempt that is being interrupted has written until now."""
    ingest.read_metrics(place, attempt, to_end=True)
    ingest.read_events(place, attempt, to_end=True)


def _score(body: dict[str, Any]) -> Score:
    """A score as it was read; fractions stand as text in the line's canonical form."""
    stderr = body.get("stderr")
    return Score(
        benchmark=str(body["benchmark"]),
        metric=str(body["metric"]),
        value=float(body["value"]),
        stderr=float(stderr) if stderr is not None else None,
        samples=body.get("samples"),
    )


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(CHUNK):
        yield piece


def _read(place: Pool, room: str, key: str, name: str) -> Iterator[bytes]:
    offset = 0
    while True:
        try:
            piece = place.read(room, key, name, offset=offset, limit=CHUNK)
        except PoolError:
            return
        if not piece:
            return
        offset += len(piece)
        yield piece
