"""Go written a second time, in the plainest way there is: a board is a tuple of rows, everything is found anew, nothing is remembered but
all earlier positions. Shares nothing with the agents' board; what the two disagree on is a mistake in one of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

EMPTY, BLACK, WHITE = ".", "X", "O"
Grid = tuple[str, ...]
Point = tuple[int, int]


def around(grid: Grid, point: Point) -> Iterator[Point]:
    row, column = point
    for other in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
        if 0 <= other[0] < len(grid) and 0 <= other[1] < len(grid):
            yield other


def at(grid: Grid, point: Point) -> str:
    return grid[point[0]][point[1]]


def region(grid: Grid, start: Point) -> set[Point]:
    """All points of the same kind that are joined to `start`."""
    found, waiting = {start}, [start]
    while waiting:
        for point in around(grid, waiting.pop()):
            if point not in found and at(grid, point) == at(grid, start):
                found.add(point)
                waiting.append(point)
    return found


def border(grid: Grid, points: set[Point]) -> set[str]:
    """What stands beside a region."""
    return {at(grid, beside) for point in points for beside in around(grid, point) if beside not in points}


def changed(grid: Grid, points: set[Point], to: str) -> Grid:
    return tuple("".join(to if (row, column) in points else grid[row][column] for column in range(len(grid))) for row in range(len(grid)))


def all_points(grid: Grid) -> list[Point]:
    return [(row, column) for row in range(len(grid)) for column in range(len(grid))]


def is_possible(grid: Grid) -> bool:
    """Whether every stone has a liberty."""
    return all(at(grid, point) == EMPTY or EMPTY in border(grid, region(grid, point)) for point in all_points(grid))


@dataclass
class SlowBoard:
    size: int
    grid: Grid = ()
    turn: str = BLACK
    seen: list[Grid] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.grid = self.grid or (EMPTY * self.size,) * self.size
        self.seen.append(self.grid)

    @property
    def other(self) -> str:
        return WHITE if self.turn == BLACK else BLACK

    def after(self, point: Point) -> Grid | None:
        """The position after a move of the side to move; None where the move is illegal."""
        if at(self.grid, point) != EMPTY:
            return None
        grid = changed(self.grid, {point}, self.turn)
        dead: set[Point] = set()
        for beside in around(grid, point):
            if at(grid, beside) == self.other:
                chain = region(grid, beside)
                if EMPTY not in border(grid, chain):
                    dead |= chain
        grid = changed(grid, dead, EMPTY)
        if EMPTY not in border(grid, region(grid, point)) or grid in self.seen:
            return None
        return grid

    def legal(self) -> list[Point]:
        return [point for point in all_points(self.grid) if self.after(point) is not None]

    def play(self, point: Point | None) -> None:
        if point is not None:
            grid = self.after(point)
            assert grid is not None
            self.grid = grid
            self.seen.append(grid)
        self.turn = self.other

    def score(self) -> int:
        """Black's points less White's."""
        points = 0
        for point in all_points(self.grid):
            owner = {at(self.grid, point)}
            if owner == {EMPTY}:
                owner = border(self.grid, region(self.grid, point)) - {EMPTY}
            points += (owner == {BLACK}) - (owner == {WHITE})
        return points
