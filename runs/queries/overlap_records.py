"""The records that show an overlap, side by side (record_text.py says how they are found again)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs.models import OverlapCheck
from runs.queries.record_text import RecordTexts, Room

SHOWN = 25  # pairs on a page
DIFFERENCES, VALUE = 10, 200


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """`text` is its beginning; None where it is not shown, and `missing` says why."""

    path: str
    number: int
    text: str | None
    is_cut: bool
    fields: dict[str, str] | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that two records of tables do not share."""

    name: str
    mine: str
    other: str


@dataclass(frozen=True, slots=True)
class ShownPair:
    kind: str
    similarity: float
    record: ShownRecord
    holdout: ShownRecord

    @property
    def differences(self) -> list[Difference]:
        """In what two records with fields differ, where both have the same ones; the first ten."""
        mine, other = self.record.fields, self.holdout.fields
        if mine is None or other is None or set(mine) != set(other):
            return []
        found = [Difference(name[:VALUE], value[:VALUE], other[name][:VALUE]) for name, value in mine.items() if value != other[name]]
        return found[:DIFFERENCES]

    @property
    def is_exact(self) -> bool:
        return self.kind == "exact"


def pairs_of(check: OverlapCheck, *, start: int = 0) -> list[ShownPair]:
    """SHOWN pairs of a check from number `start` on."""
    pairs = check.pairs[start : start + SHOWN]
    room = Room()
    mine = RecordTexts(check.version, [pair["record"] for pair in pairs], room)
    others = RecordTexts(check.holdout, [pair["holdout"] for pair in pairs], room)
    return [
        ShownPair(pair["kind"], float(pair["similarity"]), _record(pair["record"], mine), _record(pair["holdout"], others))
        for pair in pairs
    ]


def _record(where: Mapping[str, Any], texts: RecordTexts) -> ShownRecord:
    found = texts.at(where)
    return ShownRecord(where["path"], where["number"], found.text, found.is_cut, found.fields, found.missing)
