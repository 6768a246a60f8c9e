"""What the start rule (`runs/start.py`) goes by: how full pools are, and what queued runs were admitted on. It only reads."""

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, DateTimeField, DurationField, ExpressionWrapper, F, Model, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Coalesce
from django.utils import timezone

from runs.lifecycle import ACTIVE, OPEN_ATTEMPTS
from runs.models import Attempt, Run
from runs.queries.at_once import at_once_of, count_at_work
from runs.queries.held_out import held_out_since
from runs.queries.hold import queue_hold
from runs.queries.lineage_edges import NodeKind
from runs.queries.lowered import Bound, amount_of, approved, bounds
from runs.share import Turn
from runs.start import Asked, AtOnce, Hold, Holds, Room, Waits, what_holds
from workspaces import kept_query
from workspaces.access import Kind, Permission
from workspaces.models import EngineSlot, Limit, Pool, Unit, WithdrawnObject, Workspace
from workspaces.queries.member import people
from workspaces.standings import CALENDAR, Standing, amount_words, standings
from workspaces.units import duration

SECOND = timedelta(seconds=1)
NO_TURNS: Mapping[uuid.UUID, Turn] = {}
STARTS_BY = [unit for unit in Unit if unit != Unit.STORAGE_BYTES]  # units whose limits keep runs from starting


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a queued run was admitted on, as `with_grounds` finds it. `withdrawn`: label of what of it was withdrawn since; empty where nothing
    was. `held_out`: which file of what it reads is held out since, of which holdout; empty where none is."""

    admitted_on: str
    withdrawn: str
    held_out: str

    @classmethod
    def of(cls, row: Model) -> "Grounds":
        """Of a row of `with_grounds`."""
        return cls(getattr(row, "admitted_on", ""), getattr(row, "withdrawn", ""), getattr(row, "held_out", ""))


def with_grounds(rows: QuerySet[Any], *, run: str = "") -> QuerySet[Any]:
    """Queued runs, or rows that name one as `run`, with what `Grounds` are made of, by no further query. A withdrawal of what a run reads has marked
    the run, and one of a holdout the contract that measures it. JSON columns themselves are not loaded for it."""
    at = f"{run}__" if run else ""
    rested_on = Q(kind=NodeKind.RUN, object_id=OuterRef(f"{at}pk")) | Q(kind=NodeKind.CONTRACT, object_id=OuterRef(f"{at}contract"))
    marks = WithdrawnObject.objects.filter(rested_on, withdrawal__undone_at=None).order_by("withdrawal__created_at")
    found: QuerySet[Any] = rows.annotate(
        admitted_on=KeyTextTransform("isolation", KeyTransform("pool", f"{at}frozen")),
        withdrawn=Coalesce(Subquery(marks.values("withdrawal__subject_label")[:1]), Value("")),
        held_out=held_out_since(at),
    )
    return found


def rooms(pools: Iterable[Pool], *, says_ends: bool = False, turns: Mapping[uuid.UUID, Turn] = NO_TURNS) -> dict[uuid.UUID, Room]:
    """The room in each pool, a fixed number of queries however many; the engines of `pools` are at hand, and where one may be closed, who
    closed it. With `says_ends` also when the next run there ends at the latest; `turns`: by engine, who goes first there
    (`runs.queries.share`)."""
    wanted = {pool.pk: pool for pool in pools}
    [counted] = kept_query.ask_together([slots_taken(list(wanted))])
    taken = {pool: (own, of_engine) for pool, own, of_engine in counted}
    busy = [pk for pk, (slots, _) in taken.items() if slots] if says_ends else []
    ends = _next_ends(busy) if busy else {}
    return {
        pk: Room(
            slug=pool.slug,
            slots=pool.slots,
            taken=taken[pk][0],
            is_accepting=pool.is_accepting,
            isolation=pool.isolation,
            isolation_words=str(pool.get_isolation_display()),
            engine=pool.engine.slug,
            engine_slots=pool.engine.slots,
            engine_taken=taken[pk][1],
            engine_is_accepting=pool.engine.is_accepting,
            **({"next_end": ends[pk]} if pk in ends else {}),
            turn=turns.get(pool.engine_id),
            closed_by=pool.closed_by.label if not pool.is_accepting and pool.closed_by is not None else "",
            closed_reason=pool.closed_reason,
        )
        for pk, pool in wanted.items()
    }


def slots_taken(pools: list[uuid.UUID]) -> kept_query.Question:
    """Slots that are taken of each pool, and of its engine: what `rooms` asks, for one who asks for more in the same round trip."""
    return kept_query.Question(_slots_taken, (), {"pools": pools})


def _slots_taken(pools: Any) -> "QuerySet[Any, Any]":
    own = Attempt.objects.filter(pool=OuterRef("pk"), status__in=sorted(OPEN_ATTEMPTS)).order_by().values("pool")
    of_engine = EngineSlot.objects.filter(engine=OuterRef("engine")).order_by().values("engine")
    return Pool.objects.filter(pk=pools).values_list(
        "pk",
        Coalesce(Subquery(own.annotate(taken=Sum("run__slots")).values("taken")), 0),
        Coalesce(Subquery(of_engine.annotate(taken=Count("pk")).values("taken")), 0),
    )


def launchers(accounts: Collection[uuid.UUID] | None = None) -> frozenset[uuid.UUID]:
    """Accounts that may launch runs here; all, or those among `accounts`."""
    return frozenset(person.user.pk for person in people(accounts) if person.may(Permission.LAUNCH_RUN, Kind.RUN))


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds for all queued runs of the workspace at a moment: how many are at work, who may launch, what stands against hard stops,
    whether somebody holds the queue, which limits runs may no longer fit, and who was approved above those that ask for it."""

    at_once: AtOnce
    may_launch: frozenset[uuid.UUID]
    stops: list[Standing]
    hold: Hold | None = None
    lowered: list[Bound] = field(default_factory=list)
    approved: frozenset[object] = frozenset()

    def waits(self, run: Run, grounds: Grounds, room: Room) -> Waits | None:
        """Why a run does not start now; None where it may."""
        wants = asked(
            slots=run.slots, isolation=grounds.admitted_on, asked_by=run.requested_by.label,
            may_launch=run.requested_by_id in self.may_launch, budget=lacks_budget(run, self.stops), withdrawn=grounds.withdrawn,
            held_out=grounds.held_out,
        )  # fmt: skip
        waits = what_holds(wants, room, self.at_once, self.hold)
        if waits is not None and waits.holds == Holds.RUN:
            return waits
        return self._no_longer_fits(run) or waits

    def _no_longer_fits(self, run: Run) -> Waits | None:
        """It holds back the run alone: a smaller one behind it may fit."""
        for bound in self.lowered:
            if bound.standing.mode == Limit.Mode.APPROVAL and run.pk in self.approved:
                continue
            if reason := bound.excess(run):
                return Waits(Holds.RUN, reason, bound.release, needs_somebody=bound.standing.window == Limit.Window.RUN)
        return None


