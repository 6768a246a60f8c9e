"""Secrets and runs: who may read which is decided at admission and again at the start; what was handed out is on record, and then forgotten."""

import json
from typing import Any

import pytest
from django.test import Client
from django.test.utils import override_settings

from runs.admission import decide
from runs.admission_facts import Facts, facts_from
from runs.commands.secret import hand_out
from runs.lifecycle import RunStatus
from runs.models import Attempt, Certificate, Run
from runs.queries.order import token_text
from runs.queries.replay import unlike_their_facts
from tests.factories_pages import client_of
from tests.factories_registry import make_benchmark
from tests.factories_runs import Laboratory, dispatch, drive, launch, make_laboratory, watch
from tests.factories_secrets import PLAIN, make_secret, make_secret_laboratory
from tests.factories_seed import Caller
from tests.runs.attempts import WAITS, content, folder_of, let_go, settled, started
from workspaces.audit import Refusal
from workspaces.commands.secret import change_secret, revoke_secret, rotate_secret
from workspaces.models import Agent, Benchmark, Pool, Secret, SecretUse
from workspaces.queries.secret import find_secret

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]

SAYS = b"import os\nvalue = open('../secrets/HF_TOKEN').read()\nprint(len(value), value[:6], os.environ.get('HF_TOKEN'), value)\n"
WAITS_AND_SAYS = WAITS + b"print(open('../secrets/HF_TOKEN').read())\n"


def refused(laboratory: Laboratory) -> str:
    with laboratory.opened(), pytest.raises(Refusal) as refusal:
        launch(laboratory)
    return str(refusal.value)


def raw(client: Client, address: str) -> bytes:
    answer: Any = client.get(address)
    return b"".join(answer.streaming_content)


def test_an_agent_reads_its_secret_as_a_file() -> None:
    laboratory = make_secret_laboratory(SAYS)
    secret = make_secret(laboratory, PLAIN)
    with laboratory.opened():
        run = launch(laboratory)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        said = content(laboratory, run, ".labsite/attempt-1/stdout.log").decode()
        assert said == f"{len(PLAIN)} {PLAIN[:6]} None [secret HF_TOKEN]" + "*" * (len(PLAIN) - 17) + "\n"
        use = SecretUse.objects.get()
        assert (use.secret_id, use.agent.slug, use.agent_version, use.run_id, use.version) == (secret.pk, "worker", 2, run.pk, 1)
    page = client_of(laboratory.owner).get(f"/workspaces/lab/secrets/{secret.public_id}/").content.decode()
    assert f"/workspaces/lab/runs/{run.public_id}/" in page and run.name in page
    uses = client_of(laboratory.owner).get("/api/v1/workspaces/lab/secrets/HF_TOKEN/uses").json()["items"]
    assert [(use["run"], use["agent"], use["agent_version"], use["version"]) for use in uses] == [(run.public_id, "worker", 2, 1)]
    settled(laboratory)


def test_a_launch_is_refused_until_the_secret_is_there_and_allowed() -> None:
    laboratory = make_secret_laboratory(SAYS)
    assert "There is no secret HF_TOKEN here. Make it, or publish a version" in refused(laboratory)
    secret = make_secret(laboratory, PLAIN, agents=[], pools=[])
    assert "The secret HF_TOKEN is not allowed to the agent worker and the pool local." in refused(laboratory)
    with laboratory.opened():
        change_secret(actor=laboratory.owner, secret=secret, agents=[Agent.objects.find("worker")])
    assert "is not allowed to the pool local. Whoever manages secrets allows it on the secret's page." in refused(laboratory)
    with laboratory.opened():
        other = make_benchmark(laboratory.owner, "other")
        change_secret(actor=laboratory.owner, secret=secret, pools=[Pool.objects.find("local")], benchmarks=[other])
    assert "is not allowed to the benchmark accuracy." in refused(laboratory)
    with laboratory.opened():
        change_secret(actor=laboratory.owner, secret=secret, benchmarks=[other, Benchmark.objects.find("accuracy")])
        run = launch(laboratory)
        certificate = Certificate.objects.get(pk=run.certificate_id)
        line = next(line for line in certificate.lines if line["name"] == "Secrets")
        assert (line["answer"], line["words"]) == ("pass", "It reads HF_TOKEN.")
        assert PLAIN not in json.dumps([certificate.lines, certificate.facts, certificate.request])
        revoke_secret(actor=laboratory.owner, secret=secret, reason="leaked")
    assert "The secret HF_TOKEN was revoked. Make a new one of that name" in refused(laboratory)
    with laboratory.opened():
        assert Certificate.objects.count() == 6 and not list(unlike_their_facts())


def test_certificates_of_before_are_decided_as_they_were() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        kept = Certificate.objects.get(pk=launch(laboratory).certificate_id)
        assert "Secrets" not in [line["name"] for line in kept.lines], "an agent that reads none is not asked"
        before = {name: value for name, value in kept.facts.items() if name != "secrets"}
        assert decide(facts_from(before)).as_json() == kept.lines
        assert isinstance(facts_from(kept.facts), Facts)


