"""Policies: ask each that acts about what has happened, and carry out what was decided. PostgreSQL says what; a bell that is lost is rung again.

A decision is kept before anything is done about it, and what it launches has a name that follows from it, so that a job that is killed anywhere in
between, or runs twice, decides nothing twice and launches nothing twice.
"""

import uuid
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from runs.checks.policy_facts import facts_for, request_of
from runs.commands.decision import conclude_decision, record_decision
from runs.commands.memory import Said, write_policy_memory
from runs.commands.promotion import NotToldYet, propose_promotion
from runs.commands.question import ask_question
from runs.commands.sweep import create_sweep
from runs.eligibility import may_be_told_soon
from runs.expressions.answered import answered
from runs.expressions.worker import Asking
from runs.jobs.apart import apart
from runs.jobs.asker import asker_of
from runs.jobs.job import job
from runs.models import Artifact, Decision, MemoryEntry, PolicyVersion, Promotion, Run
from runs.models import Policy as PolicyRow
from runs.policy.decide import Decided, Outcome, decide
from runs.policy.document import BadPolicy, Policy, read_policy
from runs.policy.facts import Cause, Facts
from runs.queries.memory import memory_of
from runs.queries.policy import promotion_of
from runs.queries.policy_cause import acting_versions, causes_of
from runs.queries.site_rules import site_bars
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.commands.notification import notify
from workspaces.models import Approval, NotFound, Notification
from workspaces.queries.workspace import is_archived
from workspaces.thresholds import stewards

PATIENCE = timedelta(minutes=10)
STALE = timedelta(days=1)  # what was decided so long ago and never done is not done any more
AT_ONCE = 20  # causes of one policy in one look; the bell is rung again for the rest


@job
def decide_policies(actor: Actor, subject: uuid.UUID) -> None:
    if is_archived():
        return
    for version in acting_versions():
        with apart("policy", version=version.pk.hex):
            ask(actor, version, timezone.now())
    for decision in (
        Decision.objects.filter(status=Decision.Status.ACTING).select_related("policy", "version__proposed_by").order_by("created_at")
    ):
        with apart("decision", decision=decision.pk.hex), suppress(Refusal):  # carried out meanwhile
            carry_out(actor, decision)


def ask(actor: Actor, version: PolicyVersion, now: datetime) -> None:
    """Everything that has happened since, the oldest first; each is decided on with the decision before it on record and carried out."""
    try:
        policy = read_policy(version.document)
        causes = causes_of(version, policy.trigger, now, limit=AT_ONCE)
    except (BadPolicy, NotFound) as fault:
        _unreadable(actor, version, fault, now)
        return
    for cause in causes:
        with Asking() as asking:
            facts = answered(policy, facts_for(version, policy, cause, timezone.now()), asking)
        decided = decide(policy, facts)
        if _may_yet_be_told(decided, cause, now):
            continue
        try:
            decision = record_decision(actor=actor, version=version, cause=cause, facts=facts, decided=decided)
        except Refusal:
            return  # decided meanwhile, or it acts no more
        if decision.stops:
            return
        with suppress(Refusal):
            carry_out(actor, decision)


def _may_yet_be_told(decided: Decided, cause: Cause, now: datetime) -> bool:
    """Is it only that the gate cannot tell yet, as where data is still held against a holdout? Then the cause is asked about again, for a while."""
    if decided.outcome is not Outcome.BARRED or cause.at is None or now - cause.at > PATIENCE:
        return False
    return may_be_told_soon(decided.checks)


def carry_out(actor: Actor, decision: Decision) -> None:
    """Do what was decided, once, under the rights that whoever proposed the version has now; or say why it could not be done. What is to be put
    forward waits a while for checks that cannot be told yet: windows that were cut a moment ago are still being read."""
    if decision.status != Decision.Status.ACTING:
        return
    version = decision.version
    if ended := _no_more(decision):
        conclude_decision(actor=actor, decision=decision, failure=ended)
        return
    asker = asker_of(version.proposed_by, version.token_id, job_id=actor.job_id)
    if asker is None:
        conclude_decision(actor=actor, decision=decision, failure="The token that proposed this version holds no longer.")
        return
    try:
        policy = read_policy(version.document)
        if barred := site_bars(policy):
            raise Refusal(barred)
        _act(asker, decision, policy)
    except BadPolicy as fault:
        conclude_decision(actor=actor, decision=decision, failure=" ".join(fault.faults)[:1000])
    except (Refusal, Denied, NotFound) as fault:
        if isinstance(fault, NotToldYet) and timezone.now() - decision.created_at <= PATIENCE:
            return  # the next look tries again
        conclude_decision(actor=actor, decision=decision, failure=str(fault)[:1000])
    else:
        conclude_decision(actor=actor, decision=decision)


