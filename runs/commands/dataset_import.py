"""Bringing files from other machines into a dataset: asked for, read by a job (runs/jobs/dataset_import.py), frozen at once or not at all."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils import timezone

from runs import queue
from runs.models import DatasetImport
from runs.object_address import Place, place_of
from runs.outbound import Forbidden, read_listed
from runs.pool_path import PoolPath, folders_of, is_pool_path, pool_path, read_folders, refuse_unlisted
from workspaces import ids, scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.accounts import lock_ledger
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.commands.blob import StoredFile
from workspaces.commands.freezing import MAX_FILES, Said, freeze, licence_of, refuse_unsaid
from workspaces.commands.registry import insert
from workspaces.file_paths import BadPath, clean_path, refuse_collisions
from workspaces.models import Dataset, DatasetVersion, NotFound, Pool, Secret
from workspaces.units import plural
from workspaces.verbs import Verb

MAX_TRIES = 3  # a worker that dies over it so often dies of it
MAX_OPEN = 20  # of one workspace


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file elsewhere. `path`: under which name it is kept, empty for its own; SHA-256 and bytes where somebody said them."""

    address: str
    path: str = ""
    sha256: str = ""
    bytes: int | None = None


@command(Verb.DATASET_IMPORT_ASKED, needs=Permission.IMPORT_DATA, kind=Kind.DATASET)
def request_import(
    event: Draft,
    *,
    actor: Actor,
    dataset: Dataset,
    role: str,
    files: Sequence[WantedFile],
    endpoint: str = "",
    region: str = "",
    secret: Secret | None = None,
    licence: str = "",
    evidence: str = "",
    records: int | None = None,
    has_header: bool = True,
    reason: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> DatasetImport:
    """Ask for the next version of a dataset to be read from https, s3 and pool addresses. Whoever names a secret must be one who manages secrets: a
    bucket may hold more than these files. Refuses addresses that are not read and what the version would be refused for."""
    if secret is not None and not rights_of(actor, scope.current_id()).allows(Permission.MANAGE_SECRET, Kind.SECRET):
        raise Denied(Permission.MANAGE_SECRET, Kind.SECRET)
    if secret is not None and (secret.revoked_at is not None or secret.kind != Secret.Kind.VALUE):
        raise Refusal(
            f"{secret.name} is revoked, or a key of another kind; name one that holds ACCESS_KEY_ID:SECRET_ACCESS_KEY.", field="secret"
        )
    asked = DatasetImport(
        id=id or ids.uuid7(), dataset=dataset, role=role, endpoint=endpoint, region=region, secret=secret, licence=licence_of(licence),
        evidence=evidence.strip(), records=records, has_header=has_header, reason=reason.strip()[:1000],
    )  # fmt: skip
    return ask(event, asked, files, actor=actor)


def ask(event: Draft, asked: DatasetImport, files: Sequence[WantedFile], *, actor: Actor) -> DatasetImport:
    """Part of the commands that ask for an import: `asked` is complete but for its files and who asks."""
    if actor.user is None:
        raise Refusal("An import is asked for by somebody who answers for it.")
    lock_ledger(event)  # two at once: each is counted before the next
    open_count = DatasetImport.objects.filter(status__in=DatasetImport.OPEN).count()
    if open_count >= MAX_OPEN:
        raise Refusal(f"{plural(open_count, 'import waits', 'imports wait')} here already; ask again once some of them have ended.")
    dataset = asked.dataset
    asked.requested_by = actor.user
    asked.sources, asked.source = _sources(files, endpoint=asked.endpoint, region=asked.region)
    refuse_unsaid(
        dataset.origin, licence=asked.licence or dataset.licence, evidence=asked.evidence or dataset.evidence, source=asked.source,
        is_made_here=False,
    )  # fmt: skip
    insert(event, asked)
    event.about = dataset
    event.reason = asked.reason
    secret = asked.secret.name if asked.secret else ""
    event.details["import"] = {"files": len(asked.sources), "from": asked.source, "secret": secret}
    queue.ring("read_import", subject=asked.pk)
    return asked


@command(Verb.DATASET_IMPORT_BEGUN, needs=None, by_system=True)
def begin_import(event: Draft, *, actor: Actor, asked: DatasetImport) -> DatasetImport:
    """A worker begins to read, perhaps anew after another one that died. After MAX_TRIES the import fails."""
    asked = _locked(asked)
    event.about = asked.dataset
    if asked.tries >= MAX_TRIES:
        _fail(event, asked, f"Whoever read it was ended {plural(MAX_TRIES, 'time', 'times')} before it was there.")
    else:
        event.change(asked, status=DatasetImport.Status.RUNNING, tries=asked.tries + 1, began_at=timezone.now())
    return asked


@command(Verb.DATASET_VERSION_IMPORTED, needs=None, by_system=True)
def finish_import(
    event: Draft, *, actor: Actor, asked: DatasetImport, files: Sequence[StoredFile], found: Sequence[dict[str, Any]]
) -> DatasetVersion:
    """Everything is in the store: freeze it, in the name and under the rights of whoever asked. `found`: what was read, file by file."""
    asked = _locked(asked)
    if not rights_of(Actor.of(asked.requested_by), scope.current_id()).allows(Permission.IMPORT_DATA, Kind.DATASET):
        raise Refusal(f"{asked.requested_by.label} may not import data here any more.")
    said = Said(role=asked.role, source=asked.source, licence=asked.licence, evidence=asked.evidence, records=asked.records)
    version = freeze(event, dataset=asked.dataset, files=files, said=said, by=asked.requested_by)
    event.reason = asked.reason
    event.details["read"] = list(found)[:20]
    event.change(asked, status=DatasetImport.Status.DONE, ended_at=timezone.now(), found=list(found), version=version)
    event.about = version
    return version


@command(Verb.DATASET_IMPORT_FAILED, needs=None, by_system=True, in_archive="what was asked for before comes to its end")
def fail_import(event: Draft, *, actor: Actor, asked: DatasetImport, reason: str) -> DatasetImport:
    asked = _locked(asked)
    event.about = asked.dataset
    _fail(event, asked, reason)
    return asked


def listed_hosts() -> frozenset[tuple[str, int]]:
    """Inner hosts that a site operator lists."""
    return read_listed(settings.IMPORT_HOSTS)


def listed_folders(engine: str) -> tuple[str, ...]:
    """Folders of an engine's machine that a site operator lists."""
    return folders_of(engine, read_folders(settings.IMPORT_FOLDERS))


def _pool_place(address: str, engines: dict[str, str]) -> PoolPath:
    """`engines`: of pools that were looked up before, by name."""
    place = pool_path(address)
    try:
        engine = engines[place.pool] = engines.get(place.pool) or Pool.objects.find(place.pool, "engine").engine.slug
    except NotFound as error:
        raise Forbidden(f"{place.pool[:64]} is no pool of this workspace.") from error
    refuse_unlisted(place, engine, read_folders(settings.IMPORT_FOLDERS))
    return place


def _sources(files: Sequence[WantedFile], *, endpoint: str, region: str) -> tuple[list[dict[str, Any]], str]:
    """What is to be read, and where that lies, in words that hold nothing that opens it."""
    if not files:
        raise Refusal("Name at least one address.", field="files")
    if len(files) > MAX_FILES:
        raise Refusal(f"A version may have {MAX_FILES:,} files; these are {len(files):,}. Pack them into fewer.", field="files")
    listed = listed_hosts()
    sources: list[dict[str, Any]] = []
    shown: list[str] = []
    engines: dict[str, str] = {}
    try:
        for file in files:
            place: Place | PoolPath
            if is_pool_path(file.address):
                place = _pool_place(file.address, engines)
            else:
                place = place_of(file.address, endpoint=endpoint, region=region, listed=listed)
            shown.append(place.shown)
            path = clean_path(file.path or place.name)
            sources.append({"address": file.address, "path": path, "sha256": file.sha256.lower(), "bytes": file.bytes})
        refuse_collisions(str(entry["path"]) for entry in sources)
    except (Forbidden, BadPath) as error:
        raise Refusal(str(error), field="files") from error
    others = f", and {plural(len(shown) - 1, 'more file', 'more files')}" if len(shown) > 1 else ""
    return sources, f"{shown[0][:900]}{others}"


def _fail(event: Draft, asked: DatasetImport, reason: str) -> None:
    event.verb = Verb.DATASET_IMPORT_FAILED
    event.reason = reason[:1000]
    event.change(asked, status=DatasetImport.Status.FAILED, failure=reason[:1000], ended_at=timezone.now())


def _locked(asked: DatasetImport) -> DatasetImport:
    found = DatasetImport.objects.select_for_update(no_key=True, of=("self",)).select_related("dataset", "requested_by").get(pk=asked.pk)
    if found.status not in DatasetImport.OPEN:
        raise Refusal(f"This import is {found.get_status_display()} already.")
    return found
