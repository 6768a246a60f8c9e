"""The list of runs: filters and order in the address, steady pages, a CSV of the same, and no more queries for more rows."""

import csv
import io
import re
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.lifecycle import RunStatus
from runs.models import Run
from runs.queries.run_list import FAILURES, RunFilter, page_of_runs
from tests.factories_pages import client_of, copy_runs, score_runs
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Benchmark
from workspaces.queries.paging import BadCursor

EVERY = [status.value for status in RunStatus]


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


@pytest.fixture
def runs(laboratory: Laboratory) -> list[Run]:
    with laboratory.opened():
        return copy_runs(actor=laboratory.owner, pattern=launch(laboratory), count=130, statuses=EVERY)


def names(client: Client, **query: str) -> list[str]:
    """Names on every page of the list, walked as a reader would."""
    found: list[str] = []
    address: str | None = "/workspaces/lab/runs/?" + urlencode(query)
    while address:
        body = client.get(address).content.decode()
        found += re.findall(r'<th scope="row">\s*<a [^>]*title="([^"]*)"', body)
        link = re.search(r'href="([^"]*)"\s+rel="next"', body)
        address = "/workspaces/lab/runs/" + link[1].replace("&amp;", "&") if link else None
        assert len(found) < 1000
    return found


@pytest.mark.parametrize("sort", ["newest", "name", "status", "spent"])
def test_pages_show_every_run_once_in_every_order(laboratory: Laboratory, runs: list[Run], sort: str) -> None:
    found = names(client_of(laboratory.owner), sort=sort)
    assert len(found) == 131
    assert sorted(found) == sorted([run.name for run in runs] + ["worker-0001"])


def test_orders_are_what_they_say(laboratory: Laboratory, runs: list[Run]) -> None:
    client = client_of(laboratory.owner)
    spent = {run.name: run.spent_gpu_ms for run in runs} | {"worker-0001": 0}
    by_spent = [spent[name] for name in names(client, sort="spent")]
    assert by_spent == sorted(by_spent, reverse=True)
    assert names(client, sort="name") == sorted(spent)


def test_filters_narrow_and_stay_in_the_address(laboratory: Laboratory, runs: list[Run]) -> None:
    client = client_of(laboratory.owner)
    failed = {run.name for run in runs if run.status == "failed"}
    assert set(names(client, status="failed")) == failed
    assert not set(names(client, failures="hidden")) & {run.name for run in runs if run.status in FAILURES}
    assert names(client, benchmark="no-such-benchmark") == []
    assert names(client, q="run-00007") == ["run-00007"]
    assert names(client, q="#7") == ["run-00007"]
    body = client.get("/workspaces/lab/runs/?status=failed&agent=worker&sort=name").content.decode()
    chips = re.findall(r'class="chip"\s+href="([^"]*)"', body)
    without_agent = [parse_qs(urlsplit(chip.replace("&amp;", "&")).query) for chip in chips]
    assert {"status": ["failed"], "sort": ["name"]} in without_agent
    assert '<option value="failed" selected>' in body


def test_score_orders_by_the_current_contract_and_puts_nonsense_last(laboratory: Laboratory, runs: list[Run]) -> None:
    worst, best, nan, infinite = runs[:4]
    with laboratory.opened():
        scores: dict[Run, tuple[float, float | None]] = {
            worst: (0.1, None),
            best: (0.9, 0.01),
            nan: (float("nan"), None),
            infinite: (float("inf"), None),
        }
        score_runs(actor=laboratory.owner, scores=scores)
    client = client_of(laboratory.owner)
    assert names(client, benchmark="accuracy", sort="score")[:2] == [best.name, worst.name]
    assert len(names(client, benchmark="accuracy", sort="score")) == 131
    with laboratory.opened():
        publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="minimize")
    assert names(client, benchmark="accuracy", sort="score")[:1] != [best.name]
    assert "choose one benchmark" in client.get("/workspaces/lab/runs/?sort=score").content.decode()


@pytest.mark.parametrize("cursor", ["x", "%00", "W10", "WyJuYW1lIiwgIlx1MDAwMCIsICIwIl0", "WyJuYW1lIiwgIlx1ZDgwMCIsICIwIl0", "9" * 400])
def test_a_made_up_cursor_begins_again_and_says_so(laboratory: Laboratory, runs: list[Run], cursor: str) -> None:
    with laboratory.opened(), pytest.raises(BadCursor):
        page_of_runs(RunFilter(sort="name"), zone="UTC", cursor=cursor)
    if "%" not in cursor:
        response = client_of(laboratory.owner).get(f"/workspaces/lab/runs/?after={cursor}")
        assert response.status_code == 200
        assert "belongs to another order" in response.content.decode()


def test_a_cursor_of_another_order_is_refused(laboratory: Laboratory, runs: list[Run]) -> None:
    with laboratory.opened():
        cursor = page_of_runs(RunFilter(sort="name"), zone="UTC").next
        assert cursor
        with pytest.raises(BadCursor):
            page_of_runs(RunFilter(sort="spent"), zone="UTC", cursor=cursor)


def rows_of_csv(client: Client, query: str = "") -> list[dict[str, Any]]:
    response = client.get(f"/workspaces/lab/runs/csv/{query}")
    assert isinstance(response, StreamingHttpResponse)
    return list(csv.DictReader(io.StringIO(b"".join(response).decode())))


def test_csv_is_what_is_shown_in_its_order(laboratory: Laboratory, runs: list[Run]) -> None:
    client = client_of(laboratory.owner)
    assert [row["name"] for row in rows_of_csv(client, "?status=failed&sort=name")] == names(client, status="failed", sort="name")
    assert len(rows_of_csv(client)) == 131


@pytest.mark.parametrize("name", ["=1+1", "+A1", "-A1", "@SUM(A1)", "\tx"])
def test_csv_cells_are_no_formulas(laboratory: Laboratory, name: str) -> None:
    with laboratory.opened():
        copy_runs(actor=laboratory.owner, pattern=launch(laboratory), count=1, name=name)
    assert f"'{name}" in [row["name"] for row in rows_of_csv(client_of(laboratory.owner))]


def test_queries_do_not_grow_with_rows(laboratory: Laboratory) -> None:
    client = client_of(laboratory.owner)
    with laboratory.opened():
        pattern = launch(laboratory)
        copy_runs(actor=laboratory.owner, pattern=pattern, count=2)
    client.get("/workspaces/lab/runs/")
    counts = []
    for more in (0, 200):
        with laboratory.opened():
            copy_runs(actor=laboratory.owner, pattern=pattern, count=more + 1, statuses=EVERY)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert client.get("/workspaces/lab/runs/").status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_another_workspace_sees_nothing_of_it(laboratory: Laboratory, runs: list[Run]) -> None:
    other = make_laboratory("other")
    assert client_of(other.owner).get("/workspaces/lab/runs/").status_code == 404
    assert "run-00007" not in client_of(other.owner).get("/workspaces/other/runs/").content.decode()
    assert client_of(other.owner).get(f"/workspaces/other/runs/{runs[0].public_id}/").status_code == 404
