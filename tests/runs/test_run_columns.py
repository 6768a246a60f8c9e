"""Columns of the list of runs that a reader chose: kept in the address, sorted with nonsense last, exact in the file, bounded in queries."""

import csv
import io
import math
import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.models import Run
from runs.queries.run_columns import MOST_COLUMNS, column_of, parameter_at, read_columns
from runs.queries.run_list import RunFilter, page_of_runs
from tests.factories_pages import HOSTILE, LONG, RTL, add_series, client_of, copy_runs, score_runs
from tests.factories_runs import Laboratory, launch, make_laboratory

LIST = "/workspaces/lab/runs/"
VALUES = [3.0, math.nan, 1.0, math.inf, 2.0, -math.inf, 1.0]  # of the metric `loss`, run by run; one run has none
PARAMETERS: list[dict[str, Any]] = [
    {"lr": 0.1, "net": {"depth": 3}},
    {"lr": 10**400, "net": {"depth": "deep"}},
    {"lr": "fast", "net.depth": 5},
    {"lr": None},
    {"lr": True, "net": [1]},
    {"lr": -2, "net": {"depth": -1.5}},
    {"lr": 1e308},
    {},
]


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


@pytest.fixture
def runs(laboratory: Laboratory) -> list[Run]:
    """Eight runs named `run-0` to `run-7`, newest first."""
    with laboratory.opened():
        pattern = launch(laboratory)
        made = [
            copy_runs(actor=laboratory.owner, pattern=pattern, count=1, name=f"run-{at}", parameters=parameters, seed=at % 3)[0]
            for at, parameters in enumerate(PARAMETERS)
        ]
        for run, value in zip(made, VALUES, strict=False):
            add_series(run, "loss", [5.0, value])
    return made


def address(*columns: str, **query: str) -> str:
    return f"{LIST}?{urlencode({'col': columns, 'q': 'run-', **query}, doseq=True)}"


def table_of(body: str) -> tuple[list[str], dict[str, list[str]]]:
    """Heads behind `State`, and of each run its cells there, as text."""
    table = body[body.index("<thead>") : body.index("</table>")]
    head, rows = table.split("</thead>")

    def texts(markup: str) -> list[str]:
        cells = re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", markup, flags=re.DOTALL)
        return [unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in cells]

    named = {cells[1]: cells[3:] for cells in map(texts, re.findall(r"<tr>(.*?)</tr>", rows, flags=re.DOTALL))}
    return texts(head)[3:], named


def read(client: Client, url: str) -> tuple[list[str], dict[str, list[str]]]:
    response = client.get(url)
    assert response.status_code == 200
    return table_of(response.content.decode())


def pages(sort: str, size: int = 3) -> list[str]:
    """Names in the order, walked in small pages."""
    found, cursor = [], ""
    while True:
        page = page_of_runs(RunFilter(text="run-", sort=sort), zone="UTC", cursor=cursor, size=size)
        found += [row.name for row in page.items]
        if not page.next:
            return found
        cursor = page.next


def test_columns_stand_as_the_address_says_in_its_order(laboratory: Laboratory, runs: list[Run]) -> None:
    client = client_of(laboratory.owner)
    heads, rows = read(client, address("metrics.loss", "params.net.depth", "seed", "max.loss", "params.lr"))
    assert heads == ["loss", "net.depth", "Seed", "highest loss", "lr"]
    assert rows["run-0"] == ["3", "3", "0", "5", "0.1"]
    assert rows["run-2"] == ["1", "5", "2", "5", "fast"]
    assert rows["run-1"][:2] == ["NaN", "deep"]
    assert rows["run-4"][1:] == ["—", "1", "5", "true"]
    assert rows["run-7"] == ["—", "—", "1", "—", "—"]
    heads, _ = read(client, address("seed", "metrics.loss"))
    assert heads == ["Seed", "loss"]


def test_without_a_choice_the_usual_columns_stand(laboratory: Laboratory, runs: list[Run]) -> None:
    heads, _ = read(client_of(laboratory.owner), address())
    assert heads == ["Score", "Benchmark", "Agent", "Asked for by", "GPU-h", "Ran", "Asked for"]


def test_every_fixed_column_can_be_chosen(laboratory: Laboratory, runs: list[Run]) -> None:
    client = client_of(laboratory.owner)
    _, rows = read(client, address("contract", "agent", "version", "person", "benchmark", "pool", "trigger", "slots", "number", "sweep"))
    assert rows["run-0"] == ["1", "worker v1", "1", laboratory.owner.label, "accuracy", "local", "person", "1", str(runs[0].number), "—"]
    _, rows = read(client, address("spent", "reserved", "ran", "asked", "started", "ended", "reason", "member", "score"))
    assert rows["run-0"][2] == "5 min"


