"""Putting an artifact forward under a name, deciding on that, taking it back. What is decided on is frozen, and found anew before it holds."""

import uuid
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Max
from django.utils import timezone

from runs.checks.candidate import Candidate, Place, candidate_of
from runs.checks.eligibility import facts_of
from runs.checks.gate import gate_of, reviewers_wanted, shut_now
from runs.checks.score import placed
from runs.eligibility import Fact, in_the_way, is_eligible, may_be_told_soon
from runs.models import Artifact, Decision, Promotion
from runs.queries.reading import read_back
from runs.statement import Promoted, Rested, policy, statement
from workspaces import dsse, ids
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.asked_kinds import AsOfNow
from workspaces.audit import Draft, Refusal, command, row_hash
from workspaces.canonical import digest
from workspaces.commands import approval as requests
from workspaces.models import Approval, User
from workspaces.queries.requester import makers_behind
from workspaces.units import number
from workspaces.verbs import Verb

Status = Promotion.Status
SUBJECT = "promotion"  # what an approval's subject is called
WITH = ("artifact__blob", "artifact__run__contract", "evaluation", "requested_by")


class NotToldYet(Refusal):  # as its base
    """All that is in the way is told by itself soon, as where data is still held against a holdout."""


def propose_promotion(
    *,
    actor: Actor,
    artifact: Artifact,
    name: str,
    reason: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
    decision: Decision | None = None,
) -> Promotion:
    """Put an artifact forward under `name`. Refuses where a check does not pass, with a sentence for each. Before, the file is read back, and the
    board for the place that is noted. With the `decision` of a policy, the gate of that policy comes on top: it is part of what is asked, and has
    to pass again when a person decides."""
    name = name_of(name)
    place = placed(candidate_of(artifact, name)).place
    read = read_back(artifact.blob)
    return _propose(actor=actor, artifact=artifact, name=name, reason=reason, read=read, place=place, id=id, decision=decision)


@command(Verb.PROMOTION_PROPOSED, needs=Permission.PROMOTE, kind=Kind.ARTIFACT)
def _propose(
    event: Draft,
    *,
    actor: Actor,
    artifact: Artifact,
    name: str,
    reason: str,
    read: str,
    place: Place | None,
    id: uuid.UUID | None,  # noqa: A002  # as above
    decision: Decision | None,
) -> Promotion:
    lock_ledger()
    if actor.user is None:
        raise Refusal("An artifact is put forward by somebody who answers for it.")
    artifact = Artifact.objects.select_related("blob", "run__contract").select_for_update(no_key=True, of=("self",)).get(pk=artifact.pk)
    open_one = Promotion.objects.filter(name=name, artifact=artifact, status=Status.PROPOSED).first()
    if open_one is not None:
        raise Refusal(f"It waits for a decision already: promotion {open_one.number}.", field="name")
    candidate = candidate_of(artifact, name, read=read, place=place)
    facts = facts_of(candidate)
    if not is_eligible(facts):
        raise (NotToldYet if may_be_told_soon(facts) else Refusal)(*in_the_way(facts))
    content = content_of(candidate, facts) | _gate_content(decision, gate_of(decision) if decision else [])
    promotion = Promotion(
        id=id or ids.uuid7(),
        number=(Promotion.objects.aggregate(last=Max("number"))["last"] or 0) + 1,
        name=name,
        artifact=artifact,
        evaluation=candidate.score,
        facts=[fact.stored for fact in facts],
        content_hash=digest(content),
        reason=reason.strip()[:1000],
        requested_by=actor.user,
    )
    promotion.save(force_insert=True)
    event.created(promotion)
    event.reason = promotion.reason
    requests.ask(
        event,
        subject_type=SUBJECT,
        subject_id=promotion.pk,
        subject_label=promotion.label,
        content=content,
        reason=promotion.reason,
        requested_by=actor.user,
        token_id=actor.token_id,
        at_least=reviewers_wanted(decision) if decision else 1,
    )
    return promotion


def decide_promotion(
    *, actor: Actor, approval: Approval, approves: bool, comment: str = "", seen_hash: str, is_alone: bool = False
) -> Approval:
    """Decide on what was put forward. An approval finds every check anew, the file read back too; if any says something else now, the request is
    void and the promotion refused. What stood under the name is superseded in the same transaction."""
    artifact = Promotion.objects.select_related("artifact__blob").get(pk=approval.subject_id).artifact
    decision = decision_behind(approval)
    read = read_back(artifact.blob) if approves else None
    # Before the ledger is locked, as the file is read: samples of two evaluations may take seconds to hold against each other.
    shut = shut_now(decision) if approves and decision is not None else []
    return _decide(
        actor=actor,
        approval=approval,
        approves=approves,
        comment=comment,
        seen_hash=seen_hash,
        read=read,
        decision=decision,
        shut=shut,
        is_alone=is_alone,
    )


