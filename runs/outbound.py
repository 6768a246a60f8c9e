"""Whom labsite may talk to when a person names an address: nobody inside, at any step of the way. Pure.

A name is resolved once, every address it has is looked at, and the connection goes to the address that was looked at, so that a name which
means something else a moment later changes nothing. A site operator lists the inner hosts that may be read, by host and port.
"""

import ipaddress
import socket
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

Listed = Collection[tuple[str, int]]
IP = ipaddress.IPv4Address | ipaddress.IPv6Address
PORTS = {"https": 443, "http": 80}
MAX_ADDRESS = 2000
# Clouds keep what opens a machine's account behind addresses that are public by their number: Azure's and Oracle's.
METADATA = frozenset(ipaddress.ip_address(text) for text in ("168.63.129.16", "192.0.0.192"))
NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
OUTSIDE_V6 = ipaddress.ip_network("2000::/3")
DOCUMENTS_V6 = ipaddress.ip_network("3fff::/20")  # RFC 9637, newer than Python's own lists


class Forbidden(ValueError):  # an answer for people
    """An address that labsite does not read; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class Target:
    """`host` in lower case and ASCII, without the dot at its end; `path` with its query, as it goes over the wire."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def shown(self) -> str:
        """For people: without the query, which may hold what opens it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if PORTS[self.scheme] == self.port else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path.partition('?')[0]}"


def target_of(address: str, listed: Listed = ()) -> Target:
    """The parts of an address. Forbidden but for https, or http to what is listed; without user and password."""
    if len(address) > MAX_ADDRESS or any(ord(character) <= 32 or ord(character) == 127 for character in address):
        raise Forbidden(f"An address has up to {MAX_ADDRESS:,} characters, and neither blanks nor control characters.")
    try:
        parts = urlsplit(address)
        name, port = parts.hostname or "", parts.port
        host = (name if ":" in name else name.encode("idna").decode()).lower().rstrip(".")
    except (ValueError, UnicodeError) as error:
        raise Forbidden("This is no address that can be read; write https://host/path.") from error
    if parts.scheme not in PORTS or not host:
        raise Forbidden("Write an address that begins with https:// and names a host.")
    if "@" in parts.netloc or "\\" in address:
        raise Forbidden("An address has no user or password in it; what opens a bucket is kept as a secret.")
    if "%" in host:
        raise Forbidden("An address names a host, not a network interface.")
    query = f"?{quote(parts.query, safe='/%:?&=+,;@!$()*~-._')}" if parts.query else ""
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    target = Target(parts.scheme, host, port if port is not None else PORTS[parts.scheme], f"{path}{query}")
    if target.scheme == "http" and (target.host, target.port) not in listed:
        raise Forbidden(f"{target.shown[:200]} would be read in the clear; use https, or have a site operator list {host}:{target.port}.")
    return target


def addresses_of(target: Target, listed: Listed = ()) -> list[IP]:
    """Where the host lies, looked up now. Forbidden where any of it is inside, unless the pair is listed; OSError where nobody knows the name."""
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))
    if (target.host, target.port) in listed:
        return addresses
    inside = next((address for address in addresses if is_inside(address)), None)
    if inside is not None:
        lies = "is" if target.host == str(inside) else f"is {inside},"
        raise Forbidden(
            f"{target.host} {lies} an address inside, which labsite does not read for people. A site operator can list "
            f"{target.host}:{target.port} in LABSITE_IMPORT_HOSTS."
        )
    return addresses


def is_inside(address: IP) -> bool:
    """Is this loopback, private, shared, link-local, multicast, reserved, a cloud's metadata service, or one of these in the clothes of IPv6?"""
    if isinstance(address, ipaddress.IPv6Address):
        worn = _worn(address)
        if worn is not None:
            return is_inside(worn)
        if address not in OUTSIDE_V6 or address in DOCUMENTS_V6:
            return True
    return not address.is_global or address.is_multicast or address.is_reserved or address in METADATA


def _worn(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for: mapped, NAT64, 6to4, Teredo."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if any(address in network for network in NAT64):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.sixtofour is not None:
        return address.sixtofour
    return address.teredo[1] if address.teredo is not None else None


def read_listed(entries: Collection[str]) -> frozenset[tuple[str, int]]:
    """Pairs as an operator writes them, `host:port` or `[address]:port`. ValueError names the one that is none."""
    pairs = set()
    for entry in entries:
        host, colon, port = entry.strip().rpartition(":")
        if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise ValueError(f"{entry!r} is no host:port")
        pairs.add((host.strip("[]").lower().rstrip("."), int(port)))
    return frozenset(pairs)
