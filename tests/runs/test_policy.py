"""Policies: proposed, approved by another person, asked by what happens, explained by what they keep; acting under rights and within limits."""

import json
from typing import Any

import pytest

from runs.commands.approval import decide_approval
from runs.commands.decision import decide_now
from runs.commands.policy import create_policy, propose_version
from runs.jobs.advance import advance_sweep
from runs.jobs.decide import decide_policies
from runs.models import Decision, Policy, Run
from runs.policy.decide import decide
from runs.policy.document import read_policy
from runs.policy.facts import facts_from
from tests.factories import make_member
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, drive, make_laboratory
from workspaces.access import Actor
from workspaces.models import Approval, User

LEARNER = b"""
import json
parameters = json.load(open("../job.json"))["params"]
with open("../events.jsonl", "a") as events:
    score = 1 - abs(parameters["rate"] - 0.3) - 0.25 / parameters["epochs"]
    events.write(json.dumps({"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": score}) + "\\n")
"""
DOCUMENT: dict[str, Any] = {
    "trigger": {"on": "sweep_ended", "agent": "worker"},
    "conditions": [{"check": "nothing_under_way"}, {"check": "target_not_reached"}],
    "action": {
        "do": "launch_sweep",
        "agent": "worker",
        "benchmark": "accuracy",
        "inputs": [{"dataset": "table"}],
        "choose": {
            "rule": "successive_halving", "axes": {"rate": [0.1, 0.2, 0.3, 0.4]}, "resource": "epochs", "least": 1, "most": 4, "eta": 2, "first": 4
        },
    },
    "limits": {"decisions": 5},
}  # fmt: skip

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory(code=LEARNER, weekly_gpu_hours=1000, at_once=4)


def approver(laboratory: Laboratory) -> Actor:
    known = User.objects.filter(username="approver-lab").first()
    return Actor.of(known) if known else make_member(laboratory.workspace, "approver")


def approved(laboratory: Laboratory, document: dict[str, Any] | None = None, slug: str = "next-sweep") -> Policy:
    """A policy whose version another person has approved. The scope must be open."""
    policy = create_policy(actor=laboratory.owner, slug=slug, name=slug)
    version = propose_version(actor=laboratory.owner, policy=policy, document=document or DOCUMENT, reason="Search by itself")
    request = Approval.objects.get(subject_id=version.pk)
    decide_approval(actor=approver(laboratory), approval=request, approves=True, seen_hash=request.content_hash)
    policy.refresh_from_db()
    return policy


def tick(laboratory: Laboratory) -> None:
    key = laboratory.workspace.pk.hex
    advance_sweep(workspace_id=key, subject_id=key)
    decide_policies(workspace_id=key, subject_id=key)
    advance_sweep(workspace_id=key, subject_id=key)


def test_a_policy_searches_by_itself_and_every_run_of_it_leads_back_to_its_decision(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = approved(laboratory)
        first = decide_now(actor=laboratory.owner, policy=policy)
        assert (first.outcome, first.status) == ("acts", "acting")
    for _ in range(5):
        tick(laboratory)
        with laboratory.opened():
            waiting = list(Run.objects.filter(ended_at=None))
        for run in waiting:
            drive(laboratory, run)
    with laboratory.opened():
        acted = list(Decision.objects.filter(outcome="acts").order_by("number"))
        rungs = [sorted({run.parameters["epochs"] for run in Run.objects.filter(sweep__decision=decision)}) for decision in acted]
        assert rungs == [[1], [2], [4]]
        tried = [sorted(run.parameters["rate"] for run in Run.objects.filter(sweep__decision=decision)) for decision in acted]
        assert tried == [[0.1, 0.2, 0.3, 0.4], [0.2, 0.3], [0.3]], "the better half goes on each time"
        dropped = [entry for entry in acted[1].candidates if not entry["is_chosen"]]
        assert [entry["parameters"]["rate"] for entry in dropped] == [0.4, 0.1], "those not chosen are kept, with the reason"
        assert all("not among the best 2" in entry["words"] for entry in dropped)
        assert {run.trigger for run in Run.objects.all()} == {"policy"}
        last = Decision.objects.latest("number")
        assert last.outcome == "holds", "the objective of 0.9 is reached"
        assert last.checks[1]["verdict"] == "fail"
        for decision in Decision.objects.all():
            again = decide(read_policy(decision.version.document), facts_from(decision.facts))
            assert json.loads(json.dumps(again.as_json()))["candidates"] == decision.candidates
            assert again.outcome == decision.outcome


def test_pages_of_a_policy_lead_from_a_run_to_the_decision_and_say_what_a_version_would_change(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = approved(laboratory)
        decide_now(actor=laboratory.owner, policy=policy)
    tick(laboratory)
    client = client_of(laboratory.owner)
    with laboratory.opened():
        run = Run.objects.earliest("number")
        decision = Decision.objects.get()
    page = client.get(f"/workspaces/lab/runs/{run.public_id}/").content.decode()
    place = f"/workspaces/lab/decisions/{decision.pk.hex}/"
    assert place in page
    told = client.get(place).content.decode()
    assert "It acted:" in told
    assert "drawn from the space" in told
    assert "Lab-Owner" in told
    listed = client.get("/workspaces/lab/policies/").content.decode()
    assert "next-sweep" in listed
    narrower = DOCUMENT | {"action": DOCUMENT["action"] | {"choose": DOCUMENT["action"]["choose"] | {"first": 2}}}
    editor = "/workspaces/lab/policies/next-sweep/propose/"
    assert client.get(editor).status_code == 200
    seen = client.post(editor, {"document": json.dumps(narrower), "check": "1"}).content.decode()
    assert "1 would have been another" in seen
    assert "acts, 4 launches" in seen
    assert "acts, 2 launches" in seen
    asked = client.post(editor, {"document": json.dumps(narrower), "reason": "Less at once"})
    assert asked.status_code == 303
    version = client.get("/workspaces/lab/policies/next-sweep/versions/2/").content.decode()
    assert "1 would have been another" in version
    assert "&quot;first&quot;: 2" in version
    assert client.get("/workspaces/lab/policies/next-sweep/").status_code == 200
    with laboratory.opened():
        request = Approval.objects.get(status="pending")
    other = client_of(approver(laboratory))
    assert "Let next-sweep act as version 2 says" in other.get(f"/workspaces/lab/approvals/{request.public_id}/").content.decode()
