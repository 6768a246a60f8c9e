"""Who must approve: how many, of which role, for how long a request waits; what a change of the rule does to what waits already."""

import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from tests.factories import make_workspace
from tests.factories_pages import client_of
from tests.factories_resources import ask, join, vote
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.audit import Denied, Refusal
from workspaces.commands.approval_rule import set_rule
from workspaces.models import Approval, ApprovalVote, AuditEvent
from workspaces.verbs import Verb

CONTENT = {"asks": "Launch big-run"}
PENDING, APPROVED, REFUSED = Approval.Status.PENDING, Approval.Status.APPROVED, Approval.Status.REFUSED


class Lab:
    def __init__(self, owner: Actor) -> None:
        self.owner = owner
        self.researcher = join(owner, "researcher")
        self.approver, self.second = join(owner, "approver", Role.APPROVER), join(owner, "second", Role.APPROVER)
        self.admin = join(owner, "admin", Role.ADMIN)

    def rule(self, **more: Any) -> None:
        asked: dict[str, Any] = {"kind": "run", "approvers": 1, "role": "approver", "hours": 24, "reason": "to be sure"} | more
        set_rule(actor=self.owner, **asked)

    def ask(self, **more: Any) -> Approval:
        return ask(actor=self.researcher, content=CONTENT, expires_in=None, **more)


@pytest.fixture
def lab() -> Iterator[Lab]:
    workspace, owner = make_workspace("lab")
    with scope.open_workspace(workspace.pk):
        yield Lab(owner)


@pytest.mark.django_db
def test_without_a_rule_one_approver_decides_and_a_launch_waits_for_thirty_days(lab: Lab) -> None:
    approval = lab.ask()
    assert (approval.quorum, approval.role) == (1, "approver")
    assert abs(approval.expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=1)
    assert vote(actor=lab.approver, approval=approval, approves=True) == APPROVED


@pytest.mark.django_db
def test_the_rule_says_how_many_of_which_role_and_for_how_long(lab: Lab) -> None:
    lab.rule(approvers=2, role="admin", hours=3)
    approval = lab.ask()
    assert abs(approval.expires_at - timezone.now() - timedelta(hours=3)) < timedelta(minutes=1)
    with pytest.raises(Refusal, match="only from an admin or owner"):
        vote(actor=lab.approver, approval=approval, approves=True)
    assert vote(actor=lab.admin, approval=approval, approves=True) == PENDING
    assert vote(actor=lab.owner, approval=approval, approves=True) == APPROVED
    assert [row.person.username for row in ApprovalVote.objects.order_by("created_at")] == ["admin", lab.owner.user.username]  # type: ignore[union-attr]
    assert AuditEvent.objects.filter(verb=Verb.APPROVAL_GIVEN).count() == 2  # each word an event


@pytest.mark.django_db
def test_one_refusal_is_the_end_whatever_the_quorum_and_role(lab: Lab) -> None:
    lab.rule(approvers=2, role="admin")
    approval = lab.ask()
    vote(actor=lab.admin, approval=approval, approves=True)
    with pytest.raises(Refusal, match="Say why"):
        vote(actor=lab.approver, approval=approval, approves=False)
    assert vote(actor=lab.approver, approval=approval, approves=False, comment="too much") == REFUSED
    with pytest.raises(Refusal, match="first decision stands"):
        vote(actor=lab.owner, approval=approval, approves=True)


@pytest.mark.django_db
def test_a_stricter_rule_binds_what_waits_and_a_looser_one_does_not(lab: Lab) -> None:
    approval = lab.ask()
    lab.rule(approvers=2)
    approval.refresh_from_db()
    assert approval.quorum == 2
    assert vote(actor=lab.approver, approval=approval, approves=True) == PENDING
    lab.rule(approvers=1)
    approval.refresh_from_db()
    assert (approval.quorum, approval.status) == (2, PENDING)
    assert vote(actor=lab.second, approval=approval, approves=True) == APPROVED
    assert lab.ask().quorum == 1


@pytest.mark.django_db
def test_whose_role_has_changed_counts_no_more(lab: Lab) -> None:
    lab.rule(approvers=2, role="admin")
    approval = lab.ask()
    other = join(lab.owner, "other", Role.ADMIN)
    assert vote(actor=other, approval=approval, approves=True) == PENDING
    from workspaces.commands.member import change_member  # noqa: PLC0415
    from workspaces.models import Membership  # noqa: PLC0415

    change_member(actor=lab.owner, member=Membership.objects.get(user=other.user).public_id, role=Role.APPROVER)
    assert vote(actor=lab.admin, approval=approval, approves=True) == PENDING
    assert vote(actor=lab.owner, approval=approval, approves=True) == APPROVED


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"approvers": 2, "role": "owner"}, "never come together"),
        ({"approvers": 0}, "From one"),
        ({"approvers": 11}, "From one"),
        ({"hours": 0}, "one hour at least"),
        ({"role": "viewer"}, "counts from"),
        ({"reason": " "}, "Say why"),
    ],
)
def test_a_rule_that_nobody_could_meet_is_refused_with_a_sentence(lab: Lab, more: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        lab.rule(**more)
    with pytest.raises(Denied):
        set_rule(actor=lab.approver, kind="run", approvers=1, role="approver", hours=1, reason="mine")


@pytest.mark.django_db
def test_what_waits_for_an_owner_is_not_an_approvers_to_decide(lab: Lab) -> None:
    lab.rule(role="owner")
    approval = lab.ask()
    assert client_of(lab.approver).get("/workspaces/lab/approvals/?whose=mine").context["rows"] == []
    assert len(client_of(lab.owner).get("/workspaces/lab/approvals/?whose=mine").context["rows"]) == 1
    page = client_of(lab.approver).get(f"/workspaces/lab/approvals/{approval.public_id}/").content.decode()
    assert "counts only from an owner" in page


@pytest.mark.django_db(transaction=True)
def test_two_approvers_at_once_are_two_words_and_one_decision() -> None:
    workspace, owner = make_workspace("lab")
    with scope.open_workspace(workspace.pk):
        lab = Lab(owner)
        approval = lab.ask(quorum=2)
        single = lab.ask(quorum=1)
    said: list[str] = []

    def decide(actor: Actor, asked: uuid.UUID, gate: threading.Barrier) -> None:
        try:
            with scope.open_workspace(workspace.pk):
                found = Approval.objects.get(pk=asked)
                gate.wait(timeout=20)
                said.append(vote(actor=actor, approval=found, approves=True))
        except Refusal as refusal:
            said.append(str(refusal))
        finally:
            connection.close()

    for asked, expected in ((approval, [APPROVED, PENDING]), (single, [APPROVED, "This request was decided before"])):
        said.clear()
        gate = threading.Barrier(2)
        threads = [threading.Thread(target=decide, args=(actor, asked.pk, gate)) for actor in (lab.approver, lab.second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert len(said) == 2
        for found, wanted in zip(sorted(said, key=str), sorted(expected, key=str), strict=True):
            assert str(found).startswith(str(wanted)), said
    with scope.open_workspace(workspace.pk):
        assert ApprovalVote.objects.filter(approval=approval).count() == 2
        assert ApprovalVote.objects.filter(approval=single).count() == 1
