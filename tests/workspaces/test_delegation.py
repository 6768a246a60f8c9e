"""Deciding for somebody who is away: in their name, in that time, and never on a request of one's own or of theirs."""

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.factories import make_workspace
from tests.factories_resources import ask, join, remove_member, vote
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.audit import Denied, Refusal
from workspaces.commands.approval_rule import set_rule
from workspaces.commands.delegation import delegate, end_delegation, in_the_name_of
from workspaces.commands.member import change_member
from workspaces.models import Approval, ApprovalVote, AuditEvent, Delegation, Membership, NotFound, Notification
from workspaces.verbs import Verb

CONTENT = {"asks": "Launch big-run"}
PENDING, APPROVED = Approval.Status.PENDING, Approval.Status.APPROVED
HOUR = timedelta(hours=1)


class Lab:
    def __init__(self, owner: Actor) -> None:
        self.owner = owner
        self.researcher, self.viewer = join(owner, "researcher"), join(owner, "viewer", Role.VIEWER)
        self.approver = join(owner, "approver", Role.APPROVER)

    def give(self, giver: Actor, username: str, **more: Any) -> Delegation:
        now = timezone.now()
        asked: dict[str, Any] = {"starts_at": now - HOUR, "ends_at": now + HOUR, "reason": "on holiday"} | more
        return delegate(actor=giver, username=username, **asked)

    def named(self, actor: Actor, giver: Actor, **more: Any) -> Actor:
        assert actor.user is not None
        return in_the_name_of(actor, self.give(giver, actor.user.username, **more))


def given(actor: Actor) -> Delegation:
    assert actor.delegation_id is not None
    return Delegation.objects.get(pk=actor.delegation_id)


@pytest.fixture
def lab() -> Iterator[Lab]:
    workspace, owner = make_workspace("lab")
    with scope.open_workspace(workspace.pk):
        yield Lab(owner)


@pytest.mark.django_db
def test_a_delegate_decides_and_the_record_says_for_whom(lab: Lab) -> None:
    approval = ask(actor=lab.researcher, content=CONTENT)
    with pytest.raises(Denied):
        vote(actor=lab.viewer, approval=approval, approves=True)
    assert vote(actor=lab.named(lab.viewer, lab.approver), approval=approval, approves=True) == APPROVED
    given = ApprovalVote.objects.get()
    assert (given.person, given.behalf) == (lab.viewer.user, lab.approver.user)
    event = AuditEvent.objects.get(verb=Verb.APPROVAL_GIVEN)
    assert (event.actor_label, event.behalf_label) == ("Viewer", "Approver")
    with pytest.raises(Denied):
        vote(actor=lab.viewer, approval=ask(actor=lab.researcher, content=CONTENT), approves=True)  # in their own name they still may not


@pytest.mark.django_db
def test_the_delegate_is_told_of_what_is_asked_meanwhile(lab: Lab) -> None:
    lab.give(lab.approver, "viewer")
    ask(actor=lab.researcher, content=CONTENT)
    asked = Notification.objects.filter(cause=Notification.Cause.APPROVAL_ASKED).values_list("person__username", flat=True)
    assert {"viewer", "approver"} <= set(asked)


@pytest.mark.django_db
def test_nobody_decides_on_their_own_request_through_a_delegation(lab: Lab) -> None:
    own = ask(actor=lab.researcher, content=CONTENT)
    as_approver = lab.named(lab.researcher, lab.approver)
    with pytest.raises(Refusal, match="yourself"):
        vote(actor=as_approver, approval=own, approves=True)
    of_the_giver = ask(actor=lab.owner, content=CONTENT)
    with pytest.raises(Refusal, match="nobody decides on it in their name"):
        vote(actor=lab.named(lab.viewer, lab.owner), approval=of_the_giver, approves=True)
    assert not ApprovalVote.objects.exists()
    assert AuditEvent.objects.filter(verb=Verb.ACCESS_DENIED).count() == 2


