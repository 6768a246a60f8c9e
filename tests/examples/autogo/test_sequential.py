"""The sequential test against published results of chess testing frameworks, Wald's bounds and simulated matches."""

import math
from typing import Any

import pytest

from tests.examples.autogo.bundle import ask, load

sequential: Any = load("sequential")


def test_the_bounds_are_walds() -> None:
    """Wald (1947): log(beta / (1 - alpha)) and log((1 - beta) / alpha); frameworks print them as (-2.94, 2.94)."""
    low, high = sequential.Question(0, 5).bounds
    assert (round(low, 3), round(high, 3)) == (-2.944, 2.944)
    low, high = sequential.Question(0, 5, alpha=0.01, beta=0.1).bounds
    assert (low, high) == (pytest.approx(math.log(0.1 / 0.99)), pytest.approx(math.log(0.9 / 0.01)))


# Pairs of games by their points (0, 1/2, 1, 3/2, 2), the two hypotheses in Elo, and the log-likelihood ratio that Stockfish's testing framework
# printed: pull requests of official-stockfish/Stockfish in 2020, when bounds were given in logistic Elo.
PUBLISHED_PAIRS = [
    ("#2950, long", (149, 4748, 32785, 5063, 159), 0.25, 1.75, "2.95"),
    ("#2951, short", (59, 754, 2467, 865, 75), -0.5, 1.5, "2.95"),
    ("#2971, short", (17, 253, 1042, 337, 39), -0.5, 1.5, "2.96"),
    ("#2971, long", (11, 407, 3238, 513, 11), 0.25, 1.75, "2.93"),
    ("#3028, short", (153, 2767, 11455, 2865, 180), -0.5, 1.5, "2.93"),
    ("#3028, long", (17, 669, 6429, 785, 16), 0.25, 1.75, "2.95"),
    ("#3098, short", (491, 7345, 29693, 7670, 465), -0.25, 1.25, "2.96"),
    ("#3098, long", (53, 2220, 21459, 2445, 47), 0.25, 1.25, "2.97"),
    ("#3209, short", (253, 4282, 17604, 4431, 286), -0.25, 1.25, "2.94"),
    ("#3209, long", (58, 3302, 33130, 3518, 84), 0.25, 1.25, "2.97"),
]


@pytest.mark.parametrize(("name", "pairs", "elo0", "elo1", "printed"), PUBLISHED_PAIRS)
def test_log_likelihoods_of_pairs_as_published(name: str, pairs: tuple[int, ...], elo0: float, elo1: float, printed: str) -> None:
    assert f"{sequential.log_likelihood_ratio(pairs, elo0, elo1):.2f}" == printed, name


def test_a_log_likelihood_of_single_games_as_published() -> None:
    """jw1912/SPRT, README: 4,307 wins, 4,063 losses, 8,620 draws, Elo 0 and 3, generalised test: 2.99, H1 accepted."""
    ratio = sequential.log_likelihood_ratio((4063, 8620, 4307), 0, 3)
    assert f"{ratio:.2f}" == "2.99"
    assert sequential.Question(0, 3).verdict(ratio) == "H1"


def test_a_log_likelihood_to_four_digits_as_published() -> None:
    """montytest, raw statistics of test 69d3c8dc7c5b3724e29d2712: pairs 13, 37, 50, 25, 3; H1 at 2.716 Elo; logistic, exact: -0.53772."""
    assert sequential.log_likelihood_ratio((13, 37, 50, 25, 3), 0, 2.716) == pytest.approx(-0.53772, abs=1e-4)


def test_without_draws_it_is_walds_own_test_of_a_share() -> None:
    """Two outcomes leave nothing unknown: w log(p1/p0) + l log((1-p1)/(1-p0))."""
    zero, one = (1 / (1 + 10 ** (-elo / 400)) for elo in (0, 20))
    expected = 60 * math.log(one / zero) + 40 * math.log((1 - one) / (1 - zero))
    assert sequential.log_likelihood_ratio((40, 60), 0, 20) == pytest.approx(expected)


def test_the_two_players_stand_for_each_other() -> None:
    one, other = sequential.log_likelihood_ratio((10, 20, 30), -5, 15), sequential.log_likelihood_ratio((30, 20, 10), -15, 5)
    assert one == pytest.approx(-other)


def test_few_and_one_sided_games_have_a_finite_ratio() -> None:
    assert sequential.log_likelihood_ratio((0, 0, 0), 0, 5) == 0
    for outcomes in ((0, 0, 1), (1, 0, 0), (0, 5, 0), (0, 0, 0, 0, 40)):
        assert math.isfinite(sequential.log_likelihood_ratio(outcomes, 0, 50))
    assert sequential.Question(0, 50).verdict(sequential.log_likelihood_ratio((0, 0, 0, 0, 40), 0, 50)) == "H1"


@pytest.mark.parametrize(
    ("asked", "reason"), [((5, 5), "elo0 must be the smaller"), ((0, 5, 0), "between 0 and 0.5"), ((0, 5, 0.05, 0.5), "between")]
)
def test_a_question_without_sense_is_refused(asked: tuple[float, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        sequential.Question(*asked)


def test_counts_that_are_none_are_refused() -> None:
    for outcomes in ((1,), (1, -1), (1, math.nan)):
        with pytest.raises(ValueError, match="counts"):
            sequential.log_likelihood_ratio(outcomes, 0, 5)


def test_error_rates_are_those_that_were_stated(pool_python: str) -> None:
    """1,000 matches each between players of exactly elo0 = 0 and elo1 = 100, draws in a third of the games: at most 5 % end wrongly, give or take."""
    program = """
import numpy as np
from sequential import Question, expected_score, log_likelihood_ratio
random, question, wrong = np.random.default_rng(5), Question(0, 100), {}
for name, elo in (("H0", 0), ("H1", 100)):
    won = expected_score(elo) - 1 / 6
    wrong[name] = 0
    for _ in range(1000):
        counts, verdict = np.zeros(3), "open"
        while verdict == "open":
            counts += random.multinomial(8, [1 - won - 1 / 3, 1 / 3, won])
            verdict = question.verdict(log_likelihood_ratio([float(count) for count in counts], 0, 100))
        wrong[name] += verdict != name
print(json.dumps(wrong))
"""
    wrong = ask(pool_python, "arena_judge", program, {})
    assert 0 < wrong["H0"] <= 65
    assert 0 < wrong["H1"] <= 65
