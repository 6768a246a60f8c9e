"""Who may: permissions, roles, kinds, actors and the rights of an actor in a workspace (contracts.md A). The only door to django-guardian."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from django.contrib.auth import models as auth
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet
from django.utils import timezone

from workspaces import kept_query, scope
from workspaces.models import ActorKind, Delegation, Membership, User, Workspace, WorkspaceGroupPermission


class Permission(StrEnum):
    VIEW = "view"
    LAUNCH_RUN = "launch_run"
    CANCEL_RUN = "cancel_run"
    EDIT_REGISTRY = "edit_registry"
    IMPORT_DATA = "import_data"
    WRITE_MEMORY = "write_memory"
    PROPOSE_POLICY = "propose_policy"
    APPROVE = "approve"
    PROMOTE = "promote"
    MANAGE_QUEUE = "manage_queue"
    MANAGE_POOL = "manage_pool"
    MANAGE_SECRET = "manage_secret"  # noqa: S105  # the name of a right
    MANAGE_WORKSPACE = "manage_workspace"
    MANAGE_BUDGET = "manage_budget"
    SHARE = "share"
    MANAGE_MEMBERS = "manage_members"
    EXPORT = "export"
    ARCHIVE = "archive"
    VIEW_AUDIT = "view_audit"
    DELETE = "delete"
    TRANSFER = "transfer"


class Kind(StrEnum):
    """Kinds of object that a membership may be narrowed to, and that a token's scopes name."""

    WORKSPACE = "workspace"
    BENCHMARK = "benchmark"
    DATASET = "dataset"
    AGENT = "agent"
    RUN = "run"
    ARTIFACT = "artifact"
    EVALUATION = "evaluation"
    MEMORY = "memory"
    POLICY = "policy"
    APPROVAL = "approval"
    POOL = "pool"
    BUDGET = "budget"
    SECRET = "secret"  # noqa: S105  # the name of a kind
    SHARE = "share"
    MEMBER = "member"
    AUDIT = "audit"


P = Permission
Role = Membership.Role
_RESEARCHER = {P.VIEW, P.LAUNCH_RUN, P.CANCEL_RUN, P.EDIT_REGISTRY, P.IMPORT_DATA, P.WRITE_MEMORY, P.PROPOSE_POLICY, P.PROMOTE}
_OPERATOR = _RESEARCHER | {P.MANAGE_QUEUE, P.MANAGE_POOL, P.MANAGE_SECRET, P.EXPORT, P.ARCHIVE, P.VIEW_AUDIT}
_ADMIN = _OPERATOR | {P.APPROVE, P.MANAGE_WORKSPACE, P.MANAGE_BUDGET, P.SHARE, P.MANAGE_MEMBERS}
ROLES: dict[str, frozenset[Permission]] = {
    Role.VIEWER: frozenset({P.VIEW}),
    Role.RESEARCHER: frozenset(_RESEARCHER),
    Role.OPERATOR: frozenset(_OPERATOR),
    Role.APPROVER: frozenset({P.VIEW, P.PROPOSE_POLICY, P.APPROVE, P.VIEW_AUDIT}),
    Role.AUDITOR: frozenset({P.VIEW, P.VIEW_AUDIT}),
    Role.ADMIN: frozenset(_ADMIN),
    Role.OWNER: frozenset(_ADMIN | {P.DELETE, P.TRANSFER}),
}
SiteRole = User.SiteRole


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, through what, and for whom; every command takes one."""

    kind: ActorKind
    user: User | None = None
    label: str = ""
    behalf: User | None = None
    token_id: uuid.UUID | None = None
    token_scopes: frozenset[str] | None = None  # None: not narrowed by a token
    token_workspace_id: uuid.UUID | None = None
    run_id: uuid.UUID | None = None  # a run token acts for this run only
    delegation_id: uuid.UUID | None = None  # decides in the name of `behalf`, who is away and named this person
    request_id: str = ""
    job_id: str = ""

    @classmethod
    def of(cls, user: User, *, request_id: str = "", job_id: str = "") -> "Actor":
        """A signed-in person, or the person named by `--as` on the command line."""
        kind = {User.Kind.PERSON: ActorKind.PERSON, User.Kind.SERVICE: ActorKind.SERVICE, User.Kind.AGENT: ActorKind.AGENT}[
            User.Kind(user.kind)
        ]
        return cls(kind=kind, user=user, label=user.label, request_id=request_id, job_id=job_id)

    @classmethod
    def system(cls, *, job_id: str) -> "Actor":
        """Labsite itself, in a job; may run the commands that say `by_system`."""
        return cls(kind=ActorKind.SYSTEM, label="labsite", job_id=job_id)

    def is_user(self, key: uuid.UUID | None) -> bool:
        """Is this the person, or one's own?"""
        return self.user is not None and self.user.pk == key

    def has_site_role(self, role: str) -> bool:
        return self.user is not None and self.user.is_active and role in self.user.site_roles and self.token_scopes is None


