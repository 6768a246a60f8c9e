"""Games replayed by GNU Go, move by move: what we hold for legal, captured and scored is what it does."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.examples.autogo.bundle import load

game: Any = load("game")
go: Any = load("go_board")
judge: Any = load("gnugo")
playout: Any = load("playout")
gtp: Any = load("gtp")
Refused: Any = load("gtp_peer").Refused


@pytest.fixture(scope="module")
def referee(gnugo: str) -> Iterator[Any]:
    with judge.referee(gnugo) as peer:
        yield peer


def random_game(size: int, seed: int, *, wild: float = 0.0, cap: int = 1000) -> Any:
    """A game of random moves; a share `wild` of them is drawn among all legal ones, own eyes and the pass too."""
    source = random.Random(seed)  # noqa: S311  # a game is no secret
    board, played = go.Board(size), game.Game(size, 0.5 + source.randrange(-5, 6))
    while not board.is_over and board.moves < cap:
        every = [*board.legal_points(), size * size]
        played.play(board, source.choice(every) if source.random() < wild else playout.random_move(board, source.randrange))
    played.end(board)
    return played


@pytest.mark.parametrize(("size", "games"), [(5, 60), (6, 20), (7, 10), (9, 8)])
def test_settled_games_are_scored_the_same_by_gnugo_itself(referee: Any, size: int, games: int) -> None:
    verdicts = [judge.check(referee, random_game(size, seed)) for seed in range(games)]
    assert all(verdict.score is not None for verdict in verdicts)
    untouched = [(seed, verdict) for seed, verdict in enumerate(verdicts) if not verdict.dead]
    assert len(untouched) > games / 2
    for seed, verdict in untouched:
        assert verdict.score == pytest.approx(random_game(size, seed).score)


@pytest.mark.parametrize(("size", "games"), [(2, 20), (3, 30), (4, 20), (5, 30), (9, 5)])
def test_wild_and_unfinished_games_have_the_same_stones_and_captures(referee: Any, size: int, games: int) -> None:
    for seed in range(3 * games):
        judge.check(referee, random_game(size, seed, wild=0.5, cap=4 * size * size))


def test_both_refuse_the_same_moves(referee: Any) -> None:
    """In the middle of games: every point of the board is asked of both."""
    refused = dict.fromkeys(("suicide", "repeats", "occupied"), 0)
    for seed in range(32):
        size = (2, 3, 2, 4)[seed % 4]
        board, record = go.Board(size), random_game(size, seed, wild=0.3, cap=3 * size * size)
        referee.set_up(size, 0.5)
        for move in record.moves:
            word = gtp.WORDS[board.turn]
            for point in range(size * size):
                reason = board.why_not(point)
                said = referee.ask(f"is_legal {word} {gtp.vertex_text(size, point)}")
                assert said == str(int(reason is None)), (seed, board.moves, gtp.vertex_text(size, point), reason)
                for word_of_reason in refused:
                    refused[word_of_reason] += word_of_reason in (reason or "")
            board.play(move)
            referee.play(size, word, move)
    assert min(refused.values()) > 5


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda played: played.captured.__setitem__(0, 1), "move 1: the record says 1 captured"),
        (lambda played: setattr(played, "score", played.score + 1), "the record says .*, the board"),
        (lambda played: (played.moves.insert(1, played.moves[0]), played.captured.append(0)), "move 2, white .* is refused"),
    ],
)
def test_a_record_that_is_wrong_is_found_out(referee: Any, change: Any, sentence: str) -> None:
    played = random_game(5, 1)
    change(played)
    with pytest.raises(judge.Disagreement, match=sentence):
        judge.check(referee, played)


@pytest.mark.parametrize("komi", [0.5, -7.0, 3.0])
def test_a_score_by_another_count_is_found_out(referee: Any, monkeypatch: pytest.MonkeyPatch, komi: float) -> None:
    """Were our count of the area wrong, and the record's with it, GNU Go's own score would show it."""
    played = random_game(5, 2)
    played.komi = komi
    right = go.Board.score
    monkeypatch.setattr(go.Board, "score", lambda board, komi: right(board, komi) + 1)
    board = go.Board(5)
    for move in played.moves:
        board.play(move)
    played.end(board)
    with pytest.raises(judge.Disagreement, match=r"the score is .*, by GNU Go"):
        judge.check(referee, played)
