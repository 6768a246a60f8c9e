"""Who owns a workspace in the end: active people, by themselves or through a group. Asks guardian's grants, so no scope need be open."""

import uuid
from collections.abc import Iterable

from django.contrib.auth.models import Group
from django.db.models import QuerySet

from workspaces.access import Permission
from workspaces.models import User, Workspace, WorkspaceGroupPermission


def owners_of(workspace_id: uuid.UUID) -> list[User]:
    """Active people whom a grant lets transfer the workspace, which only owners may."""
    return list(
        User.objects.filter(
            is_active=True, kind=User.Kind.PERSON, groups__in=_grants().filter(content_object_id=workspace_id).values("group_id")
        )
        .distinct()
        .order_by("username")
    )


def owned_by_group(group: Group) -> list[Workspace]:
    """Workspaces that the members of a group of people own through it."""
    return _workspaces(_grants().filter(group=group))


def owned_by(user: User) -> list[Workspace]:
    """Workspaces that a person owns, by themselves or through a group."""
    return _workspaces(_grants().filter(group__user=user))


def lock_workspaces(workspaces: Iterable[Workspace]) -> None:
    """Take the row locks under which owners are counted, always in one order."""
    keys = sorted({workspace.pk for workspace in workspaces})
    list(Workspace.objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk").values_list("pk", flat=True))


def _grants() -> "QuerySet[WorkspaceGroupPermission]":
    return WorkspaceGroupPermission.objects.filter(permission__codename=Permission.TRANSFER)


def _workspaces(grants: "QuerySet[WorkspaceGroupPermission]") -> list[Workspace]:
    return list(Workspace.objects.filter(pk__in=grants.values("content_object_id")).order_by("name"))
