"""Both servers of an installation: the embedded ones, or those that DATABASE_URL and REDIS_URL name."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from labsite.embedded.children import Child
from labsite.embedded.home import Home, StartError
from labsite.embedded.postgres import start_postgres
from labsite.embedded.serving_role import refuse_unfit_database, refuse_unfit_queue
from labsite.embedded.valkey import start_valkey

STOP_SECONDS = 60.0
STEADY_SECONDS = 60.0  # who ran this long has fallen by accident; who fell sooner would only fall again


@dataclass
class Servers:
    """What serves, and how programs reach it: `addresses` are the variables DATABASE_URL, LABSITE_OWNER_DATABASE_URL, REDIS_URL."""

    addresses: dict[str, str] = field(default_factory=dict)
    children: list[Child] = field(default_factory=list)  # in the order of their start
    makers: dict[str, Callable[[], Child]] = field(default_factory=dict)  # by the name of the child
    began: dict[str, float] = field(default_factory=dict)

    def start(self, make: Callable[[], Child]) -> Child:
        """Start a server that shall run until the end; `make` starts it, and starts it again."""
        child = make()
        self.makers[child.name] = make
        self.began[child.name] = time.monotonic()
        self.children = [known for known in self.children if known.name != child.name] + [child]
        return child

    def start_again(self, fallen: Child) -> None:
        """One that was killed. Programs of labsite meet it with new connections. StartError where it cannot stay up."""
        make = self.makers.get(fallen.name)
        if make is None or time.monotonic() - self.began[fallen.name] < STEADY_SECONDS:
            raise StartError(f"{fallen.name} ended with code {fallen.code}: {fallen.last_words()}")
        self.start(make)

    def fallen(self) -> Child | None:
        """A server that ended although nobody stopped it."""
        return next((child for child in self.children if child.code is not None), None)


@contextmanager
def running_servers(
    home: Home,
    environment: Mapping[str, str],
    report: Callable[[str], None] = lambda _line: None,
    check: Callable[[], None] = lambda: None,
    throw_away: bool = False,
) -> Iterator[Servers]:
    """Start what the environment does not name, check what serves, and end what was started: Valkey first, then PostgreSQL.

    The caller holds the home's lock. `report` gets a line per server; `check` may raise to give up while waiting.
    Raises StartError where a server cannot start or may not serve.
    """
    servers = Servers()
    try:
        if environment.get("DATABASE_URL"):
            if not environment.get("LABSITE_OWNER_DATABASE_URL"):
                raise StartError("DATABASE_URL is set but LABSITE_OWNER_DATABASE_URL is not: migrations need a role that owns the tables")
            servers.addresses |= {name: environment[name] for name in ("DATABASE_URL", "LABSITE_OWNER_DATABASE_URL")}
        else:
            servers.start(lambda: start_postgres(home, throw_away, check))
        if environment.get("REDIS_URL"):
            servers.addresses["REDIS_URL"] = environment["REDIS_URL"]
        else:
            servers.start(lambda: start_valkey(home, check))
        servers.addresses = home.addresses() | servers.addresses
        version = refuse_unfit_database(servers.addresses["DATABASE_URL"], servers.addresses["LABSITE_OWNER_DATABASE_URL"])
        report(f"PostgreSQL {version} ready" + (" (external)" if environment.get("DATABASE_URL") else ""))
        refuse_unfit_queue(servers.addresses["REDIS_URL"])
        report("Valkey ready" if not environment.get("REDIS_URL") else "Redis ready (external)")
        yield servers
    finally:
        for child in reversed(servers.children):
            child.stop(STOP_SECONDS)


def environment_with(servers: Servers, home: Home) -> dict[str, str]:
    """The environment for programs of labsite: ours, with the servers' addresses and the data folder made explicit."""
    return os.environ | servers.addresses | {"LABSITE_HOME": str(home.path), "PYTHONUNBUFFERED": "1"}
