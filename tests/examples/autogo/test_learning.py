"""Network, search and training, from the inside: gradients, symmetries, what a search finds, that seeds decide everything."""

from typing import Any

import pytest

from tests.examples.autogo.bundle import ask

GAMES = """
import numpy as np
from network import *
from play import *
from search import *
def played(seed, count=6, batch=32, size=5, **changed):
    weights = random_weights(8, [seed])
    match = Match(size, Settings(**{"simulations": 8, "noise": 0.25, **changed}), 6)
    started = ((game(match, np.random.default_rng([seed, number])), (weights, weights)) for number in range(count))
    return [one for _, one in sorted(play_all(started, batch), key=lambda numbered: numbered[0])]
"""


def test_the_gradient_is_the_slope_of_the_loss(pool_python: str) -> None:
    """Each kind of weight, along 12 random directions, against the difference quotient in double precision."""
    program = (
        GAMES
        + """
from gradients import *
import positions
batch = positions.from_games(played(3, count=2))
weights = random_weights(5, [1])
random = np.random.default_rng(2)
for key, array in weights.arrays().items():
    setattr(weights, key, array.astype(float) + 0.05 * random.normal(size=array.shape))
exact, _ = gradient(weights, batch, 0.7, 1.3)
worst = {}
for key, array in weights.arrays().items():
    for _ in range(12):
        direction, step = random.normal(size=array.shape), 1e-6
        ends = []
        for sign in (1, -1):
            moved = Weights(**{**weights.arrays(), key: array + sign * step * direction})
            ends.append(losses(moved, batch).total(0.7, 1.3))
        slope = (ends[0] - ends[1]) / (2 * step)
        told = float((getattr(exact, key) * direction).sum())
        worst[key] = max(worst.get(key, 0), abs(slope - told) / max(1e-3, abs(slope)))
print(json.dumps(worst))
"""
    )
    worst = ask(pool_python, "policy_runner", program)
    assert len(worst) == 8
    assert all(difference < 1e-3 for difference in worst.values()), worst


def test_symmetries_are_the_eight_of_the_board(pool_python: str) -> None:
    program = """
from gradients import symmetries
from go_board import geometry
found = []
for size in (2, 3, 5, 9):
    sides = symmetries(size)
    kept = all(
        {int(side[q]) for q in geometry(size).adjacent[p]} == set(geometry(size).adjacent[int(side[p])]) for side in sides for p in range(size * size)
    )
    found.append([len({tuple(side) for side in sides.tolist()}), kept, sides[0].tolist() == list(range(size * size))])
print(json.dumps(found))
"""
    assert ask(pool_python, "policy_runner", program) == [[8, True, True]] * 4


def test_turned_positions_stay_what_they_are(pool_python: str) -> None:
    """The stones, the moves and the owners turn together: a move's point is empty, a stone's owner is as before."""
    program = (
        GAMES
        + """
from gradients import *
import positions
batch, kept = positions.from_games(played(5)), []
for side in symmetries(5):
    other = turned(batch, side)
    occupied = other.stones.sum(axis=1) > 0
    together = [(one * two).sum() for one, two in ((other.stones[:, 0], other.owners), (other.stones[:, 1], other.visits[:, :-1]))]
    kept.append([float((other.visits[:, :-1] * occupied).sum()), float(together[0]), float(other.visits.sum())])
print(json.dumps(kept))
"""
    )
    kept = ask(pool_python, "policy_runner", program)
    assert all(row == kept[0] for row in kept)
    assert kept[0][0] == 0


def test_same_seed_same_games_other_seed_other_games(pool_python: str) -> None:
    program = (
        GAMES
        + """
one, again, other = (played(seed) for seed in (1, 1, 2))
print(json.dumps([[game.moves for game in games] for games in (one, again, other)]))
"""
    )
    one, again, other = ask(pool_python, "policy_runner", program)
    assert one == again
    assert one != other
    assert len({tuple(moves) for moves in one}) == len(one)


def test_games_end_and_a_game_that_does_not_is_scored(pool_python: str) -> None:
    program = (
        GAMES
        + """
from go_board import Board
rows = []
for games in (played(1, move_cap=150), played(1, move_cap=9), played(1, play_on=False, move_cap=150)):
    for one in games:
        board = Board(5)
        for move in one.moves:
            board.play(move)
        rows.append([one.capped, board.is_over, len(one.moves), one.score == board.score(0.5)])
print(json.dumps(rows))
"""
    )
    rows = ask(pool_python, "policy_runner", program)
    assert all(capped != over and scored for capped, over, _, scored in rows)
    assert [row[0] for row in rows[6:12]] == [True] * 6
    assert {row[2] for row in rows[6:12]} == {9}
    assert not any(row[0] for row in rows[:6])


