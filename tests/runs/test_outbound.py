"""Whom labsite talks to: nobody inside, however the address is written, wherever it leads, whatever the name means a moment later."""

import ipaddress
import socket
import time
from typing import Any

import pytest

from runs.fetch import Fetch, FetchFailed, Limits
from runs.outbound import Forbidden, addresses_of, is_inside, read_listed, target_of
from tests.runs.file_server import FileServer

INSIDE = (
    "127.0.0.1 127.9.9.9 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 "
    "100.100.100.200 192.0.0.1 192.0.0.192 192.0.2.7 198.18.0.1 198.51.100.1 203.0.113.1 168.63.129.16 224.0.0.1 "
    "239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe "
    "::ffff:0:127.0.0.1 fe80::1 fec0::1 fc00::1 fd00:ec2::254 ff02::1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1 "
    "2002:7f00:1:: 2002:a00:1::1 2001:db8::1 2001::1 2001:0:4136:e378:8000:63bf:80ff:fffe 100::1 3fff::1 5f00::1 "
)
OUTSIDE = ["93.184.215.14", "1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "64:ff9b::808:808", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("text", INSIDE.split())
def test_inside(text: str) -> None:
    assert is_inside(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", OUTSIDE)
def test_outside(text: str) -> None:
    assert not is_inside(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "LOCALHOST", "localhost.", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "[::1]", "[::]"),
        *(
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[0:0:0:0:0:ffff:7f00:1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "①②⑦.⓪.⓪.①",
            "127。0。0。1",
        ),
        *("169.254.169.254", "[fd00:ec2::254]", "0x7f.1", "017700000001", "[::127.0.0.1]", "127.0.0.1.", "255.255.255.255", "224.0.0.1"),
    ],
)
def test_no_spelling_of_inside_is_reached(host: str, server: FileServer) -> None:
    """The listener decides: not one connection comes, whatever the answer says."""
    server.files["/a"] = b"secret"
    fetch = Fetch(lambda: f"https://{host}:{server.port}/a", "it", listed=frozenset(), limits=Limits(10**6, time.monotonic() + 5))
    with pytest.raises(FetchFailed):
        list(fetch.chunks())
    assert server.connections == 0


@pytest.mark.parametrize(
    "address",
    [
        *(
            "http://example.org/a",
            "ftp://example.org/a",
            "file:///etc/passwd",
            "gopher://x/",
            "https:///a",
            "https://",
            "//example.org/a",
            "a.csv",
        ),
        *(
            "https://user:word@example.org/",
            "https://user@127.0.0.1/",
            "https://example.org\\@127.0.0.1/",
            "https://exa mple.org/",
            "https://[::1/",
        ),
        *("https://[fe80::1%25lo]/", "https://example.org:99999/", "https://example.org/\r\nHost: x", "https://example.org/" + "a" * 2000),
        *("javascript:alert(1)", "data:,x", "HTTP://127.0.0.1/", "https://" + "a" * 300 + "/"),
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(Forbidden):
        target_of(address)


def test_listed_pairs_are_read_and_their_neighbours_are_not() -> None:
    listed = read_listed(["127.0.0.1:9000", "[::1]:9000", "Minio.Inner.:443"])
    assert target_of("http://127.0.0.1:9000/b/k", listed).shown == "http://127.0.0.1:9000/b/k"
    assert addresses_of(target_of("https://127.0.0.1:9000/", listed), listed) == [ipaddress.ip_address("127.0.0.1")]
    assert ("minio.inner", 443) in listed
    for address in ("http://127.0.0.1:9001/", "http://localhost:9000/", "http://127.0.0.2:9000/"):
        with pytest.raises(Forbidden, match="list"):
            target_of(address, listed)
    with pytest.raises(Forbidden, match="an address inside"):
        addresses_of(target_of("https://127.0.0.1:9001/", listed), listed)
    for wrong in ("127.0.0.1", "host:", ":9", "host:0", "host:70000", "host:x"):
        with pytest.raises(ValueError, match="no host:port"):
            read_listed([wrong])


def test_a_redirect_to_the_inside_is_not_followed(server: FileServer) -> None:
    other = FileServer()
    with other.running():
        other.files["/a"] = b"secret"
        server.redirects["/a"] = f"http://127.0.0.1:{other.port}/a"
        fetch = server.fetch("/a")
        with pytest.raises(FetchFailed, match="in the clear"):
            list(fetch.chunks())
        server.redirects["/a"] = f"https://127.0.0.1:{other.port}/a"
        with pytest.raises(FetchFailed, match="an address inside"):
            list(server.fetch("/a").chunks())
        assert other.connections == 0
        server.redirects["/a"] = "/a"
        with pytest.raises(FetchFailed, match="passed on more than 5 times"):
            list(server.fetch("/a").chunks())


def test_a_name_that_changes_its_mind_is_asked_once(monkeypatch: pytest.MonkeyPatch, server: FileServer) -> None:
    """Rebinding: the name is outside as it is looked at, inside a moment later. The connection goes to what was looked at."""
    answers = iter(["93.184.215.14", "127.0.0.1", "127.0.0.1"])
    dialled: list[Any] = []

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    def dial(address: tuple[str, int], timeout: float = 0) -> socket.socket:
        dialled.append(address)
        raise OSError("not in a test")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", dial)
    monkeypatch.setattr("runs.fetch.PAUSE_SECONDS", 0)
    fetch = Fetch(lambda: f"https://rebind.example:{server.port}/a", "it", listed=frozenset(), limits=Limits(10**6, time.monotonic() + 5))
    with pytest.raises(FetchFailed):
        list(fetch.chunks())
    assert dialled == [("93.184.215.14", server.port)]


def test_a_name_with_one_foot_inside_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in ("93.184.215.14", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(Forbidden, match=r"10\.0\.0\.1"):
        addresses_of(target_of("https://example.org/"))
