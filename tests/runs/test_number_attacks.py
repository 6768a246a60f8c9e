"""Numbers that no computer holds and depths that nobody walks, sent to policies, memory and launches: told with a sentence, kept nowhere."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.urls import reverse

from runs.commands.decision import decide_now
from runs.commands.memory import Said, write_memory
from runs.commands.policy import propose_version
from runs.models import Policy, Run, Sweep
from runs.queries.policy import preview
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.factories_seed import Caller
from tests.runs.test_policy_attacks import DOCUMENT, approved
from workspaces.audit import Refusal
from workspaces.commands.token import create_token

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory(weekly_gpu_hours=1000, at_once=4)


HUGE = 10**400


def document_of(text: str, value: str) -> str:
    return text.replace("HERE", value)


@pytest.mark.parametrize(
    "change",
    [
        {"conditions": [{"check": "best_score", "at_least": HUGE}]},
        {"conditions": [{"check": "best_score", "at_most": float("inf")}]},
        {"conditions": [{"check": "best_score", "at_most": float("nan")}]},
        {"gate": [{"check": "no_holdout_regression", "epsilon": HUGE}]},
        {"gate": [{"check": "no_holdout_regression", "epsilon": float("inf")}]},
        {"action": {**DOCUMENT["action"], "parameters": {"rate": float("nan")}}},
        {"action": {**DOCUMENT["action"], "parameters": {"rate": HUGE}}},
        {
            "action": {
                "do": "launch_sweep", "agent": "worker", "benchmark": "accuracy", "memory": {"avoid": "openings"},
                "choose": {"rule": "ucb1", "axes": {"rate": [HUGE, 0.1]}},
            }
        },
    ],
)  # fmt: skip
def test_numbers_that_no_computer_holds_are_refused_with_a_sentence(laboratory: Laboratory, change: dict[str, Any]) -> None:
    with laboratory.opened():
        policy = approved(laboratory, DOCUMENT)
        decide_now(actor=laboratory.owner, policy=policy)
        document = {**DOCUMENT, "limits": {"decisions": 7}, **change}
        assert preview(policy, document).faults
        with pytest.raises(Refusal):
            propose_version(actor=laboratory.owner, policy=policy, document=document)


def test_numbers_no_computer_holds_and_depths_nobody_walks_are_told_by_api_and_page(laboratory: Laboratory) -> None:
    with laboratory.opened():
        approved(laboratory, DOCUMENT)
        _, secret = create_token(actor=laboratory.owner, name="attack", scopes=["policy:write", "memory:write", "memory:read"], days=1)
    caller, base = Caller(secret), f"/api/v1/workspaces/{laboratory.workspace.slug}"
    deep = "[" * 5_000 + "]" * 5_000
    documents = [
        document_of(
            '{"trigger":{"on":"manual"},"conditions":[{"check":"best_score","at_least":HERE}],"action":{"do":"notify","words":"x"}}', text
        )
        for text in ("1e400", "NaN", "-Infinity", "1" + "0" * 400, deep, '"\\u0000"')
    ]
    documents.append(
        document_of(
            '{"trigger":{"on":"manual"},"action":{"do":"launch_run","agent":"worker","benchmark":"accuracy","parameters":{"a":HERE}}}', deep
        )
    )
    for document in documents:
        for act in ("preview", "versions"):
            answer = caller.post(f"{base}/policies/attacked/{act}", document_of('{"document":HERE}', document))
            is_told = answer.status_code in (400, 409, 422) or (act == "preview" and answer.status_code == 200 and answer.json()["faults"])
            assert is_told, (act, document[:150], answer.status_code, answer.content[:300])
        client, address = client_of(laboratory.owner), reverse("policy-propose", args=[laboratory.workspace.slug, "attacked"])
        for extra in ({"check": "1"}, {}):
            page = client.post(address, {"document": document, "reason": "x", **extra})
            assert page.status_code in (200, 422), (document[:150], page.status_code)
    with laboratory.opened():
        assert Policy.objects.get().versions.count() == 1
        entry = write_memory(
            actor=laboratory.owner, said=Said(kind="finding", collection="openings", title="One", configuration={"rate": 0.1, "b": 2**63})
        )
    for text in ("1e400", "NaN", "1" + "0" * 400, deep, '"\\u0000"', "[1]", "-1e308"):
        answer = caller.post(f"{base}/memory/similar", document_of('{"configuration":{"rate":HERE}}', text))
        assert answer.status_code in (200, 400, 409, 422), (text[:50], answer.status_code, answer.content[:300])
        body = document_of('{"kind":"finding","collection":"openings","title":"x","configuration":{"rate":HERE}}', text)
        answer = caller.post(f"{base}/memory", body)
        assert answer.status_code in (201, 400, 409, 422), (text[:50], answer.status_code, answer.content[:300])
    for text in ("'", '"', "a' & !! | (", ":*", "\\", "%", "-" * 200, "or or or -", '"' * 199, "\u202e", "((((", "<->", "a:*B", "\x00"):
        answer = caller.get(f"{base}/memory/search?{urlencode({'q': text})}")
        assert answer.status_code in (200, 400, 409, 422), (text, answer.status_code, answer.content[:300])
    assert entry.pk


def test_launches_and_sweeps_are_told_of_numbers_that_no_computer_holds(laboratory: Laboratory) -> None:
    with laboratory.opened():
        run = launch(laboratory)
        _, secret = create_token(actor=laboratory.owner, name="attack", scopes=["run:write"], days=1)
    caller, base = Caller(secret), f"/api/v1/workspaces/{laboratory.workspace.slug}"
    whom = '"benchmark_id":"accuracy","agent_id":"worker","dataset_ids":["table"]'
    bodies = [
        '{WHOM,"parameters":{"rate":HERE}}',
        '{WHOM,"space":{"kind":"grid","axes":{"rate":[HERE]}}}',
        '{WHOM,"space":{"kind":"sampler","count":2,"seed":1,"axes":{"rate":{"low":0,"high":HERE}}}}',
        '{WHOM,"space":{"kind":"list","points":[{"rate":HERE}]}}',
    ]
    made = []
    for text in ("0.5", "1e400", "1" + "0" * 400, "[" * 3_000 + "]" * 3_000, "NaN"):
        for body in bodies:
            for act in ("sweeps",) if "space" in body else ("runs", "runs/estimate"):
                answer = caller.post(f"{base}/{act}", document_of(body.replace("WHOM", whom), text))
                assert answer.status_code < 500, (act, body[:120], answer.content[:300])
                made.append(answer.status_code)
    assert made.count(201) == 3, "what is a number is launched"
    client = client_of(laboratory.owner)
    with laboratory.opened():
        addresses = [reverse("run", args=[laboratory.workspace.slug, one.public_id]) for one in Run.objects.all()]
        addresses += [reverse("sweep", args=[laboratory.workspace.slug, one.public_id]) for one in Sweep.objects.all()]
    for address in ("run-list", "sweep-list", "policy-list"):
        addresses.append(reverse(address, args=[laboratory.workspace.slug]))
    for address in addresses:
        assert client.get(address).status_code == 200
    assert run.pk
