"""The files of one ended attempt, put into the store one by one. Each is remembered, so that a second try starts where the first ended."""

import time
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from django.db.models import QuerySet

from runs.commands.harvest import LACKING, MAX_PATH, OWN_PATHS, Collected, set_apart
from runs.models import Attempt, KeptFile, RunLine, Watch
from runs.pools.base import LEFT, READABLE, NotPlain, Pool, PoolError
from runs.queries.secret import redactor_of
from workspaces import kept_query, scope, store
from workspaces.commands.blob import room_left
from workspaces.file_paths import shown_path
from workspaces.models import Blob, Workspace
from workspaces.queries.sealed import uses_of
from workspaces.records import RecordCount, counter_for
from workspaces.units import plural, size

CHUNK = 1 << 20
MAX_OUTPUTS = 2_000
SHOWN = 20
NOTE_SECONDS = 10  # so often it is noted that a collector gets on
LEFT_DAYS = 14  # so long a folder stays for the files in it that labsite does not take
TURN_SECONDS = 10  # then others have theirs: one run's many files keep nobody else waiting for long
LEFT_WORDS = {
    "names": ("file or folder has a name that cannot be kept", "files or folders have names that cannot be kept"),
    "more": (f"more than the {MAX_OUTPUTS:,} that are kept", f"more than the {MAX_OUTPUTS:,} that are kept"),
    "closed": ("file or folder is not the run's own", "files or folders are not the run's own"),
    "links": ("link leads out of outputs/", "links lead out of outputs/"),
}
assert LEFT_WORDS.keys() == set(LEFT)


class TurnOver(Exception):
    """It gets on, and has had its turn; the rest comes in the next one."""


