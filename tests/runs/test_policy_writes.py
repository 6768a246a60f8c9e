"""Policies that write memory and that memory starts: failures are remembered, people vouch for them, nothing goes round for ever."""

from typing import Any

import pytest

from runs.commands.approval import decide_approval
from runs.commands.memory import Said, review_memory, write_memory
from runs.commands.policy import create_policy, propose_version
from runs.jobs.decide import decide_policies
from runs.models import Decision, MemoryEntry, Policy, Run
from tests.factories import make_member
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from workspaces.audit import Refusal
from workspaces.models import Approval, Notification, User

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


def test_an_entry_is_about_one_thing(laboratory: Laboratory) -> None:
    both = REMEMBER | {"action": REMEMBER["action"] | {"agent": "worker"}}
    with laboratory.opened():
        policy = create_policy(actor=laboratory.owner, slug="both", name="both")
        with pytest.raises(Refusal, match="about one agent or about one benchmark"):
            propose_version(actor=laboratory.owner, policy=policy, document=both)
