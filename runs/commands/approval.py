"""Deciding on a launch that was held: the vote, and the admission anew (an approval reserves nothing by itself)."""

from runs.admission import Answer, decide
from runs.commands.launch import admit
from runs.commands.run import end
from runs.lifecycle import RunStatus
from runs.models import Run
from runs.queries.estimate import collect_facts
from runs.queries.frozen import thaw
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.commands import approval as generic
from workspaces.models import Approval, NotFound
from workspaces.verbs import Verb


@command(Verb.APPROVAL_GIVEN, needs=Permission.APPROVE, kind=Kind.APPROVAL)
def decide_approval(event: Draft, *, actor: Actor, approval: Approval, approves: bool, comment: str = "", seen_hash: str) -> Approval:
    """Approve or refuse what was seen. `seen_hash` is the hash of the content on the approver's page; if it is no longer the content's, nothing
    is approved. Raises Refusal where the limits would no longer admit the launch; the request then stays open."""
    lock_ledger()
    asked = Approval.objects.select_for_update().get(pk=approval.pk)
    if actor.user is None:
        raise Refusal("Only a person approves.")
    if asked.subject_type != "run":
        raise NotFound("run")
    run = Run.objects.select_for_update().get(pk=asked.subject_id)
    if seen_hash != asked.content_hash:
        raise Refusal("What is asked has changed since you looked; read it again before deciding.")
    prepared = thaw(run)
    status = generic.record_vote(
        event, approval=asked, person=actor.user, approves=approves, comment=comment, current_hash=prepared.content_hash
    )  # fmt: skip
    event.details["run"] = run.name
    if status == Approval.Status.APPROVED:
        verdict = decide(collect_facts(prepared, event), approved=True)
        if verdict.answer != Answer.PASS:
            raise Refusal("The limits no longer admit it.", *verdict.reasons)
        admit(event, run=run, gpu_ms=prepared.gpu_ms, api_micros=prepared.api_micros)
    elif status in (Approval.Status.REFUSED, Approval.Status.VOID):
        end(event, run=run, status=RunStatus.ABORTED, reason_code=f"approval_{status}", reason=comment or f"{actor.label} refused it.")
    return asked


@command(Verb.APPROVAL_EXPIRED, needs=None, by_system=True)
def expire_approval(event: Draft, *, actor: Actor, approval: Approval) -> None:
    """End a launch whose approval nobody gave in time."""
    lock_ledger()
    asked = Approval.objects.select_for_update().get(pk=approval.pk)
    if asked.status != Approval.Status.PENDING:
        raise Refusal("It was decided meanwhile.")
    generic.expire(event, approval=asked)
    run = Run.objects.select_for_update().filter(pk=asked.subject_id, status=RunStatus.AWAITING_APPROVAL).first()
    if run is not None:
        end(event, run=run, status=RunStatus.ABORTED, reason_code="approval_expired", reason="Nobody decided on it in time.")
