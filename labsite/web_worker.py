"""gunicorn's threaded worker, with an end to its patience: a client that neither sends nor takes anything gives its thread back.

gunicorn waits for a request's bytes without a limit, so that a few clients who stop in the middle of a request would hold every thread. Here
a silent client counts as one that has hung up: what it began to send ends there, which every reader of a body must bear anyway. A client that
is slow but steady is served.
"""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from gunicorn.http.body import Body, LengthReader  # type: ignore[import-untyped]  # gunicorn has no types
from gunicorn.workers.gthread import TConn, ThreadWorker  # type: ignore[import-untyped]  # gunicorn has no types

SILENCE_SECONDS = 10.0  # between two pieces of a request
READER_SECONDS = 60.0  # in which a client takes no piece of its answer
SMALL_READ = 16_384  # bytes: what is asked for in such pieces is gunicorn's to read ahead
LARGEST_READ = 1_048_576
SILENCE_VARIABLE = "LABSITE_SILENCE_SECONDS"


class Connection(socket.socket):
    """An accepted connection. `blocking` means for it: so long as the client is not silent for too long."""

    def __init__(self, accepted: socket.socket, silence: float = SILENCE_SECONDS, reader: float = READER_SECONDS) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._silence = silence
        self._reader = reader

    def setblocking(self, flag: bool, /) -> None:
        self.settimeout(self._silence if flag else 0.0)

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """What has come; nothing, as after its end, when nothing came in time."""
        try:
            return super().recv(size, flags)
        except TimeoutError:
            self._hang_up()
            return b""

    def sendall(self, content: Any, flags: int = 0, /) -> None:
        """Send all of it, however long that takes, as long as the client goes on taking it. (socket's own counts the time of the whole.)"""
        with self._until_unread():
            rest = memoryview(content).cast("B")
            while rest:
                rest = rest[self.send(rest, flags) :]

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        with self._until_unread():
            return super().sendfile(file, offset, count)

    @contextmanager
    def _until_unread(self) -> Iterator[None]:
        before = self.gettimeout()
        self.settimeout(self._reader)
        try:
            yield
        except TimeoutError as silence:
            self._hang_up()
            raise ConnectionResetError(errno.ECONNRESET, "the client does not take its answer") from silence
        finally:
            self.settimeout(before)

    def _hang_up(self) -> None:
        # Not closed: gunicorn does that, and waits for the client no longer where both directions are shut.
        with suppress(OSError):  # the client was faster
            self.shutdown(socket.SHUT_RDWR)


class DirectBody(Body):
    """A request's body of a known length, read from the connection itself. gunicorn's own puts every piece through two buffers and slices each
    time what it has: a MiB takes 3.5 ms of a processor so, and 0.5 ms here. Everything else of it is gunicorn's."""

    def read(self, size: int | None = None) -> bytes:
        """As many bytes as are asked for, fewer only where the client's end came first."""
        wanted = min(self.getsize(size), self.reader.length)
        if self.buf.tell() or wanted < SMALL_READ:  # what `readline` has read ahead comes first, and is gunicorn's
            read: bytes = super().read(size)
            return read
        unreader = self.reader.unreader
        ahead: bytes = unreader.take_buffered()
        pieces, left = [ahead[:wanted]], wanted - len(ahead[:wanted])
        if len(ahead) > wanted:
            unreader.unread(ahead[wanted:])
        try:
            while left and (piece := unreader.sock.recv(min(left, LARGEST_READ))):
                pieces.append(piece)
                left -= len(piece)
        except BaseException:
            self.failed = True
            raise
        self.reader.length -= wanted - left
        return b"".join(pieces)


class Worker(ThreadWorker):
    """`--worker-class labsite.web_worker.Worker`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.silence = float(os.environ.get(SILENCE_VARIABLE) or SILENCE_SECONDS)

    @property
    def worker_connections(self) -> int:
        """How many clients this process takes on: those whom its threads serve, the one that is next, and those who ask nothing at the moment. Others
        wait with the kernel, where whichever process has a thread first finds them: whoever was taken could be served by this one alone."""
        idle = len(self.keepalived_conns) + len(self.pending_conns)
        return min(self._most_connections, int(self.cfg.threads) + 1 + idle)

    @worker_connections.setter
    def worker_connections(self, most: int) -> None:
        self._most_connections = most

    def handle_request(self, req: Any, conn: TConn) -> Any:
        if isinstance(req.body.reader, LengthReader) and not req.body.buf.tell():
            req.body = DirectBody(req.body.reader)
        return super().handle_request(req, conn)

    def enqueue_req(self, conn: TConn) -> None:
        if not isinstance(conn.sock, Connection):
            conn.sock = Connection(conn.sock, self.silence)
        super().enqueue_req(conn)
