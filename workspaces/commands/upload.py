"""Files that arrive in pieces: where each stands is a row, its bytes lie in a file of this machine until they are whole and go into the store.

What is acknowledged is on the disk. Bytes beyond the row's offset, as a killed process leaves them, are cut off by the next piece. One writer
at a time, by a lock on the file that dies with its process. The rows are telemetry: what becomes of an upload is the event of the command that
names it.
"""

import fcntl
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from workspaces import scope
from workspaces.access import Actor
from workspaces.accounts import lock_ledger
from workspaces.audit import Archived, Refusal
from workspaces.commands.blob import StoredFile, put_file, read_file, receive_file, refuse_over_limit, takes_file
from workspaces.file_paths import BadPath, clean_path
from workspaces.local_store import CHUNK, NO_ROOM, STEP, begin_forcing
from workspaces.models import NotFound, Upload, Workspace
from workspaces.queries.workspace import is_archived
from workspaces.units import size

STAYS = timedelta(days=1)
AT_ONCE = 100  # open uploads of a workspace
NOTED_BYTES = 64 * CHUNK  # so much is lost at most of a piece whose server is killed
RUNS = "run:"  # holders that are runs begin so
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Busy(Refusal):  # an answer: somebody else writes it
    def __init__(self) -> None:
        super().__init__("Another request is writing this upload; ask with HEAD in a moment.")


class WrongOffset(Exception):  # an answer: ask where it stands
    """The piece does not begin where the upload stands."""


def begin_upload(*, actor: Actor, path: str, length: int, sha256: str = "", has_header: bool = True, holder: str = "") -> Upload:
    """Make room for a file of `length` bytes, for the actor alone or for the `holder`. Refuses a bad path or hash, one that is too large, and one
    that does not fit into the storage limit beside what is stored and what other uploads have announced that have become nothing yet. Raises
    Archived, but for a run's: one that was let go on in an archive keeps what it makes."""
    try:
        path = clean_path(path)
    except BadPath as error:
        raise Refusal(str(error), field="path") from error
    if sha256 and not _SHA256.fullmatch(sha256):
        raise Refusal("A SHA-256 has 64 lower-case hex digits.", field="sha256")
    if not 0 < length <= settings.UPLOAD_BYTES:
        raise Refusal(f"An upload may have 1 byte to {size(settings.UPLOAD_BYTES)}; this one announces {size(length)}.", field="length")
    upload = Upload(
        holder=holder or _holder(actor),
        path=path,
        length=length,
        announced_sha256=sha256,
        has_header=has_header,
        expires_at=timezone.now() + STAYS,
    )
    with transaction.atomic():
        _make_room(upload, is_for_run=bool(holder))
        place = _place(upload.pk)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        upload.save()
    return upload


def _make_room(upload: Upload, *, is_for_run: bool) -> None:
    """Within a transaction: refuse one that finds no room, and let nobody else look for any until this one is counted."""
    workspace = lock_ledger()  # one lock for all that is counted in a workspace
    if workspace.status == Workspace.Status.ARCHIVED and not is_for_run:
        raise Archived
    if not workspace.region:
        raise Refusal("The workspace has no storage region yet; choose one in its settings, then upload again.")
    # Whole ones too: their bytes lie in the store, and no row counts them yet.
    opened = Upload.objects.filter(expires_at__gt=timezone.now())
    if opened.count() >= AT_ONCE:
        raise Refusal(f"{AT_ONCE} uploads are open in this workspace. Make versions of them or delete one, or wait until one expires.")
    refuse_over_limit(upload.length + int(opened.aggregate(total=Sum("length"))["total"] or 0))


def run_holder(run_id: uuid.UUID) -> str:
    """Holder of what is sent for a run: whoever may send for it goes on with it, another attempt of it too."""
    return f"{RUNS}{run_id.hex}"


def find_upload(actor: Actor, text: str, *, holder: str = "") -> Upload:
    """An upload that the actor has begun, or the holder, and that has not expired; NotFound for any other."""
    upload = Upload.objects.find(text)
    if upload.holder != (holder or _holder(actor)) or upload.expires_at <= timezone.now():
        raise NotFound("upload")
    return upload


