"""Self-play: games of one network against itself, as SGF and as positions to learn from.

Inputs: at most one checkpoint; without one the network has random weights of the run's seed. The same job gives the same games, bit for bit.
Where GNU Go is installed, each game is replayed there move by move, and one disagreement fails the run.
"""

import time

import gnugo
import numpy as np
import positions
from checkpoints import Checkpoint, one_checkpoint
from game import Game
from gtp_peer import PeerError
from matches import note_capped, read_match, with_noise, write_games
from play import Match, game, play_all
from run_folder import Job, JobError, run

PARAMETERS = (
    "size", "komi", "games", "simulations", "exploration", "noise", "noise_alpha", "random_moves", "move_cap", "play_on",
    "channels", "replay", "dataset", "games_per_piece",
)  # fmt: skip
MOST_PIECES = 50  # two lines each, of the 100 that a run may write for datasets
REPLAY = ("where_installed", "required", "never")


def main(job: Job) -> None:
    job.allow(*PARAMETERS)
    match = with_noise(read_match(job), job.number("noise", 0.25, 0, 1), job.number("noise_alpha", 0.3, 0.01, 100))
    count, dataset = job.whole("games", 24, 1, 10_000), job.text("dataset", "self-play")
    if pieces(job, count) > MOST_PIECES:
        raise JobError(f"{count} games are {pieces(job, count)} pieces of {job.params['games_per_piece']}; {MOST_PIECES} at most")
    replay = job.text("replay", "where_installed")
    if replay not in REPLAY:
        raise JobError(f"parameter replay is {replay!r}; it must be one of {', '.join(REPLAY)}")
    checkpoint = one_checkpoint(job)
    print(f"{count} games of {checkpoint.name} on {match.size}x{match.size}, {match.settings.simulations} simulations a move", flush=True)
    games = play_games(job, match, checkpoint, count)
    if replay != "never":
        replay_all(job, games, required=replay == "required")
    report(job, match, checkpoint, games, dataset)


def pieces(job: Job, count: int) -> int:
    return -(-count // (job.whole("games_per_piece", 0, 0, 10_000) or count))


def play_games(job: Job, match: Match, checkpoint: Checkpoint, count: int) -> list[Game]:
    """All games in the order of their numbers; metrics are written as they end."""
    started = ((game(match, np.random.default_rng([job.seed, 1, number])), (checkpoint.weights,) * 2) for number in range(count))
    ended: dict[int, Game] = {}
    began = time.monotonic()
    for number, played in play_all(started):
        ended[number] = played
        step = len(ended)
        job.metric("moves", len(played.moves), step)
        job.metric("black_win_rate", sum(one.black_points for one in ended.values()) / step, step)
        job.event("progress", done=step, total=count, text=f"{step} games")
    searched = sum(len(played.moves) for played in games_in_order(ended)) * match.settings.simulations
    print(f"{searched / max(time.monotonic() - began, 1e-9):,.0f} simulations a second", flush=True)
    return games_in_order(ended)


def games_in_order(ended: dict[int, Game]) -> list[Game]:
    return [ended[number] for number in sorted(ended)]


def replay_all(job: Job, games: list[Game], *, required: bool) -> None:
    program = gnugo.find()
    if program is None:
        if required:
            raise JobError("GNU Go is not installed in this pool, and replay is required")
        job.event("note", text="GNU Go is not installed in this pool; the games were not replayed by it.")
        return
    verdicts = []
    try:
        with gnugo.referee(program) as peer:
            for number, played in enumerate(games):
                try:
                    verdicts.append(gnugo.check(peer, played))
                except gnugo.Disagreement as exc:
                    raise JobError(f"game {number + 1} is not the same in GNU Go: {exc}") from exc
    except PeerError as exc:
        raise JobError(str(exc)) from exc
    scored, dead = sum(verdict.score is not None for verdict in verdicts), sum(verdict.dead > 0 for verdict in verdicts)
    words = f"GNU Go replayed {len(games)} games with the same moves and captures, and scored the {scored} that were settled the same"
    job.event("note", text=f"{words}, {dead} of them without stones that it holds for dead.")
    job.metric("replayed_games", len(games), 0)


def report(job: Job, match: Match, checkpoint: Checkpoint, games: list[Game], dataset: str) -> None:
    """Write the games in pieces, each a text and its positions, and say what they are for."""
    note_capped(job, games)
    each, total = job.whole("games_per_piece", 0, 0, 10_000) or len(games), 0
    about = {
        "checkpoint": {"name": checkpoint.name, "sha256": checkpoint.sha256}, "komi": match.settings.komi, "seed": job.seed,
        "simulations": match.settings.simulations,
    }  # fmt: skip
    for number, first in enumerate(range(0, len(games), each), start=1):
        piece = games[first : first + each]
        found = positions.from_games(piece)
        total += len(found)
        text, arrays = f"games-{number:03d}.sgf", f"positions-{number:03d}.npz"
        write_games(job.output(text), ((played, checkpoint.name, checkpoint.name) for played in piece))
        positions.write(job.output(arrays), found, {**about, "games": len(piece), "first_game": first})
        counted = {"games": len(piece), "positions": len(found), "size": match.size}
        job.event("artifact", path=f"outputs/{text}", name=text.removesuffix(".sgf"), kind="games", metadata=counted)
        job.event("artifact", path=f"outputs/{arrays}", name=arrays.removesuffix(".npz"), kind="positions", metadata=counted)
        # A window takes pieces in their order up to a number of records: the text, of no records, comes first and shares its games' window.
        job.event("dataset", path=f"outputs/{text}", name=dataset, records=0)
        job.event("dataset", path=f"outputs/{arrays}", name=dataset, records=len(piece))
    job.metric("positions", total, 0)
    job.metric("mean_moves", float(np.mean([len(played.moves) for played in games])), 0)
    job.metric("capped_games", sum(played.capped for played in games), 0)
    print(f"{len(games)} games, {total} positions", flush=True)


run(main)
