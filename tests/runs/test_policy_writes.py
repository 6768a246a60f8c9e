"""Policies that write memory and that memory starts: failures are remembered, people vouch for them, nothing goes round for ever."""

from typing import Any

import pytest

from runs.commands.approval import decide_approval
from runs.commands.memory import Said, review_memory, write_memory
from runs.commands.policy import create_policy, propose_version
from runs.commands.promotion import propose_promotion
from runs.jobs.decide import decide_policies
from runs.models import Artifact, Decision, MemoryEntry, Policy, Run
from tests.factories import make_member
from tests.factories_pages import client_of
from tests.factories_promotions import make_candidate
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.models import Approval, Notification, User
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db(transaction=True)

BROKEN = b"""
import json
parameters = json.load(open("../job.json"))["params"]
raise SystemExit(1 if parameters["rate"] > 0.5 else 0)
"""
REMEMBER: dict[str, Any] = {
    "trigger": {"on": "run_ended", "agent": "worker"},
    "conditions": [{"check": "cause_ended", "as": ["failed"]}],
    "action": {
        "do": "write_memory", "kind": "failed_attempt", "collection": "failed-search-configs", "title": "It <b>failed</b>",
        "text": "Do not ask again.",         "benchmark": "accuracy", "with_configuration": True,
    },
}  # fmt: skip
TELL: dict[str, Any] = {
    "trigger": {"on": "memory_written", "collection": "failed-search-configs"},
    "action": {"do": "notify", "words": "Somebody should look."},
}
TELL_REVIEWED: dict[str, Any] = {
    "trigger": {"on": "memory_reviewed", "kind": "failed_attempt"},
    "action": {"do": "notify", "words": "It is vouched for."},
}


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory(code=BROKEN, weekly_gpu_hours=1000)


def approved(laboratory: Laboratory, slug: str, document: dict[str, Any]) -> Policy:
    """The scope must be open."""
    known = User.objects.filter(username="approver-lab").first()
    approver = make_member(laboratory.workspace, "approver") if known is None else type(laboratory.owner).of(known)
    policy = create_policy(actor=laboratory.owner, slug=slug, name=slug)
    version = propose_version(actor=laboratory.owner, policy=policy, document=document)
    asked = Approval.objects.get(subject_id=version.pk)
    decide_approval(actor=approver, approval=asked, approves=True, seen_hash=asked.content_hash)
    return policy


def tick(laboratory: Laboratory) -> None:
    key = laboratory.workspace.pk.hex
    decide_policies(workspace_id=key, subject_id=key)


def test_what_failed_is_remembered_once_with_its_configuration_and_a_person_vouches_for_it(laboratory: Laboratory) -> None:
    with laboratory.opened():
        remember = approved(laboratory, "remember-failures", REMEMBER)
        tells = approved(laboratory, "tell", TELL)
        approved(laboratory, "tell-reviewed", TELL_REVIEWED)
        runs = [launch(laboratory, parameters={"rate": rate}) for rate in (0.9, 0.1)]
    for run in runs:
        drive(laboratory, run)
    for _ in range(3):
        tick(laboratory)
    with laboratory.opened():
        entry = MemoryEntry.objects.get()
        failed = Run.objects.get(status="failed")
        assert (entry.author_kind, entry.policy, entry.trust) == ("policy", remember, "unreviewed")
        assert (entry.author, entry.configuration, entry.benchmark_id) == (laboratory.owner.user, {"rate": 0.9}, failed.benchmark_id)
        assert [evidence.run for evidence in entry.evidence.all()] == [failed]
        assert failed.name in entry.text
        assert Decision.objects.filter(policy=remember, outcome="holds").count() == 1, "the run that succeeded is nothing to remember"
        assert not Decision.objects.filter(policy=tells).exists(), "what policies write starts no policy"
        with pytest.raises(Refusal, match="another person reviews it"):
            review_memory(actor=laboratory.owner, entry=entry, trust="observed", seen_hash=entry.content_hash, comment="mine")
        approver = type(laboratory.owner).of(User.objects.get(username="approver-lab"))
        review_memory(actor=approver, entry=entry, trust="observed", seen_hash=entry.content_hash, comment="seen in the log")
        write_memory(actor=laboratory.owner, said=Said(kind="note", collection="failed-search-configs", title="By hand"))
    for _ in range(2):
        tick(laboratory)
    with laboratory.opened():
        assert Decision.objects.filter(policy=tells).count() == 1, "once for what a person wrote"
        told = {decision.policy.slug for decision in Decision.objects.filter(outcome="acts").exclude(policy=remember)}
        assert told == {"tell", "tell-reviewed"}
        assert Notification.objects.filter(cause=Notification.Cause.POLICY_SAYS).exists()
        assert MemoryEntry.objects.filter(author_kind="policy").count() == 1


