"""The budget page: what is left and until when, and every limit with what stands against it."""

import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from workspaces import kept_query
from workspaces.models import Approval, AuditEvent, Crossing, EventPayload, EventSubject, Limit, Recount, Unit
from workspaces.standings import Standing, amount_words, name_of, standings
from workspaces.units import figure
from workspaces.windows import Window

ABOVE = {Limit.Mode.STOP: "nothing starts", Limit.Mode.APPROVAL: "an approver decides", Limit.Mode.WARN: "warns"}


@dataclass(frozen=True, slots=True)
class LimitRow:
    """One limit in words. `standing` is None for runs at once, which the floor above counts."""

    limit: Limit
    name: str
    above: str
    amount: str
    used: str
    reserved: str
    free: str
    standing: Standing | None
    passed: int | None  # of the window, in thousandths
    waiting: Approval | None = None  # a request for a larger one

    @property
    def thresholds(self) -> str:
        """Percent that are told of, in words."""
        return ", ".join(f"{mark} %" for mark in self.limit.thresholds) if self.passed is not None else ""

    @property
    def used_figure(self) -> str:
        return figure(self.standing.used, self.limit.unit) if self.standing and self.used else ""

    @property
    def reserved_figure(self) -> str:
        return figure(self.standing.reserved, self.limit.unit) if self.standing and self.reserved else ""

    @property
    def free_figure(self) -> str:
        return figure(max(0, self.standing.free), self.limit.unit) if self.standing and self.free else ""

    @property
    def even_figure(self) -> str:
        return "" if self.passed is None else figure(self.limit.amount * self.passed // 1000, self.limit.unit)

    @property
    def pace(self) -> float | None:
        """The same as a share, for the mark on a meter."""
        return None if self.passed is None else self.passed / 1000

    @property
    def even(self) -> str:
        """What would be used by now at an even pace."""
        return "" if self.passed is None else amount_words(self.limit.amount * self.passed // 1000, self.limit.unit)

    @property
    def is_over(self) -> bool:
        return self.standing is not None and self.standing.free < 0

    @property
    def is_ahead(self) -> bool:
        """Is more committed than an even pace would have used?"""
        standing = self.standing
        return (
            self.passed is not None and standing is not None and 1000 * (standing.used + standing.reserved) > standing.amount * self.passed
        )


def limit_rows(now: datetime) -> list[LimitRow]:
    """Every limit of the open workspace, what runs spend first."""
    found = {(standing.unit, standing.window, standing.mode): standing for standing in standings(now=now)}
    order = [*Unit.values]
    limits = sorted(
        Limit.objects.all(), key=lambda limit: (order.index(limit.unit), Limit.Window.values.index(limit.window), -limit.amount)
    )
    asked = {row.subject_id: row for row in kept_query.rows(Approval, subject_type="limit", status=Approval.Status.PENDING.value)}
    return [replace(_row(limit, found.get((limit.unit, limit.window, limit.mode)), now), waiting=asked.get(limit.pk)) for limit in limits]


@dataclass(frozen=True, slots=True)
class Reached:
    """The highest threshold that a limit has reached in the window that runs."""

    row: Crossing

    @property
    def words(self) -> str:
        spent, allowed = amount_words(self.row.spent, self.row.unit), amount_words(self.row.amount, self.row.unit)
        return f"{name_of(self.row.unit, self.row.window)}: {self.row.percent} % reached, {spent} of {allowed} spent then."


def reached(now: datetime) -> list[Reached]:
    """Of each limit as it stands, what it has reached in the window that runs; what it had reached before a change is on record alone."""
    highest: dict[uuid.UUID, Crossing] = {}
    for row in kept_query.ask(_reached, now=now):
        highest[row.limit_id] = row
    return [Reached(row) for row in sorted(highest.values(), key=lambda row: (row.unit, row.window, row.percent))]


def _reached(now: Any) -> "QuerySet[Crossing]":
    standing = Limit.objects.filter(pk=OuterRef("limit_id"), revision=OuterRef("revision"))
    return Crossing.objects.filter(Exists(standing), starts_at__lte=now, ends_at__gt=now).order_by("percent")


def last_recount() -> Recount | None:
    return next(iter(kept_query.ask(_newest_recount)), None)


def _newest_recount() -> "QuerySet[Recount]":
    return Recount.objects.select_related("asked_by").order_by("-created_at", "-pk")[:1]


@dataclass(frozen=True, slots=True)
class Difference:
    """A balance that is not what its entries say, in words."""

    what: str
    starts_at: datetime | None
    balance: str
    counted: str


def differences(counted: Recount | None, *, size: int = 50) -> list[Difference]:
    """What a count found wrong, as it keeps it."""
    return [
        Difference(
            what=one["what"],
            starts_at=datetime.fromisoformat(one["starts_at"]) if one["starts_at"] else None,
            balance=amount_words(one["balance"], one["unit"]),
            counted=amount_words(one["counted"], one["unit"]),
        )
        for one in (counted.wrong[:size] if counted else [])
    ]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a limit: who, when, why, and what it was before and after, in words."""

    event: AuditEvent
    reason: str
    changes: list[tuple[str, str, str]]
    is_erased: bool


def limit_changes(limit: Limit, *, size: int = 200) -> list[Change]:
    """Every change of a limit from the record, the newest first."""
    subjects = EventSubject.objects.filter(object_id=limit.pk, event_id=OuterRef("pk"))
    events = list(AuditEvent.objects.filter(Exists(subjects)).order_by("-sequence")[:size])
    bodies = dict(EventPayload.objects.filter(event__in=events).values_list("event_id", "body"))
    return [_change(limit, event, bodies.get(event.pk)) for event in events]


def _change(limit: Limit, event: AuditEvent, body: Any) -> Change:
    kept = body if isinstance(body, dict) else {}
    details = kept.get("details")
    changed = (details.get("changed", {}) if isinstance(details, dict) else {}).get(f"limit {limit.public_id}", {})
    words = [(field, _in_words(limit, field, pair[0]), _in_words(limit, field, pair[1])) for field, pair in changed.items()]
    return Change(event, str(kept.get("reason") or ""), words, body is None)


def _in_words(limit: Limit, field: str, value: Any) -> str:
    if value is None:
        return "none"
    if field == "amount" and isinstance(value, int):
        return amount_words(value, limit.unit)
    return ", ".join(f"{mark} %" for mark in value) or "none" if isinstance(value, list) else str(value)


def leading(rows: list[LimitRow]) -> LimitRow | None:
    """The limit that the page answers with: GPU-hours of the week, the hard stop first; else any that counts in a window."""
    counted = [row for row in rows if row.passed is not None]
    modes = Limit.Mode.values
    return min(
        counted,
        key=lambda row: (row.limit.unit != Unit.GPU_MS, row.limit.window != Limit.Window.WEEK, modes.index(row.limit.mode)),
        default=None,
    )


def _row(limit: Limit, standing: Standing | None, now: datetime) -> LimitRow:
    starts_at, ends_at = (standing.starts_at, standing.ends_at) if standing else (None, None)
    counts = standing is not None and limit.window != Limit.Window.RUN
    return LimitRow(
        limit=limit,
        name=name_of(limit.unit, limit.window),
        above="the next one waits" if limit.unit == Unit.RUNS and limit.mode == Limit.Mode.STOP else ABOVE[Limit.Mode(limit.mode)],
        amount=amount_words(limit.amount, limit.unit),
        used=amount_words(standing.used, limit.unit) if standing and counts else "",
        reserved=amount_words(standing.reserved, limit.unit) if standing and starts_at else "",
        free=amount_words(max(0, standing.free), limit.unit) if standing and counts else "",
        standing=standing,
        passed=Window(starts_at, ends_at).passed(now) if starts_at and ends_at else None,
    )
