"""Deciding on whatever waits for a person, each kind by its own command; and on a launch that was held: the vote, and the admission anew (an
approval reserves nothing by itself)."""

from django.db import transaction
from django.utils import timezone

from runs.admission import Answer, Verdict, decide
from runs.commands.launch import admit, certify
from runs.commands.run import end
from runs.lifecycle import RunStatus
from runs.models import Certificate, Run
from runs.queries.admission import admission_facts
from runs.queries.frozen import thaw
from workspaces import scope
from workspaces.access import Actor, Kind, Permission, rights_of, standing_delegation
from workspaces.accounts import lock_ledger
from workspaces.asked_kinds import asked_kinds
from workspaces.audit import Denied, Draft, Refusal, command, record_denial
from workspaces.canonical import plain
from workspaces.commands import approval as requests
from workspaces.models import Approval, NotFound
from workspaces.queries.decider import FALLEN
from workspaces.verbs import Verb


def decide_approval(
    *, actor: Actor, approval: Approval, approves: bool, comment: str = "", seen_hash: str, is_alone: bool = False, answer: str = ""
) -> Approval:  # fmt: skip
    """Approve or refuse what was seen, or answer it where it is a question. `seen_hash` is the hash of the content on the approver's page; if that
    is no longer the content's, nothing is approved.

    An approval is admitted anew. Raises Refusal with the certificate's id where the limits no longer admit it: that outcome is on record, no vote
    is kept, and the request stays open.
    """
    kind = asked_kinds().get(approval.subject_type)
    if kind is None:
        raise NotFound("approval")
    if actor.delegation_id is not None and standing_delegation(actor) is None:  # the command asks again, and could say less
        record_denial(actor=actor, permission=Permission.APPROVE, kind=Kind.APPROVAL, where=f"{Verb.APPROVAL_GIVEN}: {FALLEN}")
        raise Refusal(FALLEN)
    if kind.choices is None and answer:
        raise Refusal("This is approved or refused; it asks for no answer.", field="answer")
    answered = {} if kind.choices is None else {"answer": answer}
    decided: Approval = kind.decide(
        actor=actor, approval=approval, approves=approves, comment=comment, seen_hash=seen_hash, is_alone=is_alone, **answered
    )
    return decided


def decide_launch(
    *, actor: Actor, approval: Approval, approves: bool, comment: str = "", seen_hash: str, is_alone: bool = False
) -> Approval:  # fmt: skip
    """As `decide_approval`, of a launch. Raises Refusal with the certificate's id where the limits no longer admit it."""
    decided, refused = _decide(
        actor=actor, approval=approval, approves=approves, comment=comment, seen_hash=seen_hash, is_alone=is_alone
    )  # fmt: skip
    if refused is not None:
        certificate, verdict = refused
        raise Refusal("The limits no longer admit it.", *verdict.reasons, certificate=certificate.public_id)
    return decided


@command(Verb.APPROVAL_GIVEN, needs=Permission.APPROVE, kind=Kind.APPROVAL)
def _decide(
    event: Draft, *, actor: Actor, approval: Approval, approves: bool, comment: str, seen_hash: str, is_alone: bool
) -> tuple[Approval, tuple[Certificate, Verdict] | None]:
    lock_ledger()
    asked, person = requests.taken_up(approval, actor=actor, seen_hash=seen_hash)
    if asked.subject_type != "run":
        raise NotFound("run")
    run = Run.objects.select_for_update(no_key=True).get(pk=asked.subject_id)
    if approves:
        requests.demand_still(run.requested_by, Permission.LAUNCH_RUN, Kind.RUN, "launch runs")
    prepared = thaw(run)
    event.details["run"] = run.name
    before_vote, named = transaction.savepoint(), list(event.subjects)
    status = requests.record_vote(
        event,
        approval=asked,
        actor=actor,
        approves=approves,
        comment=comment,
        current_hash=prepared.content_hash,
        content_now=prepared.frozen,
        is_alone=is_alone,
    )
    if status == Approval.Status.APPROVED:
        facts = admission_facts(prepared, now=timezone.now(), person=run.requested_by, held=run, priority=run.priority, is_approved=True)
        verdict = decide(facts)
        if verdict.answer != Answer.PASS:
            transaction.savepoint_rollback(before_vote)
            event.subjects[:], event.verb, event.about = named, Verb.LAUNCH_REFUSED, run
            event.details = {"run": run.name, "limits": plain(verdict.as_json())}
            return asked, (certify(event, facts, verdict, prepared, asked_by=person), verdict)
        event.changing(run)
        run.certificate = certify(event, facts, verdict, prepared, asked_by=person)
        run.save(update_fields=["certificate"])
        admit(event, run=run, gpu_ms=prepared.gpu_ms, api_micros=prepared.api_micros)
    elif status in (Approval.Status.REFUSED, Approval.Status.VOID):
        end(event, run=run, status=RunStatus.ABORTED, reason_code=f"approval_{status}", reason=asked.end_reason or comment)
    return asked, None


@command(Verb.APPROVAL_EXPIRED, needs=None, by_system=True)
def expire_approval(event: Draft, *, actor: Actor, approval: Approval) -> None:
    """End a launch, or what was put forward, about which nobody decided in time."""
    lock_ledger()
    asked = Approval.objects.select_for_update(no_key=True).get(pk=approval.pk)
    if asked.status != Approval.Status.PENDING:
        raise Refusal("It was decided meanwhile.")
    requests.expire(event, approval=asked)
    kind = asked_kinds().get(asked.subject_type)
    if kind is not None:
        kind.end(event, asked, Approval.Status.EXPIRED, "Nobody decided on it in time.")


@command(Verb.APPROVAL_WITHDRAWN, needs=Permission.VIEW, kind=Kind.APPROVAL)
def withdraw_approval(event: Draft, *, actor: Actor, approval: Approval, reason: str) -> Approval:
    """Ask for it no more: whoever asked may, as long as nobody has decided. What was asked for ends with it. Votes that were given stay on record."""
    lock_ledger()
    asked = Approval.objects.select_for_update(no_key=True).get(pk=approval.pk)
    if not actor.is_user(asked.requested_by_id):
        raise Refusal("Only whoever asked withdraws a request; you can refuse it.", denied=Permission.APPROVE)
    if not rights_of(actor, scope.current_id()).may_write(Kind.APPROVAL):
        raise Denied(Permission.APPROVE, Kind.APPROVAL)
    if asked.status != Approval.Status.PENDING:
        raise Refusal(f"This request has ended before: {asked.get_status_display()}.")
    event.reason = reason.strip()[:1000]
    if not event.reason:
        raise Refusal("Say why; those who were asked will read it.", field="reason")
    requests.withdraw(event, asked, event.reason)
    kind = asked_kinds().get(asked.subject_type)
    if kind is not None:
        kind.end(event, asked, Approval.Status.WITHDRAWN, f"{asked.requested_by.label} asks for it no more: {event.reason}")
    event.about = asked
    return asked


def end_launch(event: Draft, asked: Approval, status: str, reason: str) -> None:
    """End a launch that still waits for its request; `status` is what the request ended in."""
    run = Run.objects.select_for_update(no_key=True).filter(pk=asked.subject_id, status=RunStatus.AWAITING_APPROVAL).first()
    if run is not None:
        end(event, run=run, status=RunStatus.ABORTED, reason_code=f"approval_{status}", reason=reason)
