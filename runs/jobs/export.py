"""Writing an export: one snapshot, streamed row by row into a folder of its own, then the stored files, then the manifest with its signature.

One writer at a time, by a lock on a file that dies with the process. A writer that was killed is replaced at the next bell (`tidy_workspace` rings
it); the new one begins anew, on a new snapshot: half of one and half of another would fit together nowhere.
"""

import errno
import hashlib
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.core.cache import cache
from django.utils import timezone
from rq.timeouts import BaseTimeoutException

from runs.commands.export import begin_export, expire_export, fail_export, finish_export
from runs.export_folder import ExportFolder, make_folder, part_of, remove
from runs.export_verify import FORMAT, VERSION
from runs.jobs.alone import alone
from runs.jobs.job import job
from runs.models import Export
from runs.queries.closed_words import RESTRICTED, closed_by
from runs.queries.egress import runs_that_read
from runs.queries.export_files import carried, left_out
from runs.queries.export_list import PROGRESS_SECONDS, folder_of, progress_key
from runs.queries.export_tables import LEFT_OUT, tables
from runs.queries.lineage_whole import whole_document
from runs.queue import ring
from workspaces import checkpoint, scope, store
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.instant import one_instant
from workspaces.models import AuditHead, Dataset, Installation, Workspace
from workspaces.queries.chain import Broken, seal

log = structlog.get_logger(__name__)
JUST_ASKED_SECONDS = 60  # so long whoever asked on this machine has to take the lock
TRAVELS = Path(__file__).resolve().parent.parent / "export_verify.py"


@job
def make_export(actor: Actor, export_id: uuid.UUID) -> None:
    """Write an export that was asked for, unless somebody else is writing it."""
    export = Export.objects.filter(pk=export_id, is_kept=True, status__in=Export.OPEN).first()
    if export is not None:
        write(actor, export, folder_of(export))


def write(actor: Actor, export: Export, folder: Path) -> Export:
    """Write an export to `folder`, which is not there yet. What goes wrong becomes the export's failure, in a sentence, and leaves no file."""
    with _lock_of(export) as is_ours:
        if not is_ours:
            return export
        export = begin_export(actor=actor, export=export)
        if export.status != Export.Status.RUNNING:
            return export
        if export.is_kept:
            remove(part_of(folder))  # what a writer that was killed has left
        try:
            _seal()
            with ExportFolder(folder) as written:
                total, sha256, contents = _written(export, written)
        except BaseTimeoutException:
            words = "It took longer than an hour. Write it with manage.py export_workspace, which has no limit."
            return fail_export(actor=actor, export=export, reason=words)
        except Exception as fault:
            log.exception("export failed", export=export.pk.hex)
            return fail_export(actor=actor, export=export, reason=_words(fault))
        try:
            return finish_export(actor=actor, export=export, total_bytes=total, manifest_sha256=sha256, contents=contents)
        except Exception:
            remove(folder)
            raise


def tidy_exports(actor: Actor) -> None:
    """Ring again for what waits, end what nobody writes any more, remove what has expired and the folders of what is gone."""
    for export in Export.objects.filter(status__in=Export.OPEN):
        if export.is_kept:
            ring("make_export", subject=export.pk)
            continue
        if timezone.now() - export.created_at < timedelta(seconds=JUST_ASKED_SECONDS):
            continue
        with _lock_of(export) as is_ours, suppress(Refusal):
            if is_ours:
                fail_export(actor=actor, export=export, reason="The program that wrote it was ended.")
    for export in Export.objects.filter(status=Export.Status.READY, expires_at__lte=timezone.now()):
        with suppress(Refusal):
            expire_export(actor=actor, export=export)
    base = Path(settings.EXPORTS) / scope.current_id().hex
    kept = {key.hex for key in Export.objects.filter(status__in=[*Export.OPEN, Export.Status.READY]).values_list("pk", flat=True)}
    for place in sorted(base.glob("*")) if base.is_dir() else []:
        if place.name.partition(".")[0] not in kept:
            remove(place)
            with suppress(OSError):
                place.unlink()


