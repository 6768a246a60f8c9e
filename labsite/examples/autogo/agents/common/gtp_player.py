"""Our player for any GTP controller: `python gtp_player.py [--checkpoint checkpoint.npz] [--simulations 64] [--size 9] [--seed 0]`.

Without a checkpoint its weights are random ones of the seed. It plays the move that its search visits most.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from checkpoints import RANDOM_CHANNELS
from go_board import LARGEST, SMALLEST, Board
from gtp_engine import Engine
from network import random_weights, read_checkpoint
from play import move_alone
from run_folder import JobError
from search import Settings


def main() -> int:
    options = argparse.ArgumentParser(description="A Go player that speaks GTP 2 on standard input and output.")
    options.add_argument("--checkpoint", type=Path)
    options.add_argument("--simulations", type=int, default=64)
    options.add_argument("--size", type=int, default=LARGEST, choices=range(SMALLEST, LARGEST + 1))
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    if given.seed < 0 or given.simulations < 1:
        options.error("the seed is at least 0, simulations are at least 1")
    try:
        weights = (
            read_checkpoint(given.checkpoint, given.checkpoint.name)[0]
            if given.checkpoint
            else random_weights(RANDOM_CHANNELS, [given.seed])
        )
    except JobError as exc:
        print(exc, file=sys.stderr)
        return 2
    random = np.random.default_rng(given.seed)

    def choose(board: Board, komi: float) -> int:
        # The controller decides when a game ends; the search looks as far as it would in a match that is not capped soon.
        settings = Settings(simulations=given.simulations, komi=komi, move_cap=board.moves + 3 * board.size**2)
        return move_alone(board, weights, settings, random)

    Engine(choose, given.size).serve(sys.stdin, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
