"""The pool of a Ray cluster against a real head, which runs jobs as an account that sees nothing of labsite."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs.pools import ray_laboratory
from tests.runs.pools.conformance import Conformance
from tests.runs.pools.laboratory import Laboratory
from tests.runs.pools.ray_head import RayHead

pytestmark = [pytest.mark.ray, pytest.mark.xdist_group("ray"), pytest.mark.timeout(240)]  # the head takes its time


@pytest.fixture
def lab(ray_head: RayHead, tmp_path: Path) -> Iterator[Laboratory]:
    yield from ray_laboratory.laboratory(ray_head, tmp_path)


class TestRayPool(Conformance):
    """The whole common suite."""
