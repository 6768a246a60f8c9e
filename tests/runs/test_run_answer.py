"""From a score to data, code, person and cost by the API alone; and filters that name things."""

import hashlib
import json
from typing import Any

import pytest

from runs.queries.queue import waiting_runs
from tests.factories_runs import HOUR, Laboratory, drive, launch, make_laboratory
from tests.factories_seed import Caller, caller_for
from workspaces.commands.limit import set_limit
from workspaces.commands.pool import change_pool
from workspaces.models import Limit, Pool, Unit

BASE = "/api/v1/workspaces/lab"
CODE = b"""
import json
with open("../events.jsonl", "a") as lines:
    lines.write(json.dumps({"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.75, "stderr": 0.02, "samples": 400}) + "\\n")
with open("../outputs/model.bin", "wb") as model:
    model.write(b"weights")
print("trained")
"""
SCOPES = tuple(f"{kind}:read" for kind in ("run", "artifact", "evaluation", "benchmark", "dataset", "agent", "budget", "audit", "approval"))


def asker(laboratory: Laboratory) -> Caller:
    return caller_for(laboratory, scopes=(*SCOPES, "run:write"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.pool
def test_everything_that_a_score_rests_on_is_found_from_it() -> None:
    laboratory = make_laboratory(code=CODE)
    with laboratory.opened():
        change_pool(actor=laboratory.owner, pool=Pool.objects.get(slug="local"), price_micros_per_gpu_hour=3_600_000_000, currency="CHF")
        run = launch(laboratory, reason="a first look")
    waiting = asker(laboratory).get(f"{BASE}/runs/{run.public_id}").json()
    assert (waiting["cost"]["is_settled"], waiting["cost"]["micros"]) == (False, waiting["reserved_gpu_ms"] * 1000)
    drive(laboratory, run)
    caller = asker(laboratory)

    (score,) = caller.get(f"{BASE}/evaluations?benchmark=bench_accuracy").json()["items"]
    assert (score["value"], score["standard_error"], score["samples"]) == (0.75, 0.02, 400)
    found = caller.get(f"{BASE}/runs/{score['run_id']}").json()

    shown = {key: found["scores"][0][key] for key in ("benchmark_id", "contract_version", "metric", "value", "standard_error")}
    assert shown == {key: score[key] for key in shown}
    assert (found["requested_by"], found["trigger"], found["trigger_reason"]) == ("lab-owner", "person", "a first look")
    assert found["cost"] == {
        "micros": found["spent_gpu_ms"] * 1000, "currency": "CHF", "is_settled": True, "gpu_ms": found["spent_gpu_ms"], "api_micros": 0,
        "price_micros_per_gpu_hour": 3_600_000_000,
    }  # fmt: skip
    assert found["cost"]["micros"] > 0
    assert [(attempt["number"], attempt["status"], attempt["exit_code"]) for attempt in found["attempts"]] == [(1, "ended", 0)]

    (data,) = found["inputs"]
    version = caller.get(f"{BASE}/datasets/{data['dataset_id']}/versions/{data['dataset_version']}").json()
    assert (version["content_hash"], version["role"], version["id"]) == (data["sha256"], data["role"], data["dataset_version_id"])

    code = caller.get(found["links"]["code"]).json()
    assert (code["bundle_hash"], code["content_hash"]) == (found["code_hash"], found["agent_version_hash"])
    (file,) = code["files"]
    content = b"".join(caller.get(f"{found['links']['code']}/files/{file['path']}").streaming_content)
    assert content == CODE
    assert hashlib.sha256(content).hexdigest() == file["sha256"]

    links = found["links"]
    assert caller.get(links["benchmark"]).json()["contract"]["content_hash"] == found["contract_hash"]
    assert caller.get(links["certificate"]).json()["id"] == found["certificate"]
    assert "model.bin" in [item["name"] for item in caller.get(links["artifacts"]).json()["items"]]
    assert caller.get(links["logs"]["stdout.log"]).json()["text"] == "trained\n"
    assert caller.get(links["evaluations"]).json()["items"][0]["id"] == found["scores"][0]["id"]
    assert {entry["act"] for entry in caller.get(links["ledger"]).json()["items"]} >= {"reserve", "spend"}
    assert "launch.admitted" in [event["verb"] for event in caller.get(links["events"]).json()["items"]]
    assert caller.get(links["metrics"]).status_code == 200
    assert links["approval"] is None


@pytest.mark.django_db
def test_what_waits_for_an_approver_names_the_request() -> None:
    laboratory = make_laboratory()
    caller = asker(laboratory)
    with laboratory.opened():
        set_limit(
            actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=HOUR, mode=Limit.Mode.APPROVAL, reason="start"
        )  # fmt: skip
    body = {"benchmark_id": "accuracy", "agent_id": "worker", "dataset_ids": ["table"], "budget": {"gpu_hours": 2}}
    made = caller.post(f"{BASE}/runs", json.dumps(body)).json()
    assert made["status"] == "awaiting_approval"
    approval = caller.get(made["links"]["approval"]).json()
    assert (approval["id"], approval["status"]) == (made["approval"], "pending")
    assert len(approval["content_hash"]) == 64
    assert approval["content"]


FILTERS = [
    ("runs", "benchmark", "bench_accuracy"), ("runs", "agent", "worker"), ("runs", "pool", "pool_local"), ("artifacts", "run", ""),
    ("evaluations", "run", ""), ("evaluations", "benchmark", "accuracy"), ("ledger", "run", ""),
]  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize(("noun", "key", "name"), FILTERS)
def test_a_filter_takes_every_spelling_and_says_when_nothing_is_meant(noun: str, key: str, name: str) -> None:
    laboratory, elsewhere = make_laboratory(), make_laboratory("elsewhere")
    with laboratory.opened():
        run = launch(laboratory)
        row: Any = {"benchmark": run.benchmark, "agent": run.agent, "pool": run.pool, "run": run}[key]
    with elsewhere.opened():
        theirs = launch(elsewhere)
        foreign: Any = {"benchmark": theirs.benchmark, "agent": theirs.agent, "pool": theirs.pool, "run": theirs}[key]
    caller = asker(laboratory)
    answers = [caller.get(f"{BASE}/{noun}?{key}={text}") for text in (row.public_id, str(row.pk), row.pk.hex, name or row.public_id)]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    if noun in ("runs", "ledger"):
        assert answers[0].json()["items"]
    bodies = set()
    for text in (foreign.public_id if key == "run" else foreign.pk.hex, "0" * 32, "nowhere", "%3B--", "9" * 190):
        answer = caller.get(f"{BASE}/{noun}?{key}={text}")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, key)
        bodies.add(answer.content)
    assert len(bodies) == 1, "a foreign thing can be told from a missing one"


@pytest.mark.django_db
def test_a_status_that_no_run_has_is_refused() -> None:
    laboratory = make_laboratory()
    caller = asker(laboratory)
    assert caller.get(f"{BASE}/runs?status=queued").json()["items"] == []
    refused = caller.get(f"{BASE}/runs?status=done")
    assert refused.status_code == 422
    assert "succeeded" in refused.json()["errors"][0]["message"]


@pytest.mark.django_db
def test_the_queue_says_why_as_the_page_does_and_is_paged() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        names = [launch(laboratory).public_id for _ in range(5)]
        expected = [(waiting.run.public_id, waiting.place, waiting.reason, waiting.release) for waiting in waiting_runs().items]
    caller = asker(laboratory)
    seen: list[Any] = []
    cursor = ""
    while True:
        page = caller.get(f"{BASE}/queue?limit=2{cursor}").json()
        seen += [(item["run_id"], item["position"], item["reason"], item["release"]) for item in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == expected
    assert [run for run, *_ in seen] == names
    first = caller.get(f"{BASE}/queue?limit=2").json()
    caller.post(f"{BASE}/runs/{names[1]}/cancel")
    rest = caller.get(f"{BASE}/queue?limit=9&cursor={first['next']}").json()["items"]
    assert [item["run_id"] for item in rest] == names[2:], "a run that left between two pages moves nobody out of sight"
