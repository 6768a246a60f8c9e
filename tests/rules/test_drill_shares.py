"""The drill of kills meets every engine as often as its page in the README says, and every fail point is a place that exists."""

import importlib
from collections import Counter

from tests.drills_engines import ENGINES, engine_of
from tests.drills_fail_points import POINTS, points_of


def test_a_mix_of_500_kills_has_the_shares_that_are_asked_for() -> None:
    assert Counter(engine_of(number, ENGINES, mix=True) for number in range(500)) == {"local": 170, "ssh": 150, "slurm": 150, "ray": 30}
    assert set(ENGINES) == {engine_of(number, ENGINES, mix=True) for number in range(20)}, "a drill in CI meets all of them"


def test_without_a_mix_kills_take_the_engines_in_turn() -> None:
    assert [engine_of(number, ("local", "slurm"), mix=False) for number in range(4)] == ["local", "slurm", "local", "slurm"]


def test_every_fail_point_is_there_and_is_passed_on_some_engine() -> None:
    for _, module, path, _ in POINTS.values():
        place = importlib.import_module(module)
        for name in path.partition(" ")[0].split("."):
            place = getattr(place, name)
        assert callable(place)
    assert {*points_of("local"), *points_of("ssh")} == set(POINTS)
