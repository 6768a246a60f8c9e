"""A server of files on loopback that can be slow, cut, changing and false, and counts who came."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from runs.fetch import Fetch, Limits


class FileServer:
    """`files` by path. `cuts`: how often a path is cut in its middle; `changes`: paths that are another file at each request; `headers` are sent
    instead of what is true; `statuses` are answered instead of the file; `trickles`: paths sent byte by byte."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.cuts: dict[str, int] = {}
        self.changes: set[str] = set()
        self.headers: dict[str, dict[str, str | None]] = {}
        self.statuses: dict[str, int] = {}
        self.trickles: set[str] = set()
        self.connections = 0
        self.requests: list[tuple[str, str]] = []  # path, Range
        self.port = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def listed(self) -> frozenset[tuple[str, int]]:
        return frozenset({("127.0.0.1", self.port)})

    def fetch(self, path: str, *, most_bytes: int = 10**9, seconds: float = 30) -> Fetch:
        limits = Limits(most_bytes, time.monotonic() + seconds)
        return Fetch(lambda: f"{self.base}{path}", path, listed=self.listed, limits=limits)

    @contextmanager
    def running(self) -> Iterator["FileServer"]:
        server = _Counting(("127.0.0.1", 0), _Handler)
        server.daemon_threads = True
        server.files = self
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Counting(ThreadingHTTPServer):
    files: FileServer

    def verify_request(self, request: Any, client_address: Any) -> bool:
        self.files.connections += 1
        return True


class _Handler(BaseHTTPRequestHandler):
    server: _Counting

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        files = self.server.files
        files.requests.append((path, self.headers.get("Range", "")))
        if path in files.redirects:
            self._head(302, {"Location": files.redirects[path], "Content-Length": "0"})
        elif path in files.statuses:
            self._head(files.statuses[path], {"Content-Length": "0"})
        elif path not in files.files:
            self._head(404, {"Content-Length": "0"})
        else:
            self._file(path, files.files[path])

    def _file(self, path: str, content: bytes) -> None:
        files = self.server.files
        start, end = 0, len(content)
        asked = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        etag = f'"{hash(content):x}-{len(files.requests) if path in files.changes else 0}"'
        headers: dict[str, str | None] = {"ETag": etag}
        if asked[0]:
            start = int(asked[0])
            end = int(asked[2]) + 1 if asked[2] else end
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        if self.headers.get("If-Match", etag) != etag:
            self._head(412, {"Content-Length": "0"})
            return
        body = content[start:end]
        headers["Content-Length"] = str(len(body))
        self._head(206 if asked[0] else 200, headers | files.headers.get(path, {}))
        if files.cuts.get(path, 0) > 0:
            files.cuts[path] -= 1
            body = body[: len(body) // 2]
            self.close_connection = True
        step = 1 if path in files.trickles else len(body) or 1
        try:
            for place in range(0, len(body), step):
                self.wfile.write(body[place : place + step])
                self.wfile.flush()
                if step == 1:
                    time.sleep(0.02)  # what is slow is what is tested
        except OSError:
            return

    def _head(self, status: int, headers: "dict[str, str | None] | dict[str, str]") -> None:
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name of the standard library
        return
