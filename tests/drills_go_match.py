"""Two checkpoints of the Go laboratory, judged apart from labsite in the pool's Python: `python tests/drills_go_match.py FIRST LAST GAMES SEEDS`.

Prints a JSON object: the last one's share of points with its standard error, how many of the seeds open in the centre, and the priors of the empty
board. Search and network are the agents' own.
"""

import json
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "labsite" / "examples"
sys.path[:0] = [str(EXAMPLES / "autogo" / "agents" / "common"), str(EXAMPLES / "w2s" / "agents" / "common")]
import numpy as np  # noqa: E402  # after the way to it is known, as everything below
from go_board import Board  # type: ignore[import-not-found]  # noqa: E402  # a module of the bundle
from matches import play_pair, points_of_first, share_error  # type: ignore[import-not-found]  # noqa: E402  # a module of the bundle
from network import evaluate, read_checkpoint  # type: ignore[import-not-found]  # noqa: E402  # a module of the bundle
from play import Match, move_alone  # type: ignore[import-not-found]  # noqa: E402  # a module of the bundle
from search import Settings  # type: ignore[import-not-found]  # noqa: E402  # a module of the bundle

SIZE, SIMULATIONS, RANDOM_MOVES = 5, 32, 6
CENTRE = SIZE * SIZE // 2


def main(first: str, last: str, games: int, seeds: int) -> None:
    settings = Settings(simulations=SIMULATIONS, exploration=1.5, komi=0.5, move_cap=6 * SIZE * SIZE)
    weights = [read_checkpoint(Path(path), path)[0] for path in (last, first)]
    played = play_pair(Match(SIZE, settings, RANDOM_MOVES), *weights, games, [20])
    points = points_of_first(played)
    noisy = Settings(simulations=SIMULATIONS, exploration=1.5, komi=0.5, move_cap=6 * SIZE * SIZE, noise=0.25, noise_alpha=0.3)
    opened = [move_alone(Board(SIZE), weights[0], noisy, np.random.default_rng([21, seed])) for seed in range(seeds)]
    priors, _ = evaluate(weights[0], [Board(SIZE)])
    shares = priors[0] / priors[0].sum()
    most = int(np.argmax(shares))
    where = f"column {most % SIZE + 1}, row {most // SIZE + 1}" if most < SIZE * SIZE else "passing"
    found = {
        "share": points / games, "share_error": share_error(points, games), "games": games, "simulations": SIMULATIONS,
        "centre": opened.count(CENTRE), "seeds": seeds, "prior_centre": float(shares[CENTRE]), "prior_first": where,
    }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
