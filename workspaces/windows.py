"""Windows of a budget or a limit: days, weeks and months of the workspace's calendar, as half-open instants in UTC. Pure.

A window begins with the first instant of its first local day. Where that midnight does not exist (the clock jumps over it), it begins at
the jump; where it happens twice, at the first. So windows tile: each instant lies in exactly one day, one week and one month.
"""

import functools
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

DAY = timedelta(days=1)
CALENDAR_BEGINS, CALENDAR_ENDS = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
OUTSIDE_CALENDAR = "This is no time that can be kept; choose one from the year 1900 to 2199."
WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Window:
    """From `starts_at` until just before `ends_at`, both aware UTC."""

    starts_at: datetime
    ends_at: datetime

    def __contains__(self, moment: datetime) -> bool:
        return self.starts_at <= moment < self.ends_at

    def passed(self, moment: datetime) -> int:
        """How much of the window has passed at `moment`, in thousandths, 0 to 1000."""
        whole = (self.ends_at - self.starts_at) // timedelta(seconds=1)
        gone = (moment - self.starts_at) // timedelta(seconds=1)
        return min(1000, max(0, 1000 * gone // whole))


def on_clock(moment: datetime, zone: ZoneInfo) -> datetime:
    """An aware moment on the clock of a place. Near the ends of all time, where that clock shows no time, in UTC."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment.astimezone(UTC)


@functools.cache
def zone_names() -> frozenset[str]:
    """Names of all time zones. Read from the disk once: that takes milliseconds, and every launch asks."""
    return frozenset(available_timezones())


def window_of(period: str, moment: datetime, zone: str, week_start: int) -> Window:
    """The day, week or month that `moment` (aware) lies in. ValueError for any other period."""
    match period:
        case "day":
            return day_of(moment, zone)
        case "week":
            return week_of(moment, zone, week_start)
        case "month":
            return month_of(moment, zone)
    raise ValueError(f"{period!r} is no period; there are day, week and month.")


def day_of(moment: datetime, zone: str) -> Window:
    """The calendar day that `moment` (aware) lies in; `zone` is an IANA name. A day that the zone's calendar left out belongs to nobody: the
    window before it ends where the one after it begins."""
    place = ZoneInfo(zone)
    today = moment.astimezone(place).date()
    while moment < first_instant(today, place):
        today -= DAY
    while moment >= (ends_at := first_instant(today + DAY, place)):
        today += DAY
    return Window(first_instant(today, place), ends_at)


def week_of(moment: datetime, zone: str, week_start: int) -> Window:
    """The week that `moment` (aware) lies in; `week_start` is 0 Monday … 6 Sunday. ZoneInfoNotFoundError where `zone` is no IANA name."""
    place = ZoneInfo(zone)
    today = moment.astimezone(place).date()
    first = today - timedelta(days=(today.weekday() - week_start) % 7)
    # The clock may fall back over midnight: then the local date of a moment can lie one day before that of the window it belongs to.
    while moment >= first_instant(first + WEEK, place):
        first += WEEK
    while moment < first_instant(first, place):
        first -= WEEK
    return Window(first_instant(first, place), first_instant(first + WEEK, place))


def month_of(moment: datetime, zone: str) -> Window:
    """The calendar month that `moment` (aware) lies in; `zone` is an IANA name."""
    place = ZoneInfo(zone)
    first = moment.astimezone(place).date().replace(day=1)
    while moment >= first_instant(_next_month(first), place):
        first = _next_month(first)
    while moment < first_instant(first, place):
        first = (first - timedelta(days=1)).replace(day=1)
    return Window(first_instant(first, place), first_instant(_next_month(first), place))


def clock_of(zone: str) -> ZoneInfo:
    """The clock of an IANA zone; UTC where there is none of that name."""
    try:
        return ZoneInfo(zone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def is_in_calendar(given: date) -> bool:
    """Is a day or an aware instant one that every clock can show? What lies at the ends of Python's calendar falls off it in another zone."""
    if isinstance(given, datetime):
        return CALENDAR_BEGINS <= given < CALENDAR_ENDS
    return CALENDAR_BEGINS.date() <= given < CALENDAR_ENDS.date()


def first_instant(day: date, zone: ZoneInfo) -> datetime:
    """The first instant, in UTC, at which the clock of `zone` shows `day` or a later day. Days at the ends of the calendar, whose instants lie
    beyond it elsewhere, are taken for those beside them."""
    day = min(max(day, date.min + 2 * DAY), date.max - 2 * DAY)
    midnight = datetime.combine(day, time())
    early = midnight.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if early.astimezone(zone).replace(tzinfo=None) == midnight:
        return early
    # The clock jumps over this midnight. With the offset from after the jump the same figures lie before it (PEP 495), so it is in between.
    before, after = midnight.replace(tzinfo=zone, fold=1).astimezone(UTC), early
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).replace(tzinfo=None) < midnight:
            before = middle
        else:
            after = middle
    return after


def words(moment: datetime, zone: str, now: datetime | None = None) -> str:
    """When a window ends, on the workspace's clock: `Monday 00:00 Europe/Berlin`; more than a week after `now` with its date."""
    local = moment.astimezone(ZoneInfo(zone))
    day = f"{local:%A}" if now is None or moment - now <= WEEK else f"{local.day} {local:%B}"
    return f"{day} {local:%H:%M} {zone}"


def _next_month(first: date) -> date:
    return (first.replace(day=28) + timedelta(days=4)).replace(day=1)
