"""Questions that a policy asks people: into the one inbox, answered by one person, bound to exactly what was asked (feature 70).

The request is the question: its subject is the decision that asked, the answer stands with the word of whoever gave it.
"""

from datetime import timedelta
from typing import Any

from runs.commands.policy_bell import ring_policies
from runs.models import Decision, Policy
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.asked_kinds import AsOfNow
from workspaces.audit import Draft, Refusal, command
from workspaces.canonical import digest
from workspaces.commands import approval as requests
from workspaces.models import Approval
from workspaces.text import is_storable
from workspaces.verbs import Verb

SUBJECT = "question"  # what an approval's subject is called
MOST_OPEN = 20  # questions of one policy that wait: more is noise, and nobody would read them
MOST_ANSWER = 1000
Status = Approval.Status


@command(Verb.QUESTION_ASKED, needs=Permission.PROPOSE_POLICY, kind=Kind.POLICY)
def ask_question(event: Draft, *, actor: Actor, decision: Decision) -> Approval:
    """Ask what the decision's version says, once however often it is carried out. Whoever proposed the version asks, so another person answers."""
    lock_ledger()
    policy = Policy.objects.select_for_update(no_key=True).get(pk=decision.policy_id)
    if actor.user is None:
        raise Refusal("A policy asks under the rights of whoever proposed it, so somebody has to.")
    if Approval.objects.filter(subject_type=SUBJECT, subject_id=decision.pk).exists():
        raise Refusal("This was asked already.")
    waiting = _waiting(policy).count()
    if waiting >= MOST_OPEN:
        raise Refusal(f"{waiting} questions of {policy.name} wait for an answer; it asks no more until some are answered.")
    action = decision.version.document["action"]
    event.reason = action["question"][:1000]
    asked = requests.ask(
        event,
        subject_type=SUBJECT,
        subject_id=decision.pk,
        subject_label=decision.label,
        content=content_of(decision, policy),
        reason="",
        requested_by=actor.user,
        token_id=actor.token_id,
        quorum=1,  # one question has one answer
        role=action.get("role", ""),
        expires_in=timedelta(hours=action["hours"]) if "hours" in action else None,
    )
    event.about = decision
    return asked


@command(Verb.APPROVAL_GIVEN, needs=Permission.APPROVE, kind=Kind.APPROVAL)
def decide_question(
    event: Draft, *, actor: Actor, approval: Approval, approves: bool, comment: str = "", seen_hash: str, is_alone: bool = False, answer: str = ""
) -> Approval:  # fmt: skip
    """Answer, or decline to with a comment. Policies that wait for an answer are asked about it. Void where the version that asked acts no more."""
    lock_ledger()
    asked, _ = requests.taken_up(approval, actor=actor, seen_hash=seen_hash)
    decision = Decision.objects.select_related("policy", "version").get(pk=asked.subject_id)
    now = content_of(decision, Policy.objects.select_for_update(no_key=True).get(pk=decision.policy_id))
    said = _answer(now["choices"], answer) if approves else ""
    event.details |= {"policy": decision.policy.slug, "decision": decision.number, "question": now["question"], "answer": said}
    status = requests.record_vote(
        event,
        approval=asked,
        actor=actor,
        approves=approves,
        comment=comment,
        current_hash=digest(now),
        content_now=now,
        is_alone=is_alone,
        answer=said,
    )
    if status == Status.APPROVED:
        event.about = asked
        if event.verb != Verb.APPROVAL_FORCED:  # which nothing drowns out
            event.verb = Verb.QUESTION_ANSWERED
        ring_policies()
    return asked


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def content_of(decision: Decision, policy: Policy) -> dict[str, Any]:
    """What an answer is an answer to."""
    action = decision.version.document["action"]
    acts = decision.version.status == "active" and policy.status != Policy.Status.RETIRED
    return {
        "asks": action["question"],
        "question": action["question"],
        "choices": list(action.get("choices", ())),
        "policy": policy.slug,
        "asked_under": f"version {decision.version.number}, {'which acts' if acts else 'which acts no more'}",
        "asked_about": f"{decision.cause_type} {decision.cause_label}"[:300],
    }


def as_of_now(approval: Approval) -> AsOfNow | None:
    """What would be asked at this moment, for whoever looks before answering."""
    decision = Decision.objects.select_related("policy", "version").filter(pk=approval.subject_id).first()
    if decision is None:
        return None
    now = content_of(decision, decision.policy)
    return AsOfNow(digest(now), now)


def end_question(event: Draft, asked: Approval, status: str, reason: str) -> None:
    """Nothing hangs on a question that nobody answers: no policy is asked about it."""


def end_questions(event: Draft, policy: Policy) -> None:
    """Of a policy whose version acts no more: what it still asks is void, and nobody is called to it any longer."""
    requests.void_all(event, subject_ids=list(_waiting(policy).values_list("subject_id", flat=True)))


def _waiting(policy: Policy) -> Any:
    decisions = Decision.objects.filter(policy=policy).values("pk")
    return Approval.objects.filter(subject_type=SUBJECT, status=Status.PENDING, subject_id__in=decisions)


def _answer(choices: list[str], answer: str) -> str:
    if choices:
        if answer not in choices:
            raise Refusal(f"Choose one of the answers: {', '.join(choices)}.", field="answer")
        return answer
    said = answer.strip()
    if not said or len(said) > MOST_ANSWER or not is_storable(said):
        raise Refusal(f"Write an answer, at most {MOST_ANSWER:,} characters of text.", field="answer")
    return said