def append(upload: Upload, chunks: Iterable[bytes], *, offset: int) -> Upload:
    """Write the next bytes at `offset`, which is where the upload stands, and put it into the store with its last. What came of a piece that breaks
    off is kept. Raises Archived, Busy, WrongOffset, NotFound where it was forgotten, Refusal where its content is not what was announced."""
    if is_archived() and not upload.holder.startswith(RUNS):
        raise Archived
    with _held(upload) as file:
        if offset != upload.offset or upload.sha256:
            raise WrongOffset
        file.truncate(offset)
        file.seek(offset)
        noted = forced = offset
        try:
            for chunk in chunks:
                rest = memoryview(chunk)[: upload.length - offset]
                while rest:  # an unbuffered file may take a part, and what it did not take did not come
                    written = file.write(rest)
                    offset, rest = offset + written, rest[written:]
                if offset - forced >= STEP:
                    begin_forcing(file.fileno(), forced, offset - forced)
                    forced = offset
                if offset - noted >= NOTED_BYTES:
                    noted = _note(upload, file, offset)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise Refusal("There is no room left for what comes in. What came is kept; ask a site operator for space.") from error
            raise
        finally:
            _note(upload, file, offset)
    if upload.offset == upload.length:
        finish_upload(upload)
    return upload


def finish_upload(upload: Upload) -> StoredFile:
    """The whole file in the store, put there if it is not yet. Refuses one that is not whole, or not of the hash that was announced; that one is
    forgotten. Raises Busy while another request puts it there, NotFound where it was forgotten."""
    if upload.offset < upload.length:
        raise Refusal(f"Of this upload {size(upload.offset)} of {size(upload.length)} have come; send the rest.", field="upload")
    if not upload.sha256 or _place(upload.pk).exists():
        try:
            with _held(upload) as file:
                _put(upload, file)
        except NotFound:
            found = Upload.objects.filter(pk=upload.pk).exclude(sha256="").first()
            if found is None:
                raise
            upload.sha256, upload.records = found.sha256, found.records  # another request has put it there this moment
    return StoredFile(upload.path, upload.sha256, upload.length, upload.records)


def _put(upload: Upload, file: IO[bytes]) -> None:
    """Into the store: where that lies beside what comes in, the file itself, hashed; else its bytes. The row has the hash before the file goes, so
    that one whose server is killed between the two is not lost: the next who asks for it finds both."""
    place = _place(upload.pk)
    moves = takes_file(place)
    if not upload.sha256:
        file.seek(0)
        receive = read_file if moves else receive_file
        stored = receive(upload.path, _pieces(file), expected_bytes=upload.length, has_header=upload.has_header)
        if upload.announced_sha256 not in ("", stored.sha256):
            forget_upload(upload)
            raise Refusal(f"The bytes that came have the SHA-256 {stored.sha256}, not the one announced; send them again.", field="sha256")
        _keep(upload, sha256=stored.sha256, records=stored.records)
    if moves:
        put_file(place, upload.sha256)
    place.unlink(missing_ok=True)


def forget_upload(upload: Upload) -> None:
    """Its row and what came of its bytes. What lies in the store already and is named by no row goes with the store's own tidying."""
    Upload.objects.filter(pk=upload.pk).delete()
    _place(upload.pk).unlink(missing_ok=True)


def tidy_uploads() -> int:
    """Forget what has expired in the open workspace, and bytes that no row names; returns how many."""
    count = 0
    for upload in Upload.objects.filter(expires_at__lte=timezone.now()):
        forget_upload(upload)
        count += 1
    before = time.time() - STAYS.total_seconds()
    for path in _place(uuid.UUID(int=0)).parent.glob("*"):
        if path.stat().st_mtime < before and not Upload.objects.filter(pk=uuid.UUID(hex=path.name)).exists():
            path.unlink(missing_ok=True)
            count += 1
    return count


def _note(upload: Upload, file: IO[bytes], offset: int) -> int:
    os.fdatasync(file.fileno())
    _keep(upload, offset=offset, expires_at=timezone.now() + STAYS)
    return offset


def _keep(upload: Upload, **values: Any) -> None:
    """Where it stands now. NotFound where it was forgotten meanwhile, as by a DELETE, which waits for no writer."""
    if not Upload.objects.filter(pk=upload.pk).update(**values):
        raise NotFound("upload")
    for name, value in values.items():
        setattr(upload, name, value)


@contextmanager
def _held(upload: Upload) -> Iterator[IO[bytes]]:
    """Its bytes, alone among all writers, and its row as it stands now."""
    try:
        descriptor = os.open(_place(upload.pk), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise NotFound("upload") from error
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy from error
        try:
            upload.refresh_from_db()
        except Upload.DoesNotExist as error:
            raise NotFound("upload") from error
        yield file


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(CHUNK):
        yield piece


def _place(upload_id: uuid.UUID) -> Path:
    return Path(settings.UPLOADS) / scope.current_id().hex / upload_id.hex


def _holder(actor: Actor) -> str:
    return str(actor.user.pk) if actor.user else ""
