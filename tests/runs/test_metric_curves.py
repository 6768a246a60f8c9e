"""Curves as the database thins them: what a chart can show of a series, extremes kept, whatever a run wrote."""

import math
import random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.models import MetricChunk, MetricSeries, Run
from runs.queries.metric import curves, points, series_of
from tests.factories_pages import add_series, client_of
from tests.factories_runs import Laboratory, launch, make_laboratory

COLUMNS = 20
Drawn = list[tuple[float, float]]


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


@pytest.fixture
def run(laboratory: Laboratory) -> Run:
    with laboratory.opened():
        return launch(laboratory)


def drawn(run: Run, *, by_time: bool = False, is_log: bool = False) -> dict[str, Drawn]:
    return curves(series_of(run), columns=COLUMNS, by_time=by_time, is_log=is_log)


def finite(found: Drawn) -> Drawn:
    return [point for point in found if math.isfinite(point[1])]


@pytest.mark.parametrize("seed", range(5))
def test_a_long_series_keeps_its_extremes_its_end_and_its_gaps(laboratory: Laboratory, run: Run, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # numbers of a test, no secret
    values = [chance.gauss(0, 1) for _ in range(2_000)]
    values[777] = 99.0
    values[1_300:1_550] = [math.nan] * 250
    values[1_111] = -math.inf
    with laboratory.opened():
        add_series(run, "loss", values)
        found = drawn(run)["loss"]
    written = list(enumerate(values))
    assert len(found) <= 2 * (COLUMNS + 1)
    assert [x for x, _ in found] == sorted(x for x, _ in found)
    assert set(finite(found)) <= set(written)
    assert (777, 99.0) in found
    assert min(finite(found), key=lambda point: point[1])[1] == min(value for value in values if math.isfinite(value))
    assert found[-1] == written[-1]
    assert any(math.isnan(y) and 1_300 <= x < 1_550 for x, y in found)


def test_a_short_series_is_whole(laboratory: Laboratory, run: Run) -> None:
    with laboratory.opened():
        add_series(run, "one", [0.5])
        add_series(run, "few", [3.0, math.nan, math.inf, 1.0])
        found = drawn(run)
        by_time = drawn(run, by_time=True)
        logarithmic = drawn(run, is_log=True)
        add_series(run, "signs", [-1.0, 0.0, 10.0])
        assert finite(drawn(run, is_log=True)["signs"]) == [(2, 10.0)]
    assert found["one"] == by_time["one"] == [(0, 0.5)]
    assert finite(found["few"]) == finite(by_time["few"]) == finite(logarithmic["few"]) == [(0, 3.0), (3, 1.0)]
    assert len(found["few"]) == 4


def test_a_later_attempt_replaces_what_it_goes_over_again(laboratory: Laboratory, run: Run) -> None:
    with laboratory.opened():
        add_series(run, "loss", [4.0, 3.0, 2.0, 1.0])
        add_series(run, "loss", [2.5, 2.25], first_step=2, attempt=2)
        add_series(run, "other", [7.0])
        assert drawn(run)["loss"] == [(0, 4.0), (1, 3.0), (2, 2.5), (3, 2.25)]
        assert drawn(run)["other"] == [(0, 7.0)]
        found = points(series_of(run)[0], limit=3)
    assert (found.count, [point.step for point in found.items]) == (4, [0, 1, 2])


@pytest.mark.parametrize("by_time", [False, True])
@pytest.mark.parametrize("is_log", [False, True])
def test_the_ends_of_what_numbers_can_say_break_nothing(laboratory: Laboratory, run: Run, by_time: bool, is_log: bool) -> None:
    odd = [1.7e308, -1.7e308, 5e-324, math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0, -0.0]
    with laboratory.opened():
        series = MetricSeries.objects.create(run=run, key="odd", count=100)
        steps = [2**63 - 1, -(2**63), 0, 1, *range(96)]
        MetricChunk.objects.create(series=series, steps=steps, values=odd * 10, times=[*odd * 9, *[3.0] * 10])
        same = MetricSeries.objects.create(run=run, key="same", count=100)
        MetricChunk.objects.create(series=same, steps=[5] * 100, values=odd * 10, times=[1.0] * 100)
        empty = MetricSeries.objects.create(run=run, key="empty")
        MetricChunk.objects.create(series=empty, steps=[], values=[], times=[])
        found = drawn(run, by_time=by_time, is_log=is_log)
    assert found["odd"]
    assert len(found["same"]) == 2
    assert found["empty"] == []
    response = client_of(laboratory.owner).get(
        f"/workspaces/lab/runs/{run.public_id}/?tab=metrics&x={'time' if by_time else 'step'}&y={'log' if is_log else ''}"
    )
    assert response.status_code == 200


@pytest.mark.parametrize("part", ["tab=overview&part=live", "tab=metrics&part=tab"])
def test_no_point_is_read_to_find_that_nothing_has_changed(laboratory: Laboratory, run: Run, part: str) -> None:
    with laboratory.opened():
        add_series(run, "loss", [2.0, 1.0])
    client = client_of(laboratory.owner)
    address = f"/workspaces/lab/runs/{run.public_id}/?{part}"
    first = client.get(address)
    with CaptureQueriesContext(connection) as asked:
        again = client.get(address, headers={"if-none-match": first["ETag"]})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
        assert not any("metricchunk" in query["sql"] for query in asked.captured_queries)
    with laboratory.opened():
        MetricSeries.objects.filter(run=run).update(last=0.5, count=3)
    changed = client.get(address, headers={"if-none-match": first["ETag"]})
    assert changed.status_code == 200
    assert changed["ETag"] != first["ETag"]
