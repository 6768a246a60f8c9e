"""The rules of Go: positions counted, a second board compared move by move, and the cases that programs get wrong."""

import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.autogo.bundle import load
from tests.examples.autogo.slow_go import SlowBoard, is_possible

go: Any = load("go_board")
playout: Any = load("playout")


def rows(board: Any) -> tuple[str, ...]:
    """The board as the slow one writes it, lowest row first."""
    return tuple("".join(".XO"[_stone(board, row, column)] for column in range(board.size)) for row in range(board.size))


def _stone(board: Any, row: int, column: int) -> int:
    found = board.at(row * board.size + column)
    return 0 if found is None else found + 1


def place(text: str, turn: str = "X") -> Any:
    """A board with these stones, the upper row first as people write it; the history begins here."""
    drawn = text.split()[::-1]
    board = go.Board(len(drawn))
    for colour, letter in ((go.BLACK, "X"), (go.WHITE, "O")):
        for row, line in enumerate(drawn):
            for column, stone in enumerate(line):
                if stone == letter:
                    board.turn = colour
                    board.play(row * len(drawn) + column)
    board.turn = "XO".index(turn)
    return board


def reachable(size: int) -> set[int]:
    """All positions that play of either colour in any order comes to."""
    seen, waiting = {0}, [go.Board(size)]
    while waiting:
        board = waiting.pop()
        for turn in (go.BLACK, go.WHITE):
            board.turn = turn
            for point in board.legal_points():
                after = board.copy()
                after.play(point)
                if after.position not in seen:
                    seen.add(after.position)
                    waiting.append(after)
    return seen


@pytest.mark.parametrize(("size", "count"), [(2, 57), (3, 12_675)])
def test_positions_that_can_be_reached_are_the_legal_ones(size: int, count: int) -> None:
    """57 and 12,675: Tromp and Farnebäck, "Combinatorics of Go" (2007), table 1."""
    found = reachable(size)
    assert len(found) == count
    possible = set()
    for stones in product((0, 1, 2), repeat=size * size):
        grid = tuple("".join(".XO"[stone] for stone in stones[row * size : row * size + size]) for row in range(size))
        if is_possible(grid):
            masks = [sum(1 << point for point, stone in enumerate(stones) if stone == colour) for colour in (1, 2)]
            possible.add(masks[0] | masks[1] << size * size)
    assert found == possible


def follow(size: int, choices: list[int], passes: int) -> int:
    """Play both boards with the same moves, compare everything after each; the stones that were captured in all."""
    fast, slow, captured, chooser = go.Board(size), SlowBoard(size), 0, iter(choices)
    for choice in chooser:
        legal = fast.legal_points()
        assert [divmod(point, size) for point in legal] == slow.legal()
        move = legal[choice % len(legal)] if legal and choice % 100 >= passes else size * size
        before = fast.stones[0].bit_count() + fast.stones[1].bit_count()
        taken = fast.play(move).bit_count()
        slow.play(None if move == size * size else divmod(move, size))
        assert rows(fast) == slow.grid
        assert fast.stones[0].bit_count() + fast.stones[1].bit_count() == before + (move != size * size) - taken
        assert fast.score(0) == slow.score()
        captured += taken
    for point in range(size * size):
        chain = fast.liberties(point)
        assert (chain == 0) == (fast.at(point) is None)
    return captured


@settings(max_examples=60, deadline=None)
@given(size=st.integers(2, 5), choices=st.lists(st.integers(0, 10**6), max_size=70), passes=st.integers(0, 30))
def test_any_moves_agree_with_the_slow_board(size: int, choices: list[int], passes: int) -> None:
    follow(size, choices, passes)


@pytest.mark.parametrize(("size", "games", "moves"), [(2, 40, 30), (3, 40, 60), (5, 12, 110), (7, 3, 160), (9, 2, 220)])
def test_long_random_games_agree_with_the_slow_board(size: int, games: int, moves: int) -> None:
    source = random.Random(size)  # noqa: S311  # a game is no secret
    captured = sum(follow(size, [source.randrange(10**6) for _ in range(moves)], 2) for _ in range(games))
    assert captured > games  # the games go where captures, kos and repetitions are


@pytest.mark.parametrize(("size", "row", "column"), [(5, 0, 0), (5, 4, 4), (9, 8, 0), (9, 4, 8), (2, 1, 1)])
def test_neighbours_end_at_the_edge(size: int, row: int, column: int) -> None:
    beside = {(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)}
    wanted = {r * size + c for r, c in beside if 0 <= r < size and 0 <= c < size}
    assert set(go.geometry(size).adjacent[row * size + column]) == wanted


