"""SHA-256 of bytes that come in pieces, worked out beside the one who receives and writes them.

Hashing takes as long as receiving and writing together, and needs neither's result; Python's lock is free during all three. So what is large is
hashed by a thread of its own, and an upload takes as long as the slower of the two. What is small is hashed where it is: a thread costs more.
"""

import hashlib
from queue import Queue
from threading import Thread
from types import TracebackType
from typing import Self

WAITING = 8  # pieces of at most 1 MiB that were taken and are not hashed yet: so much memory it takes
SMALL = 4_194_304  # bytes up to which no thread is begun


class HashBeside:
    """`with HashBeside() as digest`: `update` with pieces that nobody changes later, then `hexdigest`. Its thread ends with the block."""

    def __init__(self) -> None:
        self.count = 0
        self._digest = hashlib.sha256()
        self._pieces: Queue[bytes | None] = Queue(WAITING)
        self._thread: Thread | None = None

    def update(self, piece: bytes) -> None:
        self.count += len(piece)
        if self._thread is not None:
            self._pieces.put(piece)
            return
        self._digest.update(piece)
        if self.count >= SMALL:
            self._thread = Thread(target=self._hash_all, name="hash beside", daemon=True)
            self._thread.start()

    def hexdigest(self) -> str:
        self._end()
        return self._digest.hexdigest()

    def _hash_all(self) -> None:
        while (piece := self._pieces.get()) is not None:
            self._digest.update(piece)

    def _end(self) -> None:
        if self._thread is not None:
            self._pieces.put(None)
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()
