"""The request of the first document, byte for byte, and everything that may be wrong with one like it."""

import base64
import json
from typing import Any

import pytest

from runs.models import Certificate, Run
from tests.factories import make_member
from tests.factories_runs import HOUR, Laboratory, make_laboratory
from tests.factories_seed import BODY, URL, Caller, caller_for, make_seed_workspace
from workspaces.access import Role
from workspaces.models import Agent, Benchmark, Dataset, IdempotencyKey, Pool

pytestmark = pytest.mark.django_db


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_seed_workspace()


@pytest.fixture
def caller(laboratory: Laboratory) -> Caller:
    return caller_for(laboratory)


def asked(**changed: Any) -> str:
    return json.dumps({**json.loads(BODY), **changed})


def test_the_seeds_request_makes_a_run(laboratory: Laboratory, caller: Caller) -> None:
    answer = caller.post(URL, BODY)
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert (made["status"], made["id"][:4], made["url"]) == ("queued", "run_", f"/workspaces/123/runs/{made['id']}/")
    assert made["id"] == f"run_{made['uuid'].replace('-', '')}"
    assert (made["benchmark_id"], made["agent_id"], made["compute_pool_id"]) == (
        "bench_autogo-fast-learning", "agent_policy-runner", "pool_ssh-a100",
    )  # fmt: skip
    assert made["inputs"][0]["slug"] == "self-play-window-42"
    assert 23.99 * HOUR < made["reserved_gpu_ms"] <= 24 * HOUR
    found = caller.get(f"{URL}/{made['id']}")
    assert (found.status_code, found.json()) == (200, made)
    certificate = caller.get(f"/api/v1/workspaces/ws_123/certificates/{made['certificate']}").json()
    assert certificate["verdict"] == "admitted"
    weekly = next(line for line in certificate["lines"] if line["unit"] == "gpu_ms")
    assert (weekly["answer"], weekly["allowed"], weekly["asked"]) == ("pass", 100 * HOUR, made["reserved_gpu_ms"])
    queue = caller.get("/api/v1/workspaces/ws_123/queue").json()
    assert [(item["run_id"], item["position"]) for item in queue["items"]] == [(made["id"], 1)]
    cancelled = caller.post(f"{URL}/{made['id']}/cancel", '{"reason": "seen enough"}')
    assert (cancelled.status_code, cancelled.json()["status"], cancelled.json()["reason"]) == (200, "cancelled", "seen enough")
    assert caller.get("/api/v1/workspaces/ws_123/queue").json()["items"] == []
    assert caller.post(f"{URL}/{made['id']}/cancel").status_code == 409


def test_ids_slugs_and_uuids_are_taken_alike_in_path_and_body(laboratory: Laboratory, caller: Caller) -> None:
    with laboratory.opened():
        keys = {
            "benchmark_id": Benchmark.objects.get(slug="autogo-fast-learning").pk,
            "agent_id": Agent.objects.get(slug="policy-runner").pk,
            "compute_pool_id": Pool.objects.get(slug="ssh-a100").pk,
        }
        dataset = Dataset.objects.get(slug="self-play-window-42").pk
    key = laboratory.workspace.pk
    small = {"budget": {"gpu_hours": 0.1}}
    slugs = asked(
        benchmark_id="autogo-fast-learning", agent_id="policy_runner", dataset_ids=["self-play-window-42"], compute_pool_id="ssh-a100", **small
    )  # fmt: skip
    by_key = asked(**{name: str(value) for name, value in keys.items()}, dataset_ids=[dataset.hex], **small)
    versioned = asked(dataset_ids=["ds_self-play-window-42@1"], **small)
    hashes = set()
    for workspace in ("ws_123", "123", str(key), key.hex, f"ws_{key.hex}"):
        for body in (slugs, by_key, versioned):
            answer = caller.post(f"/api/v1/workspaces/{workspace}/runs", body)
            assert answer.status_code == 201, answer.content
            hashes.add(answer.json()["content_hash"])
            for name in (answer.json()["id"], answer.json()["uuid"], answer.json()["uuid"].replace("-", "")):
                assert caller.get(f"/api/v1/workspaces/{workspace}/runs/{name}").status_code == 200
    assert len(hashes) == 1


def test_a_refusal_is_a_problem_with_its_certificate(laboratory: Laboratory, caller: Caller) -> None:
    for _ in range(4):
        assert caller.post(URL, BODY).status_code == 201
    answer = caller.post(URL, BODY)
    problem = answer.json()
    assert (answer.status_code, answer["Content-Type"]) == (409, "application/problem+json")
    assert (problem["status"], problem["title"]) == (409, "Conflict")
    assert "would make 120 of 100 this week" in problem["errors"][0]["message"]
    certificate = caller.get(f"/api/v1/workspaces/ws_123/certificates/{problem['certificate']}").json()
    assert certificate["verdict"] == "refused"
    with laboratory.opened():
        assert Run.objects.count() == 4


