"""Deciding on a request: by another person, once, for exactly what was asked."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.factories import make_workspace
from tests.factories_resources import ask, end_vote, expire, join, remove_member, vote
from workspaces import scope
from workspaces.access import Actor, Role, rights_of
from workspaces.audit import Denied, Refusal
from workspaces.models import Approval, ApprovalVote, AuditEvent
from workspaces.queries.approval import asked
from workspaces.verbs import Verb

CONTENT: dict[str, Any] = {
    "asks": "Launch big-run",
    "certificate": [{"name": "GPU-hours a week", "answer": "approval", "words": "24 more.", "way_out": "Let an approver decide."}],
    "agent": {"id": "ab" * 16, "slug": "worker", "version": 3, "content_hash": "cd" * 32},
    "inputs": [{"slug": "table", "kind": "dataset", "sha256": "ef" * 32, "label": "table, version 1"}],
    "limits": {"wall_seconds": 3600, "gpu_ms": 86_400_000, "api_micros": 0},
}


@dataclass
class Asking:
    owner: Actor
    researcher: Actor
    approver: Actor

    def ask(self, **more: Any) -> Approval:
        return ask(actor=self.researcher, content=CONTENT, **more)


@pytest.fixture
def asking() -> Iterator[Asking]:
    workspace, owner = make_workspace("lab", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        yield Asking(owner, join(owner, "researcher"), join(owner, "approver", Role.APPROVER))


@pytest.mark.django_db
def test_another_person_approves_and_the_record_says_so(asking: Asking) -> None:
    approval = asking.ask()
    assert vote(actor=asking.approver, approval=approval, approves=True) == Approval.Status.APPROVED
    approval.refresh_from_db()
    assert approval.decided_at is not None
    event = AuditEvent.objects.get(verb=Verb.APPROVAL_GIVEN)
    assert (event.actor_label, event.subject_label) == ("Approver", "big-run")


@pytest.mark.django_db
def test_a_refusal_wants_a_reason_that_the_asker_can_read(asking: Asking) -> None:
    approval = asking.ask()
    with pytest.raises(Refusal, match="Say why"):
        vote(actor=asking.approver, approval=approval, approves=False, comment="  ")
    assert vote(actor=asking.approver, approval=approval, approves=False, comment="too much") == Approval.Status.REFUSED
    assert ApprovalVote.objects.get().comment == "too much"
    assert AuditEvent.objects.filter(verb=Verb.APPROVAL_REFUSED).count() == 1


@pytest.mark.django_db
def test_nobody_decides_on_what_they_asked_for(asking: Asking) -> None:
    approval = ask(actor=asking.owner, content=CONTENT)
    with pytest.raises(Refusal, match="yourself"):
        vote(actor=asking.owner, approval=approval, approves=True)
    with pytest.raises(Denied):
        vote(actor=asking.researcher, approval=approval, approves=True)
    assert Approval.objects.get().status == Approval.Status.PENDING


@pytest.mark.django_db
def test_the_first_decision_stands(asking: Asking) -> None:
    approval = asking.ask()
    vote(actor=asking.approver, approval=approval, approves=True)
    with pytest.raises(Refusal, match="first decision stands"):
        vote(actor=asking.owner, approval=approval, approves=False, comment="no")
    assert ApprovalVote.objects.get().person == asking.approver.user


@pytest.mark.django_db
def test_a_quorum_counts_people_and_only_those_who_may_still_approve(asking: Asking) -> None:
    approval = asking.ask(quorum=2)
    assert vote(actor=asking.approver, approval=approval, approves=True) == Approval.Status.PENDING
    with pytest.raises(Refusal, match="already"):
        vote(actor=asking.approver, approval=approval, approves=True)
    remove_member(actor=asking.owner, username="approver")
    with pytest.raises(Denied):
        vote(actor=asking.approver, approval=approval, approves=True)
    assert vote(actor=asking.owner, approval=approval, approves=True) == Approval.Status.PENDING  # who left counts no more
    third = join(asking.owner, "third", Role.APPROVER)
    assert vote(actor=third, approval=approval, approves=True) == Approval.Status.APPROVED


@pytest.mark.django_db
def test_what_has_changed_since_is_void_and_nothing_is_approved(asking: Asking) -> None:
    approval = asking.ask()
    assert vote(actor=asking.approver, approval=approval, approves=True, current_hash="0" * 64) == Approval.Status.VOID
    assert not ApprovalVote.objects.exists()
    assert AuditEvent.objects.filter(verb=Verb.APPROVAL_VOIDED).count() == 1
    with pytest.raises(Refusal, match="decided before"):
        vote(actor=asking.approver, approval=approval, approves=True)


@pytest.mark.django_db
def test_after_its_time_a_request_is_not_decided_but_ends(asking: Asking) -> None:
    approval = asking.ask(expires_in=timedelta(seconds=-1))
    with pytest.raises(Refusal, match="time to decide"):
        vote(actor=asking.approver, approval=approval, approves=True)
    expire(actor=Actor.system(job_id="sweep"), approval=approval)
    approval.refresh_from_db()
    assert approval.status == Approval.Status.EXPIRED


@pytest.mark.django_db
def test_open_requests_of_a_subject_that_ended_are_void(asking: Asking) -> None:
    subject = uuid.uuid4()
    first, other = asking.ask(subject_id=subject), asking.ask()
    end_vote(actor=asking.researcher, subject_id=subject)
    first.refresh_from_db()
    other.refresh_from_db()
    assert (first.status, other.status) == (Approval.Status.VOID, Approval.Status.PENDING)


@pytest.mark.django_db
def test_the_approver_sees_what_is_asked_in_words_and_who_cannot_decide_sees_why(asking: Asking) -> None:
    approval = asking.ask()

    def seen(actor: Actor) -> str:
        return asked(approval, actor, rights_of(actor, scope.current_id())).why_not

    shown = asked(approval, asking.approver, rights_of(asking.approver, scope.current_id()))
    assert {fact.label: fact.value for fact in shown.facts} == {
        "Agent": "worker",
        "Agent version": "3",
        "Inputs": "table, version 1",
        "Longest time": "1 h 00",
        "GPU time": "24 GPU-hours",
    }
    assert [(check["name"], check["verdict"]) for check in shown.checks] == [("GPU-hours a week", "person")]
    assert (seen(asking.approver), seen(asking.researcher)) == ("", "Deciding on this needs the right to approve.")
    own = ask(actor=asking.owner, content=CONTENT)
    assert "yourself" in asked(own, asking.owner, rights_of(asking.owner, scope.current_id())).why_not
    assert approval.expires_at > timezone.now()
