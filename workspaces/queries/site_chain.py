"""Is the installation's own record whole? The counterpart of workspaces/queries/chain.py for the one chain without a workspace.

It has no head row: that its end is missing shows by its checkpoints only.
"""

from collections.abc import Iterator

from workspaces import checkpoint
from workspaces.checkpoint import Checkpoint
from workspaces.models import SiteEvent
from workspaces.queries.chain import Broken, Position, Verification, compare
from workspaces.site_audit import site_event_hash


class SiteWalk:
    """One pass over the site's chain from a position onwards; raises Broken at the first fault."""

    erased_payloads = 0

    def __init__(self, start: Position | None = None) -> None:
        self.at = start or Position()

    def __iter__(self) -> Iterator[Position]:
        rows = SiteEvent.objects.order_by("sequence")
        for event in (rows.filter(sequence__gt=self.at.count) if self.at.count else rows).iterator(chunk_size=500):
            expected = self.at.count + 1
            if event.sequence != expected:
                raise Broken(f"Event {expected} is missing: event {event.sequence} follows event {self.at.count}.")
            if event.previous_hash != self.at.head:
                raise Broken(f"Event {event.sequence} does not follow the event before it: its previous hash is another one.")
            if site_event_hash(event) != event.hash:
                raise Broken(f"Event {event.sequence} ({event.verb}) was changed: its hash does not match what is stored.")
            self.at = Position(count=event.sequence, head=event.hash)
            yield self.at


def verify_site_chain() -> Verification:
    """Walk the installation's chain and hold it against its checkpoints."""
    return compare(checkpoint.SITE, SiteWalk())


def site_events() -> int:
    """How many events the installation's chain has."""
    return SiteEvent.objects.order_by("-sequence").values_list("sequence", flat=True).first() or 0


def seal_site() -> Checkpoint | None:
    """Add a signed checkpoint for the installation's chain; None where nothing has happened since the last. Raises Broken."""

    def grown(newest: Checkpoint | None) -> tuple[int, str] | None:
        start = Position(count=newest.count, head=newest.head) if newest else Position()
        walk = SiteWalk(start)
        for _ in walk:
            pass
        return (walk.at.count, walk.at.head) if walk.at.count > start.count else None

    return checkpoint.append(checkpoint.SITE, grown)
