"""Reading what an import asked for: file by file into the store, hashed on the way; then one version, or a sentence that says why not.

A worker that was killed is replaced at the next bell (`tidy_workspace` rings it) and begins anew: what the first has left in the store is named by
no row and goes with the next tidying up.
"""

import time
import uuid
from collections.abc import Iterator
from typing import Any

import structlog
from django.conf import settings
from django.core.cache import cache
from rq.timeouts import BaseTimeoutException

from runs.commands.dataset_import import begin_import, fail_import, finish_import, listed_folders, listed_hosts
from runs.export_folder import make_folder
from runs.fetch import Fetch, FetchFailed, Limits
from runs.jobs.alone import alone
from runs.jobs.job import job
from runs.models import DatasetImport
from runs.object_address import Keys, keys_of, place_of
from runs.outbound import Forbidden
from runs.place import open_path
from runs.pool_path import PoolFetch, is_pool_path, pool_path
from runs.queries.dataset_import import PROGRESS_SECONDS, progress_key
from runs.queue import ring
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.blob import StoredFile, receive_file, room_left
from workspaces.models import NotFound, Pool
from workspaces.queries.sealed import value_of
from workspaces.sealing import BrokenSeal

log = structlog.get_logger(__name__)
TOLD_SECONDS = 1.0


@job
def read_import(actor: Actor, import_id: uuid.UUID) -> None:
    """Read an import that was asked for, unless somebody else is reading it."""
    folder = settings.IMPORTS / scope.current_id().hex
    make_folder(folder)
    with alone(folder / f"{import_id.hex}.lock") as is_ours:
        asked = DatasetImport.objects.filter(pk=import_id, status__in=DatasetImport.OPEN).first()
        if not is_ours or asked is None:
            return
        try:
            asked = begin_import(actor=actor, asked=asked)
            if asked.status != DatasetImport.Status.RUNNING:
                return
            files, found = _read(asked)
            finish_import(actor=actor, asked=asked, files=files, found=found)
        except (FetchFailed, Refusal, Forbidden) as error:
            fail_import(actor=actor, asked=asked, reason=str(error))
        except BrokenSeal:
            fail_import(actor=actor, asked=asked, reason="The secret cannot be opened: its key is not here.")
        except BaseTimeoutException:
            fail_import(actor=actor, asked=asked, reason="It took longer than its job may; import fewer files at once.")
        except Exception as fault:
            log.exception("import failed", dataset_import=asked.pk.hex)
            words = f"labsite could not import it: {type(fault).__name__}. The worker's log has more."
            fail_import(actor=actor, asked=asked, reason=words)
        finally:
            cache.delete(progress_key(asked))


def tidy_imports() -> None:
    """Ring again for what waits or was left half read; remove the locks of what has ended."""
    waiting = {key.hex: key for key in DatasetImport.objects.filter(status__in=DatasetImport.OPEN).values_list("pk", flat=True)}
    for key in waiting.values():
        ring("read_import", subject=key)
    for lock in (settings.IMPORTS / scope.current_id().hex).glob("*.lock"):
        if lock.stem not in waiting:
            lock.unlink(missing_ok=True)


def _read(asked: DatasetImport) -> tuple[list[StoredFile], list[dict[str, Any]]]:
    deadline = time.monotonic() + settings.IMPORT_SECONDS
    keys = _keys(asked)
    files: list[StoredFile] = []
    found: list[dict[str, Any]] = []
    for number, wanted in enumerate(asked.sources, start=1):
        room = room_left()
        taken = sum(file.bytes for file in files)
        most = settings.IMPORT_BYTES if room is None else max(min(settings.IMPORT_BYTES, room - taken), 0)
        fetch = _fetch(asked, wanted["address"], keys, Limits(most, deadline))
        file = receive_file(wanted["path"], _told(asked, number, fetch.chunks()), has_header=asked.has_header)
        _refuse_other(fetch.shown, file, wanted)
        files.append(file)
        found.append({"path": file.path, "from": fetch.shown, "sha256": file.sha256, "bytes": file.bytes, "etag": fetch.etag})
    return files, found


def _fetch(asked: DatasetImport, address: str, keys: Keys | None, limits: Limits) -> Fetch | PoolFetch:
    """The reader of one address; what may be read is asked anew, as it is now."""
    if not is_pool_path(address):
        place = place_of(address, endpoint=asked.endpoint, region=asked.region, keys=keys, listed=listed_hosts())
        return Fetch(place.sign, place.shown, listed=listed_hosts(), limits=limits)
    path = pool_path(address)
    try:
        pool = Pool.objects.find(path.pool, "engine")
    except NotFound as error:
        raise Refusal(f"The pool {path.pool} is not here any more.") from error
    return PoolFetch(lambda: open_path(pool, path.path, listed_folders(pool.engine.slug)), path.shown, limits=limits)


def _keys(asked: DatasetImport) -> Keys | None:
    if asked.secret is None:
        return None
    if asked.secret.revoked_at is not None:
        raise Refusal(f"The secret {asked.secret.name} was revoked meanwhile.")
    return keys_of(value_of(asked.secret))


def _refuse_other(shown: str, file: StoredFile, wanted: dict[str, Any]) -> None:
    """Refuse a file that is not the one that was asked for."""
    if wanted["bytes"] is not None and file.bytes != wanted["bytes"]:
        raise Refusal(f"{shown} has {file.bytes:,} bytes; {wanted['bytes']:,} were announced. Nothing was imported.")
    if wanted["sha256"] and file.sha256 != wanted["sha256"]:
        raise Refusal(f"{shown} has the SHA-256 {file.sha256}; {wanted['sha256']} was announced. Nothing was imported.")


def _told(asked: DatasetImport, number: int, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks, saying once a second how far it is; nothing rests on it."""
    count, told_at = 0, 0.0
    for chunk in chunks:
        count += len(chunk)
        if time.monotonic() - told_at >= TOLD_SECONDS:
            told_at = time.monotonic()
            cache.set(progress_key(asked), {"place": number, "bytes": count}, PROGRESS_SECONDS)
        yield chunk
