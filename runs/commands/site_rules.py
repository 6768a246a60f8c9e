"""Rules of the installation for policies: one operator proposes, another decides; to stop everything, one is enough."""

import json
from typing import Any

from django.utils import timezone

from runs.expressions.answered import source_faults
from runs.policy.document import BadPolicy
from runs.policy.site import read_rules, sources_of
from runs.queries.site_rules import forecast
from workspaces.access import Actor, SiteRole
from workspaces.audit import Refusal
from workspaces.canonical import digest
from workspaces.models import NotFound, SiteRules, User
from workspaces.site_audit import SiteDraft, SiteVerb, site_command
from workspaces.text import UNSTORABLE, is_storable_json

MAX_CHARACTERS = 20_000
Status = SiteRules.Status


def propose_rules(*, actor: Actor, document: Any, reason: str) -> SiteRules:
    """Ask another operator to let these rules hold; those that hold do until then. Whoever decides sees whom they touch, as found now."""
    return _propose(actor=actor, document=_read(document), reason=reason, seen=forecast(_read(document)))


@site_command(SiteVerb.SITE_RULES_PROPOSED, needs=SiteRole.SITE_OPERATOR)
def _propose(event: SiteDraft, *, actor: Actor, document: dict[str, Any], reason: str, seen: list[dict[str, Any]]) -> SiteRules:
    person, reason = _person(actor), _why(reason)
    rows = _locked()
    holding = next((row for row in rows if row.status == Status.ACTIVE), None)
    if (holding.document if holding else {}) == document:
        raise Refusal("The rules that hold say exactly this.", field="document")
    _withdraw(event, rows)
    made = _made(rows, document, reason, person, forecast=seen)
    event.about(made)
    event.details |= {"version": made.number, "content_hash": made.content_hash, "reason": reason, "document": document}
    return made


@site_command(SiteVerb.SITE_RULES_DECIDED, needs=SiteRole.SITE_OPERATOR)
def decide_rules(event: SiteDraft, *, actor: Actor, number: int, approves: bool, seen_hash: str, comment: str = "") -> SiteRules:
    """Approve or refuse what waits. Nobody decides on what they proposed; whoever proposed it must still be an operator."""
    person, rows = _person(actor), _locked()
    row = next((row for row in rows if row.number == number), None)
    if row is None:
        raise NotFound("site rules")
    if row.status != Status.PROPOSED:
        raise Refusal(f"Version {row.number} does not wait for a decision any more.")
    if row.proposed_by_id == person.pk:
        raise Refusal("Nobody decides on what they proposed themselves; another operator has to.")
    if seen_hash != row.content_hash or digest(row.document) != row.content_hash:
        raise Refusal("What is asked has changed since you looked; read it again before deciding.")
    if not approves and not comment.strip():
        raise Refusal("Say why not; whoever proposed it reads that.", field="comment")
    if approves:
        asker = row.proposed_by
        if not (asker.is_active and SiteRole.SITE_OPERATOR in asker.site_roles):
            raise Refusal("Whoever proposed this is no operator any more; propose it anew.")
        _read(row.document)
        _supersede(rows)
    event.details |= {"version": row.number, "approved": approves, "comment": comment.strip()[:1000], "content_hash": row.content_hash}
    event.change(row, status=Status.ACTIVE if approves else Status.REFUSED, decided_by_id=person.pk, decided_at=timezone.now())
    return row


@site_command(SiteVerb.SITE_RULES_STOPPED, needs=SiteRole.SITE_OPERATOR)
def stop_policies(event: SiteDraft, *, actor: Actor, reason: str) -> SiteRules:
    """Stop every policy of the installation at once: the rules that hold, with a pause on top. That they go on takes two operators."""
    person, reason, rows = _person(actor), _why(reason), _locked()
    holding = next((row for row in rows if row.status == Status.ACTIVE), None)
    document = dict(holding.document) if holding else {}
    if "paused" in document:
        raise Refusal("Every policy is stopped already.")
    _withdraw(event, rows)  # it was proposed before anybody knew of what this is about, and would let them go on
    _supersede(rows)
    document["paused"] = reason[:300]
    made = _made(rows, _read(document), reason, person, forecast=[], status=Status.ACTIVE, is_stop=True, decided_by=person)
    event.about(made)
    event.details |= {"version": made.number, "reason": reason, "document": document}
    return made


def _made(rows: list[SiteRules], document: dict[str, Any], reason: str, person: User, **values: Any) -> SiteRules:
    number = max((row.number for row in rows), default=0) + 1
    decided = {"decided_at": timezone.now()} if "decided_by" in values else {}
    return SiteRules.objects.create(
        number=number, document=document, content_hash=digest(document), reason=reason, proposed_by=person, **values, **decided
    )


def _locked() -> list[SiteRules]:
    return list(SiteRules.objects.select_for_update(no_key=True, of=("self",)).select_related("proposed_by").order_by("number"))


def _withdraw(event: SiteDraft, rows: list[SiteRules]) -> None:
    for waiting in (row for row in rows if row.status == Status.PROPOSED):
        waiting.status = Status.WITHDRAWN
        waiting.save(update_fields=["status"])
        event.details["withdrawn"] = waiting.number


def _supersede(rows: list[SiteRules]) -> None:
    for row in rows:
        if row.status == Status.ACTIVE:
            row.status = Status.SUPERSEDED
            row.save(update_fields=["status"])


def _person(actor: Actor) -> User:
    if actor.user is None:
        raise Refusal("Rules of the site are a person's word.")
    return actor.user


def _why(reason: str) -> str:
    if not reason.strip():
        raise Refusal("Say why; it stands beside the rules.", field="reason")
    return reason.strip()[:1000]


def _read(document: Any) -> dict[str, Any]:
    if not is_storable_json(document) or len(json.dumps(document)) > MAX_CHARACTERS:
        raise Refusal(f"The rules have at most {MAX_CHARACTERS:,} characters, and none is {UNSTORABLE}.", field="document")
    try:
        rules = read_rules(document)
    except BadPolicy as fault:
        raise Refusal(*fault.faults, field="document") from fault
    faults = source_faults(sources_of(rules))
    if faults:
        raise Refusal(*faults, field="document")
    return rules