@pytest.mark.parametrize("taken", ["revoked", "pool", "agent"])
def test_what_was_taken_since_admission_fails_the_start(taken: str) -> None:
    laboratory = make_secret_laboratory(SAYS)
    secret = make_secret(laboratory, PLAIN)
    with laboratory.opened():
        run = launch(laboratory)
        if taken == "revoked":
            revoke_secret(actor=laboratory.owner, secret=secret, reason="leaked")
        else:
            change_secret(actor=laboratory.owner, secret=secret, **{f"{taken}s": []})  # type: ignore[arg-type]  # one of its lists
    dispatch(laboratory)
    watch(laboratory)
    with laboratory.opened():
        found = Run.objects.get(pk=run.pk)
        words = "The secret HF_TOKEN was revoked." if taken == "revoked" else "The secret HF_TOKEN is not allowed to the " + taken
        assert (found.status, found.reason_code) == (RunStatus.FAILED, "could_not_start")
        assert found.reason.startswith(f"It could not start. {words}"), found.reason
        assert not SecretUse.objects.exists(), "nobody got it"
        folder = folder_of(laboratory, Attempt.objects.get(run=run))
        assert not list(folder.rglob("HF_TOKEN"))
    settled(laboratory)


def test_a_run_keeps_the_value_that_it_began_with_and_its_log_hides_that_one() -> None:
    laboratory = make_secret_laboratory(WAITS_AND_SAYS)
    secret = make_secret(laboratory, PLAIN)
    run, attempt = started(laboratory)
    with laboratory.opened():
        rotate_secret(actor=laboratory.owner, secret=secret, value="quite-another-value")
        assert SecretUse.objects.exclude(ciphertext="").count() == 1
    page = client_of(laboratory.owner).get(f"/workspaces/lab/secrets/{secret.public_id}/").content.decode()
    assert "Runs that still have an earlier value" in page
    with laboratory.opened():
        revoke_secret(actor=laboratory.owner, secret=find_secret("HF_TOKEN"), reason="leaked")
    let_go(laboratory, run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        said = content(laboratory, run, ".labsite/attempt-1/stdout.log").decode()
        assert PLAIN not in said and "[secret HF_TOKEN]" in said
        assert not SecretUse.objects.exclude(ciphertext="").exists(), "it is kept no longer than the run needs"
        assert not folder_of(laboratory, attempt).exists()
    assert "Runs that still have" not in client_of(laboratory.owner).get(f"/workspaces/lab/secrets/{secret.public_id}/").content.decode()


def test_a_second_submission_hands_out_the_same() -> None:
    laboratory = make_secret_laboratory(WAITS_AND_SAYS)
    secret = make_secret(laboratory, PLAIN)
    run, attempt = started(laboratory)
    with laboratory.opened():
        rotate_secret(actor=laboratory.owner, secret=secret, value="quite-another-value")
        assert hand_out(attempt) == {"HF_TOKEN": PLAIN}
        assert SecretUse.objects.count() == 1
    let_go(laboratory, run)
    drive(laboratory, run)


def test_an_attempt_that_has_a_secret_keeps_it_when_it_is_revoked() -> None:
    laboratory = make_secret_laboratory(WAITS)
    secret = make_secret(laboratory, PLAIN)
    run, attempt = started(laboratory)
    with laboratory.opened():
        revoke_secret(actor=laboratory.owner, secret=secret, reason="it leaked")
        assert hand_out(attempt) == {"HF_TOKEN": PLAIN}, "a submission that is repeated is not refused halfway"
    let_go(laboratory, run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED


def test_what_a_run_sends_by_the_api_hides_its_secret() -> None:
    laboratory = make_secret_laboratory(WAITS_AND_SAYS)
    make_secret(laboratory, PLAIN)
    run, attempt = started(laboratory)
    with laboratory.opened():
        caller = Caller(token_text(attempt))
    url = f"/api/v1/workspaces/lab/runs/{run.public_id}"
    points = {"points": [{"key": f"k/{PLAIN}", "value": 1, "step": 1}]}
    events = {"events": [{"type": "note", "text": PLAIN}, {"type": "new", "a": {PLAIN: caller.token}}]}
    assert caller.post(f"{url}/metrics", json.dumps(points)).status_code == 200
    assert caller.post(f"{url}/events", json.dumps(events)).status_code == 200
    stored = caller.post(f"{url}/artifacts?path={PLAIN}.bin&name={PLAIN}", b"x")
    assert stored.status_code == 201 and PLAIN not in stored.content.decode()
    with laboratory.opened():
        found = Run.objects.get(pk=run.pk)
        text = json.dumps(
            [list(found.series.values_list("key", flat=True)), list(attempt.lines.values_list("body", flat=True)),
             list(found.artifacts.values_list("path", "name"))]
        )  # fmt: skip
        assert PLAIN not in text and caller.token not in text and text.count("[secret HF_TOKEN]") >= 4
    let_go(laboratory, run)
    drive(laboratory, run)


def test_a_value_that_cannot_be_opened_is_shown_to_nobody() -> None:
    """The key is lost: what the run wrote cannot be cleared of it, so it is not shown, and nothing new starts."""

    class Lost:
        def find(self, name: str) -> None:
            return None

    laboratory = make_secret_laboratory(WAITS_AND_SAYS)
    make_secret(laboratory, PLAIN)
    run, _ = started(laboratory)
    client: Client = client_of(laboratory.owner)
    log = f"/workspaces/lab/runs/{run.public_id}/log/?stream=stdout"
    with override_settings(SECRETS_KEYS=Lost()):
        assert raw(client, log) == b""
        with laboratory.opened():
            second = launch(laboratory)
        dispatch(laboratory)
        with laboratory.opened():
            assert "cannot be opened" in Run.objects.get(pk=second.pk).reason
    assert b"waiting" in raw(client, log)
    let_go(laboratory, run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert Secret.objects.count() == 1
