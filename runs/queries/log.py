"""A run's log: from its folder while it runs, from the store once it has ended; by byte offset, so that no line is lost or read twice."""

from dataclasses import dataclass

from runs.models import Artifact, Attempt, Run
from runs.place import place_of
from runs.pools.base import READABLE, PoolError
from workspaces import scope, store
from workspaces.models import NotFound


@dataclass(frozen=True, slots=True)
class LogPiece:
    """Bytes of one file from `offset`; `is_final` once nothing more can come after `next_offset`."""

    text_bytes: bytes
    offset: int
    next_offset: int
    is_final: bool
    size: int | None


def read_log(run: Run, name: str, *, offset: int = 0, limit: int = 262_144, attempt: Attempt | None = None) -> LogPiece:
    """At most `limit` bytes of stdout.log, stderr.log, metrics.jsonl or events.jsonl of an attempt (the newest where none is named)."""
    if name not in READABLE:
        raise NotFound("log")
    attempt = attempt or Attempt.objects.filter(run=run).select_related("pool__engine", "run").order_by("-number").first()
    offset = max(0, offset)
    if attempt is None:
        return LogPiece(b"", 0, 0, run.is_terminal, 0)
    kept = Artifact.objects.filter(run=run, path=f".labsite/attempt-{attempt.number}/{name}").select_related("blob").first()
    if kept is not None:
        pieces = store.open(kept.blob.region, scope.current_id(), kept.blob.sha256, start=offset, end=offset + limit)
        text = b"".join(pieces)
        return LogPiece(text, offset, offset + len(text), offset + len(text) >= kept.blob.bytes, kept.blob.bytes)
    try:
        text = place_of(attempt).read(scope.current_id().hex, attempt.key, name, offset=offset, limit=limit)
    except PoolError:
        text = b""
    return LogPiece(text, offset, offset + len(text), attempt.ended_at is not None, None)


def whole_characters(piece: bytes) -> tuple[str, int]:
    """The text of a piece and how many of its bytes that took: a character that the piece ends in the middle of is left for the next one.
    A piece that is nothing but such a beginning is shown all the same, so that a reader gets on."""
    for back in range(1, min(4, len(piece))):
        lead = piece[-back]
        if lead & 0b1100_0000 == 0b1000_0000:
            continue
        wants = 2 if lead >> 5 == 0b110 else 3 if lead >> 4 == 0b1110 else 4 if lead >> 3 == 0b11110 else 1
        if wants > back:
            piece = piece[:-back]
        break
    return piece.decode(errors="replace"), len(piece)
