"""The upper part of a trace: what was promoted, the people who decided, the gates that it passed, and what was measured of it."""

import math

from django.db.models import F, Q
from django.urls import reverse

from runs.eligibility import Fact, Verdict, facts_from, summary
from runs.models import Decision, Evaluation, Promotion
from runs.policy.gates import REVIEW
from runs.queries.lineage_edges import NodeKind
from runs.queries.lineage_nodes import may_see
from runs.queries.policy import promotion_of
from runs.queries.promotion import told
from runs.queries.trace_item import Item, Step
from workspaces.access import Rights
from workspaces.checklist import FACT_VERDICTS
from workspaces.models import Approval, ApprovalVote
from workspaces.units import number

K = NodeKind
MOST_SCORES, MOST_DECISIONS = 5, 50
STANDING = {"promoted": "yes", "proposed": "person"}


def above(promotion: Promotion, rights: Rights, workspace: str) -> list[Step]:
    """From what stands down to the score that it stands upon."""
    return [
        Step(
            "result",
            "Promoted" if promotion.decided_at and promotion.status != "refused" else "Put forward",
            (_result(promotion, workspace),),
        ),
        Step("people", "Decided by", tuple(_people(promotion, rights, workspace))),
        Step("gates", "Gates", tuple(_gates(promotion, rights, workspace))),
        Step("measured", "Measured", tuple(_scores(promotion, rights, workspace))),
    ]


def _result(promotion: Promotion, workspace: str) -> Item:
    [found] = told([promotion])
    artifact = promotion.artifact
    words = found.suspended or promotion.end_reason or promotion.reason
    gone = "Its file is removed. " if artifact.removed_at else "Its file is to be removed. " if artifact.deleted_at else ""
    is_broken = bool(found.suspended or gone)
    return Item(
        f"{artifact.name or artifact.path} as {promotion.name}",
        kind=K.PROMOTION,
        id=promotion.public_id,
        url=reverse("promotion", args=[workspace, promotion.public_id]),
        who=(promotion.decided_by or promotion.requested_by).label,
        when=promotion.decided_at or promotion.created_at,
        verdict="no" if is_broken else STANDING.get(promotion.status, "no"),
        words=f"{gone}{promotion.get_status_display()}. {words}".strip(),
        is_gap=bool(gone),
    )


def _people(promotion: Promotion, rights: Rights, workspace: str) -> list[Item]:
    asked = Approval.objects.filter(subject_type="promotion", subject_id=promotion.pk).order_by("-created_at").first()
    url = reverse("approval", args=[workspace, asked.public_id]) if asked is not None and may_see(rights, K.APPROVAL) else ""
    votes = ApprovalVote.objects.filter(approval=asked).select_related("person").order_by("created_at") if asked is not None else ()
    items = [
        Item(
            f"{vote.person.label} {'approved' if vote.approves else 'refused'} it",
            kind=K.APPROVAL,
            id=asked.public_id if asked is not None else "",
            url=url,
            who=vote.person.label,
            when=vote.created_at,
            verdict="yes" if vote.approves else "no",
            words=vote.comment,
        )
        for vote in votes
    ]
    if not items:
        items.append(_nobody(promotion, url))
    return [
        *items,
        Item(f"{promotion.requested_by.label} asked for it", url=url, who=promotion.requested_by.label, when=promotion.created_at),
    ]


def _nobody(promotion: Promotion, url: str) -> Item:
    if promotion.status == Promotion.Status.PROPOSED:
        return Item(
            "Waits for a person", kind=K.APPROVAL, url=url, verdict="person", words="Anybody who may approve, but not whoever asked for it."
        )
    if promotion.decided_at is None:
        return Item("Nobody decided on it", kind=K.APPROVAL, url=url, verdict="unknown", words="It ended before anybody did.")
    return Item("Who decided is not on record", kind=K.APPROVAL, verdict="no", words="It stands, and no vote is here.", is_gap=True)