@pytest.mark.parametrize("field", ["benchmark_id", "agent_id", "compute_pool_id", "dataset_ids", "artifact_ids"])
def test_foreign_and_missing_things_are_the_same_404(laboratory: Laboratory, caller: Caller, field: str) -> None:
    other = make_laboratory("other")
    with other.opened():
        keys = {
            "benchmark_id": Benchmark.objects.get().pk,
            "agent_id": Agent.objects.get().pk,
            "compute_pool_id": Pool.objects.get().pk,
            "dataset_ids": Dataset.objects.get().pk,
        }
        key = keys.get(field, other.workspace.pk)
    bodies = []
    for name in (str(key), key.hex, "0" * 32, "nowhere", "ws_other"):
        answer = caller.post(URL, asked(**{field: [name] if field.endswith("ids") else name}))
        assert answer.status_code == 404, answer.content
        bodies.append(answer.content)
    assert len(set(bodies)) == 1
    answers = [caller.get(f"{URL}/{name}") for name in (str(key), "run_nowhere")]
    assert {answer.status_code for answer in answers} == {404}


def test_who_may_not_is_told_so(laboratory: Laboratory) -> None:
    assert Caller("nonsense").post(URL, BODY).status_code == 401
    viewer = make_member(laboratory.workspace, Role.VIEWER)
    assert caller_for(laboratory, viewer, ("run:read",)).post(URL, BODY).status_code == 403
    reader = caller_for(laboratory, scopes=("run:read",))
    assert reader.get(URL).status_code == 200
    assert reader.post(URL, BODY).status_code == 403
    stranger = make_laboratory("elsewhere")
    from_elsewhere = caller_for(stranger)
    missing = from_elsewhere.post("/api/v1/workspaces/nowhere/runs", BODY)
    assert (from_elsewhere.post(URL, BODY).status_code, missing.status_code) == (404, 404)
    assert from_elsewhere.post(URL, BODY).content == missing.content
    with laboratory.opened():
        assert not Run.objects.exists()


def test_one_key_one_run(laboratory: Laboratory, caller: Caller) -> None:
    first = caller.post(URL, BODY, Idempotency_Key="k1")
    again = caller.post(URL, BODY, Idempotency_Key="k1")
    assert (first.status_code, again.status_code, again.content) == (201, 201, first.content)
    assert again["Idempotent-Replayed"] == "true"
    assert caller.post(URL, asked(priority=1), Idempotency_Key="k1").status_code == 422
    assert caller.post(URL, BODY, Idempotency_Key="k2").json()["id"] != first.json()["id"]
    with laboratory.opened():
        assert Run.objects.count() == 2
        IdempotencyKey.objects.filter(key="k1").update(status=None)
    assert caller.post(URL, BODY, Idempotency_Key="k1").status_code == 409, "the first is still at work"


@pytest.mark.parametrize(("wrong", "status"), [({"surprise": 1}, 422), ({"agent_id": "nobody"}, 404), ({"budget": {"gpu_hours": -1}}, 422)])
def test_what_came_to_nothing_spends_no_key(laboratory: Laboratory, caller: Caller, wrong: dict[str, Any], status: int) -> None:
    for _ in range(2):
        answer = caller.post(URL, asked(**wrong), Idempotency_Key="k1")
        assert (answer.status_code, answer.has_header("Idempotent-Replayed")) == (status, False)
    assert caller.post(URL, BODY, Idempotency_Key="k1").status_code == 201, "the key of a request that came to nothing is taken"


def test_a_crash_before_the_answer_was_kept_makes_no_second_run(laboratory: Laboratory, caller: Caller) -> None:
    first = caller.post(URL, BODY, Idempotency_Key="k1").json()
    caller.post(f"{URL}/{first['id']}/cancel")
    retried = caller.post(f"{URL}/{first['id']}/retry", Idempotency_Key="r1").json()
    with laboratory.opened():
        IdempotencyKey.objects.all().delete()
    assert caller.post(URL, BODY, Idempotency_Key="k1").json()["id"] == first["id"]
    assert caller.post(f"{URL}/{first['id']}/retry", Idempotency_Key="r1").json()["id"] == retried["id"]
    with laboratory.opened():
        assert Run.objects.count() == 2


def test_lists_are_paged_by_cursor(laboratory: Laboratory, caller: Caller) -> None:
    made = [caller.post(URL, asked(budget={"gpu_hours": 0.1})).json()["id"] for _ in range(5)]
    seen, url = [], f"{URL}?limit=2"
    while True:
        page = caller.get(url).json()
        seen += [item["id"] for item in page["items"]]
        if page["next"] is None:
            break
        url = f"{URL}?limit=2&cursor={page['next']}"
    assert seen == made[::-1]
    deep = base64.urlsafe_b64encode(b"[" * 2000).decode()
    for cursor in ("x", "%00", "e30", "bnVsbA", deep, base64.urlsafe_b64encode(b'["2026-01-01", "00"]').decode(), "%F0%9F%98%80"):
        assert caller.get(f"{URL}?cursor={cursor}").status_code in (400, 422), cursor
    for size in ("0", "-1", "501", "x", "1e9", "9" * 40):
        assert caller.get(f"{URL}?limit={size}").status_code == 422


