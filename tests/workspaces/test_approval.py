"""Deciding on a request: by another person, once, for exactly what was asked."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.factories import make_workspace
from tests.factories_pages import client_of
from tests.factories_registry import make_agent_version
from tests.factories_resources import ask, end_vote, expire, join, remove_member, vote
from workspaces import scope
from workspaces.access import Actor, Role, rights_of
from workspaces.audit import Denied, Refusal
from workspaces.commands.token import create_token
from workspaces.commands.workspace import configure_workspace
from workspaces.models import Approval, ApprovalVote, AuditEvent
from workspaces.queries.approval import asked, waiting_for
from workspaces.verbs import Verb

CONTENT: dict[str, Any] = {
    "asks": "Launch big-run",
    "certificate": [{"name": "GPU-hours a week", "answer": "approval", "words": "24 more.", "way_out": "Let an approver decide."}],
    "agent": {"id": "ab" * 16, "slug": "worker", "version": 3, "content_hash": "cd" * 32},
    "inputs": [
        {"slug": "table", "kind": "dataset", "sha256": "ef" * 32, "label": "table@1"},
        {"slug": "model-json", "kind": "artifact", "sha256": "ef" * 32, "label": "model.json of first"},
    ],
    "limits": {"wall_seconds": 3600, "gpu_ms": 86_400_000, "api_micros": 0},
    "seed": 7,
    "parameters": {"columns": ["age", "size"], "epochs": 40, "rate": 0.001, "shuffle": True},
    "pool": {"slug": "west", "isolation": "user", "milli_gpu_per_slot": 500, "price_micros_per_gpu_hour": 2_000_000, "currency": "EUR"},
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
def test_nobody_decides_on_what_a_token_of_their_making_asked_for(asking: Asking) -> None:
    token, _ = create_token(actor=asking.owner, name="loop", scopes=["run:write"], days=1)
    approval = ask(actor=replace(asking.researcher, token_id=token.pk), content=CONTENT)
    with pytest.raises(Refusal, match="token that you made"):
        vote(actor=asking.owner, approval=approval, approves=True)
    assert vote(actor=asking.approver, approval=approval, approves=True) == Approval.Status.APPROVED


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
    assert [(fact.label, fact.value, fact.detail) for fact in shown.facts] == [
        ("Reserves, at most", "24 GPU-hours", ""),
        ("Costs, at most", "48.00 EUR", "24 GPU-hours at 2.00 EUR an hour"),
        ("Ends at the latest after", "1 h 00", ""),
        ("Agent", "worker", "version 3"),
        ("Dataset", "table, version 1", ""),
        ("Input", "model.json of first", ""),
        ("Seed", "7", ""),
        ("Pool", "west", "own user id for each attempt; a slot counts as 0.5 GPU"),
    ]
    assert [(check["name"], check["verdict"]) for check in shown.checks] == [("GPU-hours a week", "person")]
    assert (seen(asking.approver), seen(asking.researcher)) == ("", "Deciding on this needs the right to approve.")
    own = ask(actor=asking.owner, content=CONTENT)
    assert "yourself" in asked(own, asking.owner, rights_of(asking.owner, scope.current_id())).why_not
    assert approval.expires_at > timezone.now()


@pytest.mark.django_db
def test_parameters_stand_beside_the_agents_own_and_what_differs_comes_first(asking: Asking) -> None:
    schema = {
        "type": "object",
        "properties": {"epochs": {"type": "integer", "default": 40}, "shuffle": {"default": False}, "rate": {"default": 0.001}},
    }
    configure_workspace(actor=asking.owner, region="local")
    version = make_agent_version(asking.owner, "tuner", parameter_schema=schema)
    approval = ask(actor=asking.researcher, content=CONTENT | {"agent": {"id": version.agent_id.hex, "slug": "tuner", "version": 1}})
    shown = asked(approval, asking.approver, rights_of(asking.approver, scope.current_id()))
    assert [(row.name, row.value, row.default, row.is_changed) for row in shown.parameters] == [
        ("columns", "age, size", "", True),
        ("shuffle", "yes", "no", True),
        ("epochs", "40", "40", False),
        ("rate", "0.001", "0.001", False),
    ]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "content", [[], "text", {"limits": 3, "agent": {"version": "x"}, "inputs": ["a"]}, {"pool": {"slug": 5}, "other": {"a": [1]}}]
)
def test_whatever_is_asked_can_be_shown(asking: Asking, content: Any) -> None:
    approval = ask(actor=asking.researcher, content=content)
    page = client_of(asking.approver).get(f"/workspaces/lab/approvals/{approval.public_id}/")
    assert page.status_code == 200


@pytest.mark.django_db
def test_the_inbox_counts_only_what_this_person_may_decide(asking: Asking) -> None:
    def counts() -> list[int]:
        return [
            waiting_for(actor, rights_of(actor, scope.current_id())).count() for actor in (asking.researcher, asking.approver, asking.owner)
        ]

    assert counts() == [0, 0, 0]
    approval = asking.ask(quorum=2)
    ask(actor=asking.owner, content=CONTENT)
    asking.ask(expires_in=timedelta(seconds=-1))
    assert counts() == [0, 2, 1]
    vote(actor=asking.approver, approval=approval, approves=True)
    assert counts() == [0, 1, 1]
    page = client_of(asking.researcher).get("/workspaces/lab/approvals/").content.decode()
    assert "Inbox" not in page


@pytest.mark.django_db
def test_the_page_says_who_what_and_how_much_in_words(asking: Asking) -> None:
    body = client_of(asking.approver).get(f"/workspaces/lab/approvals/{asking.ask().public_id}/").content.decode()
    for words in (
        "48.00 EUR",
        "24 GPU-hours at 2.00 EUR an hour",
        "age, size",
        "Let an approver decide.",
        'href="/workspaces/lab/agents/worker/"',
    ):
        assert words in body
    for raw in ("micros", "milli", "[&#x27;", "86400000"):
        assert raw not in body
    assert "48.00 EUR at most" in client_of(asking.approver).get("/workspaces/lab/approvals/").content.decode()
