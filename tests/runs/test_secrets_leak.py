"""A run prints its secret in every spelling wherever it can; afterwards the value is nowhere but sealed (facts: figure D5)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.apps import apps
from django.conf import settings
from django.db import connection
from django.test import Client
from django.urls import reverse

from labsite.owner import as_owner
from runs.lifecycle import RunStatus
from runs.models import Artifact, MetricSeries, Run, RunLine
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, drive, launch
from tests.factories_secrets import CANARY, SPELLINGS, make_secret, make_secret_laboratory, traces
from tests.rules.routes import routes
from tests.runs.attempts import content, folder_of, until
from workspaces.models import AuditEvent, EventPayload, Secret, SecretUse

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]

TELLS = (
    SPELLINGS
    + """
import os, sys
value = open("../secrets/HF_TOKEN").read()
token = open("../secrets/LABSITE_TOKEN").read()
os.makedirs("../outputs/" + "sub", exist_ok=True)
open("../outputs/mine.txt", "w").write("an output is the run's own")
open("../outputs/" + value.replace("/", "_")[:100] + base64.urlsafe_b64encode(value.encode()).decode(), "w").write("a name that tells")
events, metrics = open("../events.jsonl", "w"), open("../metrics.jsonl", "w")
def say(**line):
    events.write(json.dumps(line) + "\\n")
    events.write(json.dumps(line, ensure_ascii=False) + "\\n")
for number, told in enumerate([*spellings(value), token]):
    print("on stdout", told, "goes on")
    print("on stderr", told, file=sys.stderr)
    print(told)
    wrapped = base64.encodebytes(told.encode()).decode()
    print(wrapped)
    print("\\n".join(told[place:place + 7] for place in range(0, len(told), 7)))
    say(type="note", text="a note " + told)
    say(type="progress", done=1, total=2, text=told)
    say(type="api_spend", micros=0, currency="EUR", what=told)
    say(type="unheard of " + told[:200], deep={"in": [{told: told}]})
    say(type="memory_write", collection="c", kind="k", body={"said": told}, evidence=[told])
    say(type="score", benchmark="accuracy", metric="m" + told[:200], value=1)
    say(type="artifact", path="mine.txt", name="n" + told[:200], kind=told[:200], metadata={told: [told]})
    metrics.write(json.dumps({"key": "k" + told[:200], "value": 1, "step": number}) + "\\n")
    metrics.write(json.dumps({"key": "k" + told[:200], "value": 1, "step": number}, ensure_ascii=False) + "\\n")
events.write('{"type": "note", "text": "' + "".join("\\\\u%04x" % ord(one) for one in value) + '"}\\n')
events.write("not json " + value + "\\n")
say(type="done", status="failed", reason="because of " + value)
for file in (events, metrics):
    file.close()
sys.stdout.flush()
while not os.path.exists("../go"):
    time_is_short = open("../tmp/waits", "w")
    time_is_short.close()