@dataclass(frozen=True, slots=True)
class Rights:
    """What an actor may do in one workspace, as the database had it a moment ago. A permission maps to None (every kind) or to kinds."""

    grants: dict[Permission, frozenset[Kind] | None] = field(default_factory=dict)
    token_scopes: frozenset[str] | None = None

    def allows(self, permission: Permission, kind: Kind | None = None) -> bool:
        """May the actor, for objects of `kind`? Without a kind: for at least some kind."""
        if permission not in self.grants:
            return False
        kinds = self.grants[permission]
        if kind is not None and kinds is not None and kind not in kinds:
            return False
        if self.token_scopes is None or kind is None:
            return self.token_scopes is None or permission is Permission.VIEW or bool(self.token_scopes)
        return f"{kind}:{'read' if permission in _READS else 'write'}" in self.token_scopes or (
            permission in _READS and f"{kind}:write" in self.token_scopes
        )

    def may_write(self, kind: Kind) -> bool:
        """For what everyone concerned may do, whatever their role: is the actor here, and through no token that only reads?"""
        return self.allows(Permission.VIEW, kind) and (self.token_scopes is None or f"{kind}:write" in self.token_scopes)

    @property
    def may_enter(self) -> bool:
        return Permission.VIEW in self.grants


# Rights for which an archived workspace has no use; pages offer nothing that takes one. The refusal itself is workspaces.audit.command's.
FROZEN = frozenset(
    {P.LAUNCH_RUN, P.EDIT_REGISTRY, P.IMPORT_DATA, P.WRITE_MEMORY, P.PROPOSE_POLICY, P.APPROVE, P.PROMOTE, P.MANAGE_POOL}
    | {P.MANAGE_WORKSPACE, P.MANAGE_BUDGET}
)
_READS = frozenset({P.VIEW, P.VIEW_AUDIT})
NONE = Rights()


def rights_of(actor: Actor, workspace_id: uuid.UUID) -> Rights:
    """An actor's rights, as the grants have it now: a change holds from the very next request. Wants the workspace's scope open.

    Who decides in another's name holds the right to decide on requests besides, as long as the delegation stands.
    """
    own = _rights_of(actor, workspace_id)
    if actor.delegation_id is None or not own.may_enter or standing_delegation(actor) is None:
        return own
    return replace(own, grants={**own.grants, P.APPROVE: _with(own.grants.get(P.APPROVE, frozenset()), Kind.APPROVAL)})


def _with(kinds: frozenset[Kind] | None, kind: Kind) -> frozenset[Kind] | None:
    return None if kinds is None else kinds | {kind}


def standing_delegation(actor: Actor) -> Delegation | None:
    """The delegation that the actor decides by, if it stands at this moment: it is theirs, in its time, not taken back, and whoever gave it may
    decide by a right of their own, and the actor enters by one. What is not so any more stands no more, whatever it was when it was given."""
    user, now = actor.user, timezone.now()
    if user is None or actor.behalf is None or actor.delegation_id is None or not may_hold(user, P.APPROVE):
        return None
    row = (
        Delegation.objects.filter(pk=actor.delegation_id, delegate=user, giver=actor.behalf, ended_at=None)
        .filter(starts_at__lte=now, ends_at__gt=now)
        .select_related("giver")
        .first()
    )
    here = scope.current_id()
    if row is None or not _rights_of(Actor.of(user), here).may_enter:
        return None
    return row if _rights_of(Actor.of(row.giver), here).allows(P.APPROVE, Kind.APPROVAL) else None


def rights_questions(user_id: uuid.UUID, workspace_id: uuid.UUID) -> list[kept_query.Question]:
    """What `rights_of` asks about a person who acts by themselves, for one who asks for more in the same round trip."""
    return [
        kept_query.Question(_granted, (), {"workspace": workspace_id, "user": user_id}),
        kept_query.Question(_narrowed, (), {"user": user_id}),
    ]


