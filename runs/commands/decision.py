"""Decisions: what a policy was asked, upon which facts, with which result, in one transaction; and what came of acting on it."""

import uuid

from django.utils import timezone

from runs import queue
from runs.checks.policy_facts import facts_for
from runs.commands.memory_reading import note_reads
from runs.commands.policy import locked, next_number
from runs.expressions.answered import answered
from runs.expressions.worker import Asking
from runs.models import Decision, MemoryEntry, Policy, PolicyVersion
from runs.policy.decide import Decided, Outcome, decide
from runs.policy.document import BadPolicy, read_policy
from runs.policy.facts import Cause, Facts
from runs.policy.memory import LEAST, preferring, reading
from workspaces import ids, scope
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.notification import notify
from workspaces.models import Notification
from workspaces.verbs import Verb


@command(Verb.POLICY_DECIDED, needs=None, by_system=True)
def record_decision(event: Draft, *, actor: Actor, version: PolicyVersion, cause: Cause, facts: Facts, decided: Decided) -> Decision:
    """Keep a decision with everything it rests on. Raises Refusal where the cause was decided on, or the version acts no more."""
    return _record(event, version, cause, facts, decided)


@command(Verb.POLICY_DECIDED, needs=Permission.LAUNCH_RUN, kind=Kind.POLICY)
def record_asked(event: Draft, *, actor: Actor, version: PolicyVersion, cause: Cause, facts: Facts, decided: Decided) -> Decision:
    """The same, asked for by a person."""
    return _record(event, version, cause, facts, decided)


@command(Verb.POLICY_ACTED, needs=None, by_system=True)
def conclude_decision(event: Draft, *, actor: Actor, decision: Decision, failure: str = "") -> Decision:
    """Say that what was decided is done, or why it could not be. Raises Refusal where that is said already."""
    decision = (
        Decision.objects.select_for_update(no_key=True, of=("self",)).select_related("policy", "version__proposed_by").get(pk=decision.pk)
    )
    if decision.status != Decision.Status.ACTING:
        raise Refusal("This decision was carried out already.")
    event.about = decision
    event.reason = failure
    status = Decision.Status.FAILED if failure else Decision.Status.DONE
    event.change(decision, status=status, failure=failure[:1000], ended_at=timezone.now())
    if failure:
        event.verb = Verb.POLICY_FAILED
        _tell(decision, "failed", failure)
    return decision


def decide_now(*, actor: Actor, policy: Policy, cause_id: uuid.UUID | None = None) -> Decision:
    """Ask a policy at once. The same `cause_id` gives the same decision. What it decides is carried out by labsite's own job."""
    known = Decision.objects.filter(policy=policy, cause_type="person", cause_id=cause_id).first() if cause_id is not None else None
    if known is not None:
        return known
    version = policy.versions.filter(status=PolicyVersion.Status.ACTIVE).select_related("policy", "proposed_by").first()
    if version is None:
        raise Refusal(f"No version of {policy.name} is approved yet, so there is nothing to decide by.")
    cause = Cause("person", cause_id or ids.uuid7(), actor.label)
    try:
        read = read_policy(version.document)
    except BadPolicy as fault:
        raise Refusal(*fault.faults) from fault
    with Asking() as asking:
        facts = answered(read, facts_for(version, read, cause, timezone.now()), asking)
    return record_asked(actor=actor, version=version, cause=cause, facts=facts, decided=decide(read, facts))


def _record(event: Draft, version: PolicyVersion, cause: Cause, facts: Facts, decided: Decided) -> Decision:
    policy = locked(version.policy)
    version = PolicyVersion.objects.select_related("proposed_by", "policy").get(pk=version.pk)
    if version.status != PolicyVersion.Status.ACTIVE or policy.status != Policy.Status.ACTIVE:
        raise Refusal(f"{policy.name} does not act now.")
    if Decision.objects.filter(policy=policy, cause_type=cause.type, cause_id=cause.id).exists():
        raise Refusal("That was decided on already.")
    acts = decided.outcome == Outcome.ACTS
    if acts and Decision.objects.filter(version=version, outcome=Outcome.ACTS).count() != facts.acted:
        raise Refusal(f"{policy.name} has acted this moment, and its limits count that; ask it again.")
    kept = decided.as_json()
    decision = Decision.objects.create(
        policy=policy,
        version=version,
        number=next_number(policy),
        cause_type=cause.type,
        cause_id=cause.id,
        cause_label=cause.label[:300],
        outcome=decided.outcome,
        status=Decision.Status.ACTING if acts else Decision.Status.FAILED if decided.outcome == Outcome.FAILED else Decision.Status.DONE,
        words=decided.words[:2000],
        facts=facts.as_json(),
        checks=kept["checks"],
        candidates=kept["candidates"],
        gpu_ms=decided.gpu_ms,
        stops=decided.stops,
        ended_at=None if acts else timezone.now(),
    )
    event.created(decision)
    event.about = decision
    _note_memory(event, version, facts, decision)
    event.reason = decided.words[:1000]
    event.details |= {
        "policy": policy.slug,
        "version": version.number,
        "outcome": decided.outcome.value,
        "cause": f"{cause.type} {cause.label}"[:300],
    }
    if decided.stops:
        event.change(policy, status=Policy.Status.STOPPED, status_reason=decided.words[:1000], status_at=timezone.now())
        _tell(decision, "stopped", decided.words)
    elif decided.outcome == Outcome.FAILED:
        _tell(decision, "failed", decided.words)
    if acts:
        queue.ring("decide_policies", subject=scope.current_id())
    return decision


def _note_memory(event: Draft, version: PolicyVersion, facts: Facts, decision: Decision) -> None:
    """A receipt for each entry that it goes by. What it left aside stands in its facts: nothing rests on that."""
    asked = (version.document.get("action") or {}).get("memory") if facts.memory is not None else None
    if asked is None:
        return
    least = asked.get("least", LEAST)
    read = (*reading(facts.memory, least).obeyed, *preferring(facts.memory, least).obeyed)
    trusts = {uuid.UUID(entry["id"]): entry["trust"] for entry in read}
    entries = list(MemoryEntry.objects.filter(pk__in=trusts).order_by("pk")) if trusts else []
    for entry in entries:
        entry.trust = trusts[entry.pk]  # as the facts froze it: the receipt says at which trust it was read
    if entries:
        note_reads(event, entries, decision=decision)


def _tell(decision: Decision, outcome: str, words: str) -> None:
    notify(
        [decision.version.proposed_by],
        cause=Notification.Cause.POLICY_FAILED,
        subject_type="decision",
        subject_id=decision.pk,
        label=decision.policy.name,
        outcome=outcome,
        words=words,
    )
