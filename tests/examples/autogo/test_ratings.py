"""Bradley and Terry's model against published results, closed forms and simulated matches."""

import math
from typing import Any

import pytest

from tests import published_games
from tests.examples.autogo.bundle import ask
from tests.published_games import TEAMS

PROGRAM = """
from dataclasses import asdict
from ratings import NoRating, Pairing, rate
pairings = [Pairing(*row) for row in question["pairings"]]
try:
    found = rate(pairings, question["reference"], **question.get("options", {}))
except NoRating as exc:
    print(json.dumps({"refused": str(exc)}))
else:
    players = {name: [each.strength, each.error, each.elo, *each.elo_interval] for name, each in found.players.items()}
    print(json.dumps({"players": players, "advantage": asdict(found.advantage) if found.advantage else None, "likelihood": found.log_likelihood}))
"""


def baseball() -> list[list[Any]]:
    return [list(row) for row in published_games.baseball()]


def fit(python: str, pairings: list[list[Any]], reference: str, **options: Any) -> Any:
    return ask(python, "arena_judge", PROGRAM, {"pairings": pairings, "reference": reference, "options": options})


def test_baseball_as_published(pool_python: str) -> None:
    """Table 10.11, column 3: strengths to two decimals; standard errors are "about 0.3"."""
    found = fit(pool_python, baseball(), "Baltimore")["players"]
    published = {"Milwaukee": 1.58, "Detroit": 1.44, "Toronto": 1.29, "New York": 1.25, "Boston": 1.11, "Cleveland": 0.68, "Baltimore": 0}
    assert {team: round(values[0], 2) for team, values in found.items()} == published
    assert {round(values[1], 1) for team, values in found.items() if team != "Baltimore"} == {0.3}
    assert found["Baltimore"][1] == 0


def test_baseball_with_the_advantage_of_home_as_published(pool_python: str) -> None:
    """Table 10.11, column 5: shares of strength; the advantage is 0.302."""
    found = fit(pool_python, baseball(), "Baltimore", fit_advantage=True)
    assert round(found["advantage"]["strength"], 3) == 0.302
    odds = {team: math.exp(values[0]) for team, values in found["players"].items()}
    shares = sorted(round(value / sum(odds.values()), 3) for value in odds.values())
    assert shares == [0.044, 0.088, 0.137, 0.157, 0.164, 0.190, 0.220]


def test_two_players_are_the_closed_form(pool_python: str) -> None:
    """The log odds of the share, and sqrt(1/wins + 1/losses)."""
    strength, error, elo, low, high = fit(pool_python, [["a", "b", 30, 40]], "b")["players"]["a"]
    assert strength == pytest.approx(math.log(3))
    assert error == pytest.approx(math.sqrt(1 / 30 + 1 / 10))
    assert elo == pytest.approx(400 * math.log10(3))
    assert (low + high) / 2 == pytest.approx(elo)
    assert high - low == pytest.approx(2 * 1.959964 * error * 400 / math.log(10), rel=1e-6)


def test_the_reference_moves_all_strengths_alike(pool_python: str) -> None:
    one, other = (fit(pool_python, baseball(), team)["players"] for team in ("Boston", "Detroit"))
    shift = {round(one[team][0] - other[team][0], 9) for team in TEAMS}
    assert len(shift) == 1
    assert one["Detroit"][1] == pytest.approx(other["Boston"][1])


def test_draws_are_half_wins_and_a_prior_keeps_a_clean_sheet_finite(pool_python: str) -> None:
    assert fit(pool_python, [["a", "b", 5, 10]], "b")["players"]["a"][0] == pytest.approx(0)
    clean = fit(pool_python, [["a", "b", 24, 24]], "b", prior_draws=1)["players"]["a"]
    assert clean[0] == pytest.approx(math.log(24.5 / 0.5))
    assert clean[3] > 0


@pytest.mark.parametrize(
    ("pairings", "options", "sentence"),
    [
        ([["a", "b", 4, 4]], {}, "won or lost all games"),
        ([["a", "b", 0, 4], ["c", "b", 2, 4]], {}, "won or lost all games"),
        ([["a", "b", 2, 4], ["c", "d", 2, 4]], {"prior_draws": 1}, "neither the reference nor anybody who has"),
        ([["a", "c", 2, 4]], {}, "the reference b has played no game"),
        ([["b", "b", 2, 4]], {}, "plays against itself"),
        ([["a", "b", 5, 4]], {}, "5 points of 4 games"),
        ([["a", "b", 0, 0]], {}, "0 points of 0 games"),
        ([["a", "b", 2, 4]], {"fit_advantage": True}, "do not tell the strengths and the advantage apart"),
    ],
)
def test_games_that_determine_nothing_are_refused(
    pool_python: str, pairings: list[list[Any]], options: dict[str, Any], sentence: str
) -> None:
    assert sentence in fit(pool_python, pairings, "b", **options)["refused"]


def test_intervals_hold_the_truth_as_often_as_they_say(pool_python: str) -> None:
    """400 arenas of three players of known strength: a 95 % interval misses 5 %, give or take."""
    program = """
import numpy as np
from ratings import Pairing, rate
random, truth, held = np.random.default_rng(11), {"a": 0.8, "b": 0.0, "c": -0.5}, 0
for _ in range(400):
    pairings = [
        Pairing(x, y, float(random.binomial(60, 1 / (1 + np.exp(truth[y] - truth[x])))), 60) for x, y in (("a", "b"), ("b", "c"), ("c", "a"))
    ]
    found = rate(pairings, "b").players
    held += sum(abs(found[name].strength - truth[name]) <= 1.96 * found[name].error for name in "ac")
print(json.dumps(held / 800))
"""
    assert 0.93 < ask(pool_python, "arena_judge", program) < 0.97