def _voices(actor: Actor) -> set[uuid.UUID]:
    """Whose word it is: who says it, and in whose place."""
    return {person.pk for person in (actor.user, actor.behalf) if person is not None}


@command(Verb.APPROVAL_GIVEN, needs=Permission.APPROVE, kind=Kind.APPROVAL)
def _decide(
    event: Draft,
    *,
    actor: Actor,
    approval: Approval,
    approves: bool,
    comment: str,
    seen_hash: str,
    read: str | None,
    decision: Decision | None,
    shut: list[Fact],
    is_alone: bool,
) -> Approval:
    lock_ledger()
    asked, person = requests.taken_up(approval, actor=actor, seen_hash=seen_hash)
    promotion = _locked(asked.subject_id)
    event.details |= {"promotion": promotion.label, "artifact": _title(promotion.artifact)}
    if approves:
        requests.demand_still(promotion.requested_by, Permission.PROMOTE, Kind.ARTIFACT, "promote")
    wanted = reviewers_wanted(decision) if approves and decision is not None else 0
    if wanted > asked.quorum and asked.status == Approval.Status.PENDING:
        event.change(asked, quorum=wanted)  # rules of the site that came meanwhile bind what waits
    run = promotion.artifact.run
    if wanted and not _voices(actor).isdisjoint({run.requested_by_id, *makers_behind([run.pk])}):
        raise Refusal("You asked for the run that made it; the policy's gate wants another reviewer.", denied=Permission.APPROVE)
    found = _found_anew(promotion, read, decision, shut) if approves else None
    current = digest(found.content) if found else asked.content_hash
    status = requests.record_vote(
        event,
        approval=asked,
        actor=actor,
        approves=approves,
        comment=comment,
        current_hash=current,
        content_now=found.content if found else None,
        is_alone=is_alone,
    )
    if status == Approval.Status.APPROVED and found is not None:
        _promote(event, promotion, asked, found, decided_by=person)
    elif status == Approval.Status.VOID and found is not None:
        changed = in_the_way([*found.facts, *found.shut]) or [asked.end_reason]
        end_proposal(event, promotion.pk, "It is not what was put forward any more. " + " ".join(changed))
    elif status == Approval.Status.REFUSED:
        end_proposal(event, promotion.pk, comment, decided_by=person)
    return asked


@command(Verb.PROMOTION_WITHDRAWN, needs=Permission.PROMOTE, kind=Kind.ARTIFACT)
def withdraw_promotion(event: Draft, *, actor: Actor, promotion: Promotion, reason: str) -> Promotion:
    """Nobody should rest on it any more, or it is not asked for any more. What it superseded does not come back by itself."""
    lock_ledger()
    promotion = _locked(promotion.pk)
    if promotion.status not in Promotion.HOLDING:
        raise Refusal(f"{promotion.label} is {promotion.get_status_display().lower()} already.")
    event.reason = reason.strip()[:1000]
    if not event.reason:
        raise Refusal("Say why; whoever rests on it will read it.", field="reason")
    event.change(promotion, status=Status.WITHDRAWN, ended_at=timezone.now(), end_reason=event.reason)
    requests.void(event, subject_type=SUBJECT, subject_id=promotion.pk)
    return promotion


def void_measured(event: Draft, artifacts: set[uuid.UUID]) -> None:
    """What waits for a decision upon a measurement of one of these artifacts in whose place a newer one counts: its request is void, whoever asked is
    told, and it may be put forward again. The caller holds the ledger's lock and has recorded the measurement."""
    waiting = Promotion.objects.filter(artifact__in=artifacts, status=Status.PROPOSED).order_by("pk") if artifacts else ()
    for promotion in waiting:
        promotion = _locked(promotion.pk)
        then, now = promotion.evaluation, candidate_of(promotion.artifact, promotion.name).score
        if then is None or now is None or now.pk == then.pk:
            continue
        scores = (
            f"{now.metric} {number(now.value, now.standard_error)}, and it was put forward upon {number(then.value, then.standard_error)}"
        )
        reason = f"{now.run.name} has measured it anew: {scores}. It can be put forward again, as it is measured now."
        requests.void(event, subject_type=SUBJECT, subject_id=promotion.pk, reason=reason)
        end_proposal(event, promotion.pk, reason)
        event.details.setdefault("promotions_void", []).append(promotion.label)


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def name_of(text: str) -> str:
    """A name in the form in which names are compared. Raises Refusal."""
    try:
        ids.validate_slug(text)
    except ValidationError as error:
        raise Refusal(*error.messages, field="name") from error
    return ids.same_name(text)


def content_of(candidate: Candidate, facts: list[Fact]) -> dict[str, Any]:
    """What an approver agrees to; void once a check says something else, or something else stands under the name."""
    artifact, standing = candidate.artifact, candidate.standing
    return {
        "asks": f"Promote {_title(artifact)} as {candidate.name}",
        "artifact": f"{_title(artifact)}, {artifact.public_id}",
        "sha256": artifact.blob.sha256,
        "made_by": artifact.run.name,
        "replaces": f"{_title(standing.artifact)}, promotion {standing.number}" if standing else "",
        "facts": [fact.agreed for fact in facts],
    }


