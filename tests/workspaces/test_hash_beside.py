"""What is hashed beside its writing has the hash and the bytes that it would have had, and what fails leaves no thread and no file."""

import hashlib
import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from workspaces.hash_beside import SMALL, HashBeside
from workspaces.local_store import LocalStore

LAB = uuid.UUID(int=7)
MIB = 1_048_576


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "hash beside"]


@pytest.mark.parametrize("count", [0, 1, SMALL - 1, SMALL, SMALL + 1, 40 * MIB + 17])
def test_it_is_the_hash_of_the_bytes_however_they_come(tmp_path: Path, count: int) -> None:
    content = os.urandom(count)

    def chunks() -> Iterator[bytes]:
        for start in range(0, count, MIB):
            yield content[start : start + MIB]

    store = LocalStore(tmp_path)
    sha256, length = store.put_stream(LAB, chunks())
    assert (sha256, length) == (hashlib.sha256(content).hexdigest(), count)
    assert b"".join(store.open(LAB, sha256)) == content
    assert threads() == []


def test_what_breaks_off_leaves_neither_file_nor_thread(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(20):
            yield b"x" * MIB
        assert threads() == ["hash beside"], "what is large is hashed by a thread of its own"
        raise ConnectionResetError

    store = LocalStore(tmp_path)
    with pytest.raises(ConnectionResetError):
        store.put_stream(LAB, chunks())
    assert threads() == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_is_small_begins_no_thread() -> None:
    with HashBeside() as digest:
        digest.update(b"x" * (SMALL - 1))
        assert threads() == []
    assert digest.hexdigest() == hashlib.sha256(b"x" * (SMALL - 1)).hexdigest()