def test_a_ko_may_be_taken_back_only_after_the_position_has_changed() -> None:
    board = place(
        """
        .....
        .XO..
        XO.O.
        .XO..
        .....
        """
    )
    a_ko, first, second = 2 * 5 + 2, 4 * 5 + 4, 0
    assert board.play(a_ko).bit_count() == 1
    assert board.why_not(a_ko - 1) == "the move repeats a position"
    with pytest.raises(go.IllegalMove, match="repeats"):
        board.play(a_ko - 1)
    board.play(first)
    board.play(second)
    assert board.play(a_ko - 1).bit_count() == 1
    assert board.why_not(a_ko) == "the move repeats a position"


def test_no_position_comes_twice_and_not_only_kos_are_refused_for_it() -> None:
    """A rule that compares with the position before the last alone would let longer cycles pass."""
    longer = 0
    for seed in range(40):
        source, board, slow = random.Random(seed), go.Board(3), SlowBoard(3)  # noqa: S311  # a game is no secret
        for _ in range(60):
            for point in range(9):
                if board.why_not(point) == "the move repeats a position":
                    again = SlowBoard(3, slow.grid, slow.turn).after(divmod(point, 3))
                    assert again in slow.seen
                    longer += again not in slow.seen[-2:]
            legal = board.legal_points()
            move = source.choice(legal) if legal else 9
            board.play(move)
            slow.play(None if move == 9 else divmod(move, 3))
        assert len(set(slow.seen)) == len(slow.seen)
    assert longer > 10


@pytest.mark.parametrize(
    ("drawn", "turn", "point", "reason"),
    [
        (".X. X.. ...", "O", 6, "the move is suicide"),  # one stone in the corner
        (".X. X.. ...", "X", 6, None),
        (".X. OX. X..", "O", 6, "the move is suicide"),  # two stones
        (".X. OX. X..", "X", 6, None),  # takes the one
        ("OO. XXO .X.", "X", 8, None),  # takes the two
    ],
)
def test_suicide_is_not_allowed(drawn: str, turn: str, point: int, reason: str | None) -> None:
    assert place(drawn, turn).why_not(point) == reason


def test_suicide_of_many_stones_is_not_allowed_and_capture_comes_first() -> None:
    surrounded = place("OO.X XXX. .... ....", "O")
    assert surrounded.why_not(3 * 4 + 2) == "the move is suicide"
    capturing = place("OO.XO XXXO. ..... ..... .....", "O")
    assert capturing.play(4 * 5 + 2) == 1 << 4 * 5 + 3


def test_two_passes_end_a_game_and_one_does_not() -> None:
    board = go.Board(3)
    board.play(9)
    assert not board.is_over
    board.play(4)
    board.play(9)
    assert not board.is_over
    board.play(9)
    assert board.is_over
    assert board.score(0.5) == -9.5


@pytest.mark.parametrize(
    ("drawn", "score"),
    [
        ("... ... ...", 0),
        ("... .X. ...", 9),
        (".X. XXO .O.", 1),  # the corner above is Black's, the two others are nobody's or White's
        ("X.O X.O X.O", 0),
        (".XO. XXOO .XO. .XO.", 0),
        (".X.X. XXXXX OOOOO .O.O. .O.O.", -5),
    ],
)
def test_area_counts_stones_and_what_reaches_one_colour(drawn: str, score: int) -> None:
    board = place(drawn)
    slow = SlowBoard(board.size, rows(board))
    assert board.score(0) == slow.score() == score


def test_a_copy_goes_its_own_way() -> None:
    board = go.Board(5)
    for point in (6, 7, 11):
        board.play(point)
    before = (rows(board), board.turn, board.moves, board.legal_points())
    twin = board.copy()
    for _ in range(20):
        twin.play(twin.legal_points()[0])
    assert (rows(board), board.turn, board.moves, board.legal_points()) == before


@pytest.mark.parametrize(("move", "reason"), [(-1, "not on the board"), (10, "not on the board"), (4, "occupied")])
def test_an_illegal_move_changes_nothing(move: int, reason: str) -> None:
    board = go.Board(3)
    board.play(4)
    with pytest.raises(go.IllegalMove, match=reason):
        board.play(move)
    assert (board.moves, board.turn, board.stones) == (1, go.WHITE, [1 << 4, 0])


@pytest.mark.parametrize("size", [1, 10])
def test_sizes_that_are_not_played_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="between 2 and 9"):
        go.Board(size)


def test_random_games_end_settled_and_those_who_do_not_are_told() -> None:
    """On the smallest boards the ban on repetitions may end a game before that."""
    source = random.Random(3)  # noqa: S311  # a game is no secret
    for size, settled in ((2, False), (3, False), (5, True), (6, True), (9, True)):
        for _ in range(20):
            board = go.Board(size)
            assert playout.play_out(board, source.randrange, 10 * size * size + 100)
            assert playout.is_settled(board) or not settled
    assert not playout.play_out(go.Board(9), source.randrange, 10)
