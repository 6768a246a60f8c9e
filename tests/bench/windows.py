"""Ten years of budget windows in five zones: `make bench BENCH=windows`. Do they tile, and what does finding one cost?

Each window ends where the next begins, no instant between belongs to two or to none. The cost is set against the bare conversion of an instant
into the zone, measured in the same run.
"""

import timeit
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.targets import judged, leave
from workspaces.windows import Window, month_of, week_of

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Santiago")
BEGIN, END = datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def walk(window_of: Callable[[datetime], Window]) -> tuple[int, int]:
    """How many windows there are from BEGIN to END, and how many of their borders leave a gap or overlap."""
    window, count, torn = window_of(BEGIN), 1, 0
    while window.ends_at < END:
        following = window_of(window.ends_at)
        torn += following.starts_at != window.ends_at or window_of(window.ends_at - TICK) != window
        window, count = following, count + 1
    return count, torn


def main() -> None:
    now = datetime(2026, 3, 29, 0, 59, tzinfo=UTC)
    torn_in_all = 0
    for zone in ZONES:
        weeks = [walk(lambda moment: week_of(moment, zone, start)) for start in range(7)]  # noqa: B023  # called at once
        months = walk(lambda moment: month_of(moment, zone))  # noqa: B023  # called at once
        torn = sum(torn for _, torn in weeks) + months[1]
        torn_in_all += torn
        place = ZoneInfo(zone)
        bare = timeit.timeit(lambda: now.astimezone(place), number=2000)  # noqa: B023  # called at once
        cost = timeit.timeit(lambda: week_of(now, zone, 0), number=2000)  # noqa: B023  # called at once
        count = sum(count for count, _ in weeks)
        print(f"{zone:34} {count:5} weeks, {months[0]} months, {torn} torn   finding one / converting an instant {cost / bare:5.1f}")
    print(f"{'ten years in five zones tile':34} {judged('windows', not torn_in_all)}")


if __name__ == "__main__":
    main()
    leave()
