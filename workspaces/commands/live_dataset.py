"""Live datasets: pieces that runs add, and the windows that are cut off them."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Sum

from workspaces import manifest
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.blob import StoredFile
from workspaces.commands.freezing import MAX_FILES
from workspaces.commands.registry import change_fields, create_named, insert
from workspaces.file_paths import MAX_PART_BYTES
from workspaces.models import Blob, Dataset, DatasetFile, DatasetPiece, DatasetVersion, NotFound, User
from workspaces.queries.growth import waiting
from workspaces.units import plural
from workspaces.verbs import Verb

MOST_RECORDS = 10**12
LIVE = frozenset({"is_live", "window_records", "records_a_day"})


@dataclass(frozen=True, slots=True)
class Piece:
    """A file that a run has made for a live dataset, its row already there."""

    path: str
    blob: Blob
    records: int
    is_counted: bool = False  # in the file; else they are what the run said
    artifact_id: uuid.UUID | None = None  # of the run, whose content it is


@command(Verb.DATASET_CHANGED, needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET)
def make_live(
    event: Draft,
    *,
    actor: Actor,
    dataset: Dataset,
    window_records: int | None = None,
    records_a_day: int | None = None,
    reason: str = "",
) -> Dataset:
    """Let runs add to a dataset; `window_records`: cut a window by itself once so many records wait, never where None; `records_a_day`: how many
    are expected, by its last windows where None. Repeated, it changes these numbers."""
    event.reason = reason
    changed = {"is_live": True, "window_records": window_records, "records_a_day": records_a_day}
    return change_fields(event, dataset, LIVE, changed, check=_refuse_live)


def _refuse_live(dataset: Dataset) -> None:
    if dataset.window_of_id is not None:
        raise Refusal(f"{dataset.name} is a window and stays as it was cut.")
    if dataset.window_records is not None and not 1 <= dataset.window_records <= MOST_RECORDS:
        raise Refusal(f"A window holds between 1 and {MOST_RECORDS:,} records.", field="window_records")
    if dataset.records_a_day is not None and not 1 <= dataset.records_a_day <= MOST_RECORDS:
        raise Refusal(f"Between 1 and {MOST_RECORDS:,} records a day can be expected.", field="records_a_day")


@command(Verb.DATASET_WINDOW_CUT, needs=Permission.IMPORT_DATA, kind=Kind.DATASET)
def cut_window(
    event: Draft,
    *,
    actor: Actor,
    dataset: Dataset,
    records: int | None = None,
    reason: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Dataset:
    """Freeze what waits as the next window `<slug>-window-<n>`; with `records`, the oldest pieces that together hold at least so many,
    or the oldest MAX_FILES of them."""
    event.reason = reason
    assert actor.user is not None
    lock_ledger()  # a withdrawal that is under way marks what was cut, or is seen here
    return cut(event, dataset=_locked(dataset), records=records, by=actor.user, id=id)


def grow(event: Draft, *, dataset: Dataset, pieces: Sequence[Piece], run_id: uuid.UUID, by: User) -> list[DatasetPiece]:
    """Within the command that ends a run: what it made for a live dataset. A piece that the run has brought before is not brought again. Cuts
    windows where enough waits for one."""
    dataset = _locked(dataset)
    known = set(DatasetPiece.objects.filter(dataset=dataset, made_by_run_id=run_id).values_list("path", flat=True))
    last = DatasetPiece.objects.filter(dataset=dataset).order_by("-number").values_list("number", flat=True).first() or 0
    fresh = [piece for piece in pieces if piece.path not in known]
    rows = [
        DatasetPiece(
            dataset=dataset, number=last + place, path=piece.path, blob=piece.blob,
            records=min(piece.records, MOST_RECORDS), is_counted=piece.is_counted, made_by_run_id=run_id, source_artifact_id=piece.artifact_id,
        )
        for place, piece in enumerate(fresh, start=1)
    ]  # fmt: skip
    DatasetPiece.objects.bulk_create(rows)
    event.created(*rows)
    if rows and dataset.window_records:
        while (waiting(dataset).aggregate(total=Sum("records"))["total"] or 0) >= dataset.window_records:
            cut(event, dataset=dataset, records=dataset.window_records, by=by)
    return rows


def cut(
    event: Draft,
    *,
    dataset: Dataset,
    records: int | None,
    by: User,
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Dataset:
    """Part of the commands that cut; the dataset's row is locked, so that what arrives meanwhile waits for the next window. A window holds at
    most MAX_FILES pieces: `records` that would need more are cut short, since nothing may keep the run that brought them from ending."""
    if not dataset.is_live:
        raise Refusal(f"{dataset.name} does not grow by runs, so there is nothing to cut a window off.")
    taken: list[DatasetPiece] = []
    total = 0
    for piece in waiting(dataset).select_related("blob", "dataset")[:MAX_FILES]:
        taken.append(piece)
        total += piece.records
        if records is not None and total >= records:
            break
    if not taken:
        raise Refusal(f"Nothing has been added to {dataset.name} since its last window.")
    if records is not None and total < records and len(taken) < MAX_FILES:
        raise Refusal(f"A window of {records:,} records is asked for; {plural(total, 'record waits', 'records wait')}.", field="records")
    number, slug = _next_window(dataset)
    window = create_named(
        event, Dataset, actor=Actor.of(by), slug=slug, name=f"{dataset.name[:180]}, window {number}", id=id,
        description=f"Pieces {taken[0].number} to {taken[-1].number} of {dataset.name}.", origin=dataset.origin, licence=dataset.licence,
        evidence=dataset.evidence, egress=dataset.egress, window_of=dataset, window_number=number,
    )  # fmt: skip
    files = [(StoredFile(_path(piece), piece.blob.sha256, piece.blob.bytes, piece.records), piece.blob) for piece in taken]
    version = insert(
        event,
        DatasetVersion(
            dataset=window, number=1, role=DatasetVersion.Role.TRAIN, content_hash=manifest.hash_of([file for file, _ in files], manifest.TREE),
            hash_form=manifest.TREE, origin=dataset.origin, licence=dataset.licence, evidence=dataset.evidence,
            bytes=sum(file.bytes for file, _ in files), records=total, source=f"{dataset.slug}, pieces {taken[0].number} to {taken[-1].number}",
            created_by=by,
        ),
    )  # fmt: skip
    rows = [DatasetFile(version=version, path=file.path, blob=blob) for file, blob in files]
    DatasetFile.objects.bulk_create(rows)
    event.created(*rows)
    event.changing(*taken)
    DatasetPiece.objects.filter(pk__in=[piece.pk for piece in taken]).update(window=window)
    event.details.setdefault("windows", []).append({"window": window.slug, "pieces": len(taken), "records": total})
    if event.verb == Verb.DATASET_WINDOW_CUT:
        event.about = window
    return window


def _next_window(dataset: Dataset) -> tuple[int, str]:
    """Number and slug of the next window. A number whose slug somebody has given to another dataset is passed over."""
    number = dataset.windows.order_by("-window_number").values_list("window_number", flat=True).first() or 0
    while True:
        number += 1
        slug = f"{dataset.slug[:48]}-window-{number}"
        try:
            Dataset.objects.find(slug)
        except NotFound:
            return number, slug


def _locked(dataset: Dataset) -> Dataset:
    return Dataset.objects.select_for_update(no_key=True).get(pk=dataset.pk)


def _path(piece: DatasetPiece) -> str:
    """Where the piece stands in its window: two runs may call their files the same. Of a name that the number makes too long for a file system
    the end is kept, which says what kind of file it is."""
    number, name = f"{piece.number:06d}-", piece.path.rsplit("/", 1)[-1]
    return number + name.encode()[-(MAX_PART_BYTES - len(number)) :].decode("utf-8", "ignore")
