"""Promotions: the list, one with the answer that it gives, what stands under a name."""

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from runs.eligibility import facts_from, summary
from runs.models import Artifact, Promotion
from runs.queries.suspension import suspended
from workspaces import ids, kept_query
from workspaces.audit import Refusal
from workspaces.checklist import REVIEWS, fact_checks
from workspaces.models import Approval, NotFound
from workspaces.queries.approval import votes_on
from workspaces.queries.paging import Page, newest_first
from workspaces.units import plural

Status = Promotion.Status
UNDECIDED = (Approval.Status.VOID, Approval.Status.EXPIRED, Approval.Status.WITHDRAWN)
RELATED = ("artifact__blob", "artifact__run", "evaluation__contract__benchmark", "requested_by", "decided_by", "supersedes__artifact")


@dataclass(frozen=True, slots=True)
class Told:
    """A promotion, and why it is suspended although it stands; empty where it is not. `undecided`: in what its request ended where no person
    decided on it (void, expired, withdrawn), which its status calls refused; else empty."""

    promotion: Promotion
    suspended: str = ""
    undecided: str = ""

    @property
    def may_be_rested_on(self) -> bool:
        return self.promotion.status == Status.PROMOTED and not self.suspended

    @property
    def state(self) -> str:
        return "suspended" if self.suspended else self.undecided or str(self.promotion.status)


@dataclass(frozen=True, slots=True)
class PromotionPage:
    """One promotion as its page shows it. `checks` go into a checklist, as they stood when it was put forward; `approval` is the open or last
    request about it; `history` the others under its name. `gate` is that of the policy that put it forward, `decision` that decision's id."""

    told: Told
    checks: list[dict[str, Any]]
    summary: str
    approval: Approval | None
    history: list[Told]
    took_its_place: Promotion | None
    gate: list[dict[str, Any]]
    decision: str


def page_of_promotions(*, name: str = "", status: str = "", by_person: bool | None = None, cursor: str = "", size: int = 50) -> Page[Told]:
    """Promotions, newest first; of one name or status where asked, and only those that a person has decided on, or none of them. Raises
    BadCursor."""
    rows = _rows()
    if name:
        rows = rows.filter(name=ids.same_name(name))
    if status:
        rows = rows.filter(status=status)
    if by_person is not None:
        rows = rows.filter(decided_by__isnull=not by_person)
    page = newest_first(rows, cursor=cursor, size=size)
    return Page(told(page.items), page.next)


def standing_promotions(limit: int = 50) -> list[Told]:
    """What stands, by name."""
    return told(_rows().filter(status=Status.PROMOTED).order_by("name")[:limit])


def promotion_page(promotion: Promotion) -> PromotionPage:
    others = _rows().filter(name=promotion.name).exclude(pk=promotion.pk).order_by("-created_at", "-pk")[:20]
    found = told([promotion, *others])
    approval = Approval.objects.filter(subject_type="promotion", subject_id=promotion.pk).order_by("-created_at").first()
    content = approval.content if approval is not None and isinstance(approval.content, dict) else {}
    return PromotionPage(
        told=found[0],
        checks=fact_checks(promotion.facts),
        summary=summary(facts_from(promotion.facts)),
        approval=approval,
        history=found[1:],
        took_its_place=next((one.promotion for one in found if one.promotion.supersedes_id == promotion.pk), None),
        gate=fact_checks(_reviewed(content.get("gate", ()), approval)),
        decision=str(content.get("decision", "")),
    )


def _reviewed(gate: Iterable[dict[str, Any]], approval: Approval | None) -> list[dict[str, Any]]:
    """The gate as it was asked about; the reviewers' check says what has become of it."""
    found = [dict(entry) for entry in gate]
    waiting = [entry for entry in found if entry["key"] in REVIEWS and entry["verdict"] == "unknown"]
    if approval is None or not waiting or approval.status not in (Approval.Status.APPROVED, Approval.Status.REFUSED):
        return found
    votes = [vote.person.label for vote in votes_on(approval) if vote.approves == (approval.status == Approval.Status.APPROVED)]
    is_approved = approval.status == Approval.Status.APPROVED
    link = {"page": "approval", "argument": approval.public_id, "label": "the request"}
    for entry in waiting:
        entry |= {
            "verdict": "pass" if is_approved else "fail",
            "observed": plural(len(votes), "person", "people"),
            "words": f"{', '.join(votes)} {'approved' if is_approved else 'refused'} exactly this.",
            "evidence": [link],
        }
    return found


def promotions_of(artifact: Artifact) -> list[Told]:
    """Under which names it stands, stood, or was put forward; newest first, cut."""
    return told(kept_query.rows(Promotion, artifact=artifact, related=RELATED, order_by=("-created_at", "-pk"), limit=10))


def find_promoted(name: str) -> Promotion:
    """What stands under a name; else the last that did or was put forward. NotFound where nothing ever was."""
    rows = _rows().filter(name=ids.same_name(name))
    found = rows.filter(status=Status.PROMOTED).first() or rows.order_by("-created_at", "-pk").first()
    if found is None:
        raise NotFound("promoted name")
    return found


def find_standing(name: str) -> Promotion:
    """What stands under a name, suspended or not. NotFound where nothing does."""
    found = find_promoted(name)
    if found.status != Status.PROMOTED:
        raise NotFound("promoted name")
    return found


def find_restable(name: str) -> Promotion:
    """What people may rest on under a name. NotFound where nothing stands, Refusal where it is suspended, which says why."""
    [found] = told([find_standing(name)])
    if found.suspended:
        raise Refusal(f"{found.promotion.label} is suspended: {found.suspended} Once that is mended, its file is given here as before.")
    return found.promotion


def told(promotions: "Collection[Promotion] | QuerySet[Promotion]") -> list[Told]:
    """Each with why it is suspended, or in what its request ended undecided; a number of queries that does not grow with them."""
    rows = list(promotions)
    why = suspended({row.artifact_id for row in rows if row.status == Status.PROMOTED})
    ended = _ended([row.pk for row in rows if row.status == Status.REFUSED and row.decided_by_id is None])
    return [Told(row, why.get(row.artifact_id, "") if row.status == Status.PROMOTED else "", ended.get(row.pk, "")) for row in rows]


def _ended(undecided: list[uuid.UUID]) -> dict[uuid.UUID, str]:
    """In what the last request about each of these ended."""
    if not undecided:
        return {}
    rows = Approval.objects.filter(subject_type="promotion", subject_id__in=undecided).order_by("created_at")
    return {subject: status for subject, status in rows.values_list("subject_id", "status") if status in UNDECIDED}


def _rows() -> "QuerySet[Promotion]":
    return Promotion.objects.select_related(*RELATED)
