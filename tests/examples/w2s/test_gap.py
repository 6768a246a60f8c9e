"""The arithmetic of the performance gap recovered, and of its interval."""

from typing import Any

import pytest

from tests.examples.w2s.bundle import ask

RECOVERED = "from gap import recovered\nprint(json.dumps([recovered(*one) for one in question]))"
ESTIMATE = """
import numpy as np
from gap import above_chance, gap_recovered

random = np.random.default_rng(question.get("seed", 3))
right = {name: random.random((question["splits"], question["records"])) < question[name] for name in ("weak", "student", "ceiling")}
found = [gap_recovered(*right.values(), resamples=2000, random=np.random.default_rng(seed)) for seed in (1, 1, 2)]
labels = np.arange(question["records"]) % 2
guess = np.repeat(labels[None] == 1, question["splits"], axis=0)
print(json.dumps({
    "value": found[0].value, "low": found[0].low, "high": found[0].high, "error": found[0].error,
    "means": [float(each.mean()) for each in right.values()], "same": found[0] == found[1], "other": found[0] != found[2],
    "always_1": above_chance(guess, labels, resamples=200, random=random).value,
    "always_right": above_chance(np.ones_like(guess), labels, resamples=200, random=random).value,
}))
"""
SPREAD = """
import numpy as np
from gap import gap_recovered

random = np.random.default_rng(5)
def world():
    right = [random.random((24, 150)) < share for share in (0.7, 0.8, 0.9)]
    return gap_recovered(*right, resamples=400, random=random)
worlds = [world() for _ in range(150)]
print(json.dumps({
    "covers": float(np.mean([one.low <= 0.5 <= one.high for one in worlds])),
    "sd": float(np.std([one.value for one in worlds])), "error": float(np.mean([one.error for one in worlds])),
}))
"""


def estimate(python: str, **question: Any) -> dict[str, Any]:
    return dict(ask(python, "gap_evaluator", ESTIMATE, {"splits": 24, "records": 160, **question}))


def test_recovered_is_the_share_of_the_way_from_teacher_to_ceiling(pool_python: str) -> None:
    asked = [[0.7, 0.7, 0.9], [0.7, 0.9, 0.9], [0.7, 0.8, 0.9], [0.7, 0.6, 0.9], [0.7, 1.0, 0.9]]
    assert ask(pool_python, "gap_evaluator", RECOVERED, asked) == pytest.approx([0, 1, 0.5, -0.5, 1.5])


def test_without_a_gap_there_is_nothing_to_recover(pool_python: str) -> None:
    (found,) = ask(pool_python, "gap_evaluator", RECOVERED, [[0.9, 0.95, 0.9]])
    assert found != found  # NaN


def test_the_estimate_is_that_of_the_mean_accuracies_and_lies_in_its_interval(pool_python: str) -> None:
    found = estimate(pool_python, weak=0.7, student=0.85, ceiling=0.95)
    weak, student, ceiling = found["means"]
    assert found["value"] == pytest.approx((student - weak) / (ceiling - weak))
    assert found["low"] < found["value"] < found["high"]
    assert found["same"]
    assert found["other"]


def test_more_records_and_splits_make_the_interval_narrower(pool_python: str) -> None:
    shares = {"weak": 0.7, "student": 0.8, "ceiling": 0.9}
    few, many = (estimate(pool_python, **shares, splits=20, records=records) for records in (40, 1000))
    assert many["high"] - many["low"] < 0.5 * (few["high"] - few["low"])
    assert many["error"] < few["error"]


def test_the_interval_covers_the_truth_as_often_as_it_says(pool_python: str) -> None:
    """Resampling both ways counts independent noise twice: it may be wide, never narrow."""
    found = ask(pool_python, "gap_evaluator", SPREAD)
    assert found["covers"] >= 0.93
    assert found["sd"] <= found["error"] < 3 * found["sd"]


def test_chance_is_zero_for_whoever_always_says_the_same(pool_python: str) -> None:
    found = estimate(pool_python, weak=0.7, student=0.8, ceiling=0.9)
    assert found["always_1"] == pytest.approx(0)
    assert found["always_right"] == pytest.approx(0.5)