def _gates(promotion: Promotion, rights: Rights, workspace: str) -> list[Item]:
    """A reviewer's approval, where a gate wants one, stands among the people."""
    items = []
    decision = _decision(promotion)
    if decision is not None and may_see(rights, K.DECISION):
        items.append(
            Item(
                decision.label,
                kind=K.DECISION,
                id=decision.public_id,
                url=reverse("decision", args=[workspace, decision.public_id]),
                who=f"policy {decision.policy.name}",
                when=decision.created_at,
                words=_said([fact for fact in facts_from(decision.checks) if fact.key != REVIEW]) or decision.words,
            )
        )
    facts = facts_from(promotion.facts)
    if not facts:
        return [*items, Item("No check is on record", verdict="no", words="Nobody can say upon what it was put forward.", is_gap=True)]
    worst = next((fact for wanted in (Verdict.FAIL, Verdict.UNKNOWN) for fact in facts if fact.verdict is wanted), facts[0])
    passed = Item(
        summary(facts),
        url=reverse("promotion", args=[workspace, promotion.public_id]),
        when=promotion.created_at,
        verdict=FACT_VERDICTS[worst.verdict.value],
        words=_said(facts),
        is_gap=worst.verdict is not Verdict.PASS,
    )
    return [*items, passed]


def _said(facts: list[Fact]) -> str:
    """Each check by its name, those that do not hold with what was seen."""
    return "; ".join(fact.name if fact.verdict is Verdict.PASS else f"{fact.name}: {fact.observed}" for fact in facts)


def _decision(promotion: Promotion) -> Decision | None:
    """That of the policy which put it forward, if one did: what a decision puts forward has an id that follows from it."""
    scores = Evaluation.objects.filter(subject_artifact=promotion.artifact_id).values("pk")
    rows = Decision.objects.filter(cause_type="evaluation", cause_id__in=scores, outcome="acts", created_at__lte=promotion.created_at)
    found = rows.select_related("policy").defer("facts", "candidates").order_by("-created_at")[:MOST_DECISIONS]
    return next((row for row in found if promotion_of(row) == promotion.pk), None)


def _scores(promotion: Promotion, rights: Rights, workspace: str) -> list[Item]:
    if not may_see(rights, K.EVALUATION):
        return [Item("a score", kind=K.EVALUATION, verdict="unknown", words="You may not see scores here.")]
    own = Q(pk=promotion.evaluation_id) if promotion.evaluation_id else Q(pk=None)
    rows = Evaluation.objects.filter(own | Q(subject_artifact=promotion.artifact_id, metric=F("contract__metric")))
    found = list(rows.select_related("benchmark", "contract", "run__requested_by").order_by("-created_at", "-pk")[: 4 * MOST_SCORES])
    found.sort(key=lambda row: row.pk != promotion.evaluation_id)
    newest = list({(row.benchmark_id, row.metric): row for row in reversed(found)}.values())[::-1][:MOST_SCORES]
    items = [_score(row, promotion, workspace) for row in newest]
    return items or [Item("No score of it is on record", kind=K.EVALUATION, verdict="no", words="It was measured by nobody.", is_gap=True)]


def _score(row: Evaluation, promotion: Promotion, workspace: str) -> Item:
    samples = f" on {row.samples:,} samples" if row.samples else ""
    decides = " It was put forward upon this." if row.pk == promotion.evaluation_id else ""
    return Item(
        f"{row.metric} {number(row.value, row.standard_error)} on {row.benchmark.name}",
        kind=K.EVALUATION,
        id=row.public_id,
        url=reverse("evaluation", args=[workspace, row.public_id]),
        who=row.run.requested_by.label,
        when=row.created_at,
        verdict="yes" if math.isfinite(row.value) else "unknown",
        words=f"Contract {row.contract.version}{samples}.{decides}",
    )
