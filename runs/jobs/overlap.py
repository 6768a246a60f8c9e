"""Reading the records of dataset versions, and comparing each with every holdout: one version, or some pairs, for each bell.

The files are opened in a process of its own (runs/jobs/reading_process.py); what goes wrong there becomes a verdict that says so. A job that dies is
rung again by the clock, and does what is not done yet.
"""

import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from runs.commands.overlap import Finding, record_index, record_overlap
from runs.commands.policy_bell import ring_policies
from runs.jobs.job import job
from runs.jobs.reading_process import ask
from runs.models import RecordIndex
from runs.overlap.kinds import MEDIA, UNREAD
from runs.queries.overlap import files_with_content, has_work, index_of, next_to_read, pairs_to_compare
from runs.queue import ring
from workspaces import scope, store
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.blob import StoredFile
from workspaces.file_paths import shown_path
from workspaces.models import Blob, DatasetVersion, Workspace
from workspaces.units import plural

READ_SECONDS = 1800
COMPARE_SECONDS = 1200
PAIRS = 20  # compared in one go
CHUNK = 1_048_576
SHOWN = 5  # files that could not be read, named in the sentence
UNMET = (
    "Only compared as whole files, which may hold the same records. Upload a form that is read (CSV, JSON Lines, text, arrays), or rule:"
)


@job
def check_overlap(actor: Actor, workspace_id: uuid.UUID) -> None:
    """The next version to read, else the next pairs to compare; then it rings for what is left."""
    if not has_work():
        return
    version = next_to_read()
    if version is not None:
        read_version(actor, version)
    else:
        compare_pairs(actor, pairs_to_compare(PAIRS))
    ring("check_overlap", subject=workspace_id)
    if not has_work():
        ring_policies()  # a gate may have waited for it


def read_version(actor: Actor, version: DatasetVersion) -> RecordIndex:
    """Hash the records of a version and keep the hashes in the store."""
    with tempfile.TemporaryDirectory(prefix="labsite-records-") as folder:
        try:
            files = _files(version)
        except store.StoreMissing:
            return record_index(actor=actor, version=version, file=None, fault="A file of it is no longer in the store.")
        out = Path(folder) / "records"
        answer = ask({"do": "index", "files": files, "out": str(out)}, seconds=READ_SECONDS)
        if answer.fault:
            return record_index(actor=actor, version=version, file=None, fault=f"Its records could not be read: {answer.fault}.")
        contents = answer.lines[0]
        workspace = Workspace.objects.get(pk=scope.current_id())
        try:
            sha256, count = store.put_stream(workspace.region, workspace.pk, _chunks(out))
        except store.StoreFull:
            return record_index(actor=actor, version=version, file=None, fault="The store has no room for the hashes of its records.")
    return record_index(
        actor=actor, version=version, file=StoredFile("records", sha256, count), records=contents["records"],
        whole_files=sum(part["kind"] in {UNREAD, *MEDIA} for part in contents["parts"]), fault=_faults(contents["parts"]),
    )  # fmt: skip


def compare_pairs(actor: Actor, pairs: list[tuple[DatasetVersion, DatasetVersion]]) -> None:
    """Compare and keep each pair. One over which the process dies is unknown; those after it come with the next bell."""
    sides: dict[uuid.UUID, dict[str, Any] | str] = {}
    asked = []
    for version, holdout in pairs:
        for side in (version, holdout):
            if side.pk not in sides:
                sides[side.pk] = _side(side)
        faults = [fault for side in (version, holdout) if isinstance(fault := sides[side.pk], str)]
        if faults:
            _keep(actor, version, holdout, Finding(fault=" ".join(faults)))
        else:
            asked.append((version, holdout))
    if not asked:
        return
    request = {"do": "compare", "pairs": [{"version": sides[one.pk], "holdout": sides[other.pk]} for one, other in asked]}
    answer = ask(request, seconds=COMPARE_SECONDS)
    for (version, holdout), line in zip(asked, answer.lines, strict=False):
        fault, note = _caveats(version, holdout, line.pop("unmet"))
        if line["is_least"] and not line["near"]:
            fault = f"{fault} More texts have parts in common than are looked at.".strip()
        _keep(actor, version, holdout, Finding(**line, fault=fault, note=note))
    if answer.fault and len(answer.lines) < len(asked):
        version, holdout = asked[len(answer.lines)]
        _keep(actor, version, holdout, Finding(fault=f"They could not be compared: {answer.fault}."))


def _keep(actor: Actor, version: DatasetVersion, holdout: DatasetVersion, finding: Finding) -> None:
    with suppress(Refusal):  # one of them is to be read anew: the pair comes again after that
        record_overlap(actor=actor, version=version, holdout=holdout, finding=finding)


def _side(version: DatasetVersion) -> dict[str, Any] | str:
    """Kept hashes and files of a version, for the process; a sentence where there are none."""
    index = index_of(version)
    if index is None or index.blob is None:
        return index.fault if index is not None else "Its records have not been read yet."
    try:
        return {"sidecar": _local(index.blob), "files": _files(version)}
    except store.StoreMissing:
        return f"A file of {version.label} is no longer in the store."


def _caveats(version: DatasetVersion, holdout: DatasetVersion, unmet: dict[str, list[str]]) -> tuple[str, str]:
    """What could not be compared record by record: what keeps the verdict unknown, broken or of a kind that meets nothing of the other side's
    (`unmet`, paths by side), and what only wants to be said."""
    sides = {"version": version, "holdout": holdout}
    indexes = [index for side in sides.values() if (index := index_of(side)) is not None]
    faults = list(dict.fromkeys(index.fault for index in indexes if index.fault))
    if any(unmet.values()):
        named = [f"{_some(map(shown_path, paths), len(paths))} of {sides[side].label}" for side, paths in unmet.items() if paths]
        faults.append(f"{UNMET} {'; '.join(named)}.")
    whole = sum(index.whole_files for index in indexes)
    return " ".join(faults), f"{plural(whole, 'file was', 'files were')} compared as a whole." if whole and not any(unmet.values()) else ""


def _faults(parts: list[dict[str, Any]]) -> str:
    broken = [part for part in parts if part["fault"]]
    named = (f"{shown_path(part['path'])}: {part['fault']}" for part in broken)
    return f"Not read by records: {_some(named, len(broken))}." if broken else ""


def _some(named: Iterable[str], count: int) -> str:
    """The first SHOWN of `count`, and how many more there are."""
    return "; ".join(islice(named, SHOWN)) + (f"; and {count - SHOWN} more" if count > SHOWN else "")


def _files(version: DatasetVersion) -> list[list[str]]:
    return [[file.path, _local(file.blob)] for file in files_with_content(version)]


def _local(blob: Blob) -> str:
    """Where the content lies on this machine. Raises StoreMissing."""
    place = store.local_path(blob.region, scope.current_id(), blob.sha256)
    if place is None:
        raise store.StoreMissing(blob.sha256)
    return str(place)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