TWICE = ["self-play-window-42", "ds_self_play_window_42"]
BAD_HOURS: list[Any] = [0, -1, True, "x", [], {}, 1e400, -1e400, float("nan"), 100_001, 1e-30, 10**40, 1e-7]
BAD: list[dict[str, Any]] = [
    *({"budget": {"gpu_hours": value}} for value in BAD_HOURS),
    *({"budget": {"api_spend": value}} for value in (-1, True, float("inf"), 1e-9, 10**12)),
    *({"agent_version": value} for value in (0, -1, True, 1.5, "1", 2**31, 10**40)),
    *({"seed": value} for value in (True, 1.5, "7", 2**63, -(2**63) - 1)),
    *({"priority": value} for value in (101, -101, True, 0.5)),
    *({"bugdet": 1}, {"budget": {"gpu_hours": 1, "tpu_hours": 2}}, {"workspace_id": "ws_123"}),
    *({"dataset_ids": value} for value in (["ds_self_play_window_42"] * 51, TWICE, "ds_x", [1])),
    *({"benchmark_id": None}, {"parameters": []}, {"agent_id": ""}),
]


def test_what_cannot_be_is_refused_with_its_field(laboratory: Laboratory, caller: Caller) -> None:
    for changed in BAD:
        answer = caller.post(URL, asked(**changed))
        assert answer.status_code == 422, (changed, answer.content)
        assert answer.json()["errors"][0]["field"], changed
    with laboratory.opened():
        assert not Run.objects.exists()
        assert not Certificate.objects.exists()


@pytest.mark.parametrize("bad", ["a\0b", "a\ud800b", "x" * 500_000], ids=["nul", "surrogate", "huge"])
def test_texts_that_no_record_holds_are_refused(laboratory: Laboratory, caller: Caller, bad: str) -> None:
    for field in ("benchmark_id", "agent_id", "compute_pool_id", "name", "reason", "dataset_ids", "artifact_ids", bad):
        answer = caller.post(URL, asked(**{field: [bad] if field.endswith("ids") else bad}))
        assert answer.status_code == 422, (field[:20], answer.content[:300])
    made = caller.post(URL, BODY).json()
    assert caller.post(f"{URL}/{made['id']}/cancel", json.dumps({"reason": bad})).status_code == 422
    decision = {"content_hash": "0" * 64, "comment": bad}
    assert caller.post("/api/v1/workspaces/ws_123/approvals/x/approve", json.dumps(decision)).status_code in (403, 422)


DEEP: Any = 1
for _ in range(200):
    DEEP = [DEEP]
PARAMETERS: list[dict[str, Any]] = [
    {"a": "x\0y"}, {"x\0y": 1}, {"a": ["\ud800"]}, {"a": {"\udfff": 1}}, {"a": float("nan")}, {"a": [float("inf")]}, {"a": 1e400}, {"a": 2**63},
    {"a": DEEP}, {"a": [0] * 10_001}, {str(number): 1 for number in range(201)},
]  # fmt: skip


def test_parameters_that_no_record_holds_are_refused(laboratory: Laboratory, caller: Caller) -> None:
    for given in PARAMETERS:
        for url in (URL, f"{URL}/estimate"):
            answer = caller.post(url, asked(parameters=given))
            assert answer.status_code == 422, (str(given)[:80], answer.content[:300])


def test_parameters_come_back_as_they_were_sent(laboratory: Laboratory, caller: Caller) -> None:
    sent = {"a": 1, "b": 1.5, "c": "é\n\"'<", "d": [True, None, {"e": -(2**63)}], "f": 1e-300}
    made = caller.post(URL, asked(parameters=sent)).json()
    assert caller.get(f"{URL}/{made['id']}").json()["parameters"] == sent


def test_bodies_that_are_no_request(laboratory: Laboratory, caller: Caller) -> None:
    for body in (b"", b"{", b"null", b"[]", b"[" * 100_000, b'{"a":' * 50_000, b'"x"', b"\xff", b"{}", b'{"seed": ' + b"9" * 5000 + b"}"):
        assert caller.post(URL, body).status_code in (400, 422), body[:20]


def test_a_body_above_the_limit_is_refused_unread(laboratory: Laboratory, caller: Caller) -> None:
    answer = caller.post(URL, asked(reason="x" * 1_100_000))
    assert (answer.status_code, answer["Content-Type"]) == (413, "application/problem+json")
