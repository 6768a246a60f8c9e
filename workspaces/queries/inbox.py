"""The inbox: requests of every kind that need a person, by status, by kind, and those that are the reader's to decide or to wait for."""

from dataclasses import dataclass

from django.db.models import Count, QuerySet

from workspaces.access import Actor, Rights
from workspaces.asked_kinds import Evidence, asked_kinds, evidence_of
from workspaces.models import Approval
from workspaces.queries.approval import approvals, title_of, waiting_for
from workspaces.queries.paging import Page, newest_first

SHOWN = 20  # a page: each row holds its evidence
MINE, OWN = "mine", "own"


@dataclass(frozen=True, slots=True)
class Filters:
    """`kind`: a subject type, or empty. `whose`: `mine` to decide, the reader's `own`, or empty. What is not known is left out."""

    status: str = Approval.Status.PENDING
    kind: str = ""
    whose: str = ""

    @classmethod
    def of(cls, status: str, kind: str, whose: str) -> "Filters":
        return cls(
            status=status if status in Approval.Status.values else Approval.Status.PENDING,
            kind=kind if kind in asked_kinds() else "",
            whose=whose if whose in (MINE, OWN) else "",
        )


@dataclass(frozen=True, slots=True)
class Entry:
    approval: Approval
    title: str
    kind: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter with how many it holds; `count` is None where nobody counts."""

    value: str
    words: str
    is_on: bool
    count: int | None = None


def inbox(filters: Filters, actor: Actor, rights: Rights) -> "QuerySet[Approval]":
    rows = approvals(status=filters.status)
    if filters.kind:
        rows = rows.filter(subject_type=filters.kind)
    if filters.whose == OWN:
        return rows.filter(requested_by=actor.user) if actor.user is not None else rows.none()
    if filters.whose == MINE:
        return rows.filter(pk__in=waiting_for(actor, rights).values("pk"))
    return rows


def entries(filters: Filters, actor: Actor, rights: Rights, *, cursor: str = "") -> Page[Entry]:
    """A page of the inbox, newest first, each with its evidence."""
    page = newest_first(inbox(filters, actor, rights), cursor=cursor, size=SHOWN)
    kinds = asked_kinds()
    return Page(
        items=[
            Entry(
                approval=approval,
                title=title_of(approval),
                kind=kinds[approval.subject_type].one if approval.subject_type in kinds else approval.subject_type,
                evidence=evidence_of(approval.subject_type, approval.content) if approval.status == Approval.Status.PENDING else Evidence(),
            )
            for approval in page.items
        ],
        next=page.next,
    )


def kind_chips(filters: Filters) -> list[Chip]:
    """A chip for each kind with how many wait or ended so; the first stands for all of them."""
    rows = Approval.objects.filter(status=filters.status).order_by().values_list("subject_type").annotate(count=Count("pk"))
    counts: dict[str, int] = dict(rows)
    every = Chip("", "Every kind", not filters.kind, sum(counts.values()))
    return [every, *(Chip(kind.name, kind.many, filters.kind == kind.name, counts.get(kind.name, 0)) for kind in asked_kinds().values())]


def whose_chips(filters: Filters) -> list[Chip]:
    words = {"": "Everyone’s", MINE: "Mine to decide", OWN: "Asked by me"}
    return [Chip(value, text, filters.whose == value) for value, text in words.items()]