@pytest.mark.parametrize("play_on", [True, False])
def test_a_search_without_knowledge_takes_what_decides_the_game(pool_python: str, play_on: bool) -> None:
    """Even priors and no opinion of who wins: only the score at the cap can tell it that the capture is worth most."""
    program = (
        GAMES
        + """
from go_board import Board
board = Board(5)
for move in (6, 7, 12, 1, 8, 24, 20, 23):  # White's two stones in the middle below have one liberty left, c1
    board.play(move)
searching = search(board, Settings(simulations=400, move_cap=board.moves + 1, komi=0.5 + board.score(0), play_on=question), np.random.default_rng(1))
wanted = next(searching)
while True:
    try:
        wanted = searching.send((np.ones(26, np.float32), 0.0))
    except StopIteration as ended:
        root = ended.value
        break
best = choose(root, np.random.default_rng(1), 0.0)
scores = {}
for move in root.moves:
    after = board.copy()
    after.play(move)
    scores[move] = after.score(0.5 + board.score(0))
print(json.dumps([scores[best] > 0, any(score > 0 for score in scores.values()), sum(root.visits), 25 in root.moves]))
"""
    )
    won, could_win, visits, may_pass = ask(pool_python, "policy_runner", program, play_on)
    assert (won, could_win, visits) == (True, True, 400)
    assert may_pass is not play_on


def test_moves_are_drawn_by_their_visits(pool_python: str) -> None:
    program = (
        GAMES
        + """
from go_board import Board
root = Node(Board(3), None)
root.moves, root.visits = [0, 4, 8, 9], [1, 0, 6, 3]
random, drawn = np.random.default_rng(1), {}
for _ in range(4000):
    move = choose(root, random, 1.0)
    drawn[move] = drawn.get(move, 0) + 1
print(json.dumps([drawn, choose(root, random, 0.0)]))
"""
    )
    drawn, best = ask(pool_python, "policy_runner", program)
    assert best == 8
    assert set(drawn) == {"0", "8", "9"}
    for move, share in (("0", 0.1), ("8", 0.6), ("9", 0.3)):
        assert drawn[move] / 4000 == pytest.approx(share, abs=0.03)


def test_owners_and_outcomes_are_of_the_side_to_move(pool_python: str) -> None:
    program = (
        GAMES
        + """
import positions
one = played(4, count=1)[0]
found = positions.from_games([one])
owned, second = found.owners.sum(axis=1).tolist(), found.stones[1].tolist()
print(json.dumps([one.score, found.black_to_move.tolist(), found.outcome.tolist(), owned, second, one.moves[0]]))
"""
    )
    score, black, outcome, owned, second, first_move = ask(pool_python, "policy_runner", program)
    sign = 1 if score > 0 else -1
    assert black == [turn % 2 == 0 for turn in range(len(black))]
    assert outcome == [sign if turn else -sign for turn in black]
    assert owned == [round(score + 0.5) if turn else -round(score + 0.5) for turn in black]
    own, other = second
    assert (sum(own), [point for point, stone in enumerate(other) if stone]) == (0, [first_move])


def test_a_checkpoint_is_read_as_written_and_nothing_else_is(pool_python: str, tmp_path: Any) -> None:
    program = """
import pathlib, numpy as np, zipfile
from network import *
folder = pathlib.Path(question)
weights = random_weights(8, [1])
for name in ("one", "two"):
    write_checkpoint(folder / f"{name}.npz", weights, {"size": 5})
same = (folder / "one.npz").read_bytes() == (folder / "two.npz").read_bytes()
back, about = read_checkpoint(folder / "one.npz", "one")
equal = all((back.arrays()[key] == array).all() for key, array in weights.arrays().items())
def broken(**changed):
    np.savez(folder / "odd.npz", **{"about": np.array('{"schema": "autogo.checkpoint.v1"}'), **weights.arrays(), **changed})
said = []
def attempt():
    try:
        read_checkpoint(folder / "odd.npz", "odd")
        said.append("")
    except JobError as exc:
        said.append(str(exc))
broken(about=np.array("[]")); attempt()
broken(about=np.array("not json")); attempt()
broken(value=np.zeros(4)); attempt()
broken(first=np.full_like(weights.first, np.nan)); attempt()
broken(first=np.array([{"a": 1}], dtype=object)); attempt()
(folder / "odd.npz").write_bytes(b"x" * 100); attempt()
(folder / "odd.npz").unlink(); attempt()
with zipfile.ZipFile(folder / "odd.npz", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("first.npy", b"0" * 20_000_000)
attempt()
print(json.dumps([same, equal, about["size"], said]))
"""
    same, equal, size, said = ask(pool_python, "policy_runner", program, str(tmp_path))
    assert (same, equal, size) == (True, True, 5)
    assert all(said)
    parts = [
        "of schema",
        "no checkpoint",
        "do not fit",
        "not a finite number",
        "no checkpoint",
        "no checkpoint",
        "No such file",
        "20,000,000 bytes",
    ]
    assert [part for part, sentence in zip(parts, said, strict=True) if part not in sentence] == []
