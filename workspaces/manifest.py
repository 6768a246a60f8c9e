"""The manifest of a dataset version: path, SHA-256 and bytes of every file, by path; its one hash, and the proof of one file. Pure.

Form 2, of every new version, is the root of a Merkle tree (docs/version_proof.md). Form 1, of older ones, is the SHA-256 of the whole list.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from workspaces import merkle

LIST, TREE = 1, 2


class Entry(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Proof:
    """That a version whose hash is `root` holds `entry` as file number `place` (from 0) of `count`; `hashes` lead there, lowest first."""

    entry: str
    place: int
    count: int
    hashes: tuple[str, ...]
    root: str


def hash_of(files: Iterable[Entry], form: int) -> str:
    """The version's hash in the given form, as hex digits."""
    entries = _sorted(files)
    if form == LIST:
        listed = [[file.path, file.sha256, file.bytes] for file in entries]
        return hashlib.sha256(_canonical(listed)).hexdigest()
    return merkle.root_of([merkle.leaf_hash(_content(file)) for file in entries]).hex()


def proof_of(files: Iterable[Entry], path: str) -> Proof:
    """Raises LookupError where no file has this path."""
    entries = _sorted(files)
    place = next((number for number, file in enumerate(entries) if file.path == path), None)
    if place is None:
        raise LookupError(path)
    leaves = [merkle.leaf_hash(_content(file)) for file in entries]
    hashes = tuple(found.hex() for found in merkle.proof_of(leaves, place))
    return Proof(_content(entries[place]).decode(), place, len(entries), hashes, merkle.root_of(leaves).hex())


def _sorted(files: Iterable[Entry]) -> list[Entry]:
    return sorted(files, key=lambda file: (file.path, file.sha256, file.bytes))


def _content(file: Entry) -> bytes:
    return _canonical([file.path, file.sha256, file.bytes])


def _canonical(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
