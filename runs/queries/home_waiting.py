"""Why queued runs do not start yet: by the start rule itself, asked once for all runs that are alike."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, QuerySet

from runs.lifecycle import RunStatus
from runs.models import Run
from runs.queries.share import turns
from runs.queries.start import Conditions, Grounds, asked, conditions_under, launchers, rooms, with_grounds
from runs.start import Asked, Room, Waits, what_holds
from workspaces import kept_query
from workspaces.models import Pool
from workspaces.standings import Standing

ALIKE_SHOWN = 50  # kinds of runs, the most numerous


@dataclass(frozen=True, slots=True)
class Queued:
    """The queue as the start rule sees it now. `alike`: pool, what runs that are alike want, and how many they are."""

    alike: list[tuple[uuid.UUID, Asked, int]]
    rooms: dict[uuid.UUID, Room]
    now: Conditions

    def reason(self, run: Run) -> str:
        """Why a run of the queue does not start yet; "" where it may, and only others go first. The run is a row of `with_grounds`."""
        room = self.rooms.get(run.pool_id)
        waits = self.now.waits(run, Grounds.of(run), room) if room is not None else None
        return waits.reason if waits else ""

    def stuck(self) -> Iterator[tuple[Waits, str, int]]:
        """What keeps runs waiting until somebody does something: what it is, the pool, and how many runs it keeps."""
        found: dict[tuple[Waits, str], int] = {}
        for pool, wants, count in self.alike:
            waits = what_holds(wants, self.rooms[pool], self.now.at_once, self.now.hold)
            if waits is not None and waits.needs_somebody:
                found[waits, self.rooms[pool].slug] = found.get((waits, self.rooms[pool].slug), 0) + count
        return ((waits, slug, count) for (waits, slug), count in found.items())


def queued(limits: list[Standing], running: int) -> Queued:
    """A fixed number of queries however long the queue is. `limits` stand as they do now, `running` runs are at work."""
    rows = kept_query.ask(_alike)
    related = ("engine", "closed_by")
    pools = {pool.pk: pool for pool in kept_query.rows(Pool, pk__in={pool for pool, *_ in rows}, related=related)} if rows else {}
    may_launch = launchers({asker for _, _, asker, *_ in rows})
    alike = [
        (
            pool,
            asked(
                slots=slots,
                isolation=isolation,
                asked_by=name or username,
                may_launch=asker in may_launch,
                withdrawn=withdrawn,
                held_out=held_out,
            ),
            count,
        )
        for pool, slots, asker, isolation, withdrawn, held_out, name, username, count in rows
    ]
    now = conditions_under(limits, running, may_launch)
    if not pools:
        return Queued(alike, {}, now)
    return Queued(alike, rooms(pools.values(), turns=turns(pool.engine_id for pool in pools.values())), now)


def _alike() -> "QuerySet[Any, Any]":
    grounds = ("admitted_on", "withdrawn", "held_out")
    columns = ("pool", "slots", "requested_by", *grounds, "requested_by__display_name", "requested_by__username")
    waiting = with_grounds(Run.objects.filter(status=RunStatus.QUEUED).order_by()).values_list(*columns)
    alike: QuerySet[Any, Any] = waiting.annotate(count=Count("pk")).order_by("-count", "pool", "requested_by")[:ALIKE_SHOWN]
    return alike
