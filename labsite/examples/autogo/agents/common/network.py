"""The network that is learned: two 3x3 convolutions, then for each point a move's logit and an expected owner, and for the board a value.

It knows stones, the board's edge and whose turn it is, and begins with random weights; nothing of how Go is played is put in. It has no
weights that depend on the size of the board. All is seen by the side to move: a value of 1 is a sure win of the side to move.
Arrays are float32; the same weights and the same batch give the same bits on the same machine, with the same numpy and as many threads
(a run of one slot has one).
"""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from go_board import BLACK, LARGEST, Board
from run_folder import JobError

SCHEMA = "autogo.checkpoint.v1"
PLANES = 4  # own stones, stones of the other, the board, 1 where Black is to move and -1 where White is
MOST_CHANNELS = 128
MASK_BYTES = (LARGEST * LARGEST + 7) // 8
MAX_CHECKPOINT_BYTES = 16 * 1024 * 1024
MAX_UNPACKED_BYTES = 512 * 1024 * 1024


@dataclass(eq=False)  # weights are the same where they are the same object
class Weights:
    """Of each layer its weights; `channels` is the width of both convolutions."""

    first: np.ndarray  # 9 * PLANES, channels
    first_bias: np.ndarray
    second: np.ndarray  # 9 * channels, channels
    second_bias: np.ndarray
    heads: np.ndarray  # channels, (move, owner)
    heads_bias: np.ndarray
    passing: np.ndarray  # channels and a constant: the logit of a pass, from the mean over the board
    value: np.ndarray  # points expected to be owned, turn, constant

    @property
    def channels(self) -> int:
        return len(self.first_bias)

    def arrays(self) -> dict[str, np.ndarray]:
        return dict(vars(self))


@dataclass
class Pass:
    """What a forward pass leaves for the backward one. Leading axis: boards of the batch."""

    columns_first: np.ndarray
    hidden_first: np.ndarray
    columns_second: np.ndarray
    hidden_second: np.ndarray
    owners: np.ndarray
    value_inputs: np.ndarray
    logits: np.ndarray  # moves, the pass last
    values: np.ndarray


def random_weights(channels: int, seed: Sequence[int]) -> Weights:
    """He's initialisation of the convolutions (He et al., 2015); heads near zero, so that the first search sees an even prior."""
    random = np.random.default_rng(list(seed))

    def normal(rows: int, width: int, spread: float) -> np.ndarray:
        return random.normal(0.0, spread, (rows, width)).astype(np.float32)

    first, second = normal(9 * PLANES, channels, (2 / (9 * PLANES)) ** 0.5), normal(9 * channels, channels, (2 / (9 * channels)) ** 0.5)
    heads, zeros = normal(channels, 2, 0.1 * channels**-0.5), np.zeros(channels, np.float32)
    passing, value = np.zeros(channels + 1, np.float32), np.array([0.1, 0.0, 0.0], np.float32)
    return Weights(first, zeros, second, zeros.copy(), heads, np.zeros(2, np.float32), passing, value)


@cache
def window(size: int) -> np.ndarray:
    """For each point the 3x3 points around it, `size * size` where that is off the board."""
    grid = np.full((size + 2, size + 2), size * size)
    grid[1:-1, 1:-1] = np.arange(size * size).reshape(size, size)
    return np.array([grid[row : row + 3, column : column + 3].ravel() for row in range(size) for column in range(size)])


def columns(maps: np.ndarray, size: int) -> np.ndarray:
    """(boards, points, channels) to (boards * points, 9 * channels): what a 3x3 convolution multiplies; zeros off the board."""
    boards, points, channels = maps.shape
    padded = np.zeros((boards, points + 1, channels), maps.dtype)
    padded[:, :points] = maps
    return padded[:, window(size)].reshape(boards * points, 9 * channels)


def as_rows(masks: Sequence[int], points: int) -> np.ndarray:
    """Sets of points as rows of 0 and 1."""
    packed = np.frombuffer(b"".join(mask.to_bytes(MASK_BYTES, "little") for mask in masks), np.uint8)
    return np.unpackbits(packed.reshape(len(masks), MASK_BYTES), axis=1, count=points, bitorder="little")


def planes(boards: Sequence[Board]) -> np.ndarray:
    """What the network sees of boards of one size: (boards, points, PLANES)."""
    points = boards[0].geometry.pass_move
    stones = as_rows([board.stones[colour] for board in boards for colour in (board.turn, 1 - board.turn)], points)
    return with_constants(stones.reshape(len(boards), 2, points), np.array([board.turn == BLACK for board in boards]))


