"""The same Idempotency-Key has one effect, also where labsite dies between the effect and the answer, and where the first try is slow."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection
from django.test import Client
from django.utils import timezone

from runs.models import Artifact, Attempt, MetricChunk, MetricSeries, Run, RunLine
from runs.queries.order import token_id, token_secret
from tests.factories import make_user
from tests.factories_people import make_token
from tests.factories_runs import Laboratory, drive, make_laboratory
from tests.factories_seed import Caller
from tests.runs.attempts import WAITS, is_someone_waiting, let_go, started, until
from workspaces.api import idempotency
from workspaces.models import IdempotencyKey, Limit, Membership, Objective, Pool
from workspaces.queries import token

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]
POINTS = json.dumps({"points": [{"key": "loss", "value": 1.5, "step": step} for step in range(3)]})
EVENTS = json.dumps({"events": [{"type": "api_spend", "micros": 7, "currency": "EUR", "what": "labels"}]})


@pytest.fixture
def running(db: None) -> tuple[Laboratory, Run, Caller, str]:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    text = token.spell("run", laboratory.workspace.pk, token_id(attempt), token_secret(attempt))
    return laboratory, run, Caller(text), f"/api/v1/workspaces/lab/runs/{run.public_id}"


def counted(laboratory: Laboratory) -> tuple[int, int, int, int]:
    """Points by the summary and by the chunks, event lines, and what was spent."""
    with laboratory.opened():
        series = MetricSeries.objects.filter(key="loss").first()
        kept = sum(len(chunk.values) for chunk in MetricChunk.objects.filter(series=series)) if series else 0
        spent = Attempt.objects.get().watches.get().api_spend_micros
        return (series.count if series else 0), kept, RunLine.objects.count(), spent


def grow_old(laboratory: Laboratory) -> None:
    """Let the first try have been long ago, so that it counts as dead."""
    with laboratory.opened():
        IdempotencyKey.objects.update(created_at=timezone.now() - idempotency.AT_WORK - timedelta(seconds=1))


def dies(*_: object, **__: object) -> None:
    """End this server process's place in the database, as a crash would."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.parametrize(("path", "body", "expected"), [("metrics", POINTS, (3, 3, 0, 0)), ("events", EVENTS, (0, 0, 1, 7))])
def test_telemetry_is_kept_once_although_labsite_died_before_its_answer(
    running: tuple[Laboratory, Run, Caller, str], monkeypatch: pytest.MonkeyPatch, path: str, body: str, expected: tuple[int, int, int, int]
) -> None:
    laboratory, run, caller, url = running
    with monkeypatch.context() as patched:
        patched.setattr(idempotency, "_keep", dies)
        with pytest.raises(DatabaseError):
            caller.post(f"{url}/{path}", body, Idempotency_Key="k")
    connection.close()
    assert counted(laboratory) == (0, 0, 0, 0), "written without the answer that would be given again"
    assert caller.post(f"{url}/{path}", body, Idempotency_Key="k").status_code == 409, "the first may still be at work"
    grow_old(laboratory)
    answer = caller.post(f"{url}/{path}", body, Idempotency_Key="k")
    assert (answer.status_code, answer.has_header("Idempotent-Replayed")) == (200, False)
    assert counted(laboratory) == expected
    grow_old(laboratory)
    again = caller.post(f"{url}/{path}", body, Idempotency_Key="k")
    assert (again.content, again["Idempotent-Replayed"]) == (answer.content, "true")
    assert counted(laboratory) == expected
    let_go(laboratory, run)
    drive(laboratory, run)


