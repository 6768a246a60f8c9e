"""Reading one file from another machine: streamed, bounded in bytes and time, gone on with where the line broke, refused where it changes. Pure.

What is read is what one version of the file holds: a second look after the last byte compares ETag, date and length with the first.
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urljoin

from runs.outbound import PORTS, Forbidden, Listed, Target, addresses_of, target_of

CHUNK = 1_048_576
SILENCE_SECONDS = 30.0
PAUSE_SECONDS = 1.0
MAX_REDIRECTS = 5
MAX_RESUMES = 3
REDIRECTS = frozenset({301, 302, 303, 307, 308})
AGENT = "labsite-import"


class FetchFailed(Exception):  # an answer for people
    """The file could not be read; the message is a sentence. Nothing of it is kept."""


class _Broken(Exception):  # the line, not the file
    """The line broke; the rest can be asked for where the file says which version it is."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`most_bytes` of one file; `deadline` on the monotonic clock, of everything."""

    most_bytes: int
    deadline: float


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What a server says of the version of a file that it sends."""

    etag: str
    modified: str
    total: int | None

    def differs(self, other: "_Stamp") -> bool:
        pairs = ((self.etag, other.etag), (self.modified, other.modified), (self.total, other.total))
        return any(mine != theirs for mine, theirs in pairs if mine not in ("", None) and theirs not in ("", None))

    @property
    def is_strong(self) -> bool:
        return bool(self.etag) and not self.etag.startswith("W/")


class Fetch:
    """One file. `sign` gives its address anew for each request, since a signed one expires; `shown` is what people call it."""

    def __init__(
        self, sign: Callable[[], str], shown: str, *, listed: Listed, limits: Limits, context: ssl.SSLContext | None = None
    ) -> None:
        self._sign = sign
        self.shown = shown[:200]
        self._listed = listed
        self._limits = limits
        self._context = context or ssl.create_default_context()
        self._first: _Stamp | None = None
        self._line: socket.socket | None = None

    @property
    def etag(self) -> str:
        return self._first.etag if self._first else ""

    def chunks(self) -> Iterator[bytes]:
        """The bytes, in pieces of at most 1 MiB. Raises FetchFailed, before the end too; whoever reads keeps nothing then."""
        timer = threading.Timer(self.left(), self._shut)  # a silent line ends by its timeout, a trickling one by this
        timer.daemon = True
        timer.start()
        try:
            yield from self._whole()
        finally:
            timer.cancel()

    def _whole(self) -> Iterator[bytes]:
        read, breaks = 0, 0
        while True:
            try:
                for chunk in self._part(read):
                    read += len(chunk)
                    if read > self._limits.most_bytes:
                        raise FetchFailed(f"{self.shown} has more than {self._limits.most_bytes:,} bytes, the most that is taken here.")
                    yield chunk
                break
            except _Broken as broken:
                breaks += 1
                may_go_on = not read or (self._first is not None and self._first.is_strong)
                if breaks > MAX_RESUMES or not may_go_on:
                    raise FetchFailed(f"Reading {self.shown} broke off after {read:,} bytes: {broken}. Ask for it again.") from broken
                time.sleep(min(PAUSE_SECONDS * breaks, max(self.left(), 0)))
        self._look_again()

    def _part(self, start: int) -> Iterator[bytes]:
        headers = {"Range": f"bytes={start}-"} if start else {}
        if start and self._first is not None:
            headers["If-Match"] = self._first.etag
        with _Answer(self, headers) as answer:
            stamp = answer.stamp()
            if start:
                if answer.status != 206 or stamp.differs(self._first or stamp) or answer.begins_at != start:
                    raise self._changed()
            else:
                answer.demand_whole()
                self._first = stamp
                if stamp.total is not None and stamp.total > self._limits.most_bytes:
                    raise FetchFailed(
                        f"{self.shown} has {stamp.total:,} bytes; {self._limits.most_bytes:,} is the most that is taken here."
                    )
            count = start
            for chunk in answer.chunks():
                count += len(chunk)
                yield chunk
            if stamp.total is not None and count < stamp.total:
                raise _Broken(f"the line was closed, {stamp.total - count:,} bytes are missing")

    def _look_again(self) -> None:
        first = self._first
        if first is None or first == _Stamp("", "", None):
            return
        try:
            with _Answer(self, {"Range": "bytes=0-0"}) as answer:
                if answer.status not in (200, 206) or answer.stamp().differs(first):
                    raise self._changed()
        except _Broken as broken:
            raise FetchFailed(f"Whether {self.shown} stayed the same while it was read cannot be told: {broken}.") from broken

    def _changed(self) -> FetchFailed:
        return FetchFailed(f"{self.shown} changed while it was read; nothing was kept. Import it once it stays as it is.")

    def left(self) -> float:
        left = self._limits.deadline - time.monotonic()
        if left <= 0:
            raise FetchFailed(f"Reading {self.shown} took too long; nothing was kept.")
        return left

    def open(self, headers: dict[str, str]) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Ask for the file, along redirects, each of which is looked at as the first address was."""
        address = self._sign()
        for _ in range(MAX_REDIRECTS + 1):
            try:
                target = target_of(address, self._listed)
                connection = self._connected(target)
            except Forbidden as error:
                raise FetchFailed(str(error)) from error
            try:
                connection.request("GET", target.path, headers={"User-Agent": AGENT, "Accept-Encoding": "identity", **headers})
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self.left()
                raise _Broken(f"{target.host} gave no answer ({_words(error)})") from error
            if response.status not in REDIRECTS:
                return connection, response
            response.close()
            connection.close()
            try:
                address = urljoin(address, response.headers.get("Location", ""))
            except ValueError as error:
                raise FetchFailed(f"{self.shown} is passed on to what is no address.") from error
        raise FetchFailed(f"{self.shown} was passed on more than {MAX_REDIRECTS} times.")

    def _connected(self, target: Target) -> http.client.HTTPConnection:
        seconds = min(SILENCE_SECONDS, self.left())
        try:
            addresses = addresses_of(target, self._listed)
        except OSError as error:
            raise FetchFailed(f"Nobody knows where {target.host} is.") from error
        fault: OSError | None = None
        for address in addresses:
            try:
                line = self._dialled(str(address), target, seconds)
            except ssl.SSLCertVerificationError as error:
                raise FetchFailed(f"{target.host} does not prove that it is {target.host}: {error.verify_message}.") from error
            except OSError as error:
                fault = error
                continue
            connection = http.client.HTTPConnection(target.host, target.port, timeout=seconds)
            connection.sock = line
            connection.default_port = PORTS[target.scheme]  # the Host line names a port only where it is another
            return connection
        raise _Broken(f"{target.host} cannot be reached ({_words(fault)})") from fault

    def _dialled(self, address: str, target: Target, seconds: float) -> socket.socket:
        self._line = line = socket.create_connection((address, target.port), timeout=seconds)
        try:
            if target.scheme == "https":
                self._line = line = secured = self._context.wrap_socket(line, server_hostname=target.host, do_handshake_on_connect=False)
                secured.do_handshake()
        except BaseException:
            line.close()
            raise
        return line

    def _shut(self) -> None:
        """The time is up: whatever waits for the other side waits no more."""
        with suppress(OSError):
            if self._line is not None:
                self._line.shutdown(socket.SHUT_RDWR)

    def failed(self, response: http.client.HTTPResponse) -> Exception:
        told = f"{response.status} {response.reason}".strip()[:80]
        if response.status >= 500 or response.status == 429:
            return _Broken(f"it answered {told}")
        if response.status == 412:
            return self._changed()
        return FetchFailed(f"{self.shown} cannot be read: it answered {told}.")


