"""A metric's file comes in bounded pieces, each asked for anew, and holds exactly what the table of the series holds."""

import math
import random
from typing import Any

import pytest
from django.db import connection
from django.http import StreamingHttpResponse
from django.test.utils import CaptureQueriesContext

from runs.models import MetricChunk, MetricSeries, Run
from runs.queries import metric
from runs.queries.metric import points
from tests.factories_pages import add_series, client_of
from tests.factories_runs import Laboratory, launch, make_laboratory


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


@pytest.fixture
def run(laboratory: Laboratory) -> Run:
    with laboratory.opened():
        return launch(laboratory)


def pieces_of(laboratory: Laboratory, run: Run, key: str) -> list[list[str]]:
    """The lines of each piece of the download, its head left out."""
    response = client_of(laboratory.owner).get(f"/workspaces/lab/runs/{run.public_id}/metrics/csv/?key={key}")
    assert isinstance(response, StreamingHttpResponse)
    head, *rest = [piece.decode().splitlines() for piece in response]
    assert head == ["step,value,seconds UTC"]
    return rest


def test_a_long_series_is_never_whole_in_memory(laboratory: Laboratory, run: Run) -> None:
    with laboratory.opened():
        for start in range(0, 25_000, 1_000):
            add_series(run, "loss", [float(start + number) for number in range(1_000)], first_step=start)
    with CaptureQueriesContext(connection) as asked:
        pieces = pieces_of(laboratory, run, "loss")
    assert max(map(len, pieces)) <= 10_000
    lines = [line for piece in pieces for line in piece]
    assert lines == [f"{step},{float(step)},{1_700_000_000.0 + step}" for step in range(25_000)]
    assert sum("WITH ORDINALITY" in query["sql"] for query in asked) == len(pieces) <= 6


@pytest.mark.parametrize("seed", range(12))
def test_pieces_are_the_series_whatever_its_chunks_are(
    laboratory: Laboratory, run: Run, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps out of order and said twice, chunks that lie over each other, attempts that go over steps again."""
    monkeypatch.setattr(metric, "PIECE_POINTS", 7, raising=False)
    chance = random.Random(seed)  # noqa: S311  # numbers of a test, no secret
    width = chance.choice([1, 3, 40, 2**62])
    with laboratory.opened():
        series = MetricSeries.objects.create(run=run, key="odd")
        for _ in range(chance.randrange(1, 12)):
            count = chance.randrange(1, 30)
            steps = [chance.randrange(-width, width) for _ in range(count)]
            if chance.random() < 0.5:
                steps.sort()
            values = [chance.choice([math.nan, math.inf, chance.gauss(0, 1)]) for _ in steps]
            times = [float(number) for number in range(count)]
            MetricChunk.objects.create(series=series, attempt_number=chance.randrange(1, 4), steps=steps, values=values, times=times)
        whole = points(series).items
    pieces = pieces_of(laboratory, run, "odd")
    assert all(len(piece) <= 7 for piece in pieces)
    found = [line.split(",") for piece in pieces for line in piece]
    assert [(int(step), told(value), float(seconds)) for step, value, seconds in found] == [
        (point.step, told(point.value), point.seconds) for point in whole
    ]


def told(value: Any) -> str:
    return repr(float(value))
