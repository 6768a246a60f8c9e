"""An end as it is believed, whatever the clock that timed it: how long it took is charged, no more than can have been."""

import pytest

from runs.pools.base import Exit

MADE, NOW = 10_000.0, 13_600.0  # an hour


def end(started_at: float, ended_at: float, **more: int | float | None) -> Exit:
    said: dict[str, int | float | None] = {"code": 0, "signal": None, "peak_memory_bytes": None, "cpu_seconds": None, **more}
    return Exit(started_at=started_at, ended_at=ended_at, reason="exit", **said)  # type: ignore[arg-type]  # one of each


@pytest.mark.parametrize(
    ("started_at", "ended_at", "believed"),
    [
        pytest.param(11_000, 12_800, (11_000, 12_800), id="a clock that is right"),
        pytest.param(11_000 - 3600, 12_800 - 3600, (10_000, 11_800), id="an hour behind"),
        pytest.param(11_000 + 3600, 12_800 + 3600, (11_800, 13_600), id="an hour ahead"),
        pytest.param(10_002 - 300, 11_802 - 300, (10_000, 11_800), id="five minutes behind"),
        pytest.param(11_790 + 300, 13_590 + 300, (11_800, 13_600), id="five minutes ahead"),
        pytest.param(1, 1801, (10_000, 11_800), id="a clock that was never set"),
        pytest.param(9_000, 99_000, (10_000, 13_600), id="longer than the attempt is old"),
        pytest.param(-1e300, 1e300, (10_000, 13_600), id="from the beginning to the end of time"),
        pytest.param(-1.7e308, 1.7e308, (10_000, 13_600), id="a length that is no number"),
        pytest.param(12_800, 11_000, (12_800, 12_800), id="an end before its start"),
        pytest.param(99_000, 12_000, (13_600, 13_600), id="an end before its start, in the future"),
    ],
)
def test_how_long_it_took_stands_whatever_the_clock(started_at: float, ended_at: float, believed: tuple[float, float]) -> None:
    found = end(started_at, ended_at).within(MADE, NOW)
    assert (found.started_at, found.ended_at) == believed


def test_where_our_own_clock_was_set_back_nothing_is_charged() -> None:
    found = end(MADE, MADE + 60).within(MADE, MADE - 3600)
    assert (found.started_at, found.ended_at) == (MADE, MADE)


@pytest.mark.parametrize(
    ("said", "believed"),
    [
        ({"code": 3, "signal": None}, {"code": 3, "signal": None}),
        ({"code": -1, "signal": 4000}, {"code": 255, "signal": 0}),
        ({"peak_memory_bytes": 2**70, "cpu_seconds": 1e300}, {"peak_memory_bytes": 2**63 - 1, "cpu_seconds": 1e9}),
        ({"peak_memory_bytes": -1, "cpu_seconds": -1.0}, {"peak_memory_bytes": 0, "cpu_seconds": 0.0}),
        ({"peak_memory_bytes": None, "cpu_seconds": None}, {"peak_memory_bytes": None, "cpu_seconds": None}),
    ],
)
def test_numbers_have_room_in_the_database(said: dict[str, int | float | None], believed: dict[str, int | float | None]) -> None:
    found = end(11_000, 12_000, **said).within(MADE, NOW)
    assert {name: getattr(found, name) for name in believed} == believed