def _written(export: Export, written: ExportFolder) -> tuple[int, str, dict[str, Any]]:
    workspace = Workspace.objects.get(pk=scope.current_id())
    with one_instant():
        closed_runs = runs_that_read(RESTRICTED)
        found = tables(closed_by(closed_runs))
        for place, table in enumerate(found, start=1):
            _tell(export, place, len(found), table.name)
            written.rows(f"tables/{table.name}.jsonl", table.lines(), table=table.model._meta.label, columns=table.types())
        written.pieces("prov.json", whole_document())
        blobs = carried(export.files, closed_runs).values("sha256", "bytes")
        listed = written.rows("blobs.jsonl", blobs.iterator(chunk_size=1000))
        head = AuditHead.objects.first()
        chain: dict[str, Any] = {"count": head.sequence if head else 0, "head": head.hash if head else "0" * 64}
        omitted = left_out(export.files, closed_runs)
        egress = {
            one: [key.hex for key in Dataset.objects.filter(egress=one).values_list("pk", flat=True)] for one in Dataset.Egress.values
        }
    signed = (asdict(line) for line in checkpoint.read(checkpoint.name_of(workspace.pk))[0] if line.count <= chain["count"])
    written.rows("checkpoints.jsonl", signed)
    missing = _copy_blobs(export, written, workspace, listed.rows or 0)
    written.content("verify.py", TRAVELS.read_bytes())
    manifest = written.manifest(_stated(export, workspace, chain, omitted, missing))
    key = settings.CHECKPOINT_KEY()
    signature = json.dumps({"key": checkpoint.public_key_hex(), "signature": key.sign(manifest).hex()}).encode() + b"\n"
    contents = {
        "files": [{"path": entry.path, "rows": entry.rows, "bytes": entry.bytes, "sha256": entry.sha256} for entry in written.entries],
        "blobs": {"count": (listed.rows or 0) - len(missing), "bytes": written.blob_bytes, "missing": len(missing)},
        "chain": chain,
        "left_out": omitted,
        "egress": egress,
    }
    return written.finish(manifest, signature), hashlib.sha256(manifest).hexdigest(), contents


def _stated(
    export: Export, workspace: Workspace, chain: dict[str, Any], omitted: list[dict[str, Any]], missing: list[str]
) -> dict[str, Any]:
    epoch = Installation.objects.filter(is_current=True).values_list("epoch", flat=True).first()
    assert export.began_at is not None
    return {
        "format": FORMAT,
        "version": VERSION,
        "workspace": {"id": workspace.pk.hex, "slug": workspace.slug, "name": workspace.name},
        "export": {
            "id": export.pk.hex,
            "number": export.number,
            "files": export.files,
            "reason": export.reason,
            "asked_by": export.requested_by.username,
            "began_at": export.began_at.isoformat(timespec="seconds"),
        },
        "installation": str(epoch) if epoch else "",
        "key": checkpoint.public_key_hex(),
        "chain": chain,
        "left_out": omitted,
        "tables_left_out": LEFT_OUT,
        "missing": missing,
    }


def _copy_blobs(export: Export, written: ExportFolder, workspace: Workspace, count: int) -> list[str]:
    """The content of every listed file; returns the hashes of those that the store does not have."""
    missing = []
    with (written.part / "blobs.jsonl").open(encoding="utf-8") as lines:
        for place, line in enumerate(lines, start=1):
            sha256 = json.loads(line)["sha256"]
            if place % 100 == 1:
                _tell(export, place, count, "stored files")
            try:
                written.blob(sha256, store.open(workspace.region, workspace.pk, sha256))
            except store.StoreMissing:
                missing.append(sha256)
    return missing


@contextmanager
def _lock_of(export: Export) -> Iterator[bool]:
    """Is nobody else writing it? Held until the block, or the process, ends."""
    base = Path(settings.EXPORTS) / scope.current_id().hex
    make_folder(base)
    with alone(base / f"{export.pk.hex}.lock") as is_ours:
        yield is_ours


def _seal() -> None:
    """A checkpoint as fresh as can be, so that the record that leaves has a short tail. A broken record leaves too: its verifier says so."""
    try:
        seal()
    except Broken as fault:
        log.error("record not sealed", fault=str(fault))


def _words(fault: Exception) -> str:
    if isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            "The disk has no room left. Remove an older export, take fewer files along, or write it elsewhere: manage.py export_workspace."
        )
    if isinstance(fault, OSError) and fault.strerror:
        return f"It could not be written: {fault.strerror}."
    return f"labsite could not write it: {type(fault).__name__}. The worker's log has more."


def _tell(export: Export, place: int, count: int, name: str) -> None:
    """How far it is, for the page; nothing rests on it."""
    cache.set(progress_key(export), {"place": place, "count": count, "name": name}, PROGRESS_SECONDS)
