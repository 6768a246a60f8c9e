"""What a launch reserves: the wall limit and its margin stay within what is charged for, for any budget."""

import pytest

from runs.reservation import MARGIN_SECONDS, MAX_WALL_SECONDS, TooLittle, cost_micros, reservation

HOUR = 3_600_000


def test_without_a_budget_the_agents_wall_limit_and_its_margin_are_reserved() -> None:
    found = reservation(budget_gpu_ms=None, wall_seconds=60, slots=2, milli_gpu_per_slot=500)
    assert (found.wall_seconds, found.gpu_ms) == (60, (60 + MARGIN_SECONDS) * 2 * 500)


@pytest.mark.parametrize("budget", [13_000, 13_001, 13_999, HOUR, HOUR + 1, 10**15])
@pytest.mark.parametrize(("slots", "milli"), [(1, 1000), (3, 333), (8, 125)])
def test_the_charge_of_a_run_that_is_ended_at_its_limit_stays_within_its_budget(budget: int, slots: int, milli: int) -> None:
    found = reservation(budget_gpu_ms=budget, wall_seconds=60, slots=slots, milli_gpu_per_slot=milli)
    assert 1 <= found.wall_seconds <= MAX_WALL_SECONDS
    assert (found.wall_seconds + MARGIN_SECONDS) * slots * milli <= found.gpu_ms <= budget


def test_a_budget_that_does_not_last_for_a_second_says_what_would() -> None:
    with pytest.raises(TooLittle, match=r"1 slots for one second and 12 seconds to end need 0\.0036"):
        reservation(budget_gpu_ms=12_999, wall_seconds=60, slots=1, milli_gpu_per_slot=1000)


def test_what_costs_no_gpu_reserves_none() -> None:
    assert reservation(budget_gpu_ms=HOUR, wall_seconds=60, slots=1, milli_gpu_per_slot=0).gpu_ms == 0


def test_a_price_is_rounded_up_to_the_micro_unit() -> None:
    assert (cost_micros(HOUR, 2_500_000), cost_micros(1, 1), cost_micros(0, 10**12)) == (2_500_000, 1, 0)