def conditions(now: datetime, may_launch: frozenset[uuid.UUID], *, workspace: Workspace | None = None) -> Conditions:
    """As they are now. `workspace` is the open one, where it is at hand."""
    running = count_at_work()
    return conditions_under(standings(now=now, runs_at_once=running, workspace=workspace, units=STARTS_BY), running, may_launch)


def conditions_under(limits: list[Standing], running: int, may_launch: frozenset[uuid.UUID]) -> Conditions:
    """With limits that stand as they do now, and so many runs at work."""
    lowered = bounds(limits)
    return Conditions(at_once_of(limits, running), may_launch, stops_of(limits), queue_hold(), lowered, approved(lowered))


def asked(
    *, slots: int, isolation: str, asked_by: str, may_launch: bool, budget: str = "", withdrawn: str = "", held_out: str = ""
) -> Asked:
    """What one run wants, or runs that are alike."""
    return Asked(
        slots=slots,
        isolation=isolation,
        isolation_words=isolation_words(isolation),
        asked_by=asked_by,
        asker_may_launch=may_launch,
        budget=budget,
        withdrawn=withdrawn,
        held_out=held_out,
    )


def isolation_words(isolation: str) -> str:
    """In words; as it stands where no isolation is called so, in the record of a run that is older than the name."""
    return str(dict(Pool.Isolation.choices).get(isolation, isolation or "no isolation that is on record"))


def stops_of(limits: Iterable[Standing]) -> list[Standing]:
    """The hard stops of windows of the calendar among limits."""
    return [standing for standing in limits if standing.mode == Limit.Mode.STOP and standing.window in CALENDAR]


def lacks_budget(run: Run, stops: list[Standing]) -> str:
    """Why the window that has begun since a run was admitted has no room for it; empty where it is still in its window, or has room.

    The ledger decides when the run starts (`ledger.move`). A month is taken to have turned once the run's week lies wholly before it.
    """
    if run.budget_window_at is None:
        return ""
    for standing in stops:
        amount = amount_of(run, standing.unit)
        weeks = timedelta(days=0 if standing.window == Limit.Window.WEEK else 6)
        has_turned = standing.starts_at is not None and run.budget_window_at + weeks < standing.starts_at
        total = standing.used + standing.reserved + amount
        if amount and has_turned and total > standing.amount:
            return (
                f"{standing.name}: {amount_words(amount, standing.unit)} more would make {amount_words(total, standing.unit)} of "
                f"{amount_words(standing.amount, standing.unit)}; the window ends {standing.until}."
            )
    return ""


def _next_ends(pools: list[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Of each pool the run that is bound to end first, in words."""
    end = ExpressionWrapper(F("started_at") + F("wall_seconds") * Value(SECOND, output_field=DurationField()), output_field=DateTimeField())
    active = Run.objects.filter(pool__in=pools, status__in=sorted(ACTIVE), started_at__isnull=False).annotate(end=end)
    first = active.order_by("pool", "end").distinct("pool").values_list("pool", "end", "name")
    now = timezone.now()
    return {
        pool: f"{name[:60]} ends within {duration((end - now).total_seconds())} at the latest"
        if end > now
        else f"{name[:60]} is bound to end now"
        for pool, end, name in first
    }