def with_constants(stones: np.ndarray, black_to_move: np.ndarray) -> np.ndarray:
    """(boards, 2, points) of own and other stones, and the two planes that do not depend on stones."""
    seen = np.ones((len(stones), stones.shape[2], PLANES), np.float32)
    seen[:, :, :2] = stones.transpose(0, 2, 1)
    seen[:, :, 3] = np.where(black_to_move, 1.0, -1.0)[:, None]
    return seen


def forward(weights: Weights, seen: np.ndarray) -> Pass:
    boards, points, _ = seen.shape
    size = round(points**0.5)
    columns_first = columns(seen, size)
    hidden_first = np.maximum(columns_first @ weights.first + weights.first_bias, 0)
    columns_second = columns(hidden_first.reshape(boards, points, -1), size)
    hidden_second = np.maximum(columns_second @ weights.second + weights.second_bias, 0)
    by_point = (hidden_second @ weights.heads + weights.heads_bias).reshape(boards, points, 2)
    logits = np.empty((boards, points + 1), by_point.dtype)
    logits[:, :points] = by_point[:, :, 0]
    logits[:, points] = hidden_second.reshape(boards, points, -1).mean(axis=1) @ weights.passing[:-1] + weights.passing[-1]
    owners = np.tanh(by_point[:, :, 1])
    value_inputs = np.ones((boards, 3), owners.dtype)
    value_inputs[:, 0], value_inputs[:, 1] = owners.sum(axis=1), seen[:, 0, 3]
    return Pass(
        columns_first, hidden_first, columns_second, hidden_second, owners, value_inputs, logits, np.tanh(value_inputs @ weights.value)
    )


def evaluate(weights: Weights, boards: Sequence[Board]) -> tuple[np.ndarray, np.ndarray]:
    """Of each board the priors of all moves, the pass last, not yet narrowed to legal ones, and the value."""
    found = forward(weights, planes(boards))
    priors = np.exp(found.logits - found.logits.max(axis=1, keepdims=True))
    return priors, found.values


def write_checkpoint(path: Path, weights: Weights, about: dict[str, Any]) -> None:
    """The weights and, as JSON, what they come from. The same content gives the same bytes."""
    note = np.array(json.dumps({"schema": SCHEMA, **about}, sort_keys=True, allow_nan=False))
    np.savez(path, about=note, **weights.arrays())


def read_checkpoint(path: Path, name: str) -> tuple[Weights, dict[str, Any]]:
    """Weights and what they come from. Raises JobError where the file, called `name` in messages, is no checkpoint."""
    try:
        refuse_large_members(path, MAX_CHECKPOINT_BYTES)
        with np.load(path, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            arrays = {key: np.asarray(stored[key], np.float32) for key in Weights.__dataclass_fields__}
    except OSError as exc:
        raise JobError(f"{name}: {exc.strerror or exc}") from exc
    except (ValueError, KeyError, RecursionError, zipfile.BadZipFile, EOFError) as exc:
        raise JobError(f"{name} is no checkpoint: {exc}") from exc
    weights = Weights(**arrays)
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        raise JobError(f"{name} is no checkpoint of schema {SCHEMA}")
    shapes = {key: array.shape for key, array in arrays.items()}
    channels = arrays["first_bias"].size
    if not 1 <= channels <= MOST_CHANNELS or shapes != {key: array.shape for key, array in random_weights(channels, [0]).arrays().items()}:
        raise JobError(f"{name} is no checkpoint: its arrays do not fit each other")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise JobError(f"{name}: a weight is not a finite number")
    return weights, about


def schema_of(path: Path) -> str:
    """What a file says that it is; nothing where it is no .npz file that says it."""
    try:
        refuse_large_members(path, MAX_UNPACKED_BYTES)
        with np.load(path, allow_pickle=False) as stored:
            return str(json.loads(str(stored["about"]))["schema"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, zipfile.BadZipFile, EOFError):
        return ""


def refuse_large_members(path: Path, limit: int) -> None:
    """A small zip may say that it holds much more than memory. Raises ValueError where its members together go beyond `limit` bytes."""
    with zipfile.ZipFile(path) as archive:
        total = sum(member.file_size for member in archive.infolist())
    if total > limit:
        raise ValueError(f"{total:,} bytes when unpacked; {limit:,} at most")