OPENINGS: dict[str, Any] = {
    "trigger": {"on": "promotion_decided", "name": "champion"},
    "conditions": [{"check": "cause_ended", "as": ["promoted"]}],
    "action": {
        "do": "write_memory", "kind": "finding", "collection": "promoted-openings", "title": "How a champion opens",
        "agent": "worker", "with_configuration": True,
    },
}  # fmt: skip


def test_what_is_promoted_is_remembered_with_what_made_it_and_what_its_run_said_of_it(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = approved(laboratory, "remember-openings", OPENINGS)
        approver = type(laboratory.owner).of(User.objects.get(username="approver-lab"))
        made = make_candidate(laboratory, parameters={"rate": 0.1})
        refused = make_candidate(laboratory, value=0.9, content=b"others")
        describe(
            actor=laboratory.owner, artifact=made, metadata={"opening": "C3 C4 <b>D4</b>", "rate": "not mine to say", "tree": {"a": 1}}
        )
        for artifact, approves in ((made, True), (refused, False)):
            row = propose_promotion(actor=laboratory.owner, artifact=artifact, name="champion")
            asked = Approval.objects.get(subject_id=row.pk)
            decide_approval(actor=approver, approval=asked, approves=approves, comment="So be it", seen_hash=asked.content_hash)
    for _ in range(2):
        tick(laboratory)
    with laboratory.opened():
        entry = MemoryEntry.objects.get()
        assert (entry.author_kind, entry.policy, entry.trust, entry.collection) == ("policy", policy, "unreviewed", "promoted-openings")
        assert entry.configuration == {"opening": "C3 C4 <b>D4</b>", "rate": 0.1}, "a parameter is what the run was launched with"
        assert "champion, promotion 1" in entry.text
        assert {(one.kind, one.subject_id) for one in entry.evidence.all()} == {
            ("artifact", made.pk), ("evaluation", made.run.evaluations.get().pk)
        }  # fmt: skip
        decision, holds = Decision.objects.filter(policy=policy).order_by("number")
        assert (decision.outcome, decision.cause_label, holds.outcome) == ("acts", "champion, promotion 1", "holds")
    page = client_of(laboratory.owner).get(f"/workspaces/lab/memory/{entry.public_id}/").content.decode()
    assert f"/workspaces/lab/artifacts/{made.public_id}/" in page
    assert f"/workspaces/lab/decisions/{decision.public_id}/" in page, "by its decision one comes to the promotion"
    assert "<b>D4" not in page
    assert "How a champion opens: rate 0.1, opening C3 C4 &lt;b&gt;D4&lt;/b&gt;." in page, "what it is, in a sentence"
    assert "Nobody has gone by it" in page


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def describe(event: Draft, /, *, actor: Actor, artifact: Artifact, metadata: dict[str, Any]) -> None:
    """As the run that made it says it when it hands it in."""
    event.change(artifact, metadata=metadata)


def test_an_entry_is_about_one_thing(laboratory: Laboratory) -> None:
    both = REMEMBER | {"action": REMEMBER["action"] | {"agent": "worker"}}
    with laboratory.opened():
        policy = create_policy(actor=laboratory.owner, slug="both", name="both")
        with pytest.raises(Refusal, match="about one agent or about one benchmark"):
            propose_version(actor=laboratory.owner, policy=policy, document=both)
