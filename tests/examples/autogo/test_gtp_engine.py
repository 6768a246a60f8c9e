"""Our engine as a GTP controller sees it."""

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labsite.examples.autogo.bundles import RUN_FOLDER
from tests.examples.autogo.bundle import COMMON, ENVIRONMENT, load

engine: Any = load("gtp_engine")
go: Any = load("go_board")
gtp: Any = load("gtp")
peer: Any = load("gtp_peer")
REQUIRED = {
    "protocol_version", "name", "version", "known_command", "list_commands", "quit", "boardsize", "clear_board", "komi", "play", "genmove",
}  # fmt: skip


def lowest(board: Any, komi: float) -> int:
    """Plays the first legal point."""
    return int((board.legal_points() or [board.geometry.pass_move])[0])


def talk(*commands: str) -> list[str]:
    """The answers to these lines, without the empty line that ends each."""
    answers = io.StringIO()
    engine.Engine(lowest, 5).serve(io.StringIO("".join(f"{command}\n" for command in commands)), answers)
    said = answers.getvalue()
    assert not said or said.endswith("\n\n")
    return said.split("\n\n")[:-1]


def test_the_commands_that_the_protocol_requires_are_there() -> None:
    answers = talk("protocol_version", "list_commands", "known_command genmove", "known_command fly", "quit", "name")
    assert answers[0] == "= 2"
    assert set(answers[1].removeprefix("= ").split()) >= REQUIRED
    assert answers[2:] == ["= true", "= false", "="]  # and none after quit


def test_a_game_is_played_and_undone() -> None:
    assert talk(
        "boardsize 5", "clear_board", "komi 6.5", "play black C3", "play w D3", "genmove b", "play w pass", "final_score", "undo", "undo",
        "list_stones black", "list_stones white", "genmove white",
    ) == ["=", "=", "=", "=", "=", "= A1", "=", "= W+5.5", "=", "=", "= C3", "= D3", "= A1"]  # fmt: skip


def test_ids_come_back_and_comments_and_control_characters_go() -> None:
    assert talk("7 name # who", "", "   ", "# only a comment", "0012\tprotocol_version\x07\r", "9 fly", "10 boardsize 40") == [
        "=7 autogo",
        "=0012 2",
        "?9 unknown command",
        "?10 unacceptable size",
    ]


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("fly", "? unknown command"),
        ("3", "?3 unknown command"),
        ("boardsize", "? syntax error"),
        ("boardsize five", "? syntax error"),
        ("boardsize 19", "? unacceptable size"),
        ("boardsize 1", "? unacceptable size"),
        ("komi much", "? syntax error"),
        ("komi nan", "? syntax error"),
        ("play black", "? syntax error"),
        ("play red A1", "? syntax error"),
        ("play black I3", "? illegal move"),
        ("play black A9", "? illegal move"),
        ("play black 33", "? syntax error"),
        ("play black A²", "? syntax error"),
        ("play black A12345", "? syntax error"),
        ("genmove", "? syntax error"),
        ("undo", "? cannot undo"),
        ("play black " + "A" * 5000, "? unknown command"),
    ],
)
def test_errors_are_the_protocols_words_and_change_nothing(command: str, answer: str) -> None:
    assert talk(command, "list_stones black", "list_stones white", "protocol_version") == [answer, "=", "=", "= 2"]


def test_moves_against_the_rules_are_illegal() -> None:
    """Occupied, suicide, and a ko taken back at once."""
    ko = ["play b B1", "play b A2", "play b B3", "play w C1", "play w D2", "play w C3", "play w B2"]
    assert talk("play b C3", "play w C3")[-1] == "? illegal move"
    assert talk("play b B1", "play b A2", "play w A1")[-1] == "? illegal move"
    assert talk(*ko, "play b C2", "list_stones w", "play w B2", "play w E5", "play b E4", "play w B2")[-5:] == [
        "= C1 D2 C3",
        "? illegal move",
        "=",
        "=",
        "=",
    ]


def test_a_game_that_is_over_is_passed_on() -> None:
    assert talk("play b pass", "play w pass", "genmove b", "genmove w")[-2:] == ["= pass", "= pass"]


def test_the_board_is_shown_with_the_first_row_below() -> None:
    assert talk("boardsize 2", "play b A1", "play w B2", "showboard")[-1] == "= \n2 . O\n1 X .\n  A B"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=5))
def test_no_line_ends_the_engine_or_goes_unanswered(lines: list[str]) -> None:
    wanted = sum(gtp.parse(line) is not None for line in lines if line.strip() != "quit")
    if any((command := gtp.parse(line)) and command.name == "quit" for line in lines):
        return
    answers = talk(*lines, "protocol_version")
    assert len(answers) == wanted + 1
    assert answers[-1] == "= 2"


@given(size=st.integers(2, 9), data=st.data())
def test_vertices_are_read_as_written(size: int, data: Any) -> None:
    move = data.draw(st.integers(0, size * size))
    assert gtp.read_vertex(size, gtp.vertex_text(size, move)) == move
    assert gtp.read_vertex(size, gtp.vertex_text(size, move).lower()) == move


def test_our_player_plays_gnugo_over_gtp_and_both_see_the_same_game(pool_python: str, gnugo: str) -> None:
    """Both sides of GTP: our engine in a process of its own, our controller between it and GNU Go."""
    ours = [pool_python, str(COMMON / "gtp_player.py"), "--simulations", "8", "--size", "5"]
    environment = {**ENVIRONMENT, "PYTHONPATH": str(RUN_FOLDER.parent)}
    rules = ["--chinese-rules", "--positional-superko", "--never-resign", "--level", "0"]
    with (
        peer.Peer(ours, name="our player", environment=environment) as black,
        peer.Peer([gnugo, "--mode", "gtp", *rules], name="GNU Go") as white,
    ):
        for player in (black, white):
            player.set_up(5, 0.5)
        passes, moves = 0, 0
        while passes < 2 and moves < 150:
            player, other, colour = ((black, white, "black"), (white, black, "white"))[moves % 2]
            move = player.ask(f"genmove {colour}")
            other.ask(f"play {colour} {move}")
            passes, moves = (passes + 1 if move.lower() == "pass" else 0), moves + 1
        for word in gtp.WORDS:
            assert sorted(black.ask(f"list_stones {word}").split()) == sorted(white.ask(f"list_stones {word}").split())
    assert moves > 10


def test_our_player_refuses_a_file_that_is_no_checkpoint(pool_python: str, tmp_path: Any) -> None:
    (tmp_path / "odd.npz").write_bytes(b"PK no")
    ours = [pool_python, str(COMMON / "gtp_player.py"), "--checkpoint", str(tmp_path / "odd.npz")]
    with (
        pytest.raises(peer.PeerError, match=r"our player ended .* with exit code 2"),
        peer.Peer(ours, name="our player", environment={**ENVIRONMENT, "PYTHONPATH": str(RUN_FOLDER.parent)}) as player,
    ):
        player.ask("name")
