"""Intervals over seeds against published tables, and what has none."""

import math

import pytest

from runs.seed_intervals import interval, lower_place, standard_error, student_975

# 97.5 % points of Student's t: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 10: 2.228, 29: 2.045, 30: 2.042, 100: 1.984}


@pytest.mark.parametrize(("freedom", "quantile"), STUDENT.items())
def test_students_t_is_that_of_the_table(freedom: int, quantile: float) -> None:
    assert round(student_975(freedom), 3) == quantile


def test_the_expansion_goes_on_where_the_series_ends() -> None:
    assert student_975(1_001) == pytest.approx(student_975(1_000), rel=2e-6)
    assert student_975(1_001) < student_975(1_000)
    assert student_975(10**9) == pytest.approx(1.959964, abs=1e-6)


@pytest.mark.parametrize("count", [6, 7, 8, 9, 10, 25, 50, 99, 100, 1_000])
def test_a_median_lies_between_its_places_with_95_percent_and_no_more_than_needed(count: int) -> None:
    place = lower_place(count)

    def covered(at: int) -> float:
        return 1.0 - 2 * sum(math.comb(count, below) for below in range(at)) / float(2**count)

    assert covered(place) >= 0.95 > covered(place + 1)


def test_too_few_values_have_no_interval() -> None:
    assert [lower_place(count) for count in (1, 5, 6)] == [0, 0, 1]
    assert interval("median", [1.0] * 5) is None
    assert interval("mean", [1.0]) is None
    assert interval("mean", [1.0, math.nan]) is interval("median", [math.inf] * 9) is None


def test_the_mean_of_a_textbook_sample() -> None:
    found = interval("mean", [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])  # mean 5, sum of squares 32: standard error sqrt(32 / 7 / 8)
    assert found is not None
    assert [found.low, found.high] == pytest.approx([5 - 2.364624 * math.sqrt(4 / 7), 5 + 2.364624 * math.sqrt(4 / 7)])


def test_numbers_too_large_for_their_squares_have_none_and_raise_nothing() -> None:
    assert standard_error([1e150, -1e150]) == pytest.approx(1e150)
    assert standard_error([1e151, 0.0]) is None
    assert interval("mean", [1e308, 1e308]) is interval("median", [1e308] * 9) is None
