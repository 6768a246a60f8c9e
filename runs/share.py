"""Whose turn is it on an engine that workspaces share? The smallest share goes first (contracts of the ledger). Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

MS_PER_HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class Share:
    """What a workspace has had of an engine in the last 24 hours, in slot-milliseconds, against its weight; and the places it asks for now."""

    slot_ms: int
    weight: int
    wanted_slots: int = 0

    def is_less_than(self, other: "Share") -> bool:
        return self.slot_ms * other.weight < other.slot_ms * self.weight

    @property
    def words(self) -> str:
        return f"{self.slot_ms / MS_PER_HOUR:.2f} slot-hours at weight {self.weight}"


@dataclass(frozen=True, slots=True)
class Turn:
    """Others go first: `slots` is how many places they ask for, `first` the one of them that has had the least."""

    own: Share
    first: Share
    slots: int


def turn_of(own: Share, others: Iterable[Share]) -> Turn | None:
    """Who goes before this workspace; None where nobody does. A workspace that asks for nothing is passed, whatever it had."""
    ahead = [other for other in others if other.wanted_slots and other.is_less_than(own)]
    if not ahead:
        return None
    first = ahead[0]
    for other in ahead:
        if other.is_less_than(first):
            first = other
    return Turn(own, first, sum(other.wanted_slots for other in ahead))
