"""A request's body that is read from the connection itself: the same bytes as gunicorn's own gives, however they come and are asked for."""

import os
import socket
import threading
from collections.abc import Iterator

import pytest
from gunicorn.http.body import LengthReader  # type: ignore[import-untyped]  # gunicorn has no types
from gunicorn.http.unreader import SocketUnreader  # type: ignore[import-untyped]

from labsite.web_worker import DirectBody

CONTENT = os.urandom(700_000)


@pytest.fixture
def line() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def body_of(
    line: tuple[socket.socket, socket.socket], ahead: int, *, length: int = len(CONTENT), more: bytes = b"", hangs_up: bool = False
) -> DirectBody:
    """The head of a request is read in pieces, so that some of the body has come with it: `ahead` bytes."""
    ours, theirs = line
    unreader = SocketUnreader(ours)
    unreader.unread(CONTENT[:ahead])

    def send() -> None:
        theirs.sendall(CONTENT[ahead:length] + more)
        if hangs_up:
            theirs.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    return DirectBody(LengthReader(unreader, length))


@pytest.mark.parametrize("ahead", [0, 1, 8192, 300_000])
@pytest.mark.parametrize("asked", [1, 1000, 16_384, 262_144, 10_000_000, None])
def test_it_gives_the_body_whole_and_nothing_of_what_comes_after(
    line: tuple[socket.socket, socket.socket], ahead: int, asked: int | None
) -> None:
    length = 20_000 if asked == 1 else len(CONTENT)
    ahead = min(ahead, length)
    body = body_of(line, ahead, length=length, more=b"GET / HTTP/1.1\r\n")
    found = b""
    while piece := body.read(asked):
        assert asked is None or len(piece) == min(asked, length - len(found)), "fewer only at its end"
        found += piece
    assert found == CONTENT[:length]
    assert body.reader.unreader.read(16) == b"GET / HTTP/1.1\r\n", "the next request is where it stood"


def test_lines_and_pieces_may_be_mixed(line: tuple[socket.socket, socket.socket]) -> None:
    body = body_of(line, 100)
    first = body.readline()
    assert CONTENT.startswith(first)
    assert first + body.read(100_000) + body.readline() + body.read() == CONTENT


def test_a_client_that_hangs_up_ends_it(line: tuple[socket.socket, socket.socket]) -> None:
    body = body_of(line, 0, length=len(CONTENT) + 5, hangs_up=True)
    assert body.read(262_144) == CONTENT[:262_144]
    assert body.read() == CONTENT[262_144:]
    assert body.read(10) == b""
