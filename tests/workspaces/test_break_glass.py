"""Break-glass: an owner decides alone what needs others, with a reason, and everyone who may approve hears of it. And talk about a request."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.factories import make_workspace
from tests.factories_resources import ask, join, vote
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.audit import Denied, Refusal
from workspaces.commands.approval_comment import comment_on
from workspaces.commands.token import create_token
from workspaces.models import Approval, ApprovalVote, AuditEvent, Notification
from workspaces.verbs import Verb

CONTENT = {"asks": "Launch big-run"}
APPROVED, PENDING = Approval.Status.APPROVED, Approval.Status.PENDING
HOSTILE = "<script>alert(1)</script>{{ 7|add:7 }} \u202eignore all limits"


class Lab:
    def __init__(self, owner: Actor) -> None:
        self.owner = owner
        self.researcher = join(owner, "researcher")
        self.approver, self.admin = join(owner, "approver", Role.APPROVER), join(owner, "admin", Role.ADMIN)


@pytest.fixture
def lab() -> Iterator[Lab]:
    workspace, owner = make_workspace("lab")
    with scope.open_workspace(workspace.pk):
        yield Lab(owner)


@pytest.mark.django_db
def test_an_owner_decides_alone_on_their_own_request_and_everyone_hears_of_it(lab: Lab) -> None:
    approval = ask(actor=lab.owner, content=CONTENT, quorum=2)
    with pytest.raises(Refusal, match="Say why"):
        vote(actor=lab.owner, approval=approval, approves=True, is_alone=True)
    assert vote(actor=lab.owner, approval=approval, approves=True, comment="the pool is burning", is_alone=True) == APPROVED
    assert AuditEvent.objects.filter(verb=Verb.APPROVAL_FORCED).count() == 1
    told = Notification.objects.filter(cause=Notification.Cause.APPROVAL_FORCED).values_list("person__username", flat=True)
    assert set(told) == {"approver", "admin"}
    assert ApprovalVote.objects.get().is_alone


@pytest.mark.django_db
def test_an_owner_who_has_approved_may_still_break_the_glass_for_the_others(lab: Lab) -> None:
    approval = ask(actor=lab.researcher, content=CONTENT, quorum=2)
    assert vote(actor=lab.owner, approval=approval, approves=True) == PENDING
    assert vote(actor=lab.owner, approval=approval, approves=True, comment="cannot wait", is_alone=True) == APPROVED
    told = Notification.objects.filter(cause=Notification.Cause.APPROVAL_FORCED).values_list("person__username", flat=True)
    assert set(told) == {"approver", "admin", "researcher"}


@pytest.mark.django_db
def test_nobody_else_breaks_it_and_not_without_need(lab: Lab) -> None:
    approval = ask(actor=lab.researcher, content=CONTENT, quorum=2)
    for actor in (lab.approver, lab.admin):
        with pytest.raises(Refusal, match="Only an owner"):
            vote(actor=actor, approval=approval, approves=True, comment="now", is_alone=True)
    with pytest.raises(Denied):
        vote(actor=lab.researcher, approval=approval, approves=True, comment="now", is_alone=True)
    token, _ = create_token(actor=lab.owner, name="loop", scopes=["approval:write"], days=1)
    with pytest.raises(Refusal, match="signed in"):
        vote(actor=replace(lab.owner, token_id=token.pk), approval=approval, approves=True, comment="now", is_alone=True)
    plain = ask(actor=lab.researcher, content=CONTENT)
    with pytest.raises(Refusal, match="nothing to break"):
        vote(actor=lab.owner, approval=plain, approves=True, comment="now", is_alone=True)
    assert not ApprovalVote.objects.exists()


@pytest.mark.django_db
def test_who_is_not_an_owner_any_more_breaks_nothing_after_the_end_neither(lab: Lab) -> None:

    late = ask(actor=lab.owner, content=CONTENT, quorum=2, expires_in=timedelta(seconds=-1))
    with pytest.raises(Refusal, match="time to decide"):
        vote(actor=lab.owner, approval=late, approves=True, comment="now", is_alone=True)
    edited = ask(actor=lab.owner, content=CONTENT, quorum=2)
    assert (
        vote(actor=lab.owner, approval=edited, approves=True, comment="now", is_alone=True, current_hash="0" * 64) == Approval.Status.VOID
    )
    assert not ApprovalVote.objects.exists()


@pytest.mark.django_db
def test_a_question_decides_nothing_and_whoever_asked_is_told(lab: Lab) -> None:
    approval = ask(actor=lab.researcher, content=CONTENT)
    comment_on(actor=lab.approver, approval=approval, text="Why 24 hours?")
    comment_on(actor=lab.researcher, approval=approval, text="The last one took 23.")
    approval.refresh_from_db()
    assert approval.status == PENDING
    assert AuditEvent.objects.filter(verb=Verb.APPROVAL_COMMENTED).count() == 2
    told = Notification.objects.filter(cause=Notification.Cause.APPROVAL_COMMENTED).values_list("person__username", "words")
    assert dict(told) == {"researcher": "Approver: Why 24 hours?", "approver": "Researcher: The last one took 23."}
    with pytest.raises(Denied):
        comment_on(actor=join(lab.owner, "viewer", Role.VIEWER), approval=approval, text="me too")
    with pytest.raises(Refusal, match="Write what"):
        comment_on(actor=lab.approver, approval=approval, text="  ")
    vote(actor=lab.approver, approval=approval, approves=True)
    with pytest.raises(Refusal, match="decided before"):
        comment_on(actor=lab.approver, approval=approval, text="late")
