"""Whatever an API write is sent, the answer is a refusal or a success, never a fault of ours.

Each field of each body in turn gets values that a person, a token or a run may send; which of them is drawn with a fixed seed, so that the
test stays short and a red one is red again. With HOSTILE_ALL=1 every field gets every value.
"""

import json
import os
import random
from typing import Any

import pytest

from tests.factories_pages import client_of
from tests.factories_runs import launch, make_laboratory
from tests.factories_secrets import make_secret
from tests.rules.bodies import resolved, shape_of, valid_body, valid_query
from tests.rules.routes import Route, routes
from tests.rules.test_foreign_ids import model_of
from tests.walls.rows import fill

WRITES = [route for route in routes() if route.is_api and route.method != "GET" and route.door is not None]
RAW = (
    b"",
    b"null",
    b"[]",
    b'"x"',
    b"{",
    b"\xff",
    b"[" * 20_000,
    b'{"reason":' * 20_000,
    b'{"a": NaN}',
    b'{"a": ' + b"9" * 5000 + b"}",
    b'{"\\u0000": 1}',
)
TEXTS = (
    "a\0b", "\ud800", "x" * 1_000_000, "", " ", "é\u202e" * 50, "../../etc/passwd", "<script>", "0" * 32, "new", "-1e400", "9999-12-31",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00",
)  # fmt: skip
NUMBERS = (float("nan"), float("inf"), -float("inf"), 2**63, 10**40, -1, 0, 1.5, 1e308)
OTHERS: tuple[Any, ...] = (None, True, [], {}, [[]], [None], {"a": {"b": [1]}}, {"\0": 1}, [{"a": "\ud800"}], ["x"] * 5_000)
RAW_DRAWN = 3  # for each route; of the values one of each kind for each field


def drawn(source: random.Random, kind: tuple[Any, ...], count: int) -> list[Any]:
    return list(kind) if os.environ.get("HOSTILE_ALL") == "1" else source.sample(kind, count)


def address(route: Route, rows: dict[str, Any]) -> str:
    """Of a row that is there."""
    named = {name: model_of(name) for name in route.parameters}
    return route.url(workspace="lab", **{name: rows[label].pk.hex if label else "1" for name, label in named.items()})


@pytest.mark.timeout(300)  # some 700 requests
@pytest.mark.django_db(transaction=True)
def test_no_body_makes_the_api_fail() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        launch(laboratory)
    make_secret(laboratory)
    rows, source, faults, asked = fill(laboratory.workspace), random.Random(23), [], 0  # noqa: S311  # a draw, no secret
    client = client_of(laboratory.owner)
    client.raise_request_exception = False

    def send(route: Route, url: str, body: bytes, what: str) -> None:
        nonlocal asked
        answer = client.generic(route.method, url, body, content_type="application/json")
        asked += 1
        if answer.status_code >= 500:
            faults.append(f"{route.method} /{route.path}: {what} is answered with {answer.status_code}")

    for route in WRITES:
        url, shape = address(route, rows), shape_of(route)
        for name in valid_query(route):
            send(route, f"{url}?{name}=%00%ED%A0%80", b"", name)
        for raw in drawn(source, RAW, RAW_DRAWN):
            send(route, url, raw, f"the body {raw[:12]!r}")
        right = valid_body(route)
        for field in resolved(shape).get("properties", {}) if shape else ():
            for value in [one for kind in (TEXTS, NUMBERS, OTHERS) for one in drawn(source, kind, 1)]:
                send(route, url, json.dumps({**right, field: value}).encode(), f"{field} = {value!r:.40}")
    assert faults == [], "\n".join(faults)
    assert asked > 500
