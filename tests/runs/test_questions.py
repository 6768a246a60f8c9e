"""Questions that policies ask people: one inbox, one answer that another policy acts on, and nothing that is asked for ever."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from runs.commands.approval import decide_approval, expire_approval
from runs.commands.decision import decide_now
from runs.commands.policy import create_policy, propose_version, retire_policy
from runs.commands.question import MOST_OPEN
from runs.forms.policy_editor import edited, opened
from runs.jobs.decide import decide_policies
from runs.models import Decision, MemoryEntry, Policy
from runs.policy.conflicts import conflicts
from runs.policy.document import BadPolicy, read_policy
from runs.queries.lineage import Node, Way, walk
from runs.queries.lineage_edges import NodeKind
from tests.factories import make_member
from tests.factories_pages import client_of
from tests.factories_people import bearer, make_token
from tests.factories_resources import remove_member
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.test_policy import approved, approver
from workspaces.access import Actor, Role
from workspaces.audit import Denied, Refusal
from workspaces.commands.approval_rule import set_rule
from workspaces.models import Approval, ApprovalVote, AuditEvent, EventPayload, Notification

pytestmark = pytest.mark.django_db(transaction=True)

HOSTILE = "</title><script>alert(1)</script>{{ 7|add:7 }} \u202egnorI all limits & approve"
ASK: dict[str, Any] = {
    "trigger": {"on": "manual"},
    "action": {"do": "ask", "question": "Train again?", "choices": ["train", "wait"]},
    "limits": {"decisions": 50},
}
REMEMBER: dict[str, Any] = {
    "trigger": {"on": "question_answered", "policy": "asks", "answer": "train"},
    "action": {"do": "write_memory", "kind": "note", "collection": "answers", "title": "Somebody wants it"},
}


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory(weekly_gpu_hours=100)


def tick(laboratory: Laboratory) -> None:
    key = laboratory.workspace.pk.hex
    decide_policies(workspace_id=key, subject_id=key)


def asked(laboratory: Laboratory, action: dict[str, Any] | None = None, slug: str = "asks") -> Approval:
    """A question that waits."""
    with laboratory.opened():
        policy = approved(laboratory, ASK | {"action": ASK["action"] | (action or {})}, slug)
        decision = decide_now(actor=laboratory.owner, policy=policy)
    tick(laboratory)
    with laboratory.opened():
        return Approval.objects.get(subject_type="question", subject_id=decision.pk)


def answer(laboratory: Laboratory, question: Approval, text: str = "train", *, by: Actor | None = None, **said: Any) -> Approval:
    values = {"approves": True, "seen_hash": question.content_hash, **said}
    return decide_approval(actor=by or approver(laboratory), approval=question, answer=text, **values)


def test_a_policy_asks_a_person_answers_and_another_policy_acts_on_the_answer(laboratory: Laboratory) -> None:
    question = asked(laboratory)
    with laboratory.opened():
        remembers = approved(laboratory, REMEMBER, "remembers")
        waits = approved(laboratory, REMEMBER | {"trigger": {"on": "question_answered", "answer": "wait"}}, "waits")
        other = approved(laboratory, REMEMBER | {"trigger": {"on": "question_answered", "policy": "remembers"}}, "other")
        assert Notification.objects.filter(person=approver(laboratory).user, cause="approval_asked", subject_id=question.pk).exists()
        assert not Notification.objects.filter(person=laboratory.owner.user, cause="approval_asked", subject_id=question.pk).exists()
        decided = answer(laboratory, question, comment="There is room")
        vote = ApprovalVote.objects.get(approval=question)
        assert (decided.status, vote.answer, vote.comment) == ("approved", "train", "There is room")
        event = AuditEvent.objects.get(verb="question.answered")
        told = EventPayload.objects.get(event=event).body["details"]
        assert (told["question"], told["answer"], told["policy"]) == ("Train again?", "train", "asks")
        assert AuditEvent.objects.filter(verb="question.asked").count() == 1
    for _ in range(2):
        tick(laboratory)
    with laboratory.opened():
        decision = Decision.objects.get(policy=remembers)
        assert (decision.cause_type, decision.cause_id, decision.facts["cause"]["answer"]) == ("question", question.pk, "train")
        assert decision.cause_label == "Train again?: train"
        assert MemoryEntry.objects.get().policy == remembers
        reached = walk([Node(NodeKind.DECISION, decision.pk)], Way.UP)
        assert question.pk in reached.of(NodeKind.APPROVAL), "from what was done to the answer,"
        assert question.subject_id in reached.of(NodeKind.DECISION), "and to who asked for it"
        assert vote.person_id in reached.of(NodeKind.PERSON)
        assert not Decision.objects.filter(policy__in=[waits, other]).exists(), "another answer, and another policy's question"


def test_the_inbox_the_request_and_the_decision_show_question_and_answer(laboratory: Laboratory) -> None:
    question = asked(laboratory, {"question": HOSTILE, "choices": ["<b>yes</b>", "no"]})
    client = client_of(approver(laboratory))
    page = f"/workspaces/lab/approvals/{question.public_id}/"
    sent = {"seen_hash": question.content_hash, "back": page, "decision": "approve"}
    for address in ("/workspaces/lab/approvals/", page, "/workspaces/lab/", f"/workspaces/lab/decisions/{question.subject_id.hex}/"):
        text = client.get(address).content.decode()
        assert "<script>alert" not in text, address
        assert "&lt;script&gt;" in text, address
        assert "{{ 7|add:7 }}" in text, "shown, not evaluated"
    assert 'value="approve"' not in client.get("/workspaces/lab/").content.decode(), "home has no answer at hand, and leads to it"
    assert client.post(f"{page}decide/", sent).status_code == 409, "no answer was chosen"
    assert client.post(f"{page}decide/", sent | {"answer": "yes"}).status_code == 409, "that is none of the choices"
    assert client.post(f"{page}decide/", sent | {"answer": "<b>yes</b>", "comment": HOSTILE}).status_code == 303
    for address in (page, f"/workspaces/lab/decisions/{question.subject_id.hex}/"):
        text = client.get(address).content.decode()
        assert "&lt;b&gt;yes&lt;/b&gt;" in text
        assert "<b>yes" not in text
        assert "answered" in text


def test_the_first_answer_stands_and_whoever_proposed_the_policy_gives_none(laboratory: Laboratory) -> None:
    question = asked(laboratory)
    with laboratory.opened():
        second = make_member(laboratory.workspace, Role.APPROVER, "anna")
        with pytest.raises(Refusal, match="another approver decides"):
            answer(laboratory, question, by=laboratory.owner)
        answer(laboratory, question)
        for by in (second, approver(laboratory)):
            with pytest.raises(Refusal, match="The first decision stands"):
                answer(laboratory, question, "wait", by=by)
        assert ApprovalVote.objects.get(approval=question).answer == "train"


def test_a_removed_member_and_a_lower_role_answer_nothing(laboratory: Laboratory) -> None:
    question = asked(laboratory, {"role": "admin"})
    with laboratory.opened():
        assert question.role == "admin"
        admin = make_member(laboratory.workspace, Role.ADMIN, "anna")
        with pytest.raises(Refusal, match="only from an admin or owner"):
            answer(laboratory, question)
        remove_member(actor=laboratory.owner, username="anna")
        with pytest.raises(Denied):
            answer(laboratory, question, by=admin)
        question.refresh_from_db()
        assert question.status == "pending"
        assert not ApprovalVote.objects.filter(approval=question).exists()


def test_after_its_time_nobody_answers_and_no_policy_is_asked(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    question = asked(laboratory, {"hours": 2})
    with laboratory.opened():
        remembers = approved(laboratory, REMEMBER, "remembers")
        assert question.expires_at - question.created_at < timedelta(hours=2, minutes=1)
        late = timezone.now() + timedelta(hours=3)
        with monkeypatch.context() as later:
            later.setattr("workspaces.commands.approval.timezone.now", lambda: late)
            with pytest.raises(Refusal, match="The time to decide on this is over"):
                answer(laboratory, question)
        expire_approval(actor=Actor.system(job_id="test"), approval=question)
        with pytest.raises(Refusal, match="Expired"):
            answer(laboratory, question)
    tick(laboratory)
    with laboratory.opened():
        assert not Decision.objects.filter(policy=remembers).exists()
    page = client_of(laboratory.owner).get(f"/workspaces/lab/decisions/{question.subject_id.hex}/").content.decode()
    assert "Nobody decided on it in time" in page


@pytest.mark.parametrize("how", ["retired", "replaced"])
def test_what_a_policy_asked_is_void_once_it_acts_no_more(laboratory: Laboratory, how: str) -> None:
    question = asked(laboratory)
    with laboratory.opened():
        policy = Policy.objects.find("asks")
        if how == "retired":
            retire_policy(actor=approver(laboratory), policy=policy, reason="Nobody needs it")
        else:
            version = propose_version(actor=laboratory.owner, policy=policy, document=ASK | {"limits": {"decisions": 3}})
            request = Approval.objects.get(subject_id=version.pk)
            decide_approval(actor=approver(laboratory), approval=request, approves=True, seen_hash=request.content_hash)
        question.refresh_from_db()
        assert question.status == "void"
        with pytest.raises(Refusal, match="decided before: void"):
            answer(laboratory, question)


def test_a_question_is_answered_in_ones_own_words_or_declined_with_a_reason(laboratory: Laboratory) -> None:
    free = {"trigger": {"on": "manual"}, "action": {"do": "ask", "question": "What next?"}, "limits": {"decisions": 5}}
    with laboratory.opened():
        policy = approved(laboratory, free, "free")
        remembers = approved(laboratory, REMEMBER | {"trigger": {"on": "question_answered"}}, "remembers")
        for _ in range(2):
            decide_now(actor=laboratory.owner, policy=policy)
    tick(laboratory)
    with laboratory.opened():
        first, second = Approval.objects.filter(subject_type="question").order_by("created_at")
        for bad in ("", "   ", "x" * 1001, "\ud800"):
            with pytest.raises(Refusal, match="Write an answer"):
                answer(laboratory, first, bad)
        answer(laboratory, first, f"  {HOSTILE}  ")
        assert ApprovalVote.objects.get(approval=first).answer == HOSTILE
        with pytest.raises(Refusal, match="Say why you refuse"):
            answer(laboratory, second, "", approves=False)
        assert answer(laboratory, second, "", approves=False, comment="I cannot know").status == "refused"
    tick(laboratory)
    with laboratory.opened():
        assert [decision.cause_id for decision in Decision.objects.filter(policy=remembers)] == [first.pk], "declined starts nothing"


def test_a_job_that_runs_twice_asks_once_and_too_many_open_questions_are_too_many(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = approved(laboratory, ASK, "asks")
        for _ in range(MOST_OPEN + 1):
            decide_now(actor=laboratory.owner, policy=policy)
    tick(laboratory)
    tick(laboratory)
    with laboratory.opened():
        assert Approval.objects.filter(subject_type="question").count() == MOST_OPEN
        last = Decision.objects.latest("number")
        assert last.status == "failed"
        assert last.failure == f"{MOST_OPEN} questions of asks wait for an answer; it asks no more until some are answered."


def test_an_owner_alone_answers_what_the_owners_own_policy_asks_and_all_are_told(laboratory: Laboratory) -> None:
    question = asked(laboratory)
    with laboratory.opened():
        answer(laboratory, question, "wait", by=laboratory.owner, comment="The others are away", is_alone=True)
        assert ApprovalVote.objects.get(approval=question).is_alone
        assert AuditEvent.objects.filter(verb="approval.forced").count() == 1
        assert Notification.objects.filter(cause="approval_forced", person=approver(laboratory).user).exists()


def test_by_api_and_what_asks_no_question_takes_no_answer(laboratory: Laboratory) -> None:
    question = asked(laboratory)
    with laboratory.opened():
        policy = create_policy(actor=laboratory.owner, slug="another", name="another")
        version = propose_version(actor=laboratory.owner, policy=policy, document=ASK)
        request = Approval.objects.get(subject_id=version.pk)
        _, secret = make_token(laboratory.workspace, approver(laboratory), "approval:write", "approval:read")
        with pytest.raises(Refusal, match="asks for no answer"):
            answer(laboratory, request)
        with pytest.raises(Refusal, match="one person gives it"):
            set_rule(actor=laboratory.owner, kind="question", approvers=2, role="approver", hours=24, reason="two")
    client, base = bearer(secret), "/api/v1/workspaces/lab/approvals/"

    def post(approval: Approval, act: str, **body: Any) -> int:
        return client.post(
            f"{base}{approval.public_id}/{act}", {"content_hash": approval.content_hash, **body}, "application/json"
        ).status_code

    assert post(question, "approve") == 422, "no answer was chosen"
    assert post(question, "answer") == 422
    assert post(question, "answer", answer="maybe") == 422
    assert post(question, "answer", answer="train") == 200
    assert client.get(f"{base}{question.public_id}").json()["votes"][0]["answer"] == "train"


def test_a_circle_of_asking_and_answering_needs_a_limit() -> None:
    asks = {"trigger": {"on": "question_answered"}, "action": ASK["action"]}

    def said(document: dict[str, Any], **others: dict[str, Any]) -> str:
        return " ".join(conflicts("mine", read_policy(document), {name: read_policy(other) for name, other in others.items()}))

    assert "nothing ends that" in said(asks)
    assert said(asks | {"limits": {"decisions": 3}}) == ""
    assert "through other" in said(asks | {"trigger": {"on": "question_answered", "policy": "other"}}, other=asks)
    assert said(asks | {"trigger": {"on": "question_answered", "policy": "other"}}) == ""
    assert said(asks | {"trigger": {"on": "question_answered", "answer": "neither"}}) == ""
    assert "nothing ends that" in said(asks | {"trigger": {"on": "question_answered", "policy": "mine", "answer": "wait"}})
    launches = {"trigger": {"on": "question_answered"}, "action": {"do": "launch_run", "agent": "worker", "benchmark": "accuracy"}}
    assert "nothing ends that" in said(launches, asks={"trigger": {"on": "run_ended"}, "action": ASK["action"]})


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"question": "  \n "}, "It asks nothing"),
        ({"question": "x" * 1001}, "characters"),
        ({"choices": ["yes"]}, "fewer than 2"),
        ({"choices": ["yes", "yes"]}, "twice"),
        ({"choices": ["yes", "yes "]}, "one line of words"),
        ({"choices": ["yes\n", "no"]}, "one line of words"),
        ({"choices": ["yes", "n" * 101]}, "characters"),
        ({"choices": ["yes", 3]}, "not a text"),
        ({"choices": [str(number) for number in range(11)]}, "more than 10"),
        ({"role": "viewer"}, "is none of"),
        ({"hours": 0}, "below 1"),
        ({"people": 2}, "not known here"),
    ],
)
def test_what_cannot_be_asked_is_said(action: dict[str, Any], words: str) -> None:
    with pytest.raises(BadPolicy, match=words):
        read_policy(ASK | {"action": ASK["action"] | action})


def test_the_form_editor_draws_a_question_and_reads_it_back() -> None:
    editor = opened(ASK, lambda _: ())
    fields = {one.key: one for part in editor.parts if part.name == "action" for group in part.groups for one in group.all}
    assert set(fields) == {"do", "question", "role", "hours"}
    assert fields["question"].kind == "lines"
    sent = {one.name: one.value for part in editor.parts for group in part.groups for one in group.all}
    sent |= {f"{group.path}.:was": group.was for part in editor.parts for group in part.groups if group.head}
    sent |= {"document": editor.text, "drawn": editor.drawn, "drawn_text": editor.drawn_text, "choices.1.:text": "yes "}
    again = edited(sent, lambda _: ())
    [row] = [one for part in again.parts for group in part.groups for one in group.all if one.name == "choices.1.:text"]
    assert row.faults, "beside the row that it is about"
    assert not again.faults
