"""A sweep's members: all of a grid once, draws that never change, and clear words for spaces that cannot be."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from runs.search_space import BadSpace, arithmetic, read_space


def test_a_grid_is_the_product_of_its_axes_seeds_turning_fastest() -> None:
    space = read_space({"kind": "grid", "axes": {"rate": [0.1, 0.01], "width": [32, 64]}, "seeds": [7, 8]})
    members = list(space)
    assert [member.number for member in members] == [*range(1, 9)]
    assert [(member.parameters["rate"], member.parameters["width"], member.seed) for member in members] == [
        (0.1, 32, 7), (0.1, 32, 8), (0.1, 64, 7), (0.1, 64, 8), (0.01, 32, 7), (0.01, 32, 8), (0.01, 64, 7), (0.01, 64, 8),
    ]  # fmt: skip
    assert arithmetic(space) == "2 rate × 2 width × 2 seeds"
    reordered = read_space({"kind": "grid", "axes": {"width": [32, 64], "rate": [0.1, 0.01]}, "seeds": [7, 8]})
    assert list(reordered) == members


def test_draws_do_not_depend_on_how_many_are_asked_for() -> None:
    axes = {"rate": {"low": 1e-4, "high": 1, "scale": "log"}, "depth": {"low": 1, "high": 4, "scale": "integer"}, "act": ["relu", "tanh"]}
    few = read_space({"kind": "sampler", "axes": axes, "count": 5, "seed": 3})
    many = read_space({"kind": "sampler", "axes": axes, "count": 500, "seed": 3})
    assert [member.parameters for member in few] == [many.member(number).parameters for number in range(1, 6)]
    # Written down once: a change of Python or of this file that draws otherwise makes old sweeps irreproducible.
    assert few.member(1).parameters == {"rate": pytest.approx(0.00045159581319723763, rel=1e-12), "depth": 3, "act": "tanh"}


@given(low=some.floats(1e-6, 1e3), share=some.floats(1.001, 1e3), scale=some.sampled_from(["linear", "log"]), seed=some.integers(0, 2**40))
def test_draws_stay_within_their_range(low: float, share: float, scale: str, seed: int) -> None:
    space = read_space({"kind": "sampler", "axes": {"x": {"low": low, "high": low * share, "scale": scale}}, "count": 20, "seed": seed})
    assert all(low <= member.parameters["x"] <= low * share for member in space)


def test_logarithmic_draws_are_even_in_the_logarithm() -> None:
    space = read_space({"kind": "sampler", "axes": {"x": {"low": 1e-4, "high": 1, "scale": "log"}}, "count": 4_000, "seed": 1})
    logs = [math.log10(member.parameters["x"]) for member in space]
    shares = [sum(1 for value in logs if edge <= value < edge + 1) / len(logs) for edge in (-4, -3, -2, -1)]
    assert all(abs(share - 0.25) < 0.03 for share in shares), shares


def test_probes_show_every_value() -> None:
    space = read_space({"kind": "grid", "axes": {"a": [1, 2, 3], "b": ["x", "y"]}})
    seen = list(space.probes())
    assert len(seen) == 4
    assert {probe["a"] for probe in seen} == {1, 2, 3}
    assert {probe["b"] for probe in seen} == {"x", "y"}


def test_one_member_is_a_sweep() -> None:
    assert read_space({"kind": "grid", "axes": {"a": [1]}}).count == 1
    assert read_space({"kind": "grid", "axes": {}, "seeds": [1, 2, 3]}).count == 3


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "JSON object"),
        ({"kind": "bayes", "axes": {}}, '"grid", "sampler" or "list"'),
        ({"kind": "grid", "axes": {}, "extra": 1}, "no extra"),
        ({"kind": "grid", "axes": {}}, "varies something"),
        ({"kind": "grid", "axes": {"a": []}}, "no value"),
        ({"kind": "grid", "axes": {"a": [1, 1]}}, "twice"),
        ({"kind": "grid", "axes": {"a": [float("nan")]}}, "finite"),
        ({"kind": "grid", "axes": {"a": {"low": 1, "high": 2}}}, "list of values"),
        ({"kind": "grid", "axes": {"a": [1], "b": "x"}}, "list of values"),
        ({"kind": "grid", "axes": {"a": [*range(101)], "b": [*range(100)]}}, "101 a × 100 b = 10,100"),
        ({"kind": "grid", "axes": {"a": [1]}, "seeds": [3, 4, 3]}, "Seed 3 stands twice"),
        ({"kind": "grid", "axes": {"a": [1]}, "seeds": [True]}, "whole numbers"),
        ({"kind": "grid", "axes": {"a": [1]}, "seeds": [-1]}, "between 0"),
        ({"kind": "sampler", "axes": {"a": [1, 2]}, "count": 0}, "no member"),
        ({"kind": "sampler", "axes": {"a": [1, 2]}}, "whole number"),
        ({"kind": "sampler", "axes": {"a": [1, 2]}, "count": 10_001}, "10,001 draws = 10,001 members"),
        ({"kind": "sampler", "axes": {"a": {"low": 2, "high": 1}}, "count": 2}, "below high"),
        ({"kind": "sampler", "axes": {"a": {"low": 0, "high": 1, "scale": "log"}}, "count": 2}, "above 0"),
        ({"kind": "sampler", "axes": {"a": {"low": 0.5, "high": 1, "scale": "integer"}}, "count": 2}, "whole numbers"),
        ({"kind": "sampler", "axes": {"a": {"low": float("-inf"), "high": 1}}, "count": 2}, "finite"),
        ({"kind": "grid", "axes": {str(n): [*range(1000)] for n in range(16)}}, "at most 10,000"),
        ({"kind": "sampler", "axes": {str(n): [1, 2] for n in range(17)}, "count": 2}, "16 axes"),
    ],
)
def test_spaces_that_cannot_be_are_told(document: Any, words: str) -> None:
    with pytest.raises(BadSpace, match=words):
        read_space(document)