class Keeper:
    """Collects one attempt under a lease of its caller's. `notes` say what was left out, and why. Values of its secrets are
    blotted out of logs, lines and names of files; what is in an output is the run's own work and stays as it is."""

    def __init__(self, place: Pool, attempt: Attempt) -> None:
        self._place, self._attempt = place, attempt
        self._workspace: Workspace
        kept: list[KeptFile]
        [self._workspace], kept, lines, uses = kept_query.ask_together(
            [
                kept_query.question(Workspace, pk=scope.current_id()),
                kept_query.question(KeptFile, attempt=attempt),
                kept_query.Question(_of_files, (), {"attempt": attempt.pk}),
                uses_of(attempt.key),
            ]
        )
        self._redactor = redactor_of(attempt, uses)
        self._known = {row.path: row for row in kept}
        # What the run said of its outputs, by path. It may name a file as it stands in its folder, or below outputs/.
        self._named: dict[str, dict[str, Any]] = {
            line.body["path"].removeprefix("outputs/"): line.body for line in lines if line.type == "artifact"
        }
        self._counted = {line.body["path"].removeprefix("outputs/") for line in lines if line.type == "dataset"}
        self._began = self._noted = time.monotonic()
        self._has_more = False
        self.unreadable: list[str] = []
        self.over_limit: dict[str, int] = {}  # what the storage limit has no room for, and its bytes
        self.left: dict[str, tuple[int, str]] = {}  # what is never taken: why, how many, and the first (`OutputList.left`)
        self.notes: dict[str, Any] = {}

    def keep_records(self) -> None:
        """Log and lines. What is no plain file in their place is none of labsite's, and is left. Raises PoolError where they cannot be read now."""
        for name in sorted(READABLE):
            path = f"{OWN_PATHS}attempt-{self._attempt.number}/{name}"
            try:
                first = self._place.read(self._workspace.pk.hex, self._attempt.key, name, offset=0, limit=CHUNK)
            except NotPlain as error:
                self.notes.setdefault("records_left_out", {})[name] = error.reason
                continue
            if first:
                self._keep(path, None, self._redactor.blot_stream(self._record(name)))

    def keep_outputs(self) -> None:
        """Every output. Raises TurnOver, PoolError where they cannot be listed, StoreFull where the store has no room; one that cannot be read is
        counted, and keeps no other from being kept."""
        listed = self._place.outputs(self._workspace.pk.hex, self._attempt.key)
        room = self._room()
        for entry in listed[MAX_OUTPUTS:]:
            listed.leave("more", entry.path)
        for entry in listed[:MAX_OUTPUTS]:
            path = _path_of(self._redactor.blot_text(entry.path), self._attempt)
            if len(path) > MAX_PATH:
                listed.leave("names", entry.path)
                continue
            if room is not None and path not in self._known:
                if entry.bytes > room:
                    self.over_limit[path[:200]] = entry.bytes
                    continue
                room -= entry.bytes
            try:
                self._keep(path, entry.bytes, self._output(entry.path))
            except PoolError:
                self.unreadable.append(path[:200])
        missing = sorted(self._named.keys() - {self._redactor.blot_text(entry.path) for entry in listed})
        self.left = {why: (count, shown_path(self._redactor.blot_text(first))) for why, (count, first) in listed.left.items()}
        self.notes |= {
            "outputs_left": {why: {"count": count, "first": first} for why, (count, first) in self.left.items()},
            "outputs_not_plain_files": listed.skipped,
            "outputs_over_storage_limit": sorted(self.over_limit)[:SHOWN],
            "outputs_unreadable": self.unreadable[:SHOWN],
            "artifacts_not_found": [path[:200] for path in missing[:SHOWN]],
        }

    def collected(self) -> tuple[Collected, ...]:
        """What lies in the store of the attempt, under the names that its run gave."""
        named = {_path_of(path, self._attempt): said for path, said in self._named.items()}
        found = []
        for row in sorted(self._known.values(), key=lambda row: row.path):
            name, said = row.path.rsplit("/", 1)[-1], named.get(row.path, {})
            if row.path.startswith(OWN_PATHS) and row.path.count("/") == 2 and name in READABLE:
                kind = "log" if name.endswith(".log") else "lines"
                found.append(Collected(row.path, name, kind, {"attempt": self._attempt.number}, row.sha256, row.bytes))
            else:
                metadata = dict(said.get("metadata") or {})
                found.append(
                    Collected(row.path, str(said.get("name") or name), str(said.get("kind") or "file"), metadata, row.sha256, row.bytes)
                )
        return tuple(found)

    @property
    def lacking(self) -> str:
        """A sentence about what is left to be collected; empty where nothing is."""
        parts = []
        if self.unreadable:
            parts.append(f"{plural(len(self.unreadable), 'file', 'files')} could not be read")
        if self.over_limit:
            count, more = plural(len(self.over_limit), "file", "files"), size(sum(self.over_limit.values()))
            parts.append(f"the storage limit has no room for {count} of {more}; free some, or ask for a larger limit")
        left = [f"{plural(count, *LEFT_WORDS[why])} (the first: {first})" for why, (count, first) in sorted(self.left.items())]
        if not parts and not left:
            return ""
        tried = "and collecting is tried again" if parts else f"for {LEFT_DAYS} days; whoever runs the pool can fetch them there"
        return f"{LACKING}: {', and '.join(parts + left)}. The run folder stays in the pool{', ' if parts else ' '}{tried}."

    @property
    def may_get_more(self) -> bool:
        """Can another try, later, take what this one could not?"""
        return bool(self.unreadable or self.over_limit)

    def _room(self) -> int | None:
        """What a hard stop of storage leaves to outputs of this attempt that are not kept yet. Collectors of two runs may both take the last
        room: what a run has made is not thrown away for it."""
        left = room_left()
        if left is None:
            return None
        named = set(
            Blob.objects.filter(sha256__in=[row.sha256 for row in self._known.values()], removed_at=None).values_list("sha256", flat=True)
        )
        return left - sum(row.bytes for row in self._known.values() if row.sha256 not in named)

    def _keep(self, path: str, size: int | None, pieces: Iterable[bytes]) -> None:
        region, workspace = self._workspace.region, self._workspace.pk
        known = self._known.get(path)
        if known is not None and size in (None, known.bytes) and store.renew(region, workspace, known.sha256):
            return
        if self._has_more and time.monotonic() - self._began > TURN_SECONDS:
            raise TurnOver
        counter = counter_for(path, has_header=False) if path in self._counted else None
        sha256, count = store.put_stream(region, workspace, self._getting_on(pieces, counter))
        found = {"sha256": sha256, "bytes": count, "rows": counter.records if counter else None}
        row, _ = KeptFile.objects.update_or_create(attempt=self._attempt, path=path, defaults=found)
        self._known[path] = row
        self._has_more = True

    def _getting_on(self, pieces: Iterable[bytes], counter: RecordCount | None) -> Iterator[bytes]:
        for piece in pieces:
            if time.monotonic() - self._noted > NOTE_SECONDS:
                self._noted = time.monotonic()
                if self._has_more:  # it gets on: a worker that dies now has not died in vain
                    Watch.objects.filter(attempt=self._attempt).update(collect_tries=1)
            if counter is not None:
                counter.feed(piece)
            yield piece

    def _output(self, path: str) -> Iterator[bytes]:
        with self._place.open_output(self._workspace.pk.hex, self._attempt.key, path) as file:
            yield from _pieces(file)

    def _record(self, name: str) -> Iterator[bytes]:
        offset = 0
        while piece := self._place.read(self._workspace.pk.hex, self._attempt.key, name, offset=offset, limit=CHUNK):
            offset += len(piece)
            yield piece


def _of_files(attempt: Any) -> "QuerySet[RunLine]":
    """What a run says of its outputs: which are artifacts, and which live datasets take."""
    return RunLine.objects.filter(attempt=attempt, type__in=("artifact", "dataset")).order_by("number")


def _path_of(output: str, attempt: Attempt) -> str:
    """The artifact's path. What a run puts below labsite's own paths is kept, and stands for nothing of labsite's."""
    return set_apart(output, attempt.number) if output.startswith(OWN_PATHS) else output


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while True:
        try:
            piece = file.read(CHUNK)
        except OSError as error:
            raise PoolError(f"the file cannot be read: {error.strerror}") from error
        if not piece:
            return
        yield piece
