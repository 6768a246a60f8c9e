"""Policies: the list, one with its versions and decisions, one decision with everything that it rests on, and what a version would have changed."""

import itertools
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum, Window
from django.db.models.functions import Greatest, RowNumber
from django.utils import timezone

from runs.expressions.answered import answered
from runs.expressions.worker import SPENT, Asking
from runs.lifecycle import TERMINAL
from runs.models import Decision, MemoryEntry, Policy, PolicyVersion, Promotion, Run, Sweep
from runs.policy.brief import in_brief
from runs.policy.changes import changes, lines_of
from runs.policy.decide import Outcome
from runs.policy.document import BadPolicy, read_policy
from runs.policy.document import Policy as Document
from runs.policy.facts import Facts
from runs.policy.memory import LEAST, why_aside
from runs.policy.replay import Kept, in_words, replay, unasked
from runs.policy.site import rule_words
from runs.queries.policy_names import standing_faults
from runs.queries.policy_use import UNUSED, Use, uses_of
from runs.queries.site_rules import rules_that_hold
from workspaces import kept_query
from workspaces.checklist import fact_checks
from workspaces.models import Approval, ApprovalVote, SiteRules
from workspaces.queries.paging import Page, newest_first

WEEKS = 4  # that a simulation looks back
MOST_REPLAYED, MOST_WAITED_FOR = 10_000, 1_000  # by the API; and where somebody waits at a screen
MOST_SECONDS = 60  # of one simulation: twice what one of 10,000 decisions may take (issue 6)
FLAPPING = 6  # decisions that change between acting and not each time
STANDS_STILL_DAYS = 14
BULKY = ("facts", "checks", "candidates")  # of a decision: only its own page and a simulation read them
# What a run uses in GPU milliseconds: what is held for it, which is nothing once it has ended, or what it has spent.
USED_GPU_MS = Greatest("reserved_gpu_ms", "spent_gpu_ms")


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A policy in a list. `trouble` says why it does not do what it is there for, and the way out; empty where it does."""

    policy: Policy
    acting: PolicyVersion | None
    waiting: PolicyVersion | None
    last: Decision | None
    trouble: str
    use: Use = UNUSED

    @property
    def brief(self) -> str:
        version = self.acting or self.waiting
        return in_brief(version.document) if version else ""

    @property
    def state(self) -> str:
        if self.policy.status != Policy.Status.ACTIVE:
            return str(self.policy.status)
        if self.acting and self.use.is_up:
            return "used up"
        return "acting" if self.acting else "proposed" if self.waiting else "idle"


def policy_rows(limit: int = 200) -> list[PolicyRow]:
    """Those that may act first, each in a fixed number of queries."""
    policies = list(Policy.objects.select_related("benchmark").order_by("status", "slug")[:limit])
    if not policies:
        return []
    keys = [policy.pk for policy in policies]
    versions = standing_versions(policies)
    nth = Window(RowNumber(), partition_by=[F("policy")], order_by=F("number").desc())
    newest = Decision.objects.filter(policy__in=keys).defer(*BULKY).annotate(nth=nth).filter(nth__lte=FLAPPING)
    decided: dict[Any, list[Decision]] = {}
    for decision in newest.order_by("policy", "nth"):
        decided.setdefault(decision.policy_id, []).append(decision)
    return [
        _row(policy, versions.get((policy.pk, "active")), versions.get((policy.pk, "proposed")), decided.get(policy.pk, []))
        for policy in policies
    ]


def with_use(rows: list[PolicyRow]) -> list[PolicyRow]:
    """The same with what they have used of their limits, and what waits of them: in one round trip."""
    uses = uses_of({row.policy.pk: row.acting for row in rows}) if rows else {}
    return [replace(row, use=uses[row.policy.pk]) for row in rows]


Standing = tuple[uuid.UUID, str]  # a policy, and what its version is: active or proposed


def standing_versions(policies: Collection[Policy]) -> dict[Standing, PolicyVersion]:
    """Of each policy the version that acts and the one that waits for a decision."""
    rows = kept_query.rows(
        PolicyVersion,
        policy__in=[policy.pk for policy in policies],
        status__in=["active", "proposed"],
        related=("proposed_by", "decided_by"),
    )
    return {(row.policy_id, row.status): row for row in rows}


def failing() -> list[PolicyRow]:
    """Policies that need somebody, for home: a workspace without any pays one kept look."""
    if not kept_query.rows(Policy, limit=1):
        return []
    return [row for row in policy_rows() if row.trouble]


def _row(policy: Policy, acting: PolicyVersion | None, waiting: PolicyVersion | None, newest: list[Decision]) -> PolicyRow:
    return PolicyRow(policy, acting, waiting, newest[0] if newest else None, trouble(policy, acting, newest))


def trouble(policy: Policy, acting: PolicyVersion | None, newest: list[Decision]) -> str:
    """Errors and unknown checks (both make a decision that failed), flapping, no effect, stopped by its limits: the first that holds, with the way
    out. `newest` are its newest decisions, the newest first."""
    if policy.status == Policy.Status.STOPPED:
        return f"{policy.status_reason} An approver can let it go on, or approve a version that allows more."
    if policy.status != Policy.Status.ACTIVE or acting is None:
        return ""
    own = [decision for decision in newest if decision.version_id == acting.pk]
    if own and own[0].status == Decision.Status.FAILED:
        if own[0].outcome == Outcome.ACTS:
            return (
                f"Its last decision failed when it was to act: {own[0].failure} The next one may act; where it may not, "
                "propose a version that may, or pause it."
            )
        return f"Its last decision failed: {own[0].failure or own[0].words} Propose a version that names what is here, or pause it."
    acted = [decision.outcome == Outcome.ACTS for decision in own]
    if len(acted) == FLAPPING and all(one != other for one, other in itertools.pairwise(acted)):
        return (
            f"It acted every other time in its last {FLAPPING} decisions; its conditions may undo each other. "
            "Propose a version with a cooldown, or pause it."
        )
    held = [decision.outcome == Outcome.LIMITED for decision in own]
    if len(held) == FLAPPING and all(held):
        return f"Its limits held it back in each of its last {FLAPPING} decisions: {own[0].words} Propose a version that allows more, or retire it."
    since = max(instant for instant in (acting.decided_at, policy.status_at, acting.created_at) if instant is not None)
    if not any(acted) and timezone.now() - since > timedelta(days=STANDS_STILL_DAYS):
        asked = "did nothing each time that it was asked lately" if acted else "has never been asked"
        return f"It has had no effect in {STANDS_STILL_DAYS} days: it {asked}. Look at its trigger and conditions, or retire it."
    return ""


# --- One policy ---------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PolicyPage:
    """`spent_gpu_ms` is what everything that it launched has used, or holds."""

    row: PolicyRow
    versions: list[PolicyVersion]
    lines: list[str]
    spent_gpu_ms: int
    runs: int
    under_way: int
    site_version: int = 0
    site_words: tuple[str, ...] = ()


def policy_page(policy: Policy) -> PolicyPage:
    versions = kept_query.rows(PolicyVersion, policy=policy, related=("proposed_by", "decided_by"), order_by=("-number",), limit=50)
    standing = standing_versions([policy])
    acting, waiting = standing.get((policy.pk, "active")), standing.get((policy.pk, "proposed"))
    sums = next(iter(kept_query.ask(_used, policy=policy.pk)), {"used": 0, "count": 0, "open": 0})
    [row] = with_use([_row(policy, acting, waiting, kept_query.ask(_newest, policy=policy.pk))])
    shown = acting or waiting
    rules = rules_that_hold() if shown else None
    return PolicyPage(
        row,
        versions,
        lines_of(shown.document) if shown else [],
        int(sums["used"] or 0),
        sums["count"],
        sums["open"],
        rules.number if rules is not None else 0,
        _site_words(rules, shown),
    )


def _site_words(rules: SiteRules | None, version: PolicyVersion | None) -> tuple[str, ...]:
    """What the rules of the site demand of a version; nothing of one that this labsite cannot read."""
    if rules is None or version is None:
        return ()
    with suppress(BadPolicy, KeyError):
        return tuple(rule_words(rules.document, read_policy(version.document)))
    return ()


def _newest(policy: Any) -> "QuerySet[Decision]":
    return Decision.objects.filter(policy=policy).defer(*BULKY).order_by("-number")[:FLAPPING]


def _used(policy: Any) -> "QuerySet[Any, Any]":
    runs = Run.objects.filter(sweep__decision__policy=policy).order_by().values("sweep__decision__policy")
    is_open = ~Q(status__in=sorted(TERMINAL))
    return runs.annotate(used=Sum(USED_GPU_MS), count=Count("pk"), open=Count("pk", filter=is_open)).values("used", "count", "open")


def list_policies(*, cursor: str = "", size: int = 50) -> Page[Policy]:
    """Newest first. Raises BadCursor."""
    return newest_first(Policy.objects.select_related("benchmark"), cursor=cursor, size=size)


def page_of_versions(policy: Policy, *, cursor: str = "", size: int = 50) -> Page[PolicyVersion]:
    """Newest first. Raises BadCursor."""
    return newest_first(policy.versions.select_related("proposed_by", "decided_by"), cursor=cursor, size=size)


def spent_on(decision: Decision) -> tuple[Sweep | None, int]:
    """What it launched, and what that has cost so far in GPU milliseconds."""
    sweep = Sweep.objects.filter(decision=decision).first()
    spent = Run.objects.filter(sweep=sweep).aggregate(spent=Sum("spent_gpu_ms"))["spent"] if sweep else 0
    return sweep, int(spent or 0)


def page_of_decisions(policy: Policy, *, outcome: str = "", cursor: str = "", size: int = 50) -> Page[Decision]:
    """Newest first, without what each rests on. Raises BadCursor."""
    rows = policy.decisions.select_related("policy", "version").defer(*BULKY, "version__document")
    return newest_first(rows.filter(outcome=outcome) if outcome else rows, cursor=cursor, size=size)


@dataclass(frozen=True, slots=True)
class DecisionPage:
    """One decision. `spent_gpu_ms` is what it has cost, once all it launched has ended; until then `is_open`."""

    decision: Decision
    checks: list[dict[str, Any]]
    chosen: list[dict[str, Any]]
    others: list[dict[str, Any]]
    columns: list[str]
    sweep: Sweep | None
    promotion: Promotion | None
    runs: list[Run]
    spent_gpu_ms: int
    is_open: bool
    question: Approval | None = None
    answer: ApprovalVote | None = None

    @property
    def reads(self) -> list[dict[str, str]]:
        """Datasets, each with its label, and artifacts, each with its id too."""
        facts = self.decision.facts
        datasets = [{"label": entry["label"], "artifact": ""} for entry in facts.get("datasets", ())]
        return datasets + [{"label": entry["label"], "artifact": entry["id"]} for entry in facts.get("artifacts", ())]

    @property
    def memory(self) -> list[dict[str, Any]]:
        """Entries that it read, as they stood then, each with why it was left aside (empty where it was gone by) and its title of now."""
        asked = (self.decision.version.document.get("action") or {}).get("memory") or {}
        known = self.decision.facts.get("memory") or {}
        entries = [*known.get("entries", ()), *(known.get("preferred") or {}).get("entries", ())]
        titles = dict(MemoryEntry.objects.filter(pk__in=[entry["id"] for entry in entries]).values_list("pk", "title")) if entries else {}
        named = ((titles.get(uuid.UUID(entry["id"]), "an entry that is no more"), entry) for entry in entries)
        return [{**entry, "title": title, "aside": why_aside(entry, asked.get("least", LEAST))} for title, entry in named]

    @property
    def hidden_memory(self) -> int:
        """Failed attempts that were kept from it."""
        return int((self.decision.facts.get("memory") or {}).get("hidden", 0))

    @property
    def known(self) -> dict[str, Any]:
        """What was known then: how many results, the best score, the target."""
        facts = self.decision.facts
        return {"results": len(facts.get("results", ())), "best": facts.get("best"), "target": facts.get("target")}


def promotion_of(decision: Decision) -> uuid.UUID:
    """The promotion that a decision puts forward is known before it is: a job that runs twice puts forward once."""
    return uuid.uuid5(decision.pk, "promotion")


def question_of(decision: Decision) -> tuple[Approval | None, ApprovalVote | None]:
    """What it asked people, if that is what its version does, and the word of whoever answered or declined."""
    if (decision.version.document.get("action") or {}).get("do") != "ask":
        return None, None
    question = Approval.objects.filter(subject_type="question", subject_id=decision.pk).first()
    votes = ApprovalVote.objects.filter(approval=question).select_related("person", "behalf") if question else ApprovalVote.objects.none()
    return question, votes.first()


def decision_page(decision: Decision) -> DecisionPage:
    question, answer = question_of(decision)
    sweep = Sweep.objects.filter(decision=decision).first()
    launched = Run.objects.filter(sweep=sweep) if sweep else Run.objects.none()
    cost = launched.aggregate(spent=Sum("spent_gpu_ms"), open=Count("pk", filter=~Q(status__in=sorted(TERMINAL))))
    runs = list(launched.order_by("number")[:100])
    rows = [{**entry, "values": entry["parameters"]} for entry in decision.candidates]
    columns = sorted({name for entry in rows for name in entry["parameters"]})[:12]
    for entry in rows:
        entry["values"] = [entry["parameters"].get(name, "") for name in columns]
    return DecisionPage(
        decision=decision,
        checks=fact_checks(decision.checks),
        chosen=[entry for entry in rows if entry["is_chosen"]],
        others=[entry for entry in rows if not entry["is_chosen"]],
        columns=columns,
        sweep=sweep,
        promotion=Promotion.objects.filter(pk=promotion_of(decision)).first(),
        runs=runs,
        spent_gpu_ms=int(cost["spent"] or 0),
        is_open=decision.status == Decision.Status.ACTING
        or cost["open"] > 0
        or (sweep is not None and sweep.status == Sweep.Status.RUNNING),
        question=question,
        answer=answer,
    )


# --- What a version would have changed ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preview:
    """A document beside the version that acts. `faults` say why it is not taken; where it cannot be read there is no `simulation`
    (`runs.policy.replay.Replay.as_json`). `words` say in a sentence or two what that found."""

    faults: tuple[str, ...]
    changes: list[str]
    since: datetime
    simulation: dict[str, Any] | None = None
    words: str = ""


def preview(policy: Policy, document: Any, *, weeks: int = WEEKS, most: int = MOST_REPLAYED, now: datetime | None = None) -> Preview:
    """What `document` would have decided on the decisions of the last weeks, the newest `most` of them. It writes nothing, and takes milliseconds for
    each: nothing that a page should ask when it is looked at."""
    acting = policy.versions.filter(status="active").first()
    since = (now or timezone.now()) - timedelta(weeks=weeks)
    lines = changes(acting.document if acting else None, document)
    try:
        read = read_policy(document)
    except BadPolicy as fault:
        return Preview(fault.faults, lines, since)
    until = time.monotonic() + MOST_SECONDS
    with Asking() as asking:
        found = replay(read, kept_since(policy, since, most), answer=lambda read, facts: _answered(read, facts, asking, until))
    return Preview(
        tuple(standing_faults(policy, read)),
        lines,
        since,
        found.as_json(),
        in_words(found, weeks, is_cut=found.count == most, unasked=unasked(acting.document if acting else None, read)),
    )


def _answered(policy: Document, facts: Facts, asking: Asking, until: float) -> Facts:
    """With what its expressions say. Raises ValueError where these, or all that was judged before, have taken the time there is: a rule that draws
    from a large space takes a second for each. That decision is not judged, and counted so."""
    if time.monotonic() > until:
        raise ValueError(SPENT)
    known = answered(policy, facts, asking)
    if asking.is_spent and known is not facts:
        raise ValueError(SPENT)
    return known


def kept_since(policy: Policy, since: datetime, most: int) -> Iterator[Kept]:
    rows: QuerySet[Decision] = policy.decisions.filter(created_at__gte=since).order_by("-number")[:most]
    for row in rows.iterator(chunk_size=500):
        yield Kept(row.public_id, row.number, row.outcome, row.words, row.candidates, row.gpu_ms, row.facts)
