"""A layered graph: boxes do not meet, lines begin and end at their boxes, labels fit."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from runs.graph import HEIGHT, WIDTH, Tie, draw


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_no_two_boxes_meet_and_every_line_ends_at_its_boxes(sizes: list[int]) -> None:
    columns = [[f"{column}-{row}" for row in range(size)] for column, size in enumerate(sizes)]
    keys = [key for column in columns for key in column]
    ties = [Tie(keys[index], keys[(index * 7 + 3) % len(keys)], "read") for index in range(len(keys))]
    drawing = draw(columns, ties)
    places = sorted((place.x, place.y) for place in drawing.places.values())
    assert len(set(places)) == len(keys)
    for (x, y), (other_x, other_y) in itertools.pairwise(places):
        assert x != other_x or other_y - y >= HEIGHT
    assert all(
        place.x >= 0 and place.x + WIDTH <= drawing.width and place.y + HEIGHT <= drawing.height for place in drawing.places.values()
    )
    drawn = [tie for tie in ties if tie.later != tie.earlier]
    for tie, line in zip(drawn, drawing.lines, strict=True):
        numbers = [int(number) for number in re.findall(r"-?\d+", line.path)]
        later, earlier = drawing.places[tie.later], drawing.places[tie.earlier]
        assert numbers[0] in (later.x, later.x + WIDTH)
        assert (numbers[1], numbers[-1]) == (later.y + HEIGHT // 2, earlier.y + HEIGHT // 2)
        assert numbers[-2] in (earlier.x, earlier.x + WIDTH)


def test_boxes_stand_near_what_they_are_tied_to() -> None:
    drawing = draw([["a", "b"], ["x", "y"]], [Tie("a", "y", ""), Tie("b", "x", "")])
    assert drawing.places["y"].y < drawing.places["x"].y


def test_a_tie_to_what_is_not_drawn_is_left_out() -> None:
    assert draw([["a"]], [Tie("a", "gone", "")]).lines == ()
