"""Signed checkpoints of a chain: lines in a file that no role of the database can reach, so that even a whole rewrite of the record shows.

One line is JSON `{workspace, count, head, time, key, signature}`: the chain's length and last hash, when that was seen (UTC), the public
key (hex) and the Ed25519 signature (RFC 8032) over the canonical JSON of the rest. The file is `<checkpoints>/<workspace hex>.jsonl`, mode
0600, added to only.
"""

import fcntl
import json
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings

EVERY_EVENTS = 100
EVERY_SECONDS = 60
SITE = "site"  # name of the installation's own chain
_TAIL_BYTES = 4096  # a line has under 500


@dataclass(frozen=True, slots=True)
class Checkpoint:
    workspace: str  # hex of the workspace's key, or "site"
    count: int
    head: str
    time: str
    key: str
    signature: str

    @property
    def at(self) -> datetime:
        return datetime.fromisoformat(self.time)

    def is_signed(self, key: Ed25519PublicKey) -> bool:
        """Was this line written by the holder of `key`, for these values?"""
        try:
            key.verify(bytes.fromhex(self.signature), _signed_bytes(self))
        except (InvalidSignature, ValueError):
            return False
        return True


def place(chain: str) -> Path:
    """The file of a chain's checkpoints: `chain` is `<workspace>.hex`, or SITE."""
    return settings.CHECKPOINTS / f"{chain}.jsonl"


def name_of(workspace_id: uuid.UUID) -> str:
    return workspace_id.hex


def public_key() -> Ed25519PublicKey:
    """The key that checkpoints are checked against; from the file, not from the database, where a rewriter could change it."""
    return settings.CHECKPOINT_KEY().public_key()


def public_key_hex() -> str:
    return public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def read(chain: str) -> tuple[list[Checkpoint], int]:
    """All checkpoints in the order written, and how many lines cannot be read (a line torn by a power cut)."""
    try:
        lines = place(chain).read_bytes().splitlines()
    except FileNotFoundError:
        return [], 0
    parsed = [_parse(line) for line in lines]
    found = [checkpoint for checkpoint in parsed if checkpoint is not None]
    return found, len(parsed) - len(found)


def last(chain: str) -> Checkpoint | None:
    """The newest checkpoint, read from the end of the file."""
    try:
        with place(chain).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().splitlines()
    except FileNotFoundError:
        return None
    return next((checkpoint for checkpoint in map(_parse, reversed(lines)) if checkpoint is not None), None)


def is_due(chain: str, *, count: int, now: datetime) -> bool:
    """Does a chain of `count` events want a checkpoint: 100 new events, or any new one and 60 s since the last?"""
    newest = last(chain)
    if newest is None:
        return count > 0
    fresh = count - newest.count
    return fresh >= EVERY_EVENTS or (fresh > 0 and (now - newest.at).total_seconds() >= EVERY_SECONDS)


def append(chain: str, grown: Callable[[Checkpoint | None], tuple[int, str] | None]) -> Checkpoint | None:
    """Sign and add a line. `grown` gets the newest checkpoint and answers the chain's length and head; None: there is nothing to add.

    One writer at a time (flock); the line is on disk when this returns.
    """
    path = place(chain)
    with _opened(path) as descriptor:
        state = grown(last(chain))
        if state is None:
            return None
        key = settings.CHECKPOINT_KEY()
        draft = Checkpoint(
            workspace=chain,
            count=state[0],
            head=state[1],
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            key=public_key_hex(),
            signature="",
        )
        signed = Checkpoint(**{**asdict(draft), "signature": key.sign(_signed_bytes(draft)).hex()})
        line = json.dumps(asdict(signed), sort_keys=True).encode() + b"\n"
        if _is_torn(path):
            line = b"\n" + line
        os.write(descriptor, line)
        os.fsync(descriptor)
        return signed


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    is_new = not path.exists()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
        if is_new:
            _sync_folder(path.parent)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_torn(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _signed_bytes(checkpoint: Checkpoint) -> bytes:
    stated = {name: value for name, value in asdict(checkpoint).items() if name != "signature"}
    return json.dumps(stated, sort_keys=True, separators=(",", ":")).encode()


def _parse(line: bytes) -> Checkpoint | None:
    try:
        stated = json.loads(line)
        checkpoint = Checkpoint(**stated)
        if not isinstance(checkpoint.count, int) or checkpoint.at.tzinfo is None:
            return None
    except (ValueError, TypeError):
        return None
    return checkpoint
