"""What is slow to start is started once."""

from collections.abc import Iterator

import pytest

from runs.pools.ssh_thread import close_all
from tests.runs.file_server import FileServer
from tests.runs.pool_environment import environment, local_python  # noqa: F401  # fixtures
from tests.runs.pools.ray_head import RayHead


@pytest.fixture(scope="session")
def ray_head() -> Iterator[RayHead]:
    """One of the parallel processes has all of its tests (tests/parallel.py), so one head is enough."""
    head = RayHead()
    yield head
    close_all()
    head.close()


@pytest.fixture
def server() -> Iterator[FileServer]:
    """Files that another machine would serve."""
    with FileServer().running() as found:
        yield found
