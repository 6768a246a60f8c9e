"""Positions of self-play as one .npz file: what the side to move saw, what its search preferred, and how the game ended for it.

Arrays, one row a position: `stones` (2, points) of the side to move and the other, `black_to_move`, `visits` (points and the pass), `owners`
(points; 1 own, -1 the other's, 0 neutral), `outcome` (1 won, -1 lost, 0 drawn), `game` (number within the file). `about` is JSON.
"""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from game import Game
from go_board import BLACK, LARGEST, SMALLEST
from network import MAX_UNPACKED_BYTES, as_rows, refuse_large_members, schema_of
from play import owners
from run_folder import Job, JobError

SCHEMA = "autogo.positions.v1"


@dataclass(frozen=True)
class Positions:
    stones: np.ndarray
    black_to_move: np.ndarray
    visits: np.ndarray
    owners: np.ndarray
    outcome: np.ndarray
    game: np.ndarray

    def __len__(self) -> int:
        return len(self.game)

    @property
    def size(self) -> int:
        return round(self.stones.shape[2] ** 0.5)

    @property
    def games(self) -> int:
        return len(np.unique(self.game))

    def select(self, which: np.ndarray) -> "Positions":
        return Positions(**{field.name: getattr(self, field.name)[which] for field in fields(self)})


def from_games(games: Sequence[Game]) -> Positions:
    """All positions of games of one size in which a move was made."""
    stones, turns, visits, owned, outcome, number = [], [], [], [], [], []
    for index, played in enumerate(games):
        by_black = owners(played)
        for board, shares in zip(played.replay(), played.visits, strict=True):
            sign = 1 if board.turn == BLACK else -1
            stones.append(as_rows([board.stones[board.turn], board.stones[1 - board.turn]], played.size**2))
            turns.append(board.turn == BLACK)
            visits.append(shares)
            owned.append(by_black * sign)
            outcome.append(sign * np.sign(played.score))
            number.append(index)
    return Positions(
        np.array(stones, np.uint8), np.array(turns, bool), np.array(visits, np.float32), np.array(owned, np.int8),
        np.array(outcome, np.float32), np.array(number, np.int32),
    )  # fmt: skip


def write(path: Path, positions: Positions, about: dict[str, Any]) -> None:
    """The same positions give the same bytes."""
    note = np.array(json.dumps({"schema": SCHEMA, **about}, sort_keys=True, allow_nan=False))
    np.savez_compressed(path, about=note, **vars(positions))


def read(path: Path, name: str) -> Positions:
    """The positions of a file, called `name` in messages. Raises JobError."""
    try:
        refuse_large_members(path, MAX_UNPACKED_BYTES)
        with np.load(path, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            if not isinstance(about, dict) or about.get("schema") != SCHEMA:
                raise JobError(f"{name} holds no positions of schema {SCHEMA}")
            found = Positions(**{field.name: np.asarray(stored[field.name]) for field in fields(Positions)})
    except OSError as exc:
        raise JobError(f"{name}: {exc.strerror or exc}") from exc
    except (ValueError, KeyError, TypeError, RecursionError, zipfile.BadZipFile, EOFError) as exc:
        raise JobError(f"{name} holds no positions: {exc}") from exc
    _refuse(found, name)
    return found


def read_inputs(job: Job) -> Positions:
    """All positions of the run's datasets and of artifacts that say they hold some, in the order of inputs and file names.

    Raises JobError where there are none.
    """
    paths = [(entry, path) for entry in job.inputs for path in entry.files(".npz") if entry.kind == "dataset" or schema_of(path) == SCHEMA]
    parts = [read(path, f"{entry.slug}/{path.name}") for entry, path in paths]
    if not parts:
        given = ", ".join(entry.slug for entry in job.inputs) or "none"
        raise JobError(f"no positions among the inputs (given: {given}); add a window of self-play")
    if len(sizes := {part.size for part in parts}) > 1:
        raise JobError(f"positions of boards of {' and '.join(map(str, sorted(sizes)))}; give windows of one size")
    offset, numbered = 0, []
    for part in parts:
        numbered.append(part.game + offset)
        offset += int(part.game.max()) + 1
    joined = {field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Positions)}
    return Positions(**{**joined, "game": np.concatenate(numbered)})


def _refuse(found: Positions, name: str) -> None:
    rows, points = len(found.game), found.stones.shape[-1] if found.stones.ndim == 3 else 0
    shapes = {
        "stones": (rows, 2, points),
        "black_to_move": (rows,),
        "visits": (rows, points + 1),
        "owners": (rows, points),
        "outcome": (rows,),
    }
    wrong = [key for key, shape in shapes.items() if getattr(found, key).shape != shape]
    if not rows or wrong or found.game.ndim != 1 or not SMALLEST**2 <= points <= LARGEST**2 or found.size**2 != points:
        raise JobError(f"{name} holds no positions: its arrays do not fit each other ({', '.join(wrong) or 'size'})")
    numbers = (found.visits, found.outcome.astype(float), found.owners.astype(float), found.stones.astype(float))
    if not all(np.isfinite(array).all() and np.abs(array).max() <= 1 for array in numbers) or found.game.min() < 0:
        raise JobError(f"{name}: a number is not between -1 and 1, or a game has none")
    if not np.allclose(found.visits.sum(axis=1), 1, atol=1e-3) or found.visits.min() < 0:
        raise JobError(f"{name}: the shares of visits of a position do not add up to 1")