def _no_more(decision: Decision) -> str:
    """Why what was decided is not done any more; empty where it is. A job that was killed, or an archive, may have left it lying."""
    if decision.policy.status in (PolicyRow.Status.PAUSED, PolicyRow.Status.RETIRED):
        return f"The policy was {decision.policy.status} before it acted."
    if not PolicyVersion.objects.filter(pk=decision.version_id, status=PolicyVersion.Status.ACTIVE).exists():
        return f"Version {decision.version.number} was replaced before it acted."
    if timezone.now() - decision.created_at > STALE:
        return f"It was decided on {decision.created_at:%d %B}, and things are not as they were."
    return ""


def _act(asker: Actor, decision: Decision, policy: Policy) -> None:
    if policy.does == "notify":
        _notify(decision)
        return
    if policy.does == "ask":
        _ask(asker, decision)
        return
    if policy.does == "promote":
        _promote(asker, decision, policy)
        return
    if policy.does == "write_memory":
        _write(asker, decision, policy)
        return
    points = [entry["parameters"] for entry in decision.candidates if entry["is_chosen"]]
    facts = decision.facts
    create_sweep(
        actor=asker,
        name=f"{decision.policy.slug}-{decision.number}",
        space={"kind": "list", "points": points, "seeds": policy.action.get("seeds", [decision.number])},
        request=request_of(policy, facts["datasets"], facts["artifacts"]),
        purpose=policy.action.get("purpose", "") or f"{decision.label}: {decision.words}",
        sweep_id=uuid.uuid5(decision.pk, "sweep"),
        decision=decision,
    )


def _promote(asker: Actor, decision: Decision, policy: Policy) -> None:
    """Put it forward; another person decides, upon every check of a promotion."""
    promotion_id = promotion_of(decision)
    if Promotion.objects.filter(pk=promotion_id).exists():
        return  # put forward before the job was killed
    artifact = Artifact.objects.find(decision.facts["candidate"]["artifact"], "blob")
    reason = policy.action.get("purpose", "") or f"{decision.label}: {decision.words}"
    propose_promotion(actor=asker, artifact=artifact, name=policy.action["name"], reason=reason, id=promotion_id, decision=decision)


def _ask(asker: Actor, decision: Decision) -> None:
    if not Approval.objects.filter(subject_type="question", subject_id=decision.pk).exists():  # asked before the job was killed
        ask_question(actor=asker, decision=decision)


def _write(asker: Actor, decision: Decision, policy: Policy) -> None:
    """One entry a decision, whose name follows from it; it rests on what the policy was asked about."""
    entry_id = memory_of(decision)
    if MemoryEntry.objects.filter(pk=entry_id).exists():
        return  # written before the job was killed
    action, cause = policy.action, decision.facts["cause"]
    evidence, configuration = _what_it_rests_on(cause)
    said = Said(
        kind=action["kind"],
        collection=action["collection"],
        title=action["title"],
        text=f"{action.get('text', '')}\n\n{decision.label}, asked about {cause['label']}.".strip(),
        scope=next((name for name in ("agent", "benchmark") if name in action), "workspace"),
        agent=action.get("agent", ""),
        benchmark=action.get("benchmark", ""),
        configuration=configuration if action.get("with_configuration") else None,
        evidence=evidence,
    )
    write_policy_memory(actor=asker, said=said, decision=decision, id=entry_id)


def _what_it_rests_on(cause: dict[str, str]) -> tuple[tuple[tuple[str, str], ...], dict[str, Any] | None]:
    """Evidence, and the configuration that comes with it: of a run its parameters; of a promotion those of the run that made what was decided on,
    and what that run said of it beside them, under whose names a parameter goes first."""
    if cause["type"] == "run":
        return (("run", cause["id"]),), _plain(Run.objects.get(pk=cause["id"]).parameters)
    if cause["type"] == "promotion":
        row = Promotion.objects.select_related("artifact__run").get(pk=cause["id"])
        measured = (("evaluation", row.evaluation_id.hex),) if row.evaluation_id else ()
        return (("artifact", row.artifact_id.hex), *measured), _plain({**row.artifact.metadata, **row.artifact.run.parameters})
    kind = {"evaluation": "evaluation", "dataset version": "dataset_version"}.get(cause["type"])
    return (((kind, cause["id"]),) if kind else ()), None


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not isinstance(value, dict | list)}


def _notify(decision: Decision) -> None:
    notify(
        stewards(),
        cause=Notification.Cause.POLICY_SAYS,
        subject_type="decision",
        subject_id=decision.pk,
        label=decision.policy.name,
        outcome=decision.outcome,
        words=decision.words,
    )


def _unreadable(actor: Actor, version: PolicyVersion, fault: Exception, now: datetime) -> None:
    """A version that this labsite cannot read, or whose trigger names what is gone, fails once a day and is seen to."""
    cause = Cause("version", uuid.uuid5(version.pk, f"{now:%Y-%m-%d}"), version.label)
    facts = Facts(
        at=now.isoformat(), cause={"on": "version", "type": cause.type, "id": cause.id.hex, "label": cause.label}, problems=(str(fault),)
    )
    with suppress(Refusal):  # said today
        record_decision(actor=actor, version=version, cause=cause, facts=facts, decided=Decided(Outcome.FAILED, str(fault)))