def end_promotion(event: Draft, asked: Approval, status: str, reason: str) -> None:
    """What becomes of it when its request ends without a decision."""
    end_proposal(event, asked.subject_id, reason)


def end_proposal(event: Draft, promotion_id: uuid.UUID, reason: str, *, decided_by: User | None = None) -> None:
    """Refuse what waits for a decision; nothing happens to what does not."""
    promotion = _locked(promotion_id)
    if promotion.status == Status.PROPOSED:
        now = timezone.now()
        decided_at = now if decided_by else None
        event.change(
            promotion, status=Status.REFUSED, ended_at=now, end_reason=reason[:1000], decided_at=decided_at, decided_by=decided_by
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Found:
    candidate: Candidate
    facts: list[Fact]
    content: dict[str, Any]
    shut: list[Fact]


def _found_anew(promotion: Promotion, read: str | None, decision: Decision | None, shut: list[Fact]) -> _Found:
    """The gate's figures are those of the policy's decision while it passes: what was measured since makes a request void by shutting it."""
    candidate = candidate_of(promotion.artifact, promotion.name, read=read)
    facts = facts_of(candidate)
    now = {fact.key: fact for fact in shut}
    asked = gate_of(decision) if decision is not None else []
    known = {fact.key for fact in asked}
    # A rule of the site that came meanwhile has no line in what was asked; where it does not pass, it makes one.
    gate = [*(now.get(fact.key, fact) for fact in asked), *(fact for fact in shut if fact.key not in known)]
    return _Found(candidate, facts, _gate_content(decision, gate) | content_of(candidate, facts), shut)  # the gate's changes are told first


def as_of_now(approval: Approval) -> AsOfNow | None:
    """What would be asked at this moment, for whoever looks before deciding; writes nothing. What takes long is left to the decision: the file is
    taken as whole, and the gate of a policy as it was."""
    promotion = Promotion.objects.select_related(*WITH).filter(pk=approval.subject_id).first()
    if promotion is None:
        return None
    found = _found_anew(promotion, promotion.artifact.blob.sha256, decision_behind(approval), [])
    return AsOfNow(digest(found.content), found.content)


def decision_behind(approval: Approval) -> Decision | None:
    """The policy's decision that put forward what is asked; None where a person did."""
    key = approval.content.get("decision") if isinstance(approval.content, dict) else None
    rows = Decision.objects.filter(pk=key).select_related("policy", "version__proposed_by") if key else Decision.objects.none()
    return rows.first()


def _gate_content(decision: Decision | None, gate: list[Fact]) -> dict[str, Any]:
    if decision is None:
        return {}
    return {"decision": decision.pk.hex, "put_forward_by": decision.label, "gate": [fact.agreed for fact in gate]}


def _promote(event: Draft, promotion: Promotion, asked: Approval, found: _Found, *, decided_by: User) -> None:
    now, standing = timezone.now(), found.candidate.standing
    if standing is not None:
        standing = _locked(standing.pk)
        event.change(standing, status=Status.SUPERSEDED, ended_at=now, end_reason=f"{promotion.label} took its place.")
    rests_on = [Rested("approval", asked.pk, asked.content_hash)]
    if promotion.evaluation is not None:
        rests_on.insert(0, Rested("evaluation", promotion.evaluation.pk, row_hash(promotion.evaluation)))
    promoted = Promoted(
        promotion=promotion.pk,
        artifact=promotion.artifact.pk,
        name=promotion.name,
        path=promotion.artifact.path,
        sha256=promotion.artifact.blob.sha256,
        at=now,
        facts=found.facts,
        policy_sha256=digest(policy(found.facts)),
        rests_on=rests_on,
    )
    key = settings.CHECKPOINT_KEY()
    stated = statement(promoted, verifier=f"urn:labsite:installation:{dsse.key_id(key.public_key())}", version=settings.VERSION)
    event.about = promotion
    if event.verb != Verb.APPROVAL_FORCED:  # which nothing drowns out
        event.verb = Verb.PROMOTION_DECIDED
    event.changing(promotion)
    event.note(promotion, {"status": (promotion.status, Status.PROMOTED)})
    promotion.status, promotion.decided_at, promotion.decided_by = Status.PROMOTED, now, decided_by
    promotion.supersedes, promotion.statement = standing, dsse.envelope(stated, key)
    promotion.save(update_fields=["status", "decided_at", "decided_by", "supersedes", "statement"])


def _locked(promotion_id: uuid.UUID) -> Promotion:
    rows = Promotion.objects.select_related(*WITH)
    return rows.select_for_update(no_key=True, of=("self",)).get(pk=promotion_id)


def _title(artifact: Artifact) -> str:
    return artifact.name or artifact.path
