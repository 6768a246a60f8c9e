"""Files of workspaces in a bucket of S3: `<prefix>/<workspace hex>/blobs/<first two digits>/<SHA-256>`.

A file is hashed while it is written to a folder of this machine and sent from there, since its name is known only at its end: nothing has to
be copied inside the bucket (which S3 does up to 5 GB), and an object appears whole or not at all. What was sent stays there as a copy, and so
does what was fetched, up to `copy_bytes` and a day; those that were not asked for longest go first.

How old a file is says a mark of its name on this machine, by the clock of this machine: S3 can neither make an object young nor remove one only
while it is old. Marks change under a lock in the data folder, which all processes of an installation share, and nothing is removed but under
that lock.
"""

import functools
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import S3Store as Client

from workspaces.bucket import Bucket
from workspaces.local_store import CHUNK, SHA256, LocalStore, StoreAway, StoreMissing, checked, held

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Credential  # the library has the names for readers of types alone

PART = 8 * CHUNK  # of a file that is sent or read; four are under way at once
STAYS_SECONDS = 3600.0  # a copy that was handed out is being read, and no limit removes it
TRIES = 3


@functools.lru_cache(maxsize=64)
def bucket_store(bucket: Bucket, process: int) -> "S3Store":
    """One for each process: the client's connections and threads do not outlive a fork."""
    return S3Store(bucket)


