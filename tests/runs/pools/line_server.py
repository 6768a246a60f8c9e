"""A port of loopback that answers each connection by a function of the test's, to see what a client makes of it."""

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class LineServer:
    """`answer` is given each connection in turn, and the request as far as it came at once; `requests` keeps those."""

    def __init__(self, answer: Callable[[socket.socket, bytes], None]) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(20)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                line, _ = self._listener.accept()
                with line, contextlib.suppress(OSError):  # the client has had enough
                    line.settimeout(20)
                    request = line.recv(1 << 16)
                    self.requests.append(request)
                    self._answer(line, request)


def saying(answer: bytes) -> Callable[[socket.socket, bytes], None]:
    """Always the same bytes, and the end of the connection."""
    return lambda line, request: line.sendall(answer)


def http_answer(content: bytes, status: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n{more}\r\n".encode() + content