@pytest.mark.parametrize("column", ["nothing", "params.", "metrics.none", "scores.none", ".", "params.a.b.c", "columns", "family.x"])
def test_unknown_columns_are_empty_and_can_be_taken_away(laboratory: Laboratory, runs: list[Run], column: str) -> None:
    client = client_of(laboratory.owner)
    body = client.get(address(column, "seed")).content.decode()
    _, rows = table_of(body)
    assert all(cells[0] == "—" for cells in rows.values())
    away = [unescape(link) for link in re.findall(r'href="([^"]*)"\s+aria-label="Take', body)]
    assert parse_qs(urlsplit(away[0]).query)["col"] == ["seed"]
    assert read(client, LIST + away[0])[0] == ["Seed"]


def test_columns_are_at_most_twelve_and_each_once() -> None:
    columns, left_out = read_columns([f"params.{number}" for number in range(20)] + ["params.3", "", " \x00 "])
    assert [column.source for column in columns] == [str(number) for number in range(MOST_COLUMNS)]
    assert left_out == 8
    assert len(read_columns(["x" * 10_000])[0][0].name) <= 260


def test_what_is_left_out_is_said(laboratory: Laboratory, runs: list[Run]) -> None:
    body = client_of(laboratory.owner).get(address(*(f"params.{number}" for number in range(14)))).content.decode()
    assert "12 columns at most: the last 2 asked for are left out." in body


def test_numbers_sort_both_ways_with_nonsense_last(laboratory: Laboratory, runs: list[Run]) -> None:
    with laboratory.opened():
        last = ["run-7", "run-5", "run-3", "run-1"]  # none, −∞, ∞, NaN: of those the newest first
        assert pages("metrics.loss") == ["run-6", "run-2", "run-4", "run-0", *last]
        assert pages("-metrics.loss") == ["run-0", "run-4", "run-6", "run-2", *last]
        assert pages("params.lr")[:4] == ["run-5", "run-0", "run-6", "run-1"]
        assert pages("-params.lr") == ["run-6", "run-1", "run-0", "run-5", "run-7", "run-4", "run-3", "run-2"]
        assert pages("params.net.depth")[:3] == ["run-5", "run-0", "run-2"]
        assert pages("-seed")[:2] == ["run-5", "run-2"]
        assert pages("min.loss") == ["run-6", "run-2", "run-4", "run-0", "run-3", "run-1", "run-7", "run-5"]
        assert pages("scores.accuracy") == pages("newest")


@pytest.mark.parametrize(
    "sort", ["metrics.loss", "-max.loss", "-params.lr", "params.net.depth", "seed", "-ran", "asked", "-started", "number"]
)
def test_pages_of_a_sorted_column_show_every_run_once(laboratory: Laboratory, runs: list[Run], sort: str) -> None:
    with laboratory.opened():
        whole = pages(sort, size=100)
        assert sorted(whole) == sorted(run.name for run in runs)
        assert all(pages(sort, size=size) == whole for size in (1, 2, 3))


def test_scores_of_any_metric_sort(laboratory: Laboratory, runs: list[Run]) -> None:
    with laboratory.opened():
        score_runs(actor=laboratory.owner, metric="elo", scores={runs[0]: (math.nan, None), runs[4]: (12.0, 3.0), runs[5]: (20.0, None)})
        assert pages("-scores.elo")[:3] == ["run-5", "run-4", "run-7"]
        assert pages("scores.elo")[:3] == ["run-4", "run-5", "run-7"]
    _, rows = read(client_of(laboratory.owner), address("scores.elo"))
    assert rows["run-4"] == ["12.0 ± 3.0"]
    assert rows["run-0"] == ["NaN"]


def test_heads_sort_and_say_so(laboratory: Laboratory, runs: list[Run]) -> None:
    client = client_of(laboratory.owner)
    body = client.get(address("metrics.loss", "params.lr", "trigger")).content.decode()
    links = [unescape(link) for link in re.findall(r'<th[^>]*title="[^"]*"><a href="([^"]*)"', body)]
    assert [parse_qs(urlsplit(link).query)["sort"] for link in links] == [["-metrics.loss"], ["-params.lr"]]
    assert parse_qs(urlsplit(links[0]).query)["col"] == ["metrics.loss", "params.lr", "trigger"]
    body = client.get(LIST + links[0]).content.decode()
    assert 'aria-sort="descending" title="metrics.loss"' in body
    assert "sort=metrics.loss" in body


