"""Game records: what is written can be read by others, what others write can be read, and what is none is refused in words."""

import contextlib
import random
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.autogo.bundle import load

go: Any = load("go_board")
gtp: Any = load("gtp")
peer: Any = load("gtp_peer")
playout: Any = load("playout")
sgf: Any = load("sgf")


def played(size: int, below: Any, komi: float = 7.5, **names: str) -> tuple[Any, Any]:
    """A random game as a record, and its last board."""
    board, moves = go.Board(size), []
    while not board.is_over:
        moves.append(playout.random_move(board, below))
        board.play(moves[-1])
    return sgf.Record(size, komi, tuple(moves), sgf.result_of(board.score(komi)), **names), board


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(2, 9),
    source=st.randoms(use_true_random=False),
    komi=st.integers(-40, 40).map(lambda halves: halves / 2),
    black=st.text(max_size=20).map(lambda text: text.replace("\r", "")),
    comment=st.text(alphabet="ab]\\[;() \n:ü", max_size=30),
)
def test_what_is_written_is_read(size: int, source: Any, komi: float, black: str, comment: str) -> None:
    record, _ = played(size, source.randrange, komi, black=black, white="another", comment=comment)
    assert sgf.read(sgf.write(record)) == [record]
    assert sgf.read(sgf.write(record) * 3) == [record] * 3


def sgfmill() -> Any:
    """An independent library for game records."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its docstrings' escapes, where it is compiled here for the first time
        return import_module("sgfmill.sgf")


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(2, 9),
    source=st.randoms(use_true_random=False),
    komi=st.integers(-40, 40).map(lambda halves: halves / 2),
    black=st.text(alphabet="ab]\\[;()ü第", max_size=20),
)
def test_sgfmill_reads_what_is_written(size: int, source: Any, komi: float, black: str) -> None:
    record, _ = played(size, source.randrange, komi, black=black)
    game = sgfmill().Sgf_game.from_string(sgf.write(record))
    moves = [("bw"[turn % 2], None if move == size * size else divmod(move, size)) for turn, move in enumerate(record.moves)]
    assert [node.get_move() for node in game.get_main_sequence()[1:]] == moves
    assert (game.get_size(), game.get_komi(), game.get_root().get("RE")) == (size, komi, record.result)
    assert (game.get_player_name("b") or "") == black


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(2, 9),
    source=st.randoms(use_true_random=False),
    komi=st.integers(-40, 40).map(lambda halves: halves / 2),
    comment=st.text(alphabet="ab]\\[;()ü第", max_size=20),
)
def test_what_sgfmill_writes_is_read(size: int, source: Any, komi: float, comment: str) -> None:
    record, _ = played(size, source.randrange, komi, comment=comment)
    game = sgfmill().Sgf_game(size=size, encoding="UTF-8")
    root = game.get_root()
    root.set("KM", komi)
    root.set("RE", record.result)
    if comment:
        root.set("C", comment)
    for turn, move in enumerate(record.moves):
        game.extend_main_sequence().set_move("bw"[turn % 2], None if move == size * size else divmod(move, size))
    assert sgf.read(game.serialise().decode()) == [record]


def test_gnugo_reads_what_is_written(gnugo: str, tmp_path: Path) -> None:
    """It plays the record and has the same stones."""
    source = random.Random(5)  # noqa: S311  # a game is no secret
    for size in (5, 7, 9):
        record, board = played(size, source.randrange, 5.5, black="a]b\\c", comment="d[e];f(")
        (tmp_path / "game.sgf").write_text(sgf.write(record), encoding="utf-8")
        with peer.Peer([gnugo, "--mode", "gtp"], name="GNU Go") as reader:
            reader.ask(f"loadsgf {tmp_path / 'game.sgf'}")
            for colour, word in enumerate(gtp.WORDS):
                named = reader.ask(f"list_stones {word}").split()
                assert sorted(gtp.read_vertex(size, vertex) for vertex in named) == go.members(board.stones[colour])
            assert reader.ask("query_boardsize") == str(size)
            assert float(reader.ask("get_komi")) == 5.5


def test_the_main_line_of_what_others_write_is_read() -> None:
    text = r"""
    (;GaMe[1]FF[4]SZ[9]KM[6.5]PB[One \] two\\]C[a
    b\
    c];B[ee]C[x](;W[cc];B[])(;W[gg](;B[aa])(;B[bb])))
    (;GM[1]SZ[5];B[tt];W[aa])
    """
    first, second = sgf.read(text.replace("GaMe", "GM"))
    assert (first.size, first.komi, first.black, first.result) == (9, 6.5, "One ] two\\", "?")
    assert first.comment == "a\n    b    c"
    assert first.moves == (4 * 9 + 4, 6 * 9 + 2, 81)
    assert (second.size, second.komi, second.moves) == (5, 0.0, (25, 20))
    assert sgf.read("") == []


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("(;SZ[5];B[aa]", "ends within a game tree"),
        ("(;SZ[5];B[aa]))", r"\) outside a game tree, at character 15"),
        ("(;SZ[5];B[aa", "a value without an end"),
        ("(;SZ[5]) hello", "a property outside a node, at character 9|neither"),
        ("(SZ[5])", "a property outside a node"),
        ("[5]", "a property outside a node|without a property"),
        ("()", "a game tree without a node"),
        ("(;SZ[5]B[aa]~)", "neither a game tree nor a space|ends within"),
        ("(;SZ[19];B[aa])", r"SZ\[19\] is not a board of 2 to 9"),
        ("(;B[aa])", r"SZ\[19\]"),
        ("(;SZ[5:6])", r"SZ\[5:6\]"),
        ("(;SZ[²])", r"SZ\[²\]"),
        ("(;GM[2]SZ[5])", "is not Go"),
        ("(;SZ[5]KM[nan])", r"KM\[nan\] is not a komi"),
        ("(;SZ[5]AB[aa])", "set-up stones"),
        ("(;SZ[5];B[aa];B[bb])", "move 2 is out of turn"),
        ("(;SZ[5];B[fa])", r"move 1, \[fa\], is not on the board"),
        ("(;SZ[5];B[a])", "is not on the board"),
        ("(" * 200_000, "ends within a game tree"),
    ],
)
def test_what_is_no_game_record_is_refused(text: str, part: str) -> None:
    with pytest.raises(sgf.SgfError, match=part):
        sgf.read(text)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="();[]\\BWSZab5 \n", max_size=40))
def test_no_text_brings_another_error(text: str) -> None:
    with contextlib.suppress(sgf.SgfError):
        assert all(record.size in range(2, 10) for record in sgf.read(text))


def test_a_text_beyond_the_limit_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sgf, "MAX_CHARACTERS", 10)
    with pytest.raises(sgf.SgfError, match="10 are read at most"):
        sgf.read("(;SZ[5]C[123])")
