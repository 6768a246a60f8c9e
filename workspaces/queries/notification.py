"""What a person was told in the open workspace, and how much of it they have not seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Func, IntegerField, QuerySet, Value
from django.urls import reverse
from django.utils import timezone

from workspaces import ids, kept_query
from workspaces.access import Actor, Kind, Permission, Rights, entered_by_key
from workspaces.models import Approval, NotFound, Notification
from workspaces.queries.approval import waiting_at
from workspaces.queries.approval_rule import roles_reached

KINDS = {
    "run": Kind.RUN,
    "sweep": Kind.RUN,
    "approval": Kind.APPROVAL,
    "crossing": Kind.BUDGET,
    "recount": Kind.BUDGET,
    "check": Kind.BENCHMARK,
    "benchmark": Kind.BENCHMARK,
    "decision": Kind.POLICY,
}  # what one must be allowed to see to be told of it
PAGES = {"crossing": "budget", "recount": "ledger"}  # subjects that have no page of their own, and where they are shown
OWN_PAGES = {"benchmark": "benchmark-source"}  # subjects that one is told of for something else than their first page
MOST = 100  # unseen ones are counted so far: the bar says 99+


@dataclass(frozen=True, slots=True)
class Told:
    """One row of the list: what happened in words, how it came out, and where it leads."""

    id: str
    row: Notification
    sentence: str
    url: str

    @property
    def is_seen(self) -> bool:
        return self.row.seen_at is not None


@dataclass(frozen=True, slots=True)
class Bar:
    """What bar and rail of every page say: (name, slug) of the workspaces that one may enter; how much is unseen in the open one, and how many
    requests there wait for one's word, both as far as they are counted."""

    workspaces: list[tuple[str, str]]
    unseen: int = 0
    waiting: int = 0

    @property
    def unseen_words(self) -> str:
        return _words(self.unseen)

    @property
    def waiting_words(self) -> str:
        return _words(self.waiting)


def told_to(actor: Actor, rights: Rights) -> "QuerySet[Notification]":
    """What a person was told and may still see here; of services and agents, nothing."""
    if actor.user is None:
        return Notification.objects.none()
    kinds = _kinds(rights)
    return _told(actor.user.pk, kinds) if kinds else Notification.objects.none()


def _told(person: Any, kinds: Sequence[str]) -> "QuerySet[Notification]":
    return Notification.objects.filter(person=person, subject_type__in=kinds)


def _kinds(rights: Rights) -> list[str]:
    """Types of subjects that the reader's role is about."""
    return [name for name, kind in KINDS.items() if rights.allows(Permission.VIEW, kind)]


def find_told(actor: Actor, rights: Rights, text: str) -> "QuerySet[Notification]":
    """The one row that `text` names. Raises NotFound where it is another's, or is not there."""
    pk, _ = ids.spellings(Notification.prefix, text)
    rows = told_to(actor, rights).filter(pk=pk) if pk is not None else None
    if rows is None or not rows.exists():
        raise NotFound("notification")
    return rows


def up_to(rows: "QuerySet[Notification]", newest: Notification) -> "QuerySet[Notification]":
    """Those that had come when `newest` was the newest on the page: what came since stays unseen."""
    return rows.filter(created_at__lte=newest.created_at)


def bar_of(actor: Actor, rights: Rights, *, is_in_workspace: bool) -> Bar:
    """Asked on every page, so it is one look at the database: what is counted is counted within the switcher's query."""
    if actor.user is None:
        return Bar([])
    if not actor.user.is_active:
        return Bar([])
    kinds = tuple(_kinds(rights)) if is_in_workspace else ()
    roles = tuple(roles_reached(rights)) if is_in_workspace else ()
    rows = kept_query.ask(_bar, kinds, roles, user=actor.user.pk, now=timezone.now())
    return Bar([(name, slug) for name, slug, _, _ in rows], *(rows[0][2:] if rows else ()))


def _bar(kinds: tuple[str, ...], roles: tuple[str, ...], user: Any, now: Any) -> "QuerySet[Any, Any]":
    unseen, waiting = _told(user, kinds).filter(seen_at=None) if kinds else None, waiting_at(roles, user, now) if roles else None
    return entered_by_key(user).values_list("name", "slug", _number_of(unseen), _number_of(waiting))


def _number_of(rows: "QuerySet[Any] | None") -> Func | Value:
    """How many they are, as far as the bar counts."""
    if rows is None:
        return Value(0, output_field=IntegerField())
    return Func(ArraySubquery(rows.values("pk")[:MOST]), function="cardinality", output_field=IntegerField())


def _words(number: int) -> str:
    return f"{MOST - 1}+" if number >= MOST else str(number or "")


def shown(rows: "list[Notification]", slug: str) -> list[Told]:
    """Rows as the page and the API of the workspace `slug` show them."""
    found = []
    for row in rows:
        own = [slug, row.subject_id.hex if row.subject_type in OWN_PAGES else ids.canonical(row.subject_type, None, row.subject_id)]
        name = row.subject_type
        url = reverse(PAGES[name], args=[slug]) if name in PAGES else reverse(OWN_PAGES.get(name, name), args=own)
        found.append(Told(id=row.public_id, row=row, sentence=_sentence(row), url=url))
    return found


def _sentence(row: Notification) -> str:
    if row.cause == Notification.Cause.APPROVAL_DECIDED and row.outcome in (
        Approval.Status.EXPIRED,
        Approval.Status.VOID,
        Approval.Status.WITHDRAWN,
    ):
        return "Your request ended without a decision"
    if row.cause == Notification.Cause.APPROVAL_ASKED and row.outcome != Approval.Status.PENDING:
        return "You were asked to decide"
    words = row.get_cause_display()
    return f"{words[0].upper()}{words[1:]}"