def test_filters_and_columns_keep_each_other(laboratory: Laboratory, runs: list[Run]) -> None:
    body = client_of(laboratory.owner).get(address("metrics.loss", "seed", status="succeeded", sort="-seed")).content.decode()
    filters, picker = re.findall(r"<form\b.*?</form>", body[body.index("<main") :], flags=re.DOTALL)[1:3]
    assert re.findall(r'name="col" value="([^"]*)"', filters) == ["metrics.loss", "seed"]
    assert {("q", "run-"), ("status", "succeeded"), ("sort", "-seed")} <= set(
        re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', picker)
    )
    assert re.findall(r'name="col" value="([^"]*)" checked', picker) == ["metrics.loss", "seed"]
    offered = re.findall(r'name="col" value="([^"]*)">', picker)
    assert {"params.lr", "params.net.depth", "metrics.loss"} - set(offered) == {"metrics.loss"}
    earlier = [unescape(link) for link in re.findall(r'href="([^"]*)"\s+aria-label="Put Seed', picker)]
    assert parse_qs(urlsplit(earlier[0]).query)["col"] == ["seed", "metrics.loss"]


def test_the_file_has_exactly_the_chosen_columns(laboratory: Laboratory, runs: list[Run]) -> None:
    response = client_of(laboratory.owner).get(address("metrics.loss", "params.lr", "spent", "nothing").replace("runs/?", "runs/csv/?"))
    assert isinstance(response, StreamingHttpResponse)
    rows = list(csv.DictReader(io.StringIO(b"".join(response).decode())))
    assert list(rows[0]) == ["run", "name", "state", "metrics.loss", "params.lr", "GPU ms spent", "nothing"]
    by_name = {row["name"]: row for row in rows}
    assert [by_name[f"run-{at}"]["metrics.loss"] for at in range(8)] == ["3.0", "NaN", "1.0", "Infinity", "2.0", "'-Infinity", "1.0", ""]
    assert [by_name[f"run-{at}"]["params.lr"] for at in (0, 2, 3, 4)] == ["0.1", "fast", "", "true"]


def test_hostile_names_are_text(laboratory: Laboratory) -> None:
    with laboratory.opened():
        pattern = launch(laboratory)
        parameters = {HOSTILE: HOSTILE, LONG: LONG, RTL: {"a": RTL}}
        (run,) = copy_runs(actor=laboratory.owner, pattern=pattern, count=1, name="run-x", parameters=parameters)
        add_series(run, HOSTILE, [1.0])
    client = client_of(laboratory.owner)
    columns = (
        f"params.{HOSTILE}",
        f"metrics.{HOSTILE}",
        f"params.{LONG}",
        f"params.{RTL}.a",
        HOSTILE,
        "metrics.%s",
        "'; --",
    )
    for sort in ("", *columns):
        response = client.get(address(*columns, sort=sort))
        assert response.status_code == 200
        body = response.content.decode()
        assert "run-x" in body
        assert "<script>alert" not in body
        assert 'onload="x' not in body


def test_a_name_with_nul_is_no_request(laboratory: Laboratory) -> None:
    assert client_of(laboratory.owner).get(address("params.\x00")).status_code == 400


def test_queries_do_not_grow_with_rows_or_columns(laboratory: Laboratory, runs: list[Run]) -> None:
    client, counts = client_of(laboratory.owner), []
    many = address("metrics.loss", "max.loss", "metrics.other", "params.lr", "params.net.depth", "scores.a", sort="-metrics.loss")
    client.get(many)
    for more in (0, 120):
        with laboratory.opened():
            for run in copy_runs(actor=laboratory.owner, pattern=runs[0], count=more + 1):
                add_series(run, "loss", [1.0])
        for url in (address("metrics.loss", sort="-metrics.loss"), many):
            with CaptureQueriesContext(connection) as queries:
                assert client.get(url).status_code == 200
            counts.append(len(queries))
    assert len(set(counts)) == 1


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a", {"b": {"c": 1}}),
        ("a.b.c", 1),
        ("a.b", {"c": 1}),
        ("x.y", 2),
        ("list.1", "q"),
        ("list.9", None),
        ("a.c", None),
        ("list.²", None),
    ],
)
def test_paths_lead_to_parameters(path: str, value: Any) -> None:
    assert parameter_at({"a": {"b": {"c": 1}}, "x.y": 2, "list": ["p", "q"]}, path) == value


def test_names_of_columns() -> None:
    kinds = {name: column_of(name).kind for name in ("params.a", "metrics.a", "min.a", "max.a", "scores.a", "seed", "min", "a", "other.a")}
    assert kinds == {
        "params.a": "parameter", "metrics.a": "measure", "min.a": "measure", "max.a": "measure", "scores.a": "score", "seed": "number",
        "min": "unknown", "a": "unknown", "other.a": "unknown",
    }  # fmt: skip


def test_compare_without_a_choice_says_what_to_do(laboratory: Laboratory, runs: list[Run]) -> None:
    body = client_of(laboratory.owner).get("/workspaces/lab/runs/compare/").content.decode()
    assert "No run is chosen" in body
    assert f'href="{LIST}"' in body
