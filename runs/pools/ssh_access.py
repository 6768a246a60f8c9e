"""Where an SSH host is, as whom labsite goes there, and what stands in the way, in words.

What our own files (~/.ssh) and agents say counts for nothing: a connection is made from an `Access` alone.
"""

import asyncio
import logging
from dataclasses import dataclass, field

import asyncssh

from runs.pools.base import NoAnswer, PoolError

CONNECT_SECONDS = 15.0
HOST_KEY_ALGORITHMS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "rsa-sha2-512", "rsa-sha2-256")
KEEPALIVE_SECONDS = 15.0

asyncssh.set_log_level(logging.WARNING)  # a dozen lines for each connection otherwise


class UnreachableError(NoAnswer):
    """The host let us wait in vain."""


@dataclass(frozen=True)
class Access:
    """Where and as whom. `host_key`: public keys in OpenSSH's words, one a line; `private_key`: ours, not encrypted, never shown."""

    host: str
    port: int
    user: str
    host_key: str
    private_key: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"


class _Client(asyncssh.SSHClient):
    """Remembers the host key that was shown and is not pinned, for the sentence about it."""

    shown = ""

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.shown = key.get_fingerprint()
        return False


async def connect(access: Access) -> asyncssh.SSHClientConnection:
    """A new connection with the host key checked; PoolError says in one sentence what stood in the way."""
    pinned, key = pinned_keys(access.host_key), own_key(access.private_key)
    client = _Client()
    signed = {name for one in pinned for name in one.sig_algorithms}  # the host shows the pinned key, where it has several
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncssh.connect(
                access.host,
                access.port,
                username=access.user,
                client_keys=[key],
                known_hosts=(pinned, [], []),
                client_factory=lambda: client,
                server_host_key_algs=sorted(HOST_KEY_ALGORITHMS, key=lambda name: name.encode() not in signed),
                config=None,
                agent_path=None,
                password=None,
                preferred_auth=("publickey",),
                gss_host=None,
                compression_algs=["none"],
                keepalive_interval=KEEPALIVE_SECONDS,
            )
    except asyncssh.HostKeyNotVerifiable as error:
        if not pinned:
            raise PoolError(f"no host key is pinned for {access.host}; it shows {client.shown}: compare it there, then pin it") from error
        raise PoolError(f"{access.host} shows another host key ({client.shown}) than the one pinned; nothing was sent to it") from error
    except asyncssh.PermissionDenied as error:
        raise PoolError(f"{access} refused the key {key.get_fingerprint()}") from error
    except asyncssh.KeyExchangeFailed as error:
        raise PoolError(f"{access.host} and labsite share no safe way of encryption, or no kind of host key") from error
    except TimeoutError as error:
        raise UnreachableError(f"{access} did not answer within {CONNECT_SECONDS:.0f} s") from error
    except (asyncssh.Error, OSError) as error:
        raise NoAnswer(f"{access} cannot be reached: {reason_of(error)}") from error


def pinned_keys(text: str) -> list[asyncssh.SSHKey]:
    """Public keys, one a line, also as in a known_hosts file; PoolError where one cannot be read."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            kind = next((place for place, word in enumerate(words[:2]) if word.startswith(("ssh-", "ecdsa-", "sk-"))), 0)
            try:
                found.append(asyncssh.import_public_key(" ".join(words[kind:])))
            except (asyncssh.KeyImportError, ValueError) as error:
                raise PoolError("the pinned host key cannot be read; it looks like: ssh-ed25519 AAAA…") from error
    return found


def own_key(text: str) -> asyncssh.SSHKey:
    """PoolError where it cannot be read; the reason does not quote it."""
    try:
        return asyncssh.import_private_key(text)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError):
        raise PoolError("the private key cannot be read; it must be one without a passphrase") from None


def reason_of(error: Exception) -> str:
    """An error of the network in a few words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror or str(error) if isinstance(error, OSError) else str(error)) or type(error).__name__
