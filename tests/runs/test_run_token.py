"""A run's own token: it writes metrics, events and artifacts of its run while it runs, and nothing else, and ends with it."""

import json
import math
from typing import Any

import pytest

from runs import ingest
from runs.lifecycle import RunStatus
from runs.models import Artifact, Attempt, MetricSeries, Run, RunLine, Watch
from runs.queries.order import order_of, token_id, token_secret
from tests.factories_runs import Laboratory, dispatch, drive, launch, make_laboratory
from tests.factories_seed import Caller, caller_for
from tests.runs.attempts import WAITS, content, kill_launcher, let_go, settled, started
from workspaces.models import AuditEvent, Token
from workspaces.queries import token

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]


def caller_of(laboratory: Laboratory, attempt: Attempt) -> Caller:
    return Caller(token.spell("run", laboratory.workspace.pk, token_id(attempt), token_secret(attempt)))


@pytest.fixture
def running(db: None) -> tuple[Laboratory, Run, Caller, str]:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    return laboratory, run, caller_of(laboratory, attempt), f"/api/v1/workspaces/lab/runs/{run.public_id}"


def points(*found: tuple[str, Any, int]) -> str:
    return json.dumps({"points": [{"key": key, "value": value, "step": step} for key, value, step in found]})


def test_it_writes_to_its_own_run_while_it_runs(running: tuple[Laboratory, Run, Caller, str]) -> None:
    laboratory, run, caller, url = running
    with laboratory.opened():
        assert order_of(Attempt.objects.get(run=run)).secrets["LABSITE_TOKEN"] == caller.token
    assert caller.post(f"{url}/metrics", points(("loss", 1.5, 1), ("loss", "NaN", 2), ("acc", 1, 1))).json() == {"taken": 3}
    events = {
        "events": [{"type": "progress", "done": 1, "total": 2}, {"type": "score", "benchmark": "accuracy", "metric": "f1", "value": 0.5}]
    }
    assert caller.post(f"{url}/events", json.dumps(events)).json() == {"taken": 2}
    stored = caller.post(f"{url}/artifacts?path=model.bin&kind=model", b"\x00\x01")
    assert (stored.status_code, stored.json()["kind"], stored.json()["bytes"]) == (201, "model", 2)
    assert caller.post(f"{url}/artifacts?path=model.bin", b"other").status_code == 422
    let_go(laboratory, run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        series = MetricSeries.objects.get(run=run, key="loss")
        assert (series.count, series.minimum) == (2, 1.5)
        assert series.last is not None and math.isnan(series.last)
        assert run.evaluations.get().metric == "f1"
        assert content(laboratory, run, "model.bin") == b"\x00\x01"
        stored_by = AuditEvent.objects.get(verb="artifact.stored")
        assert (stored_by.actor_kind, stored_by.actor_label, stored_by.behalf_id) == ("agent", run.name, laboratory.owner.user.pk)  # type: ignore[union-attr]  # a person
    for path, body in (("metrics", points(("loss", 1, 3))), ("events", json.dumps(events)), ("artifacts?path=late", "x")):
        assert caller.post(f"{url}/{path}", body).status_code == 401, "the token outlives its run"
    settled(laboratory)


def test_it_opens_no_other_door(running: tuple[Laboratory, Run, Caller, str]) -> None:
    laboratory, run, caller, url = running
    with laboratory.opened():
        other = launch(laboratory)
    dispatch(laboratory)
    elsewhere = make_laboratory("elsewhere")
    base = "/api/v1/workspaces/lab"
    for path in (
        url,
        f"{base}/runs",
        f"{url}/metrics",
        f"{url}/logs",
        f"{base}/queue",
        f"{base}/datasets",
        f"{base}/events",
        f"{base}/members",
    ):
        assert caller.get(path).status_code == 403, path
    for path in (f"{base}/runs", f"{url}/cancel", f"{url}/retry", f"{base}/runs/estimate", f"{base}/tokens", f"{base}/agents"):
        assert caller.post(path, "{}").status_code == 403, path
    body = points(("loss", 1, 1))
    assert caller.post(f"{base}/runs/{other.public_id}/metrics", body).status_code == 403
    assert caller.post(f"{base}/runs/run_{'0' * 32}/metrics", body).status_code == 403
    assert caller.post(f"/api/v1/workspaces/{elsewhere.workspace.slug}/runs/{run.public_id}/metrics", body).status_code == 404
    assert caller.get("/api/v1/workspaces").status_code == 403
    assert caller.get("/api/v1/me").status_code == 403
    with laboratory.opened():
        person = Caller(
            token.spell("pat", laboratory.workspace.pk, token_id(Attempt.objects.get(run=run)), token_secret(Attempt.objects.get(run=run)))
        )
        assert Token.objects.filter(kind="run", revoked_at=None).count() == 2
        assert not MetricSeries.objects.exists()
    assert person.post(f"{url}/metrics", body).status_code == 401
    for one in (run, other):
        let_go(laboratory, one)
        drive(laboratory, one)


def test_the_token_of_an_attempt_before_writes_nothing_any_more(running: tuple[Laboratory, Run, Caller, str]) -> None:
    laboratory, run, caller, url = running
    with laboratory.opened():
        first = Attempt.objects.get(run=run)
    kill_launcher(laboratory, first)
    drive(laboratory, run, until=frozenset({RunStatus.RUNNING}))
    assert caller.post(f"{url}/metrics", points(("loss", 1, 1))).status_code == 401
    let_go(laboratory, run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED


BAD_POINTS = [
    '{"points": []}',
    '{"points": [{"key": "", "value": 1}]}',
    '{"points": [{"key": "a", "value": true}]}',
    '{"points": [{"key": "a", "value": "1"}]}',
    '{"points": [{"key": "a", "value": null}]}',
    '{"points": [{"key": "a", "value": 1, "step": true}]}',
    '{"points": [{"key": "a", "value": 1, "step": 1.5}]}',
    '{"points": [{"key": "a", "value": 1, "step": 9223372036854775808}]}',
    '{"points": [{"key": "a", "value": 1, "time": -1}]}',
    '{"points": [{"key": "a", "value": 1, "time": 1e300}]}',
    '{"points": [{"key": "a", "value": 1, "time": NaN}]}',
    '{"points": [{"key": "a\\u0000", "value": 1}]}',
    '{"points": [{"key": "\\ud800", "value": 1}]}',
    '{"points": [{"key": "a", "value": 1, "more": 1}]}',
    '{"points": [{"key": "a", "value": 1' + "0" * 400 + "}]}",
    '{"points": [{"key": "' + "k" * 251 + '", "value": 1}]}',
    '{"points": [' + ", ".join(['{"key": "a", "value": 1}'] * 1001) + "]}",
    '{"points": [{"key": "a", "value": 1}, {"key": "system/cpu_percent", "value": 1}]}',
]
DEEP = "[" * 100 + "]" * 100
BAD_EVENTS = [
    '{"events": []}',
    '{"events": [{}]}',
    '{"events": [{"type": 1}]}',
    '{"events": [{"type": "note", "text": "\\u0000"}]}',
    '{"events": [{"type": "other", "a": "\\u0000"}]}',
    '{"events": [{"type": "other", "\\ud800": 1}]}',
    '{"events": [{"type": "other", "a": ' + DEEP + "}]}",
    '{"events": [{"type": "score", "benchmark": "accuracy", "metric": "f1", "value": NaN}]}',
    '{"events": [{"type": "api_spend", "micros": -1, "currency": "EUR"}]}',
    '{"events": [{"type": "artifact", "path": "../x", "name": "x"}]}',
    '{"events": [1]}',
    '{"events": [' + ", ".join(['{"type": "note", "text": "x"}'] * 101) + "]}",
    '{"events": [{"type": "note", "text": "kept?"}, {"type": "note"}]}',
]
BAD_PATHS = [
    "",
    "..",
    "../x",
    "/x",
    "a//b",
    "a/../b",
    "x" * 1025,
    ".labsite/attempt-1/stdout.log",
    "a%0ab",
    "a%5Cb",
    "C:x",
    "/".join("a" * 40),
]


def test_what_it_may_not_send_is_refused_and_nothing_is_kept(
    running: tuple[Laboratory, Run, Caller, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    laboratory, run, caller, url = running
    for body in BAD_POINTS:
        assert caller.post(f"{url}/metrics", body).status_code == 422, body[:100]
    for body in BAD_EVENTS:
        assert caller.post(f"{url}/events", body).status_code == 422, body[:100]
    for path in BAD_PATHS:
        assert caller.post(f"{url}/artifacts?path={path}", b"x").status_code == 422, path
    assert caller.post(f"{url}/artifacts?path=a%00b", b"x").status_code == 400
    assert caller.post(f"{url}/artifacts?path=empty", b"").status_code == 422
    with laboratory.opened():
        assert not MetricSeries.objects.exists()
        assert not RunLine.objects.exists()
        assert not Artifact.objects.exists()
    huge = {"events": [{"type": "api_spend", "micros": 2**63 - 1, "currency": "EUR"}] * 3 + [{"type": "odd", "a": [1e308, 10**300, -0.0]}]}
    assert caller.post(f"{url}/events", json.dumps(huge)).status_code == 200
    monkeypatch.setattr(ingest, "MAX_LINES", 5)
    more = json.dumps({"events": [{"type": "note", "text": "x"}] * 2})
    assert caller.post(f"{url}/events", more).status_code == 409
    with laboratory.opened():
        assert Watch.objects.get(attempt__run=run).api_spend_micros == ingest.MAX_API_MICROS
    let_go(laboratory, run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    settled(laboratory)


def test_an_output_at_the_path_of_an_artifact_is_kept_beside_it() -> None:
    code = b"import os, time\nopen('../outputs/model', 'w').write('output')\n" + WAITS
    laboratory = make_laboratory(code=code)
    run, attempt = started(laboratory)
    caller = caller_of(laboratory, attempt)
    assert caller.post(f"/api/v1/workspaces/lab/runs/{run.public_id}/artifacts?path=model", b"sent").status_code == 201
    let_go(laboratory, run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert content(laboratory, run, "model") == b"sent"
        assert content(laboratory, run, ".labsite/attempt-1/outputs/model") == b"output"


def test_people_read_metrics_and_logs_cut_between_characters() -> None:
    code = "import sys\nsys.stdout.reconfigure(encoding='utf-8')\nprint('é名🙂' * 50)\n".encode()
    laboratory = make_laboratory(code=code)
    with laboratory.opened():
        run = launch(laboratory)
    drive(laboratory, run)
    reader = caller_for(laboratory, scopes=("run:read",))
    text, offset = "", 0
    while True:
        piece = reader.get(f"/api/v1/workspaces/lab/runs/{run.public_id}/logs?offset={offset}&limit=7").json()
        text, offset = text + piece["text"], piece["next_offset"]
        if piece["is_final"]:
            break
    assert text == "é名🙂" * 50 + "\n"