def _rights_of(actor: Actor, workspace_id: uuid.UUID) -> Rights:
    """Read an actor's rights from the grants, anew each time: a change holds from the very next request. Wants the workspace's scope open."""
    user = actor.user
    if user is None or not user.is_active:
        return NONE
    if actor.token_workspace_id is not None and actor.token_workspace_id != workspace_id:
        return NONE
    if actor.run_id is not None:
        return NONE  # a run token writes to its own run through routes that say so, and holds no right besides
    granted, narrow = kept_query.ask_together(rights_questions(user.pk, workspace_id))
    by_group: dict[int, set[Permission]] = {}
    names: dict[str, int] = {}
    for group_id, name, codename in granted:
        by_group.setdefault(group_id, set()).add(Permission(codename))
        names[name] = group_id
    if not by_group:
        return NONE
    narrowed: dict[int, frozenset[Kind]] = {}
    for role, through, kinds in narrow:
        group_of_role = through if through is not None else names.get(_group_name(workspace_id, role))
        if group_of_role is not None:
            narrowed[group_of_role] = frozenset(Kind(kind) for kind in kinds)
    grants: dict[Permission, frozenset[Kind] | None] = {}
    for group_id, permissions in by_group.items():
        narrowed_to = narrowed.get(group_id)
        for permission in permissions:
            if not may_hold(user, permission):
                continue
            if permission in grants:
                before = grants[permission]
                grants[permission] = None if before is None or narrowed_to is None else before | narrowed_to
            else:
                grants[permission] = narrowed_to
    return Rights(grants=grants, token_scopes=actor.token_scopes)


def _granted(workspace: Any, user: Any) -> "QuerySet[Any, Any]":
    found = WorkspaceGroupPermission.objects.filter(content_object_id=workspace, group__user=user)
    return found.values_list("group_id", "group__name", "permission__codename")


def _narrowed(user: Any) -> "QuerySet[Any, Any]":
    groups = Group.objects.filter(user=user).values("pk")
    return Membership.objects.filter(Q(user=user) | Q(group__in=groups), kinds__len__gt=0).values_list("role", "group_id", "kinds")


def may_hold(user: User, permission: Permission) -> bool:
    """Could an account of this kind hold the right at all? Services and agents never hold more than a researcher, whatever their role says."""
    return user.kind == User.Kind.PERSON or permission in ROLES[Role.RESEARCHER]


def role_group(workspace_id: uuid.UUID, role: str) -> Group:
    """The group that holds a role's permissions in one workspace."""
    return Group.objects.get(name=_group_name(workspace_id, role))


def people_groups() -> "QuerySet[Group]":
    """Groups of people, which site operators keep, by name; the role groups of workspaces are not among them."""
    return Group.objects.exclude(name__startswith=_GROUP_PREFIX).order_by("name")


def make_role_groups(workspace: Workspace) -> None:
    """Make the seven role groups of a new workspace and grant each its permissions on it. Part of the command that creates the workspace."""
    groups = Group.objects.bulk_create([Group(name=_group_name(workspace.pk, role)) for role in ROLES])
    _grant(dict(zip(groups, ROLES.values(), strict=True)), workspace.pk)


def _grant(asked: Mapping[Group, Iterable[Permission]], workspace_id: uuid.UUID) -> None:
    """guardian's `assign_perm` for many groups and permissions at once: its grants as rows."""
    known = {
        row.codename: row for row in auth.Permission.objects.filter(content_type__app_label="workspaces", content_type__model="workspace")
    }
    rows = [
        WorkspaceGroupPermission(group=group, permission=known[permission.value], content_object_id=workspace_id)
        for group, permissions in asked.items()
        for permission in sorted(permissions)
    ]
    WorkspaceGroupPermission.objects.bulk_create(rows, ignore_conflicts=True)


def give_role(member: Membership) -> None:
    """Make guardian's grants follow a membership that was just written. Part of the commands on members."""
    if member.user is not None:
        member.user.groups.add(role_group(scope.current_id(), member.role))
    elif member.group is not None:
        _grant({member.group: ROLES[member.role]}, scope.current_id())


def take_role(member: Membership) -> None:
    """Undo `give_role` before a membership changes its role or ends."""
    if member.user is not None:
        member.user.groups.remove(role_group(scope.current_id(), member.role))
    elif member.group is not None:
        granted = WorkspaceGroupPermission.objects.filter(group=member.group, content_object_id=scope.current_id())
        granted.filter(permission__codename__in=[permission.value for permission in ROLES[member.role]]).delete()


def workspaces_of(user: User) -> "list[Workspace]":
    """The workspaces that a person may enter, by name; looks at guardian's grants, so no scope need be open."""
    return list(entered_by(user))


def entered_by(user: User) -> "QuerySet[Workspace]":
    """The same as a query, for callers that want less of it, or more besides."""
    return entered_by_key(user.pk) if user.is_active else Workspace.objects.none()


def entered_by_key(user: Any) -> "QuerySet[Workspace]":
    """The same for the key of an account that is known to be active, or what stands for it in a kept query."""
    granted = WorkspaceGroupPermission.objects.filter(group__user=user, permission__codename=P.VIEW).values("content_object_id")
    return Workspace.objects.filter(pk__in=granted).order_by("name", "slug")


_GROUP_PREFIX = "workspace "


def _group_name(workspace_id: uuid.UUID, role: str) -> str:
    return f"{_GROUP_PREFIX}{workspace_id.hex} {role}"
