"""Who owns a workspace in the end: active people, by themselves or through a group. Asks guardian's grants, so no scope need be open."""

import uuid
from collections.abc import Collection, Iterable

from django.contrib.auth.models import Group
from django.db.models import F, QuerySet

from workspaces.access import Permission
from workspaces.models import User, Workspace, WorkspaceGroupPermission


def owners_of(workspace_id: uuid.UUID) -> list[User]:
    """Active people whom a grant lets transfer the workspace, which only owners may."""
    return owners_by_workspace([workspace_id])[workspace_id]


def owners_by_workspace(workspace_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, list[User]]:
    """The owners of each of these workspaces, by user name: two queries, however many they are."""
    groups: dict[int, set[uuid.UUID]] = {}
    for group_id, key in _grants().filter(content_object_id__in=workspace_ids).values_list("group_id", "content_object_id"):
        groups.setdefault(group_id, set()).add(key)
    owners: dict[uuid.UUID, list[User]] = {key: [] for key in workspace_ids}
    people = User.objects.filter(is_active=True, kind=User.Kind.PERSON, groups__in=list(groups)).annotate(through=F("groups"))
    for person in people.order_by("username"):
        for key in groups[getattr(person, "through")]:
            if person not in owners[key]:
                owners[key].append(person)
    return owners


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
