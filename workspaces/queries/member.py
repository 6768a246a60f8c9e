"""Who may do what in the open workspace, and how each came by it."""

import uuid
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q, QuerySet

from workspaces import kept_query
from workspaces.access import ROLES, Kind, Permission, Role, SiteRole, may_hold
from workspaces.models import Membership, User


@dataclass(frozen=True, slots=True)
class Way:
    """One way in: a role, by oneself or through a group, for all kinds or some."""

    role: str
    kinds: tuple[str, ...]
    group: str
    member_id: str


@dataclass(slots=True)
class Person:
    user: User
    ways: list[Way] = field(default_factory=list)

    def kinds_of(self, permission: Permission) -> frozenset[str] | None:
        """Kinds for which this account holds the permission: None for all, empty for none. The same sum as access.rights_of."""
        found: frozenset[str] = frozenset()
        if not self.user.is_active or not may_hold(self.user, permission):
            return found
        for way in self.ways:
            if permission in ROLES[way.role]:
                if not way.kinds:
                    return None
                found |= frozenset(way.kinds)
        return found

    def may(self, permission: Permission, kind: Kind | None = None) -> bool:
        """Does this account hold the permission: for `kind`, or for at least some kind?"""
        kinds = self.kinds_of(permission)
        return kinds is None or (bool(kinds) if kind is None else kind in kinds)

    @property
    def cells(self) -> list[dict[str, str]]:
        """One cell for each permission: does it hold, and for which kinds only."""
        cells = []
        for permission in Permission:
            kinds = self.kinds_of(permission)
            words = permission.value.replace("_", " ")
            if kinds is None:
                cells.append({"mark": "yes", "words": f"{words}: yes"})
            elif kinds:
                cells.append({"mark": "some", "words": f"{words}: only for {', '.join(sorted(kinds))}"})
            else:
                cells.append({"mark": "no", "words": f"{words}: no"})
        return cells


def members(accounts: Collection[uuid.UUID] | None = None) -> list[Membership]:
    """Memberships by name, owners first; all, or those that let in some of `accounts`."""
    rank = {role: number for number, role in enumerate(reversed(Role.values))}
    if accounts is None:
        rows = list(Membership.objects.select_related("user", "group"))
    elif len(accounts) == 1:
        rows = kept_query.ask(_letting_in_one, account=next(iter(accounts)))
    else:
        rows = list(_letting_in(accounts))
    return sorted(rows, key=lambda row: (rank[row.role], row.label.casefold(), row.pk))


def _letting_in(accounts: Collection[uuid.UUID]) -> "QuerySet[Membership]":
    through = User.groups.through.objects.filter(user__in=accounts).values("group")
    return Membership.objects.select_related("user", "group").filter(Q(user__in=accounts) | Q(group__in=through))


def _letting_in_one(account: Any) -> "QuerySet[Membership]":
    through = User.groups.through.objects.filter(user=account).values("group")
    return Membership.objects.select_related("user", "group").filter(Q(user=account) | Q(group__in=through))


def people(accounts: Collection[uuid.UUID] | None = None) -> list[Person]:
    """Every account that some membership lets in, or those of them among `accounts`; by name, each with all its ways in."""
    rows = members(accounts)
    found: dict[object, Person] = {}
    by_group: dict[int, list[User]] = defaultdict(list)
    groups = [row.group_id for row in rows if row.group_id is not None]
    in_groups = User.objects.filter(groups__in=groups).prefetch_related("groups").distinct() if groups else User.objects.none()
    for user in in_groups if accounts is None else in_groups.filter(pk__in=accounts):
        for group in user.groups.all():
            by_group[group.pk].append(user)
    for row in rows:
        way = Way(role=row.role, kinds=tuple(row.kinds), group=row.group.name if row.group else "", member_id=row.public_id)
        for user in [row.user] if row.user else by_group.get(row.group_id or 0, []):
            found.setdefault(user.pk, Person(user=user)).ways.append(way)
    return sorted(found.values(), key=lambda person: (person.user.label.casefold(), person.user.username))


@dataclass(frozen=True, slots=True)
class Answer:
    """One of the four questions about the workspace as a whole: who can create, administer, archive, transfer it (feature 14)."""

    question: str
    people: list[str]


def whole_workspace(everyone: list[Person]) -> list[Answer]:
    creators = User.objects.filter(is_active=True, site_roles__contains=[SiteRole.CREATE_WORKSPACE]).order_by("username")[:50]
    asked = (
        ("administer it: settings, members, budgets", Permission.MANAGE_MEMBERS),
        ("archive it", Permission.ARCHIVE),
        ("transfer or delete it", Permission.TRANSFER),
    )
    named = [Answer(words, [person.user.label for person in everyone if person.may(permission)]) for words, permission in asked]
    return [Answer("create workspaces in this installation", [user.label for user in creators]), *named]


KINDS = tuple(Kind)
