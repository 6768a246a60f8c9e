"""Reading a file from another machine: whole or not at all, gone on with where the line broke, never a mixture of two."""

import ssl
import time

import pytest

from runs.fetch import CHUNK, FetchFailed
from tests.runs.file_server import FileServer

CONTENT = bytes(range(256)) * 4096 * 3  # three chunks


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.fetch.PAUSE_SECONDS", 0)


def read(server: FileServer, path: str = "/a", **limits: float) -> bytes:
    return b"".join(server.fetch(path, **limits).chunks())  # type: ignore[arg-type]  # seconds and bytes alike


def test_a_file_comes_whole_and_in_pieces(server: FileServer) -> None:
    server.files["/a"] = CONTENT
    server.redirects["/moved"] = "/a"
    pieces = list(server.fetch("/moved").chunks())
    assert b"".join(pieces) == CONTENT
    assert max(map(len, pieces)) <= CHUNK
    assert server.requests[-1] == ("/a", "bytes=0-0")


@pytest.mark.parametrize(
    "place", ["http://[bad", "https://[::1", "//[", "http://a:99999999/", "http://exa mple/", "\x85", "ftp://a/", "a" * 3000]
)
def test_being_passed_on_to_what_is_no_address_is_said(server: FileServer, place: str) -> None:
    server.redirects["/moved"] = place
    with pytest.raises(FetchFailed):
        read(server, "/moved")


def test_a_broken_line_is_gone_on_with(server: FileServer) -> None:
    server.files["/a"] = CONTENT
    server.cuts["/a"] = 2
    assert read(server) == CONTENT
    starts = [int(asked.split("=")[1].rstrip("-")) for path, asked in server.requests[1:-1]]
    assert starts == [len(CONTENT) // 2, len(CONTENT) * 3 // 4]


def test_a_line_that_always_breaks_is_given_up(server: FileServer) -> None:
    server.files["/a"] = CONTENT
    server.cuts["/a"] = 99
    with pytest.raises(FetchFailed, match="broke off after"):
        read(server)
    assert len(server.requests) == 4


def test_without_a_version_nothing_is_pieced_together(server: FileServer) -> None:
    server.files["/a"] = CONTENT
    server.cuts["/a"] = 1
    server.headers["/a"] = {"ETag": 'W/"weak"'}
    with pytest.raises(FetchFailed, match="broke off"):
        read(server)


def test_a_file_that_changes_is_refused(server: FileServer) -> None:
    server.files["/a"] = CONTENT
    server.changes.add("/a")
    with pytest.raises(FetchFailed, match="changed while it was read"):
        read(server)
    server.cuts["/a"] = 1
    with pytest.raises(FetchFailed, match="changed while it was read"):
        read(server)


def test_a_file_that_grows_is_refused(server: FileServer) -> None:
    server.files["/a"] = CONTENT
    server.headers["/a"] = {"ETag": None}
    pieces = server.fetch("/a").chunks()
    next(pieces)
    server.files["/a"] = CONTENT + b"more"
    with pytest.raises(FetchFailed, match="changed while it was read"):
        list(pieces)


def test_a_file_that_is_gone_at_the_end_is_refused(server: FileServer) -> None:
    server.files["/a"] = CONTENT
    pieces = server.fetch("/a").chunks()
    next(pieces)
    del server.files["/a"]
    with pytest.raises(FetchFailed, match="404"):
        list(pieces)


@pytest.mark.parametrize(
    ("status", "words"), [(404, "404"), (403, "403"), (401, "401"), (416, "416"), (500, "500"), (206, "a part"), (204, "204")]
)
def test_what_is_no_file_is_refused(server: FileServer, status: int, words: str) -> None:
    server.statuses["/a"] = status
    with pytest.raises(FetchFailed, match=words):
        read(server)


def test_more_than_is_taken_is_refused_before_it_comes(server: FileServer) -> None:
    server.files["/a"] = CONTENT
    with pytest.raises(FetchFailed, match="the most that is taken"):
        read(server, most_bytes=1000)
    assert len(server.requests) == 1


def test_what_does_not_say_its_length_or_is_packed_is_refused(server: FileServer) -> None:
    server.files["/a"] = CONTENT
    server.headers["/a"] = {"Content-Length": None}
    with pytest.raises(FetchFailed, match="does not say how long"):
        read(server)
    server.headers["/a"] = {"Content-Encoding": "gzip"}
    with pytest.raises(FetchFailed, match="packed as gzip"):
        read(server)


def test_a_trickle_ends_when_the_time_is_up(server: FileServer) -> None:
    server.files["/a"] = CONTENT
    server.trickles.add("/a")
    began = time.monotonic()
    with pytest.raises(FetchFailed, match="took too long"):
        read(server, seconds=0.5)
    assert time.monotonic() - began < 3


def test_a_host_that_does_not_prove_itself_is_refused(server: FileServer) -> None:
    fetch = server.fetch("/a")
    fetch._sign = lambda: f"https://127.0.0.1:{server.port}/a"
    with pytest.raises(FetchFailed):
        list(fetch.chunks())
    assert ssl.create_default_context().verify_mode == ssl.CERT_REQUIRED
