"""Where the pages answer: is the address free, and has the site said that it is ready?"""

import http.client
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

from labsite.embedded.home import StartError

LEFT_RUNNING_SECONDS = 10.0
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - names to translate, nothing is bound here


@dataclass(frozen=True)
class Address:
    """Host and port of LABSITE_HOST and LABSITE_PORT; default 127.0.0.1:8000."""

    host: str
    port: int

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Address":
        text = environment.get("LABSITE_PORT") or "8000"
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 65_536):
            raise StartError(f"LABSITE_PORT is {text!r}; it must be a number from 1 to 65535")
        return cls(environment.get("LABSITE_HOST") or "127.0.0.1", int(text))

    @property
    def bind(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{url_of(self.host, str(self.port))}/"

    def refuse_taken(self, left_running: bool) -> None:
        """Raises StartError where another program listens here. After a killed start its web server is given time to end."""
        deadline = time.monotonic() + (LEFT_RUNNING_SECONDS if left_running else 0)
        while error := self._binding_error():
            if time.monotonic() >= deadline:
                raise StartError(f"cannot listen on {self.bind} ({error}); set LABSITE_PORT or LABSITE_HOST to another")
            time.sleep(0.05)

    def _binding_error(self) -> str | None:
        try:
            family = socket.getaddrinfo(self.host or None, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((self.host, self.port))
                probe.listen()
        except OSError as error:
            return error.strerror or str(error)
        return None

    def missing(self) -> str | None:
        """What /readyz still misses, in words; None once it answers 200."""
        host = WILDCARDS.get(self.host, self.host)
        connection = http.client.HTTPConnection(host, self.port, timeout=10)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            body = answer.read(2_000).decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            return f"no answer: {error}"
        finally:
            connection.close()
        return None if answer.status == 200 else f"{answer.status} {_compact(body)}"


def url_of(host: str, port: str) -> str:
    """Where the site is reached on this machine, as LABSITE_HOST and LABSITE_PORT (or their defaults) say; no slash at its end."""
    reached = WILDCARDS.get(host, host)
    return f"http://[{reached}]:{port or '8000'}" if ":" in reached else f"http://{reached}:{port or '8000'}"


def _compact(body: str) -> str:
    try:
        return json.dumps(json.loads(body))
    except ValueError:
        return " ".join(body.split())[:200]
