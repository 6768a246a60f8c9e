"""Bradley and Terry's model against published results, closed forms and simulated arenas."""

import math

import numpy as np
import pytest

from runs.bradley_terry import ELO_PER_NATURAL_UNIT, Met, rate
from tests import published_games
from tests.published_games import TEAMS

# The same book, table 10.11, column 3: strengths to two decimals against Baltimore; their standard errors are "about 0.3".
PUBLISHED = {"Milwaukee": 1.58, "Detroit": 1.44, "Toronto": 1.29, "New York": 1.25, "Boston": 1.11, "Cleveland": 0.68, "Baltimore": 0.0}


def baseball() -> list[Met[str]]:
    return [Met(*row) for row in published_games.baseball()]


def test_baseball_as_published() -> None:
    found = rate(baseball(), "Baltimore")
    assert {team: round(rating.elo / ELO_PER_NATURAL_UNIT, 2) for team, rating in found.of.items()} == PUBLISHED
    assert {round(rating.error / ELO_PER_NATURAL_UNIT, 1) for team, rating in found.of.items() if team != "Baltimore"} == {0.3}
    assert (found.of["Baltimore"].error, found.has_prior) == (0.0, False)


def test_it_is_where_hunters_iteration_ends() -> None:
    """Hunter (2004), equation 3: each strength becomes its points over the sum of games / (own strength + other's); from anywhere it ends at the
    maximum. Another way to it than that of the code."""
    met, skill = baseball(), dict.fromkeys(TEAMS, 1.0)
    points = {team: sum(one.points if one.first == team else one.games - one.points for one in met if team in (one.first, one.second))
              for team in TEAMS}  # fmt: skip
    for _ in range(3000):
        skill = {
            team: points[team] / sum(one.games / (skill[one.first] + skill[one.second]) for one in met if team in (one.first, one.second))
            for team in TEAMS
        }
    found = rate(met, "Baltimore").of
    for team in TEAMS:
        assert found[team].elo == pytest.approx(400 * math.log10(skill[team] / skill["Baltimore"]), abs=1e-6)


def test_two_players_have_the_closed_form() -> None:
    """log(won / lost), with the standard error sqrt(1 / won + 1 / lost); three of four points are 190.8 Elo."""
    found = rate([Met("a", "b", 30.0, 40.0)], "b").of["a"]
    assert found.elo == pytest.approx(400 * math.log10(3))
    assert found.error == pytest.approx(ELO_PER_NATURAL_UNIT * math.sqrt(1 / 30 + 1 / 10))
    assert found.low == pytest.approx(found.elo - 1.96 * found.error, abs=0.01)
    assert found.high == pytest.approx(found.elo + 1.96 * found.error, abs=0.01)
    assert rate([Met("a", "b", 5.0, 10.0)], "b").of["a"].elo == pytest.approx(0.0, abs=1e-9)


def test_who_has_won_all_games_has_a_finite_rating_and_that_is_said() -> None:
    found = rate([Met("a", "b", 24.0, 24.0)], "b")
    assert found.has_prior
    assert found.of["a"].elo == pytest.approx(400 * math.log10(24.5 / 0.5))
    group = rate([Met("a", "b", 6.0, 10.0), Met("a", "c", 10.0, 10.0), Met("b", "c", 10.0, 10.0)], "c")  # none of the group lost outside it
    assert group.has_prior
    assert all(math.isfinite(rating.elo) and rating.error >= 0 for rating in group.of.values())


def test_who_met_nobody_of_the_rest_is_left_out() -> None:
    found = rate([Met("a", "b", 3.0, 8.0), Met("c", "d", 1.0, 2.0)], "b")
    assert sorted(found.of) == ["a", "b"]
    assert list(rate([], "b").of) == ["b"]


@pytest.mark.parametrize(
    ("other", "points", "games"), [("b", 5.0, 4.0), ("b", -1.0, 4.0), ("b", 0.0, 0.0), ("a", 1.0, 2.0), ("b", math.nan, 4.0)]
)
def test_what_is_no_result_is_refused(other: str, points: float, games: float) -> None:
    with pytest.raises(ValueError, match="points of"):
        rate([Met("a", other, points, games)], "b")


MANY = 4_000_000_000
BEYOND = [
    [("a", "b", 0, MANY), ("a", "c", MANY - 0.5, MANY), ("b", "d", 0, 2), ("c", "d", 0.5, 100)],  # a singular matrix on the way
    [("a", "c", 1, 2), ("a", "e", MANY - 1, MANY), ("b", "c", 2e7, 2e7), ("b", "e", 99.5, 100), ("c", "d", MANY, MANY)],  # no finite error
]


@pytest.mark.parametrize("games", BEYOND, ids=["singular", "no error"])
def test_results_too_far_apart_are_said_to_be(games: list[tuple[str, str, float, float]]) -> None:
    with pytest.raises(ValueError, match="too far apart"):
        rate([Met(*each) for each in games], "a")


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """400 arenas of three players of known strength: a 95 % interval misses 5 %, give or take."""
    random, truth, held = np.random.default_rng(11), {"a": 0.8, "b": 0.0, "c": -0.5}, 0
    for _ in range(400):
        met = [
            Met(one, other, float(random.binomial(60, 1 / (1 + math.exp(truth[other] - truth[one])))), 60.0)
            for one, other in (("a", "b"), ("b", "c"), ("c", "a"))
        ]
        found = rate(met, "b").of
        held += sum(found[name].low <= truth[name] * ELO_PER_NATURAL_UNIT <= found[name].high for name in "ac")
    assert 0.93 < held / 800 < 0.97
