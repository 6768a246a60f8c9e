"""What people have changed lately, by what it concerns: the newest of each, and how many more since the reader looked last. What every run
does by itself (it starts, it ends, it leaves files) is no change of the laboratory."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet, Subquery

from runs.queries.recent import EventLine, line_of
from workspaces import kept_query
from workspaces.access import Kind
from workspaces.models import AuditEvent, AuditHead, EventPayload
from workspaces.queries.change_words import in_line
from workspaces.verbs import Verb

SHOWN = 6
EVENTS = 60  # that are sorted into groups
LOOKED_AT = 20_000  # newest events of the record; what lies before is not recent
CHANGES_SHOWN = 2

# label -> what it concerns, by the nouns and verbs of the record, with the kind of object that a reader may see
GROUPS: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "Aim": (Kind.BENCHMARK, ("objective", "benchmark", "contract")),
    "Data": (Kind.DATASET, ("dataset", "dataset_version")),
    "Code": (Kind.AGENT, ("agent", "agent_version")),
    "Budget": (Kind.BUDGET, ("limit", "spend", "ledger.corrected")),
    "People": (Kind.MEMBER, ("member", "invitation")),
    "Sharing": (Kind.SHARE, ("share.granted", "share.revoked")),
    "Pools": (Kind.POOL, ("pool",)),
    "Promotions": (Kind.ARTIFACT, ("promotion",)),
    "Policies": (
        Kind.POLICY,
        ("policy.created", "policy.proposed", "policy.paused", "policy.resumed", "policy.retired", "policy.failed"),
    ),
    "Decisions": (Kind.APPROVAL, ("approval",)),
    "Runs": (
        Kind.RUN,
        ("sweep", "launch.refused", "run.cancelled", "run.requeued", "run.overran", "run.declared_lost", "attempt.failed_to_start"),
    ),
    "Workspace": (Kind.WORKSPACE, ("workspace", "declaration")),
}
BY_VERB = {
    verb.value: label
    for label, (_, nouns) in GROUPS.items()
    for verb in Verb
    if verb.value in nouns or verb.value.partition(".")[0] in nouns
}
WITH_VALUES = {Verb.LIMIT_SET, Verb.POOL_CHANGED, Verb.MEMBER_CHANGED, Verb.BENCHMARK_CHANGED, Verb.DATASET_CHANGED}


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """The newest change of a group; `changes` such as `amount 1,000 → 1,200 GPU-hours`; `more` others since the reader looked last."""

    label: str
    line: EventLine
    noun: str
    changes: list[str]
    more: int
    is_fresh: bool


def recent_changes(since: datetime, *, zone: str, may_see: Callable[[Kind], bool]) -> list[ChangeLine]:
    verbs = sorted(verb for verb, label in BY_VERB.items() if may_see(GROUPS[label][0]))
    events: list[AuditEvent] = kept_query.ask(_newest, tuple(verbs))
    groups: dict[str, list[AuditEvent]] = {}
    for event in events:
        groups.setdefault(BY_VERB[event.verb], []).append(event)
    shown = list(groups.items())[:SHOWN]
    payloads = kept_query.rows(EventPayload, event__in=[rows[0].pk for _, rows in shown]) if shown else []
    bodies = {payload.event_id: payload.body for payload in payloads}
    return [_line(label, rows, bodies.get(rows[0].pk) or {}, since, zone) for label, rows in shown]


def _newest(verbs: tuple[str, ...]) -> "QuerySet[AuditEvent]":
    newest = Subquery(AuditHead.objects.values("sequence")[:1])
    return AuditEvent.objects.filter(verb__in=verbs, sequence__gt=newest - LOOKED_AT).order_by("-sequence")[:EVENTS]


def _line(label: str, events: list[AuditEvent], body: dict[str, object], since: datetime, zone: str) -> ChangeLine:
    newest, details = copy.copy(events[0]), body.get("details")
    if newest.verb == Verb.OBJECTIVE_SET:
        newest.subject_label = "of the group"  # it stands above
    return ChangeLine(
        label=label,
        line=line_of(newest, body),
        noun=newest.verb.partition(".")[0],
        changes=in_line(newest, details, zone)[:CHANGES_SHOWN] if newest.verb in WITH_VALUES else [],
        more=sum(event.recorded_at > since for event in events[1:]),
        is_fresh=newest.recorded_at > since,
    )