sys.exit(value + token)
"""
).encode()
SEALED = {"workspaces.Secret": ["ciphertext"], "workspaces.SecretUse": ["ciphertext"]}


@pytest.fixture
def told(db: None) -> tuple[Laboratory, Run]:
    """A run that has told everything and waits; it is looked at while it lives, and again after its end."""
    laboratory = make_secret_laboratory(TELLS)
    make_secret(laboratory)
    with laboratory.opened():
        run = launch(laboratory)
    found = drive(laboratory, run, until=frozenset({RunStatus.RUNNING}))
    return laboratory, found


def test_a_value_that_a_run_prints_is_nowhere(told: tuple[Laboratory, Run]) -> None:
    laboratory, run = told
    with laboratory.opened():
        attempt = run.attempts.get()
        folder = folder_of(laboratory, attempt)
        said = _until_said(folder)
        assert CANARY.encode() in said, "the run must have printed it, or this test shows nothing"
        assert (folder / "secrets" / "HF_TOKEN").read_text() == CANARY
        assert (folder / "secrets" / "HF_TOKEN").stat().st_mode & 0o777 == 0o600
    client = client_of(laboratory.owner)
    live = dict(_pages(client, run))
    _nothing_in(live)
    shown = b"".join(live.values())
    assert b"[secret HF_TOKEN]" in shown and b"[secret LABSITE_TOKEN]" in shown, "the log is shown while it is written"
    assert live["stdout.log by pieces"] == live["workspaces/<workspace>/runs/<run>/log/"], "a piece may begin within a value"
    (folder / "go").touch()
    ended = drive(laboratory, run)
    assert ended.status == RunStatus.FAILED
    _nothing_in(dict(_pages(client, run)))
    with laboratory.opened():
        stored = {artifact.path: content(laboratory, run, artifact.path) for artifact in Artifact.objects.filter(run=run)}
        assert stored["mine.txt"] == b"an output is the run's own"
        _nothing_in({path: text for path, text in stored.items() if path.startswith(".labsite/")})
        _nothing_in({path: path.encode() for path in stored})
        assert len(stored[".labsite/attempt-1/stdout.log"]) == len(said), "what is blotted out keeps its length"
        assert b"[secret HF_TOKEN]" in stored[".labsite/attempt-1/stderr.log"]
        lines = RunLine.objects.filter(attempt=attempt)
        assert lines.filter(type="note").count() > 20 and all(
            line.body["reason"].startswith("because of [secret HF_TOKEN]") for line in lines.filter(type="done")
        )
        assert any(series.key.startswith("k[secret HF_TOKEN]") for series in MetricSeries.objects.filter(run=run))
        assert not folder.exists()
        use = SecretUse.objects.get()
        assert (use.ciphertext, use.run_id, use.run_label, use.attempt_key, use.version) == ("", run.pk, run.name, attempt.key, 1)
    _nothing_in(dict(_tables()))
    _nothing_in(dict(_queue()))
    _nothing_in({"store": b"".join(_stored(laboratory))})


def test_what_people_send_stays_sealed(db: None, caplog: pytest.LogCaptureFixture) -> None:
    laboratory = make_secret_laboratory(b"print(1)\n")
    client = client_of(laboratory.owner)
    new, api = reverse("secret-new", args=["lab"]), "/api/v1/workspaces/lab/secrets"
    answers = {
        "form, another field wrong": client.post(new, {"name": "not a name", "kind": "value", "value": CANARY}),
        "form, no key": client.post(new, {"name": "KEY", "kind": "ssh_key", "value": CANARY}),
        "form, agent unknown": client.post(new, {"name": "HF_TOKEN", "kind": "value", "value": CANARY, "agents": ["nobody"]}),
        "form": client.post(new, {"name": "HF_TOKEN", "kind": "value", "value": CANARY, "agents": ["worker"], "pools": ["local"]}),
        "form, there already": client.post(new, {"name": "HF_TOKEN", "kind": "value", "value": CANARY}),
        "api, key unknown": client.post(api, {"name": "B", "value": CANARY, "what": 1}, content_type="application/json"),
        "api, kind unknown": client.post(api, {"name": "B", "value": CANARY, "kind": CANARY}, content_type="application/json"),
        "api, no key": client.post(api, {"name": "B", "value": CANARY, "kind": "ssh_key"}, content_type="application/json"),
        "api, value in another's place": client.post(api, {"name": "B", "value": {"a": CANARY}}, content_type="application/json"),
        "api, broken": client.post(api, f'{{"name": "B", "value": "{CANARY}', content_type="application/json"),
        "api, twice": client.post(api, {"name": "B2", "value": CANARY}, content_type="application/json", headers={"Idempotency-Key": "k"}),
    }
    statuses = {name: answer.status_code for name, answer in answers.items()}
    assert statuses == {
        "form, another field wrong": 409, "form, no key": 409, "form, agent unknown": 422, "form": 303, "form, there already": 409,
        "api, key unknown": 422, "api, kind unknown": 422, "api, no key": 422, "api, value in another's place": 422, "api, broken": 400,
        "api, twice": 201,
    }  # fmt: skip
    _nothing_in({name: answer.content for name, answer in answers.items()})
    with laboratory.opened():
        secret = Secret.objects.get(name="HF_TOKEN")
    other = "another-" + CANARY
    rotate = reverse("secret-rotate", args=["lab", secret.public_id])
    assert client.post(rotate, {"value": other}).status_code == 303
    assert client.post(rotate, {"value": other}).status_code == 409
    assert client.post(f"{api}/HF_TOKEN/rotate", {"value": CANARY}, content_type="application/json").status_code == 200
    _nothing_in(dict(_tables()))
    _nothing_in(dict(_queue()))
    _nothing_in({"log": caplog.text.encode()})
    with laboratory.opened():
        events = AuditEvent.objects.filter(verb__startswith="secret.")
        assert sorted(events.values_list("verb", flat=True)) == ["secret.created", "secret.created", "secret.rotated", "secret.rotated"]
        bodies = str(list(EventPayload.objects.filter(event__in=events).values_list("body", flat=True)))
        assert secret.ciphertext not in bodies and Secret.objects.get(pk=secret.pk).ciphertext not in bodies


# --- Where it might be --------------------------------------------------------------------------------------------------------------------


def _nothing_in(places: dict[str, bytes]) -> None:
    found = {(place, trace) for place, text in places.items() for trace in traces(CANARY) if trace in text.translate(None, b"\r\n")}
    assert places and not found


def _until_said(folder: Path) -> bytes:
    until(lambda: (folder / "tmp" / "waits").exists(), "the run has said everything")
    return (folder / "stdout.log").read_bytes()


def _pages(client: Client, run: Run) -> Iterator[tuple[str, bytes]]:
    """Every page and API answer that can be read of the workspace with this run's ids, the log by small pieces among them."""
    for route in routes():
        if route.method != "GET" or not route.is_in_workspace:
            continue
        values = {
            "workspace": "lab",
            "run": run.public_id,
            "agent": "worker",
            "pool": "local",
            "benchmark": "accuracy",
            "secret": "HF_TOKEN",
        }
        if set(route.parameters) - set(values):
            continue
        yield route.path, _body(client, route.url(**values))
    base, api = f"/workspaces/lab/runs/{run.public_id}/", f"/api/v1/workspaces/lab/runs/{run.public_id}"
    for address in _linked(client, base):
        yield address, _body(client, address)
    for name in ("stdout.log", "stderr.log", "events.jsonl", "metrics.jsonl"):
        offset, size = 0, 0
        text = b""
        while size < 1000:
            answer = client.get(f"{api}/logs", {"name": name, "offset": offset, "limit": 997})
            assert answer.status_code == 200
            if answer.json()["next_offset"] == offset:
                break
            text += str(answer.json()["text"]).encode()
            offset, size = answer.json()["next_offset"], size + 1
        yield f"{name} by pieces", text