class _Answer:
    """One response of the right kind, closed at the end."""

    def __init__(self, fetch: Fetch, headers: dict[str, str]) -> None:
        self._fetch = fetch
        self._connection, self._response = fetch.open(headers)
        self.status = self._response.status

    def __enter__(self) -> "_Answer":
        try:
            if self.status not in (200, 206):
                raise self._fetch.failed(self._response)
            coding = self._response.headers.get("Content-Encoding", "identity").strip().lower()
            if coding not in ("", "identity"):
                raise FetchFailed(f"{self._fetch.shown} comes packed as {coding[:40]}, although it was asked for as it is.")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()
        self._connection.close()

    def demand_whole(self) -> None:
        if self.status != 200:
            raise FetchFailed(f"{self._fetch.shown} cannot be read: it answered with a part of itself.")
        if self._response.length is None and not self._response.chunked:
            raise FetchFailed(f"{self._fetch.shown} does not say how long it is, so one that was cut could not be told from a whole one.")

    def stamp(self) -> _Stamp:
        headers = self._response.headers
        total = self._response.length
        if self.status == 206:
            size = headers.get("Content-Range", "").rpartition("/")[2]
            total = int(size) if size.isdecimal() and len(size) < 20 else None
        return _Stamp(headers.get("ETag", "")[:200], headers.get("Last-Modified", "")[:80], total)

    @property
    def begins_at(self) -> int | None:
        start = self._response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
        return int(start) if start.isdecimal() and len(start) < 20 else None

    def chunks(self) -> Iterator[bytes]:
        while True:
            try:
                chunk = self._response.read1(CHUNK)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._fetch.left()
                raise _Broken(_words(error)) from error
            if not chunk:
                self._fetch.left()
                return
            yield chunk


def _words(error: BaseException | None) -> str:
    if isinstance(error, TimeoutError):
        return f"silent for {SILENCE_SECONDS:.0f} s"
    text = getattr(error, "strerror", None)
    return str(text) if text else type(error).__name__
