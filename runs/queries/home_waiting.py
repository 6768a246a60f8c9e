"""Why queued runs do not start yet: by the start rule itself, asked once for all runs that are alike."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.db.models import Count
from django.db.models.fields.json import KeyTextTransform, KeyTransform

from runs.lifecycle import RunStatus
from runs.models import Run
from runs.queries.start import isolation_words, lacks_budget, launchers, rooms
from runs.start import Asked, AtOnce, Room, Waits, what_holds
from workspaces.models import Limit, Pool, Unit
from workspaces.standings import CALENDAR, Standing

ALIKE_SHOWN = 50
ADMITTED_ON = KeyTextTransform("isolation", KeyTransform("pool", "frozen"))  # of a run
Alike = tuple[uuid.UUID, int, uuid.UUID, str]  # pool, slots, who asked, isolation


@dataclass(frozen=True, slots=True)
class Queued:
    """The queue as the start rule sees it now."""

    counts: dict[Alike, int]
    asked: dict[Alike, Asked]
    rooms: dict[uuid.UUID, Room]
    at_once: AtOnce
    stops: list[Standing]

    def reason(self, run: Run) -> str:
        """Why a run of the queue does not start yet; "" where it may, and only others go first. The run bears `admitted_on`."""
        key = (run.pool_id, run.slots, run.requested_by_id, getattr(run, "admitted_on", ""))
        if key not in self.asked:
            return ""
        waits = what_holds(replace(self.asked[key], budget=lacks_budget(run, self.stops)), self.rooms[run.pool_id], self.at_once)
        return waits.reason if waits else ""

    def stuck(self) -> Iterator[tuple[Waits, str, int]]:
        """What keeps runs waiting until somebody does something: what it is, the pool, and how many runs it keeps."""
        found: dict[tuple[Waits, str], int] = {}
        for key, count in self.counts.items():
            room = self.rooms[key[0]]
            waits = what_holds(self.asked[key], room, self.at_once)
            if waits is not None and waits.needs_somebody:
                found[waits, room.slug] = found.get((waits, room.slug), 0) + count
        return ((waits, slug, count) for (waits, slug), count in found.items())


def queued(limits: list[Standing], running: int) -> Queued:
    """A fixed number of queries however long the queue is. `limits` stand as they do now, `running` runs are at work."""
    columns = ("pool", "slots", "requested_by", "admitted_on", "requested_by__display_name", "requested_by__username")
    waiting = Run.objects.filter(status=RunStatus.QUEUED).order_by().annotate(admitted_on=ADMITTED_ON).values_list(*columns)
    rows = list(waiting.annotate(Count("pk"))[:ALIKE_SHOWN])
    pools = Pool.objects.select_related("engine").in_bulk({pool for pool, *_ in rows})
    may_launch = launchers() if rows else frozenset()
    counts, asked = {}, {}
    for pool, slots, asker, isolation, name, username, count in rows:
        key = (pool, slots, asker, isolation)
        counts[key] = count
        asked[key] = Asked(
            slots=slots, isolation=isolation, isolation_words=isolation_words(isolation),
            asked_by=name or username, asker_may_launch=asker in may_launch,
        )  # fmt: skip
    hard = [standing for standing in limits if standing.mode == Limit.Mode.STOP]
    allowed = next((standing.amount for standing in hard if (standing.unit, standing.window) == (Unit.RUNS, Limit.Window.NOW)), None)
    stops = [standing for standing in hard if standing.window in CALENDAR]
    return Queued(counts, asked, rooms(pools.values()) if pools else {}, AtOnce(running, allowed), stops)
