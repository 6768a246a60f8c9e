"""Train the network on windows of self-play: a checkpoint, its losses, and a match against the network that it started from.

Inputs: one dataset or more with positions of one board size; at most one checkpoint to go on from, else random weights of the run's seed.
A share of the games is kept apart to validate on. The same job gives the same checkpoint, bit for bit, on the same machine
with the same numpy and as many threads.
"""

import copy
import hashlib
import time
from dataclasses import replace

import numpy as np
import positions
from checkpoints import one_checkpoint
from go_board import Board
from gradients import Adam, gradient, losses, symmetries, turned
from gtp import vertex_text
from matches import note_capped, play_pair, points_of_first, read_match, share_error, write_games
from network import Weights, write_checkpoint
from play import Match, move_alone
from positions import Positions
from run_folder import Job, JobError, run

PARAMETERS = (
    "learning_rate", "epochs", "batch_size", "l2", "value_weight", "owner_weight", "validation_share", "channels",
    "seconds_per_epoch", "match_games", "simulations", "exploration", "komi", "random_moves", "move_cap", "play_on", "benchmark",
)  # fmt: skip
WIN_RATE = "win_rate"
OPENING_MOVES = 3


def main(job: Job) -> None:
    job.allow(*PARAMETERS)
    found = positions.read_inputs(job)
    match, games = read_match(job, size=found.size), job.whole("match_games", 24, 0, 10_000)
    start = one_checkpoint(job)
    weights = copy.deepcopy(start.weights)
    training, validation = split(job, found)
    print(f"{len(training)} positions of {training.games} games, {len(validation)} to validate on, from {start.name}", flush=True)
    fit(job, weights, training, validation)

    path = job.output("checkpoint.npz")
    sources = [{"input": entry.slug, "version": entry.version, "sha256": entry.sha256} for entry in job.inputs]
    write_checkpoint(path, weights, {"size": found.size, "seed": job.seed, "params": job.params, "inputs": sources})
    # Several checkpoints can be inputs of one arena only under different names.
    name = f"checkpoint-{hashlib.sha256(path.read_bytes()).hexdigest()[:8]}"
    described = {"size": found.size, "positions": len(training), "channels": weights.channels, "opening": opening(match, weights)}
    job.event("artifact", path="outputs/checkpoint.npz", name=name, kind="checkpoint", metadata=described)
    if games:
        played = play_pair(match, weights, start.weights, games, [job.seed, 2])
        note_capped(job, played)
        named = [(name, start.name) if number % 2 == 0 else (start.name, name) for number in range(games)]
        write_games(job.output("match.sgf"), ((one, *names) for one, names in zip(played, named, strict=True)))
        job.event("artifact", path="outputs/match.sgf", name="match", kind="games", metadata={"games": games, "size": found.size})
        points = points_of_first(played)
        share, error = points / games, share_error(points, games)
        job.metric(WIN_RATE, share, 0)
        job.event("score", benchmark=job.text("benchmark", "go-fast-learning"), metric=WIN_RATE, value=share, stderr=error, samples=games)
        print(f"{points:g} of {games} points against {start.name}", flush=True)


def opening(match: Match, weights: Weights) -> str:
    """The first moves of the checkpoint against itself from the empty board, without noise or chance: what it opens with."""
    board, quiet = Board(match.size), replace(match.settings, noise=0.0)
    found = []
    for _ in range(OPENING_MOVES):
        move = move_alone(board.copy(), weights, quiet, np.random.default_rng(0))
        found.append(vertex_text(match.size, move))
        board.play(move)
    return " ".join(found)


def split(job: Job, found: Positions) -> tuple[Positions, Positions]:
    """Positions to train on and to validate on, by whole games. Raises JobError where nothing is left to train on."""
    share = job.number("validation_share", 0.1, 0, 0.9)
    numbers = np.unique(found.game)
    kept = np.random.default_rng([job.seed, 3]).permutation(numbers)[: int(len(numbers) * share)]
    if len(kept) == len(numbers):
        raise JobError("no game is left to train on")
    apart = np.isin(found.game, kept)
    return found.select(~apart), found.select(apart)


def fit(job: Job, weights: Weights, training: Positions, validation: Positions) -> None:
    """Change `weights`: passes over the shuffled positions, each batch after a symmetry of the board drawn for it."""
    rate, l2 = job.number("learning_rate", 0.004, 1e-6, 10), job.number("l2", 0.001, 0, 10)
    epochs, size = job.whole("epochs", 20, 1, 10_000), job.whole("batch_size", 64, 1, 100_000)
    by_value, by_owners = job.number("value_weight", 1, 0, 100), job.number("owner_weight", 1, 0, 100)
    pace = job.number("seconds_per_epoch", 0, 0, 60)
    random, sides, adam = np.random.default_rng([job.seed, 4]), symmetries(training.size), Adam(weights, rate, l2)
    report(job, 0, weights, training, validation)
    for epoch in range(1, epochs + 1):
        began = time.monotonic()
        order = random.permutation(len(training))
        for first in range(0, len(order), size):
            batch = turned(training.select(order[first : first + size]), sides[random.integers(8)])
            with np.errstate(all="ignore"):
                adam.step(gradient(weights, batch, by_value, by_owners)[0])
        if not all(np.isfinite(array).all() for array in weights.arrays().values()):
            job.metric("train_policy_loss", float("nan"), epoch)
            raise JobError(f"training diverged in epoch {epoch}: learning_rate {rate:g} is too large")
        text = report(job, epoch, weights, training, validation)
        job.event("progress", done=epoch, total=epochs, text=text)
        # Pacing is asked for by a parameter, so that the curves of a first run can be watched; by default there is none.
        time.sleep(max(0.0, pace - (time.monotonic() - began)))


def report(job: Job, epoch: int, weights: Weights, training: Positions, validation: Positions) -> str:
    text = f"epoch {epoch}"
    for name, part in (("train", training), ("validation", validation)):
        if len(part):
            found = losses(weights, part)
            for key, value in vars(found).items():
                job.metric(f"{name}_{key}_loss", value, epoch)
            text += f", {name} moves {found.policy:.3f}, value {found.value:.3f}, owners {found.owners:.3f}"
    print(text, flush=True)
    return text


run(main)
