"""What an ended attempt leaves: its outputs and logs into the store, its words from the lines that were taken in."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from runs import ingest
from runs.commands.harvest import MAX_PATH, OWN_PATHS, Collected, Harvest
from runs.models import Attempt, RunLine, Watch
from runs.pools.base import READABLE, Pool, PoolError
from runs.pools.events import Score
from workspaces import scope, store
from workspaces.models import Workspace

CHUNK = 1 << 20
MAX_OUTPUTS = 2_000
SHOWN = 20


def harvest(place: Pool, attempt: Attempt) -> Harvest:
    """Store every output once the end is confirmed. Doing it twice stores nothing twice: the store is named by content. Raises PoolError where
    the folder is gone, StoreFull where the store has no room."""
    workspace = Workspace.objects.get(pk=scope.current_id())
    key, room = attempt.key, workspace.pk.hex
    lines = RunLine.objects.filter(attempt=attempt, type="artifact").order_by("number")
    # A run may name its file as it stands in its folder, or below outputs/.
    named = {line.body["path"].removeprefix("outputs/"): line.body for line in lines}
    listed = place.outputs(room, key)
    kept: list[Collected] = []
    unreadable: list[str] = []
    for entry in listed[:MAX_OUTPUTS]:
        said = named.get(entry.path, {})
        # What a run puts below labsite's own paths is kept, and stands for nothing of labsite's.
        path = f"{OWN_PATHS}attempt-{attempt.number}/outputs/{entry.path}" if entry.path.startswith(OWN_PATHS) else entry.path
        try:
            if len(path) > MAX_PATH:
                raise PoolError("the path is too long")
            with place.open_output(room, key, entry.path) as file:
                sha256, size = store.put_stream(workspace.region, workspace.pk, _pieces(file))
        except PoolError:
            unreadable.append(entry.path[:200])
            continue
        name = str(said.get("name") or entry.path.rsplit("/", 1)[-1])
        kept.append(Collected(path, name, str(said.get("kind") or "file"), dict(said.get("metadata") or {}), sha256, size))
    missing = sorted(named.keys() - {entry.path for entry in listed})
    notes = {
        "outputs_left_out": max(0, len(listed) - MAX_OUTPUTS),
        "outputs_not_plain_files": getattr(listed, "skipped", 0),
        "outputs_unreadable": unreadable[:SHOWN],
        "artifacts_not_found": [path[:200] for path in missing[:SHOWN]],
    }
    return words_of(attempt, artifacts=(*kept, *_records(place, attempt, workspace)), notes=notes)


def records(place: Pool, attempt: Attempt) -> Harvest:
    """Log and lines alone, of an attempt that does not count: its run will have another one."""
    return words_of(attempt, artifacts=tuple(_records(place, attempt, Workspace.objects.get(pk=scope.current_id()))))


def words_of(attempt: Attempt, *, artifacts: tuple[Collected, ...] = (), notes: dict[str, Any] | None = None) -> Harvest:
    """What the attempt has said in its lines, as far as they were taken in."""
    watch = Watch.objects.get(attempt=attempt)
    scores = RunLine.objects.filter(attempt=attempt, type="score").order_by("number")
    return Harvest(
        artifacts=artifacts,
        scores=tuple(_score(line.body) for line in scores),
        said_done=watch.said_done,
        api_micros=watch.api_spend_micros,
        notes={**(notes or {}), "bad_lines": watch.metrics_bad + watch.events_bad},
    )


def keep_lines(place: Pool, attempt: Attempt) -> bool:
    """Take in what an ended attempt has written; False where there is more than one look may read, so that it wants another."""
    metrics = ingest.read_metrics(place, attempt, to_end=True)
    return ingest.read_events(place, attempt, to_end=True) and metrics


def _records(place: Pool, attempt: Attempt, workspace: Workspace) -> Iterator[Collected]:
    for name in sorted(READABLE):
        sha256, size = store.put_stream(workspace.region, workspace.pk, _read(place, workspace.pk.hex, attempt.key, name))
        if size:
            path = f"{OWN_PATHS}attempt-{attempt.number}/{name}"
            yield Collected(path, name, "log" if name.endswith(".log") else "lines", {"attempt": attempt.number}, sha256, size)


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