@pytest.mark.django_db
def test_before_its_time_after_its_end_and_taken_back_it_gives_nothing(lab: Lab) -> None:
    approval = ask(actor=lab.researcher, content=CONTENT)
    now = timezone.now()
    early = lab.named(lab.viewer, lab.approver, starts_at=now + 2 * HOUR, ends_at=now + 3 * HOUR)
    with pytest.raises(Denied):
        vote(actor=early, approval=approval, approves=True)
    held = lab.named(lab.viewer, lab.approver)
    row = given(held)
    end_delegation(actor=lab.approver, delegation=row)
    with pytest.raises(Denied):
        vote(actor=held, approval=approval, approves=True)
    short = lab.named(lab.viewer, lab.owner, ends_at=timezone.now() + timedelta(milliseconds=300))

    time.sleep(0.4)
    with pytest.raises(Denied):
        vote(actor=short, approval=approval, approves=True)
    assert not ApprovalVote.objects.exists()


@pytest.mark.django_db
def test_what_the_giver_holds_no_more_the_delegate_does_not_either(lab: Lab) -> None:
    approval = ask(actor=lab.researcher, content=CONTENT)
    other = join(lab.owner, "other", Role.APPROVER)
    as_other, as_approver = lab.named(lab.viewer, other), lab.named(lab.viewer, lab.approver)
    remove_member(actor=lab.owner, username="other")
    with pytest.raises(Denied):
        vote(actor=as_other, approval=approval, approves=True)
    change_member(actor=lab.owner, member=Membership.objects.get(user=lab.approver.user).public_id, role=Role.RESEARCHER)
    with pytest.raises(Denied):
        vote(actor=as_approver, approval=approval, approves=True)
    also_approver = join(lab.owner, "also", Role.APPROVER)  # a right of one's own does not make up for it: it is not their word
    row = given(as_approver)
    with pytest.raises(NotFound):
        in_the_name_of(also_approver, row)


@pytest.mark.django_db
def test_a_delegate_who_left_decides_for_nobody(lab: Lab) -> None:
    approval = ask(actor=lab.researcher, content=CONTENT, quorum=2)
    named = lab.named(lab.viewer, lab.approver)
    assert vote(actor=named, approval=approval, approves=True) == PENDING
    remove_member(actor=lab.owner, username="viewer")
    with pytest.raises(Denied):
        vote(actor=named, approval=ask(actor=lab.researcher, content=CONTENT), approves=True)
    assert vote(actor=lab.owner, approval=approval, approves=True) == PENDING  # what they said counts no more


@pytest.mark.django_db
def test_one_voice_counts_once_whoever_lends_it(lab: Lab) -> None:
    approval = ask(actor=lab.researcher, content=CONTENT, quorum=2)
    assert vote(actor=lab.named(lab.viewer, lab.approver), approval=approval, approves=True) == PENDING
    with pytest.raises(Refusal, match="Viewer has decided on this for you"):
        vote(actor=lab.approver, approval=approval, approves=True)
    with pytest.raises(Refusal, match="already"):
        vote(actor=lab.named(lab.viewer, lab.owner), approval=approval, approves=True)  # two voices, one person


@pytest.mark.django_db
def test_a_delegate_speaks_with_the_givers_role_and_cannot_hand_it_on(lab: Lab) -> None:
    set_rule(actor=lab.owner, kind="run", approvers=1, role="owner", hours=24, reason="to be sure")
    approval = ask(actor=lab.researcher, content=CONTENT)
    with pytest.raises(Refusal, match="only from an owner"):
        vote(actor=lab.named(lab.viewer, lab.approver), approval=approval, approves=True)
    as_owner = lab.named(lab.approver, lab.owner)
    with pytest.raises(Refusal, match="signed-in"):
        lab.give(as_owner, "viewer")
    with pytest.raises(Denied):
        lab.give(lab.viewer, "researcher")
    assert vote(actor=as_owner, approval=approval, approves=True) == APPROVED


@pytest.mark.django_db
def test_whom_one_may_name(lab: Lab) -> None:
    for username, words in (("nobody", "No member"), ("approver", "yourself")):
        with pytest.raises(Refusal, match=words):
            lab.give(lab.approver, username)
    with pytest.raises(Refusal, match="over already"):
        lab.give(lab.approver, "viewer", starts_at=timezone.now() - 2 * HOUR, ends_at=timezone.now() - HOUR)
    lab.give(lab.approver, "viewer")
    with pytest.raises(Refusal, match="already"):
        lab.give(lab.approver, "researcher")
    with pytest.raises(NotFound):
        end_delegation(actor=lab.researcher, delegation=Delegation.objects.get())
