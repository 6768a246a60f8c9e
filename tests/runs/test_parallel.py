"""Parallel coordinates: every member a line through its values, the result last, gaps where there is no number."""

import math

from runs.parallel import HEIGHT, ROOM, parallel


def test_lines_go_from_value_to_value_and_better_ones_lie_above() -> None:
    chart = parallel(["width", "accuracy"], [("a", [32, 0.5]), ("b", [64, 0.9])])
    top, bottom = ROOM, HEIGHT - ROOM
    assert [(line.key, line.path, line.tone) for line in chart.lines] == [
        ("a", f"M0.0 {bottom:.1f}L1000.0 {bottom:.1f}", 1),
        ("b", f"M0.0 {top:.1f}L1000.0 {top:.1f}", 5),
    ]
    assert chart.lines[1].label == "width 64 · accuracy 0.9"
    assert [(axis.name, axis.at, axis.anchor) for axis in chart.axes] == [("width", "0.00%", "start"), ("accuracy", "100.00%", "end")]


def test_a_small_result_is_the_better_one_where_the_contract_says_so() -> None:
    chart = parallel(["width", "loss"], [("a", [32, 0.5]), ("b", [64, 0.9])], descends=True)
    assert {line.key: line.tone for line in chart.lines} == {"a": 5, "b": 1}


def test_what_is_no_number_leaves_a_gap_and_has_no_tone() -> None:
    chart = parallel(["a", "b", "score"], [("x", [1, None, 3.0]), ("y", [2, 5, math.nan]), ("z", [3, 6, None])])
    by_key = {line.key: line for line in chart.lines}
    assert by_key["x"].path.count("M") == 2
    assert "L" not in by_key["x"].path
    assert (by_key["y"].tone, by_key["z"].tone) == (0, 0)


def test_wide_ranges_are_logarithmic_and_names_have_places() -> None:
    chart = parallel(["rate", "act", "on"], [("a", [1e-4, "relu", True]), ("b", [1e-2, "tanh", False]), ("c", [1, "relu", True])])
    rate, act, on = chart.axes
    assert (rate.is_log, act.is_log) == (True, False)
    middle = chart.lines[[line.key for line in chart.lines].index("b")].path
    assert middle.startswith(f"M0.0 {HEIGHT / 2:.1f}")
    assert [tick.label for tick in act.ticks] == ["relu", "tanh"]
    assert [tick.label for tick in on.ticks] == ["true", "false"]


def test_one_member_and_none_can_be_drawn() -> None:
    assert parallel(["a", "score"], []).lines == ()
    lone = parallel(["a", "score"], [("x", [1, 2])])
    assert lone.lines[0].path == f"M0.0 {HEIGHT / 2:.1f}L1000.0 {HEIGHT / 2:.1f}"


def test_lists_as_values_stand_side_by_side() -> None:
    chart = parallel(["features", "score"], [("a", [["texture"], 1]), ("b", [["texture", "smoothness"], 2])])
    assert [tick.label for tick in chart.axes[0].ticks] == ['["texture"]', '["texture", "smoothness…']