class S3Store:
    """A region in a bucket."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self._copies = LocalStore(bucket.local / "copies")
        self._young = bucket.local / "young"
        self._arrived = 0  # bytes since the copies were last counted, by this process
        options: ClientConfig = {
            "allow_http": bucket.endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=10),
            "timeout": timedelta(minutes=2),  # of one part
        }
        self._client = Client(
            bucket.bucket, prefix=bucket.prefix or None, region=bucket.region,
            endpoint=bucket.endpoint or f"https://s3.{bucket.region}.amazonaws.com",
            credential_provider=lambda: _credential(bucket.keys_file), virtual_hosted_style_request=False,
            client_options=options,
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=30)},
        )  # fmt: skip

    def put_stream(self, workspace_id: uuid.UUID, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Keep the bytes; returns (SHA-256, how many). Raises StoreFull where this machine has no room for the copy, StoreAway, and what `chunks`
        raises. An upload that a dying process leaves is invisible in the bucket; a rule of the bucket ends it."""
        sha256, count = self._copies.put_stream(workspace_id, chunks)
        copy = self._copies.local_path(workspace_id, sha256)
        if copy is None:
            raise StoreAway("The copy that was to be sent is gone.")
        with copy.open("rb") as file:  # whoever lets go of an older one with this content removes the copy too
            for _ in range(TRIES):
                with self._marked(workspace_id, sha256) as mark:
                    mark.touch()
                self._send(self._key(workspace_id, sha256), file, count)
                if self.renew(workspace_id, sha256):  # else it was removed as old, while it was sent
                    self._arrive(count)
                    return sha256, count
        raise StoreAway(f"The bucket {self.bucket.bucket} keeps nothing.")

    def _send(self, key: str, file: BinaryIO, count: int) -> None:
        file.seek(0)
        with self._away():
            obstore.put(self._client, key, file, use_multipart=count > PART, chunk_size=PART, max_concurrency=4)

    def open(self, workspace_id: uuid.UUID, sha256: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` up to `end` (not included), in pieces of at most 1 MiB. Raises StoreMissing and StoreAway before the first piece;
        StoreAway also between two."""
        size = self.size(workspace_id, sha256)
        if size is None:
            raise StoreMissing(sha256)
        return self._pieces(self._key(workspace_id, sha256), start, size if end is None else min(end, size), size)

    def _pieces(self, key: str, start: int, end: int, size: int) -> Iterator[bytes]:
        for begin in range(start, end, PART):  # each a request of its own, so that a slow reader keeps none open
            stop = min(begin + PART, end)
            with self._away():  # servers may answer a range that is all of an object without one, which the library does not take
                is_whole = (begin, stop) == (0, size)
                found = obstore.get(self._client, key).bytes() if is_whole else obstore.get_range(self._client, key, start=begin, end=stop)
            part = memoryview(found)
            yield from (bytes(part[place : place + CHUNK]) for place in range(0, len(part), CHUNK))

    def local_path(self, workspace_id: uuid.UUID, sha256: str) -> Path | None:
        """A copy on this machine, fetched and hashed where there is none, that stays for an hour at least; None where the file is missing. Raises
        StoreDamaged where it is not what its name says, StoreAway, and StoreFull where this machine has no room for it."""
        if not self._copies.renew(workspace_id, sha256):
            try:
                pieces = self.open(workspace_id, sha256)
            except StoreMissing:
                return None
            self._arrive(self._copies.put_stream(workspace_id, checked(pieces, sha256))[1])
        return self._copies.local_path(workspace_id, sha256)

    def exists(self, workspace_id: uuid.UUID, sha256: str) -> bool:
        return self.size(workspace_id, sha256) is not None

    def size(self, workspace_id: uuid.UUID, sha256: str) -> int | None:
        """Bytes of the file as it lies in the bucket; None where it is missing."""
        key = self._key(workspace_id, sha256)
        try:
            with self._away():
                return obstore.head(self._client, key)["size"]
        except StoreMissing:
            return None

    def renew(self, workspace_id: uuid.UUID, sha256: str) -> bool:
        """Make a file young again, so that tidying up leaves it until a row names it; False where it is not there."""
        with self._marked(workspace_id, sha256) as mark:
            if self.size(workspace_id, sha256) is None:
                return False
            mark.touch()
        return True

    def remove_old(self, workspace_id: uuid.UUID, sha256: str, *, older_than_seconds: float) -> bool:
        """Remove a file that has not been put or renewed for so long; False where it has been, or is gone. Nobody can make it young between the
        look and the removal. The caller knows that no row named it when the look began."""
        before = time.time() - older_than_seconds
        with self._marked(workspace_id, sha256) as mark:
            key = self._key(workspace_id, sha256)
            try:
                with self._away():
                    if _since(mark, obstore.head(self._client, key)["last_modified"]) >= before:
                        return False
                    obstore.delete(self._client, key)
            except StoreMissing:
                return False
            mark.unlink(missing_ok=True)
        self._copies.remove_old(workspace_id, sha256, older_than_seconds=older_than_seconds)
        return True

    def hashes(self, workspace_id: uuid.UUID, *, older_than_seconds: float) -> Iterator[str]:
        """Hashes of the files that have not been put for so long."""
        before = time.time() - older_than_seconds
        with self._away():
            for batch in obstore.list(self._client, f"{workspace_id.hex}/blobs/", chunk_size=1000):
                for entry in batch:
                    sha256 = entry["path"].rpartition("/")[2]
                    if SHA256.fullmatch(sha256) and _since(self._mark(workspace_id, sha256), entry["last_modified"]) < before:
                        yield sha256

    def tidy_incoming(self, workspace_id: uuid.UUID, *, older_than_seconds: float) -> int:
        """Remove what a killed process left on this machine, and marks and copies that are as old: then the object's own time says enough, and
        what was removed from the bucket stays nowhere. Returns how many files of the first."""
        before = time.time() - older_than_seconds
        for mark in (self._young / workspace_id.hex).glob("*/*"):
            with self._marked(workspace_id, mark.name), suppress(FileNotFoundError):
                if mark.stat().st_mtime < before:
                    mark.unlink()
        for sha256 in self._copies.hashes(workspace_id, older_than_seconds=older_than_seconds):
            self._copies.remove_old(workspace_id, sha256, older_than_seconds=older_than_seconds)
        return self._copies.tidy_incoming(workspace_id, older_than_seconds=older_than_seconds)

    def probe(self) -> str:
        """What is wrong with the bucket, asked for one name; empty where it answers."""
        try:
            next(iter(obstore.list(self._client, chunk_size=1)), None)
        except BaseError as error:
            if "NoSuchBucket" in str(error):  # S3's own code; the library has no kind of error for it
                return f"There is no bucket {self.bucket.bucket}."
            return f"The bucket does not answer as it should ({type(error).__name__})."
        return ""

    @contextmanager
    def _away(self) -> Iterator[None]:
        """The library's words never reach people: they hold addresses and what the server answered. What says that there is no object says the same
        of a bucket that is not there: that is asked for, lest all its files be put on record as missing."""
        try:
            yield
        except (NotFoundError, FileNotFoundError) as error:  # the library has both for a 404
            if fault := self.probe():
                raise StoreAway(fault) from error
            raise StoreMissing("The bucket has no such object.") from error
        except BaseError as error:
            raise StoreAway(f"The bucket does not answer as it should ({type(error).__name__}).") from error

    def _key(self, workspace_id: uuid.UUID, sha256: str) -> str:
        if not isinstance(workspace_id, uuid.UUID):
            raise TypeError("The store knows workspaces by their key.")
        if not SHA256.fullmatch(sha256):
            raise StoreMissing("This is no SHA-256.")
        return f"{workspace_id.hex}/blobs/{sha256[:2]}/{sha256}"

    def _mark(self, workspace_id: uuid.UUID, sha256: str) -> Path:
        self._key(workspace_id, sha256)
        return self._young / workspace_id.hex / sha256[:2] / sha256

    @contextmanager
    def _marked(self, workspace_id: uuid.UUID, sha256: str) -> Iterator[Path]:
        """The mark of a file, alone among all processes of the installation."""
        mark = self._mark(workspace_id, sha256)
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with held(mark.parent):
            yield mark

    def _arrive(self, count: int) -> None:
        self._arrived += count
        if self._arrived > self.bucket.copy_bytes // 10:
            self._bound()

    def _bound(self) -> None:
        """Remove copies, those first that were not asked for longest, until they fit. One that was handed out within the hour stays."""
        self._arrived = 0
        copies = []
        for path in self._copies.root.glob("*/blobs/*/*"):
            with suppress(FileNotFoundError):
                found = path.stat()
                copies.append((found.st_mtime, found.st_size, path))
        over = sum(size for _, size, _ in copies) - self.bucket.copy_bytes
        for _, size, path in sorted(copies):
            if over <= 0:
                return
            workspace_id = uuid.UUID(hex=path.parents[2].name)
            over -= size * self._copies.remove_old(workspace_id, path.name, older_than_seconds=STAYS_SECONDS)


def _since(mark: Path, modified: datetime) -> float:
    """Since when nobody has put or renewed it, in seconds UTC: the mark says it, and without one the bucket."""
    try:
        return mark.stat().st_mtime
    except FileNotFoundError:
        return modified.timestamp()


def _credential(keys_file: Path) -> "S3Credential":
    """Read anew each time, so that a rotation holds at once. Through a provider, since beside plain keys the library takes what the machine's
    environment holds."""
    with suppress(OSError):
        if keys_file.stat().st_mode & 0o077 == 0:
            key, colon, secret = keys_file.read_text().strip().partition(":")
            if colon and key and secret:
                until = datetime.now(UTC) + timedelta(
                    minutes=1
                )  # the library asks again some minutes before: at each request, ten a second at most
                return {"access_key_id": key, "secret_access_key": secret, "token": None, "expires_at": until}
    raise StoreAway("The keys of the region cannot be read; see its line in the documentation of production.")
