"""The records that show an overlap, side by side: read from the stored files as bytes, nothing of them parsed or executed."""

from dataclasses import dataclass
from typing import Any

from runs.models import OverlapCheck
from workspaces import scope, store
from workspaces.models import DatasetFile, DatasetVersion

SHOWN = 25  # pairs on a page
MOST_BYTES = 2_000  # of a record


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """`text` is its beginning; None where it is no text, or lies in several places at once."""

    path: str
    number: int
    text: str | None
    is_cut: bool


@dataclass(frozen=True, slots=True)
class ShownPair:
    kind: str
    similarity: float
    record: ShownRecord
    holdout: ShownRecord

    @property
    def is_exact(self) -> bool:
        return self.kind == "exact"


def pairs_of(check: OverlapCheck, *, start: int = 0) -> list[ShownPair]:
    """SHOWN pairs of a check from number `start` on."""
    pairs = check.pairs[start : start + SHOWN]
    mine = _files(check.version, {pair["record"]["path"] for pair in pairs})
    others = _files(check.holdout, {pair["holdout"]["path"] for pair in pairs})
    return [
        ShownPair(pair["kind"], float(pair["similarity"]), _record(pair["record"], mine), _record(pair["holdout"], others))
        for pair in pairs
    ]


def _files(version: DatasetVersion, paths: set[str]) -> dict[str, DatasetFile]:
    return {file.path: file for file in DatasetFile.objects.filter(version=version, path__in=paths).select_related("blob")}


def _record(where: dict[str, Any], files: dict[str, DatasetFile]) -> ShownRecord:
    path, number, start, length = where["path"], where["number"], where["place"], where["length"]
    file = files.get(path)
    if file is None or not length:
        return ShownRecord(path, number, None, is_cut=False)
    end = start + min(length, MOST_BYTES)
    try:
        content = b"".join(store.open(file.blob.region, scope.current_id(), file.blob.sha256, start=start, end=end))
    except store.StoreMissing:
        return ShownRecord(path, number, None, is_cut=False)
    if b"\x00" in content:
        return ShownRecord(path, number, None, is_cut=False)
    return ShownRecord(path, number, content.decode("utf-8", "replace").strip(), is_cut=length > MOST_BYTES)
