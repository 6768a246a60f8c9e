"""A run's log: from its folder while it runs, from the store once it has ended; by byte offset, so that no line is lost or read twice."""

import functools
import uuid
from dataclasses import dataclass

from runs.models import Artifact, Attempt, Run
from runs.place import place_of
from runs.pools.base import READABLE, PoolError
from runs.queries.secret import redactor_of
from workspaces import scope, store
from workspaces.audit import Refusal
from workspaces.models import Blob, NotFound
from workspaces.queries.registry import AWAY
from workspaces.sealing import BrokenSeal

PIECE = 1_048_576  # bytes read at a time


@dataclass(frozen=True, slots=True)
class LogPiece:
    """Bytes of one file from `offset`; `is_final` once nothing more can come after `next_offset`."""

    text_bytes: bytes
    offset: int
    next_offset: int
    is_final: bool
    size: int | None


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of an attempt, found once and read by pieces: the stored one, or while there is none the one in the run's folder."""

    name: str
    attempt: Attempt | None
    kept: Blob | None
    is_ended: bool  # nothing more will be written

    def piece(self, offset: int, limit: int) -> LogPiece:
        """At most `limit` bytes from `offset`. Raises NotFound where the store has lost the file, Refusal where it does not answer."""
        if self.kept is not None:
            text = _stored(self.kept.region, scope.current_id(), self.kept.sha256, offset, limit)
            return LogPiece(text, offset, offset + len(text), offset + len(text) >= self.kept.bytes, self.kept.bytes)
        text = self._written(offset, limit)
        return LogPiece(text, offset, offset + len(text), self.is_ended and len(text) < limit, None)

    def lines_per_piece(self) -> tuple[int, ...]:
        """How many lines end in each `PIECE` of the file. The whole file is read, at the speed of memory; of a stored one, which never
        changes, the figures are remembered."""
        if self.kept is not None:
            return _stored_lines(self.kept.region, scope.current_id(), self.kept.sha256)
        counts: list[int] = []
        while text := self._read(len(counts) * PIECE, PIECE):
            counts.append(text.count(b"\n"))
            if len(text) < PIECE:
                break
        return tuple(counts)

    def _written(self, offset: int, limit: int) -> bytes:
        """What the run has written there, the values of its secrets blotted out. What may be the beginning of one waits for the rest of it."""
        if self.attempt is None:
            return b""
        try:
            redactor = redactor_of(self.attempt)
        except BrokenSeal:
            return b""
        before = min(offset, redactor.overlap)
        wanted = before + limit + redactor.overlap
        written = self._read(offset - before, wanted)
        shown = redactor.blot_out(written)
        if len(written) < wanted and not self.is_ended:
            shown = shown[: len(shown) - redactor.withheld(written)]
        return shown[before : before + limit]

    def _read(self, offset: int, limit: int) -> bytes:
        if self.attempt is None:
            return b""
        try:
            return place_of(self.attempt).read(scope.current_id().hex, self.attempt.key, self.name, offset=offset, limit=limit)
        except PoolError:
            return b""


def open_log(run: Run, name: str, attempt: Attempt | None = None) -> LogFile:
    """stdout.log, stderr.log, metrics.jsonl or events.jsonl of an attempt (the newest where none is named). Raises NotFound for another."""
    if name not in READABLE:
        raise NotFound("log")
    attempt = attempt or Attempt.objects.filter(run=run).select_related("pool__engine", "run").order_by("-number").first()
    if attempt is None:
        return LogFile(name, None, None, run.is_terminal)
    kept = (
        Artifact.objects.filter(run=run, path=f".labsite/attempt-{attempt.number}/{name}", removed_at=None).select_related("blob").first()
    )
    return LogFile(name, attempt, kept.blob if kept else None, attempt.ended_at is not None)


def read_log(run: Run, name: str, *, offset: int = 0, limit: int = 262_144, attempt: Attempt | None = None) -> LogPiece:
    """At most `limit` bytes of a log from `offset`; see `open_log`."""
    return open_log(run, name, attempt).piece(max(0, offset), limit)


def _stored(region: str, workspace_id: uuid.UUID, sha256: str, offset: int, limit: int) -> bytes:
    try:
        return b"".join(store.open(region, workspace_id, sha256, start=offset, end=offset + limit))
    except store.StoreMissing as error:
        raise NotFound("file") from error
    except store.StoreAway as error:
        raise Refusal(AWAY) from error


@functools.lru_cache(maxsize=512)
def _stored_lines(region: str, workspace_id: uuid.UUID, sha256: str) -> tuple[int, ...]:
    """Named by its content, so the answer holds for ever; who may read it has been asked before."""
    counts: list[int] = []
    while text := _stored(region, workspace_id, sha256, len(counts) * PIECE, PIECE):
        counts.append(text.count(b"\n"))
    return tuple(counts)


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
