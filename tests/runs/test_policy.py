"""Policies: proposed, approved by another person, asked by what happens, explained by what they keep; acting under rights and within limits."""

import html
import json
import uuid
from datetime import timedelta
from typing import Any

import pytest

from runs.commands.approval import decide_approval
from runs.commands.decision import decide_now
from runs.commands.policy import create_policy, pause_policy, propose_version, resume_policy
from runs.jobs import decide as decide_job
from runs.jobs.advance import advance_sweep
from runs.jobs.decide import decide_policies
from runs.models import Decision, Policy, PolicyVersion, Promotion, Run, Sweep
from runs.policy.brief import in_brief
from runs.policy.decide import decide
from runs.policy.document import read_policy
from runs.policy.facts import facts_from
from runs.queries.burn import burn
from runs.queries.policy import failing
from tests.factories import make_member
from tests.factories_pages import HOSTILE, client_of
from tests.factories_promotions import check_overlaps, make_candidate
from tests.factories_registry import make_agent_version, make_dataset_version
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from tests.factories_submissions import finish
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.member import remove_member
from workspaces.models import Approval, AuditEvent, Membership, Notification, Unit, User

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
        (part,) = burn(Unit.GPU_MS, by="policy").parts
        assert (part.label, part.ref, part.runs) == (policy.name, "next-sweep", 7), "what it launched was spent by it"
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
    with laboratory.opened():
        sweep = Sweep.objects.get()
    for path in (f"sweeps/{sweep.public_id}/", f"sweeps/{sweep.public_id}/csv/"):
        answer = client.get(f"/workspaces/lab/{path}")
        assert answer.status_code == 200
        assert "rate" in b"".join(answer).decode(), "a list of points shows what it varies"
    listed = client.get("/workspaces/lab/policies/").content.decode()
    assert "next-sweep" in listed
    assert in_brief(DOCUMENT) in html.unescape(listed)
    for place in ("runs", "sweeps"):
        assert "/workspaces/lab/policies/next-sweep/" in client.get(f"/workspaces/lab/{place}/").content.decode(), "the policy asked for it"
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


