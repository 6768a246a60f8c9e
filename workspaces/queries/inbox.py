"""The inbox: requests of every kind that need a person, by status, by kind, and those that are the reader's to decide or to wait for."""

from dataclasses import dataclass, replace

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from workspaces import scope
from workspaces.access import Actor, Rights, rights_of, standing_delegation
from workspaces.asked_kinds import Evidence, asked_kinds, evidence_of
from workspaces.models import Approval, ApprovalVote
from workspaces.queries.approval import approvals, title_of, waiting_at, waiting_for
from workspaces.queries.approval_rule import roles_reached
from workspaces.queries.decider import delegated_to
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
        return rows.filter(_mine(actor, rights))
    return rows


def _mine(actor: Actor, rights: Rights) -> Q:
    """What waits for the reader's word: in their own name, and in that of those who are away and named them."""
    if actor.user is None:
        return Q(pk__in=[])
    mine = Q(pk__in=waiting_for(actor, rights).values("pk"))
    now, user = timezone.now(), actor.user
    for delegation in delegated_to(user, now):
        named = replace(actor, behalf=delegation.giver, delegation_id=delegation.pk)
        if standing_delegation(named) is None:
            continue
        roles = roles_reached(rights_of(Actor.of(delegation.giver), scope.current_id()))
        theirs = waiting_at(roles, delegation.giver.pk, now).exclude(requested_by=user)
        said = ApprovalVote.objects.filter(Q(person=user) | Q(behalf=user)).values("approval")
        mine |= Q(pk__in=theirs.exclude(pk__in=said).values("pk"))
    return mine


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
