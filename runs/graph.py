"""Where the boxes of a layered graph stand and how the lines between them go; the markup is in `templates/parts/graph.html`. Pure.

Each box has its column given. Within a column boxes stand in the order that keeps them near what they are tied to in the column before (one sweep
of the barycentre rule of Sugiyama, Tagawa and Toda, 1981), columns are centred on each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 184, 46  # px of a box
ACROSS, DOWN = 48, 14  # px between boxes
HEAD = 28  # px above the boxes, for the columns' names
BULGE = 30  # px by which a line inside a column stands out to the right


@dataclass(frozen=True, slots=True)
class Tie:
    """A line from the box that came later to what it came from."""

    later: str
    earlier: str
    words: str
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Placed:
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Line:
    path: str
    words: str
    is_doubtful: bool
    is_across: bool  # past a column that stands between


@dataclass(frozen=True, slots=True)
class Drawing:
    width: int
    height: int
    places: Mapping[str, Placed]
    lines: tuple[Line, ...]
    heads: tuple[int, ...]  # x of each column


def draw(columns: Sequence[Sequence[str]], ties: Sequence[Tie]) -> Drawing:
    """Boxes by key, column by column, in the order that stands between equals. Each line begins at the later end."""
    tied: dict[str, list[str]] = {}
    for tie in ties:
        tied.setdefault(tie.later, []).append(tie.earlier)
        tied.setdefault(tie.earlier, []).append(tie.later)
    tallest = max((len(column) for column in columns), default=0)
    places: dict[str, Placed] = {}
    column_of: dict[str, int] = {}
    for number, column in enumerate(columns):
        ordered = sorted(column, key=lambda key: _middle([places[other].y for other in tied.get(key, ()) if other in places]))
        spare = (tallest - len(ordered)) * (HEIGHT + DOWN) // 2
        for row, key in enumerate(ordered):
            column_of[key] = number
            places[key] = Placed(number * (WIDTH + ACROSS), HEAD + spare + row * (HEIGHT + DOWN))
    return Drawing(
        width=max(len(columns), 1) * (WIDTH + ACROSS) - ACROSS + BULGE + 2,
        height=HEAD + max(tallest, 1) * (HEIGHT + DOWN) - DOWN + 2,
        places=places,
        lines=tuple(
            Line(
                _path(places, column_of, tie.later, tie.earlier),
                tie.words,
                tie.is_doubtful,
                is_across=abs(column_of[tie.later] - column_of[tie.earlier]) > 1,
            )
            for tie in ties
            if tie.later in places and tie.earlier in places and tie.later != tie.earlier
        ),
        heads=tuple(number * (WIDTH + ACROSS) for number in range(len(columns))),
    )


def _middle(values: list[int]) -> float:
    return sum(values) / len(values) if values else 0.0


def _path(places: Mapping[str, Placed], column_of: Mapping[str, int], begin: str, end: str) -> str:
    one, other = places[begin], places[end]
    y0, y1 = one.y + HEIGHT // 2, other.y + HEIGHT // 2
    if column_of[begin] == column_of[end]:
        x = one.x + WIDTH
        return f"M{x} {y0}C{x + BULGE} {y0} {x + BULGE} {y1} {x} {y1}"
    forwards = column_of[begin] < column_of[end]
    x0, x1 = (one.x + WIDTH, other.x) if forwards else (one.x, other.x + WIDTH)
    bend = ACROSS // 2 if forwards else -(ACROSS // 2)
    return f"M{x0} {y0}C{x0 + bend} {y0} {x1 - bend} {y1} {x1} {y1}"