def test_a_version_acts_only_once_somebody_else_has_approved_it(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = create_policy(actor=laboratory.owner, slug="next-sweep", name="Next sweep")
        version = propose_version(actor=laboratory.owner, policy=policy, document=DOCUMENT, reason="Search")
        with pytest.raises(Refusal, match="No version of Next sweep is approved yet"):
            decide_now(actor=laboratory.owner, policy=policy)
        request = Approval.objects.get(subject_id=version.pk)
        with pytest.raises(Refusal, match="You asked for this yourself"):
            decide_approval(actor=laboratory.owner, approval=request, approves=True, seen_hash=request.content_hash)
        with pytest.raises(Refusal, match="has changed since you looked"):
            decide_approval(actor=approver(laboratory), approval=request, approves=True, seen_hash="0" * 64)
        second = propose_version(actor=laboratory.owner, policy=policy, document=DOCUMENT | {"limits": {"decisions": 2}}, reason="Less")
        request.refresh_from_db()
        version.refresh_from_db()
        assert (request.status, version.status) == ("void", "withdrawn"), "a newer proposal takes its place"
        newer = Approval.objects.get(subject_id=second.pk)
        decide_approval(actor=approver(laboratory), approval=newer, approves=True, seen_hash=newer.content_hash)
        assert [(row.number, row.status) for row in PolicyVersion.objects.order_by("number")] == [(1, "withdrawn"), (2, "active")]
        with pytest.raises(Refusal, match="Version 2, which acts, says exactly this"):
            propose_version(actor=laboratory.owner, policy=policy, document=second.document)
        assert Sweep.objects.count() == 0


def test_what_is_not_here_is_refused_when_it_is_proposed(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = create_policy(actor=laboratory.owner, slug="next-sweep", name="Next sweep", benchmark="accuracy")
        for change, words in (
            ({"action": DOCUMENT["action"] | {"agent": "nobody"}}, "there is no agent 'nobody'"),
            ({"trigger": {"on": "dataset_grew", "dataset": "elsewhere"}}, "there is no dataset 'elsewhere'"),
            ({"action": DOCUMENT["action"] | {"inputs": [{"windows_of": "games"}]}}, "there is no dataset 'games'"),
            ({"conditions": [{"check": "gut_feeling"}]}, "there is no check"),
            ({"gate": [{"check": "no_holdout_regression", "benchmark": "elsewhere"}]}, "gate, 1: there is no benchmark 'elsewhere'"),
            ({"note": "\x00"}, "cannot hold"),
        ):
            with pytest.raises(Refusal, match=words):
                propose_version(actor=laboratory.owner, policy=policy, document=DOCUMENT | change)
        with pytest.raises(Refusal, match="There is a policy next_sweep already"):
            create_policy(actor=laboratory.owner, slug="next_sweep", name="Twice")
        assert not PolicyVersion.objects.exists()


def test_a_job_that_is_killed_or_runs_twice_decides_and_launches_once(laboratory: Laboratory) -> None:
    """Killed between the decision and the launch: the decision is on record and acts when the bell rings again, whoever rings it."""
    with laboratory.opened():
        policy = approved(laboratory)
        first = decide_now(actor=laboratory.owner, policy=policy, cause_id=uuid.UUID(int=7))
        assert decide_now(actor=laboratory.owner, policy=policy, cause_id=uuid.UUID(int=7)) == first
        assert Sweep.objects.count() == 0
    key = laboratory.workspace.pk.hex
    for _ in range(3):
        decide_policies(workspace_id=key, subject_id=key)
    with laboratory.opened():
        assert Sweep.objects.get().decision == first
        assert Decision.objects.get().status == "done"
        acted = AuditEvent.objects.filter(verb__in=("policy.decided", "policy.acted")).order_by("sequence")
        assert [event.verb for event in acted] == ["policy.decided", "policy.acted"]


def test_a_policy_stops_at_its_lasting_limit_and_an_approver_lets_it_go_on(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = approved(laboratory, DOCUMENT | {"limits": {"decisions": 1}, "conditions": []})
        decide_now(actor=laboratory.owner, policy=policy)
        stopped = decide_now(actor=laboratory.owner, policy=policy)
        policy.refresh_from_db()
        assert (stopped.outcome, policy.status) == ("limited", "stopped")
        assert "It may act 1 time and has" in policy.status_reason
        with pytest.raises(Refusal, match="does not act now"):
            decide_now(actor=laboratory.owner, policy=policy)
    page = client_of(laboratory.owner).get("/workspaces/lab/").content.decode()
    assert "The policy next-sweep needs somebody." in page
    with laboratory.opened():
        resume_policy(actor=approver(laboratory), policy=policy, reason="Once more")
        policy.refresh_from_db()
        assert policy.status == "active"


def test_a_policy_acts_under_the_rights_that_its_proposer_has_at_that_moment(laboratory: Laboratory) -> None:
    with laboratory.opened():
        researcher = make_member(laboratory.workspace, "researcher")
        policy = create_policy(actor=researcher, slug="next-sweep", name="Next sweep")
        version = propose_version(actor=researcher, policy=policy, document=DOCUMENT, reason="Search")
        request = Approval.objects.get(subject_id=version.pk)
        decide_approval(actor=laboratory.owner, approval=request, approves=True, seen_hash=request.content_hash)
        decide_now(actor=laboratory.owner, policy=policy)
        assert researcher.user is not None
        remove_member(actor=laboratory.owner, member=Membership.objects.get(user=researcher.user).public_id)
    tick(laboratory)
    with laboratory.opened():
        decision = Decision.objects.get()
        assert (decision.status, Sweep.objects.count()) == ("failed", 0)
        assert "launch run" in decision.failure
        [row] = failing()
        assert "Its last decision failed" in row.trouble


def test_whoever_may_propose_no_more_is_not_approved_either(laboratory: Laboratory) -> None:
    with laboratory.opened():
        researcher = make_member(laboratory.workspace, "researcher")
        policy = create_policy(actor=researcher, slug="next-sweep", name="Next sweep")
        version = propose_version(actor=researcher, policy=policy, document=DOCUMENT, reason="Search")
        request = Approval.objects.get(subject_id=version.pk)
        assert researcher.user is not None
        remove_member(actor=laboratory.owner, member=Membership.objects.get(user=researcher.user).public_id)
        with pytest.raises(Refusal, match="may no longer propose policies here"):
            decide_approval(actor=laboratory.owner, approval=request, approves=True, seen_hash=request.content_hash)
        decide_approval(actor=laboratory.owner, approval=request, approves=False, comment="Gone", seen_hash=request.content_hash)
        assert PolicyVersion.objects.get().status == "refused"


def test_pausing_leaves_out_what_happens_meanwhile(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = approved(laboratory, DOCUMENT | {"trigger": {"on": "run_ended"}, "conditions": [], "limits": {"decisions": 50}})
        pause_policy(actor=laboratory.owner, policy=policy, reason="A look first")
        run = launch(laboratory, parameters={"rate": 0.1, "epochs": 1})
    drive(laboratory, run)
    tick(laboratory)
    with laboratory.opened():
        resume_policy(actor=approver(laboratory), policy=policy, reason="Looked")
    tick(laboratory)
    with laboratory.opened():
        assert not Decision.objects.exists(), "it ended while the policy was paused"
        again = launch(laboratory, parameters={"rate": 0.2, "epochs": 1})
    drive(laboratory, again)
    tick(laboratory)
    with laboratory.opened():
        assert Decision.objects.get(cause_id=again.pk).outcome == "acts"


def test_hostile_text_stays_text_on_every_page(laboratory: Laboratory) -> None:
    with laboratory.opened():
        hostile = DOCUMENT | {"action": {"do": "notify", "words": HOSTILE}, "conditions": []}
        policy = create_policy(actor=laboratory.owner, slug="tell", name=HOSTILE)
        version = propose_version(actor=laboratory.owner, policy=policy, document=hostile, reason=HOSTILE)
        request = Approval.objects.get(subject_id=version.pk)
    other = client_of(approver(laboratory))
    pages = [f"approvals/{request.public_id}/", "policies/", "policies/tell/", "policies/tell/versions/1/", "policies/tell/propose/"]
    with laboratory.opened():
        decide_approval(actor=approver(laboratory), approval=request, approves=True, seen_hash=request.content_hash)
        decision = decide_now(actor=laboratory.owner, policy=policy)
    tick(laboratory)
    for path in (*pages, f"decisions/{decision.public_id}/", "notifications/"):
        page = other.get(f"/workspaces/lab/{path}")
        assert page.status_code == 200, path
        assert "<script>alert" not in page.content.decode(), path


def test_a_policy_that_tells_people_tells_them_once(laboratory: Laboratory) -> None:
    document = {"trigger": {"on": "run_ended"}, "conditions": [], "action": {"do": "notify", "words": "A run has ended."}}
    with laboratory.opened():
        approved(laboratory, document, slug="tell")
        run = launch(laboratory, parameters={"rate": 0.1, "epochs": 1})
    drive(laboratory, run)
    for _ in range(2):
        tick(laboratory)
    with laboratory.opened():
        [told] = Notification.objects.filter(cause=Notification.Cause.POLICY_SAYS)
        assert (told.person, told.subject_label, told.words) == (laboratory.owner.user, "tell", "A run has ended.")
        assert told.subject_id == Decision.objects.get().pk
    assert "A run has ended." in client_of(laboratory.owner).get("/workspaces/lab/notifications/").content.decode()


def test_what_is_measured_twice_is_put_forward_once_and_a_person_decides(laboratory: Laboratory) -> None:
    document = {
        "trigger": {"on": "evaluation_scored", "benchmark": "accuracy"},
        "gate": [{"check": "score_gain", "at_least": 0.05}],
        "action": {"do": "promote", "name": "champion"},
    }
    with laboratory.opened():
        approved(laboratory, document, slug="put-forward")
        make_agent_version(laboratory.owner, "judge", code=b"print('judge')\n", kind="evaluate")
        model = make_candidate(laboratory)
        for number, value in enumerate((0.8, 0.82)):
            finish(
                launch(laboratory, agent="judge", artifacts=(model.pk.hex,), datasets=(), name=f"judged-{number}"),
                value,
                others={"recall": 0.5},
            )
    tick(laboratory)
    with laboratory.opened():
        judged = Decision.objects.filter(cause_label__contains="judged").order_by("number")
        assert [(row.outcome, row.status) for row in judged] == [("acts", "done"), ("holds", "done")], (
            "one score each, whatever stands beside it"
        )
        assert "A person still has to decide on it" in judged[1].words
        promotion = Promotion.objects.get()
        assert (promotion.status, promotion.artifact) == ("proposed", model)
        asked = Approval.objects.get(subject_id=promotion.pk)
        decide_approval(actor=approver(laboratory), approval=asked, approves=True, seen_hash=asked.content_hash)
        better = make_candidate(laboratory, content=b"other weights")
        finish(launch(laboratory, agent="judge", artifacts=(better.pk.hex,), datasets=(), name="another"), 0.84)
    tick(laboratory)
    with laboratory.opened():
        last = Decision.objects.get(cause_label__contains="another")
        assert (last.outcome, Promotion.objects.count()) == ("barred", 1), "0.02 ahead where 0.05 are asked for"
    page = client_of(laboratory.owner).get(f"/workspaces/lab/decisions/{judged[0].pk.hex}/").content.decode()
    assert promotion.public_id in page


def test_what_a_gate_cannot_tell_yet_is_asked_again_and_not_decided_for_good(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data is held against the holdouts by a job, perhaps a minute after a score came: that minute must not cost the candidate its chance."""
    document = {
        "trigger": {"on": "evaluation_scored", "benchmark": "accuracy"},
        "gate": [{"check": "contamination"}],
        "action": {"do": "promote", "name": "champion"},
    }

    def judged(name: str) -> None:
        make_dataset_version(laboratory.owner, f"kept-from-{name}", role="holdout", content=f"name\n{name}\n".encode())
        finish(launch(laboratory, agent="judge", artifacts=(model.pk.hex,), datasets=(), name=name), 0.8)

    with laboratory.opened():
        approved(laboratory, document, slug="put-forward")
        make_agent_version(laboratory.owner, "judge", code=b"print('judge')\n", kind="evaluate")
        model = make_candidate(laboratory)
        judged("first")
    tick(laboratory)
    with laboratory.opened():
        assert not Decision.objects.exists(), "nobody can tell yet, so nothing is decided"
        check_overlaps()
    tick(laboratory)
    with laboratory.opened():
        assert Decision.objects.get().outcome == "acts"
        model = make_candidate(laboratory, content=b"other weights")
        judged("second")
    monkeypatch.setattr(decide_job, "PATIENCE", timedelta(0))
    tick(laboratory)
    with laboratory.opened():
        assert Decision.objects.latest("number").outcome == "barred", "but not for ever"
