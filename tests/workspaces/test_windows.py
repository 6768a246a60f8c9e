"""Budget windows tile time: every instant in exactly one week and one month, whatever the clocks of a zone do."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workspaces.windows import Window, day_of, first_instant, month_of, week_of, window_of, words

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Santiago")
ODD_ZONES = ("Pacific/Apia", "America/St_Johns", "America/Havana", "Africa/Cairo")  # a lost day, midnights lost or twice
TEN_YEARS = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("zone", ZONES)
def test_ten_years_of_weeks_tile_without_gap_or_overlap(zone: str) -> None:
    for week_start in range(7):
        window = week_of(TEN_YEARS[0], zone, week_start)
        count = 0
        while window.ends_at < TEN_YEARS[1]:
            following = week_of(window.ends_at, zone, week_start)
            assert following.starts_at == window.ends_at
            assert week_of(window.ends_at - timedelta(microseconds=1), zone, week_start) == window
            assert timedelta(days=6, hours=22) < window.ends_at - window.starts_at < timedelta(days=7, hours=2)
            assert window.starts_at.astimezone(ZoneInfo(zone)).weekday() == week_start
            window, count = following, count + 1
        assert count in (521, 522)


@pytest.mark.parametrize("zone", ZONES)
def test_ten_years_of_months_tile_without_gap_or_overlap(zone: str) -> None:
    window = month_of(TEN_YEARS[0], zone)
    count = 0
    while window.ends_at < TEN_YEARS[1]:
        following = month_of(window.ends_at, zone)
        assert following.starts_at == window.ends_at
        assert month_of(window.ends_at - timedelta(microseconds=1), zone) == window
        assert window.starts_at.astimezone(ZoneInfo(zone)).day == 1
        window, count = following, count + 1
    assert count in (119, 120)


@settings(max_examples=400, deadline=None)
@given(
    moment=st.datetimes(min_value=datetime(1985, 1, 1), max_value=datetime(2037, 1, 1)).map(lambda naive: naive.replace(tzinfo=UTC)),  # noqa: DTZ001  # made aware at once
    zone=st.sampled_from(ZONES + ODD_ZONES),
    week_start=st.integers(0, 6),
)
def test_any_instant_lies_in_the_window_it_is_given(moment: datetime, zone: str, week_start: int) -> None:
    for window in (week_of(moment, zone, week_start), month_of(moment, zone)):
        assert moment in window
        assert window.starts_at.tzinfo is UTC
        assert window.starts_at.microsecond == 0
    week = week_of(moment, zone, week_start)
    assert week_of(week.starts_at, zone, week_start) == week == week_of(week.ends_at - timedelta(microseconds=1), zone, week_start)


def test_a_midnight_that_does_not_exist_begins_at_the_jump() -> None:
    # Chile, Sunday 8 September 2024: 24:00 became 01:00.
    start = first_instant(date(2024, 9, 8), ZoneInfo("America/Santiago"))
    assert start == datetime(2024, 9, 8, 4, 0, tzinfo=UTC)
    assert start.astimezone(ZoneInfo("America/Santiago")).hour == 1


def test_a_jump_that_began_before_midnight_is_found_to_the_second() -> None:
    # Toronto, 31 March 1919: half past eleven at night became half past midnight.
    zone = ZoneInfo("America/Toronto")
    start = first_instant(date(1919, 3, 31), zone)
    assert start.astimezone(zone).strftime("%d %H:%M:%S") == "31 00:30:00"
    assert (start - timedelta(seconds=1)).astimezone(zone).strftime("%d %H:%M:%S") == "30 23:29:59"


def test_a_midnight_that_happens_twice_begins_at_the_first() -> None:
    # Newfoundland, Sunday 29 October 2006: one minute past midnight became 23:01 of Saturday.
    window = week_of(datetime(2006, 10, 29, 12, 0, tzinfo=UTC), "America/St_Johns", 6)
    assert window.starts_at == datetime(2006, 10, 29, 2, 30, tzinfo=UTC)
    second_saturday = window.starts_at + timedelta(minutes=10)
    assert second_saturday.astimezone(ZoneInfo("America/St_Johns")).strftime("%a") == "Sat"
    assert week_of(second_saturday, "America/St_Johns", 6) == window


def test_a_day_that_was_left_out_gives_a_week_of_six_days() -> None:
    # Samoa went from Thursday 29 to Saturday 31 December 2011.
    week = week_of(datetime(2011, 12, 29, 12, 0, tzinfo=UTC), "Pacific/Apia", 0)
    assert week.ends_at - week.starts_at == timedelta(days=6)


def test_words_name_the_weekday_and_the_zone_and_far_away_the_date() -> None:
    end = datetime(2026, 11, 29, 23, 0, tzinfo=UTC)
    assert words(end, "Europe/Berlin") == "Monday 00:00 Europe/Berlin"
    assert words(end, "Europe/Berlin", end - timedelta(days=3)) == "Monday 00:00 Europe/Berlin"
    assert words(end, "Europe/Berlin", end - timedelta(days=20)) == "30 November 00:00 Europe/Berlin"


def test_what_has_passed_is_counted_in_thousandths() -> None:
    start = datetime(2026, 11, 23, tzinfo=UTC)
    window = Window(start, start + timedelta(days=7))
    assert [window.passed(start + timedelta(days=days)) for days in (-1, 0, 7, 8)] == [0, 0, 1000, 1000]
    assert window.passed(start + timedelta(days=3, hours=12)) == 500


@pytest.mark.parametrize("zone", ZONES + ODD_ZONES)
def test_ten_years_of_days_tile_without_gap_or_overlap(zone: str) -> None:
    window = day_of(TEN_YEARS[0], zone)
    count = 0
    while window.ends_at < TEN_YEARS[1]:
        following = day_of(window.ends_at, zone)
        assert following.starts_at == window.ends_at
        assert day_of(window.ends_at - timedelta(microseconds=1), zone) == window
        assert timedelta(hours=22) < window.ends_at - window.starts_at < timedelta(hours=26)
        window, count = following, count + 1
    assert count in (3652, 3653)


@settings(max_examples=400, deadline=None)
@given(
    moment=st.datetimes(min_value=datetime(1985, 1, 1), max_value=datetime(2037, 1, 1)).map(lambda naive: naive.replace(tzinfo=UTC)),  # noqa: DTZ001  # made aware at once
    zone=st.sampled_from(ZONES + ODD_ZONES),
)
def test_any_instant_lies_in_one_day(moment: datetime, zone: str) -> None:
    day = day_of(moment, zone)
    assert moment in day
    assert day_of(day.starts_at, zone) == day == day_of(day.ends_at - timedelta(microseconds=1), zone)


@pytest.mark.parametrize(
    ("noon", "zone", "starts", "hours"),
    [
        ("2026-11-27T12:00Z", "Europe/Berlin", "2026-11-26T23:00Z", 24),
        ("2026-03-29T12:00Z", "Europe/Berlin", "2026-03-28T23:00Z", 23),  # clocks go forward
        ("2026-10-25T12:00Z", "Europe/Berlin", "2026-10-24T22:00Z", 25),  # and back
        ("2024-09-08T12:00Z", "America/Santiago", "2024-09-08T04:00Z", 23),  # a midnight that does not exist
        ("2011-12-30T09:00Z", "Pacific/Apia", "2011-12-29T10:00Z", 24),  # the day before one that was left out
        ("2011-12-30T11:00Z", "Pacific/Apia", "2011-12-30T10:00Z", 24),  # and the day after it
    ],
)
def test_days_are_cut_at_the_midnights_of_the_zone(noon: str, zone: str, starts: str, hours: int) -> None:
    day = day_of(datetime.fromisoformat(noon), zone)
    assert (day.starts_at, day.ends_at - day.starts_at) == (datetime.fromisoformat(starts), timedelta(hours=hours))


def test_a_period_is_a_day_a_week_or_a_month() -> None:
    moment, zone = datetime(2026, 11, 27, 12, tzinfo=UTC), "Europe/Berlin"
    assert window_of("day", moment, zone, 6) == day_of(moment, zone)
    assert window_of("week", moment, zone, 6) == week_of(moment, zone, 6) != week_of(moment, zone, 0)
    assert window_of("month", moment, zone, 6) == month_of(moment, zone)
    with pytest.raises(ValueError, match="no period"):
        window_of("", moment, zone, 0)


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/Los_Angeles", "UTC"])
@pytest.mark.parametrize("day", [date.min, date.max])
def test_the_ends_of_the_calendar_have_an_instant_everywhere(zone: str, day: date) -> None:
    assert abs(first_instant(day, ZoneInfo(zone)).date() - day) <= timedelta(days=3)