def test_a_first_try_that_was_only_slow_is_waited_for(
    running: tuple[Laboratory, Run, Caller, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    laboratory, run, caller, url = running
    monkeypatch.setattr(idempotency, "AT_WORK", timedelta(0))
    keep, reached, released = idempotency._keep, threading.Event(), threading.Event()

    def keeps_late(*args: Any, **kwargs: Any) -> None:
        if not reached.is_set():
            reached.set()
            assert released.wait(20)
        keep(*args, **kwargs)

    monkeypatch.setattr(idempotency, "_keep", keeps_late)

    def send() -> Any:
        try:
            return caller.post(f"{url}/metrics", POINTS, Idempotency_Key="k")
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(send)
        assert reached.wait(20)
        second = pool.submit(send)
        try:
            until(is_someone_waiting, "the second request waits for the first")
        finally:
            released.set()
        answers = [first.result(20), second.result(20)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.has_header("Idempotent-Replayed") for answer in answers] == [False, True]
    assert counted(laboratory)[:2] == (3, 3)
    let_go(laboratory, run)
    drive(laboratory, run)


def test_an_artifact_is_kept_once(running: tuple[Laboratory, Run, Caller, str]) -> None:
    laboratory, run, caller, url = running
    first = caller.post(f"{url}/artifacts?path=model.bin", b"\x00\x01", Idempotency_Key="k")
    with laboratory.opened():
        IdempotencyKey.objects.all().delete()
    again = caller.post(f"{url}/artifacts?path=model.bin", b"\x00\x01", Idempotency_Key="k")
    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    with laboratory.opened():
        assert Artifact.objects.filter(path="model.bin").count() == 1
    let_go(laboratory, run)
    drive(laboratory, run)


MADE = [
    ("pools", {"engine": "local", "slug": "second", "slots": 1, "isolation": "none"}, Pool),
    ("objectives", {"statement": "Be faster"}, Objective),
    ("members", {"user": "newcomer", "role": "viewer"}, Membership),
    ("budgets", {"unit": "gpu_ms", "window": "month", "amount": 5_000, "mode": "warn"}, Limit),
    ("benchmarks", {"slug": "speed"}, None),
    ("datasets", {"slug": "games"}, None),
    ("agents", {"slug": "player"}, None),
]


@pytest.mark.parametrize(("noun", "body", "model"), MADE, ids=[noun for noun, _, _ in MADE])
def test_what_a_key_made_is_answered_again_although_its_answer_was_lost(noun: str, body: dict[str, Any], model: Any) -> None:
    laboratory = make_laboratory()
    make_user("newcomer")
    assert laboratory.owner.user is not None
    client = Client()
    client.force_login(laboratory.owner.user)
    first = client.post(f"/api/v1/workspaces/lab/{noun}", body, "application/json", headers={"Idempotency-Key": "k"})
    assert first.status_code == 201, first.content
    with laboratory.opened():
        IdempotencyKey.objects.all().delete()
        before = model.objects.count() if model else None
    again = client.post(f"/api/v1/workspaces/lab/{noun}", body, "application/json", headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])
    with laboratory.opened():
        assert model is None or model.objects.count() == before


def test_refusals_of_a_key_have_plain_titles() -> None:
    laboratory = make_laboratory()
    assert laboratory.owner.user is not None
    client = Client()
    client.force_login(laboratory.owner.user)
    url = "/api/v1/workspaces/lab/benchmarks"
    assert client.post(url, {"slug": "one"}, "application/json", headers={"Idempotency-Key": "k"}).status_code == 201
    other = client.post(url, {"slug": "two"}, "application/json", headers={"Idempotency-Key": "k"}).json()
    assert other["title"] == client.post(url, {}, "application/json").json()["title"]
    assert "another body" in other["detail"]


def test_a_first_request_that_ends_without_effect_this_moment_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second request finds the key taken; then the first was refused and its key is gone before the second looks."""
    laboratory = make_laboratory()
    _, secret = make_token(laboratory.workspace, laboratory.owner, "benchmark:write")

    def taken(*_: object, **__: object) -> None:
        raise IntegrityError("the key is taken")

    monkeypatch.setattr(IdempotencyKey.objects, "create", taken)
    answer = Caller(secret).post("/api/v1/workspaces/lab/benchmarks", json.dumps({"slug": "speed"}), Idempotency_Key="one")
    assert (answer.status_code, answer["Content-Type"]) == (409, "application/problem+json")


def test_a_key_holds_however_the_workspace_is_spelled() -> None:
    laboratory = make_laboratory()
    _, secret = make_token(laboratory.workspace, laboratory.owner, "benchmark:write")
    spellings = ("lab", "ws_lab", str(laboratory.workspace.pk))
    body = json.dumps({"slug": "speed"})
    answers = [Caller(secret).post(f"/api/v1/workspaces/{spelled}/benchmarks", body, Idempotency_Key="one") for spelled in spellings]
    assert [answer.status_code for answer in answers] == [201, 201, 201]
    assert len({answer.json()["id"] for answer in answers}) == 1