def _linked(client: Client, base: str) -> set[str]:
    page = _body(client, base).decode()
    return {link.replace("&amp;", "&") for link in re.findall(r'href="(/workspaces/lab/[^"#]*)"', page)} | {
        f"{base}?tab={tab}" for tab in ("log", "files", "metrics", "audit", "cost")
    }  # fmt: skip


def _body(client: Client, address: str) -> bytes:
    answer: Any = client.get(address)
    assert answer.status_code < 500, address
    return b"".join(answer.streaming_content) if answer.streaming else bytes(answer.content)


def _tables() -> Iterator[tuple[str, bytes]]:
    """Every row of every table as its owner reads it, but for what is sealed."""
    with as_owner(), connection.cursor() as cursor:
        for model in (model for model in apps.get_models(include_auto_created=True) if model._meta.managed):
            table, sealed = model._meta.db_table, SEALED.get(model._meta.label, [])
            cursor.execute("SELECT relrowsecurity FROM pg_class WHERE oid = %s::regclass", [table])
            secured = cursor.fetchone()[0]
            if secured:
                cursor.execute(f'ALTER TABLE "{table}" NO FORCE ROW LEVEL SECURITY')
            cursor.execute(f"SELECT coalesce(string_agg((to_jsonb(row) - %s::text[])::text, chr(10)), '') FROM \"{table}\" row", [sealed])
            text = cursor.fetchone()[0]
            if secured:
                cursor.execute(f'ALTER TABLE "{table}" FORCE ROW LEVEL SECURITY')
            yield table, text.encode() + text.encode().decode("unicode_escape", errors="replace").encode(errors="replace")


def _queue() -> Iterator[tuple[str, bytes]]:
    server = redis.Redis.from_url(settings.RQ_QUEUES["default"]["URL"])
    yield "the queue", b"".join(key + (server.dump(key) or b"") for key in server.scan_iter())


def _stored(laboratory: Laboratory) -> Iterator[bytes]:
    """Everything in the workspace's store but the file that the run named by its secret, whose content is its own."""
    root = settings.LABSITE_REGIONS["local"]
    assert isinstance(root, Path)
    for path in root.rglob("*"):
        if path.is_file():
            yield path.read_bytes()


BACKWARDS = """
import json
value = open("../secrets/HF_TOKEN").read()
told = (value[0].encode()[:1] + value.encode()[::-1] + value[-1].encode()[1:]).decode()
with open("../events.jsonl", "w") as events, open("../metrics.jsonl", "w") as metrics:
    for said in (told, "n" + value):
        lines = [{"type": "note", "text": said}, {"type": "artifact", "path": "a", "name": said}, {"type": said[:40], "a": {said: said}}]
        for line in lines:
            events.write(json.dumps(line, ensure_ascii=False) + "\\n")
        metrics.write(json.dumps({"key": said, "value": 1, "step": 0}, ensure_ascii=False) + "\\n")
    metrics.write(json.dumps({"key": "loss", "value": 1, "step": 0}) + "\\n")
open("../outputs/a", "w").write("an output")
"""


def test_a_value_of_wide_characters_told_backwards_stops_nothing() -> None:
    value = "пароли" * 40  # twice as many bytes as characters
    laboratory = make_secret_laboratory(BACKWARDS.encode())
    make_secret(laboratory, value)
    with laboratory.opened():
        run = launch(laboratory)
    ended = drive(laboratory, run)
    with laboratory.opened():
        assert ended.status == RunStatus.SUCCEEDED
        keys = set(MetricSeries.objects.filter(run=run).values_list("key", flat=True))
        assert "loss" in keys and sum("[secret HF_TOKEN]" in key for key in keys) == 2
        assert RunLine.objects.filter(attempt__run=run, type="note").count() == 2
        assert Artifact.objects.filter(run=run, path="a").exists()
