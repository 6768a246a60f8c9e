"""Folders for drills with servers; everything started in one is ended with the test."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labsite.embedded.home import Home
from labsite.embedded.postgres import can_unshare
from tests.labsite.embedded_home import Serving

type_of_serve = Callable[..., Serving]


@pytest.fixture
def open_home() -> Iterator[Home]:
    """A data folder below a parent that everybody may enter; pytest's own temporary folders are closed to others."""
    parent = Path(tempfile.mkdtemp(prefix="labsite-drill-"))
    parent.chmod(0o755)
    yield Home(parent / "home")
    shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def serve(open_home: Home) -> Iterator[type_of_serve]:
    """Serves `open_home` in a process of its own, each call anew."""
    started: list[Serving] = []

    def start(way: str = "self") -> Serving:
        started.append(Serving(open_home, way))
        return started[-1]

    yield start
    for serving in started:
        serving.end()


# Only root has more than one: an ordinary account, and another one where user namespaces are forbidden.
ACCOUNTS = ["self", *(["plain"] if os.geteuid() == 0 and can_unshare() else []), *(["nobody"] if os.geteuid() == 0 else [])]


@pytest.fixture(params=ACCOUNTS)
def way(request: pytest.FixtureRequest) -> str:
    """Each account the servers can run as here."""
    chosen: str = request.param
    return chosen
