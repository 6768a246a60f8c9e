"""`/members`: who belongs here in which role; `/members/permissions`: who may do what, and how each came by it."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.contrib.auth.models import Group
from django.urls import reverse
from ninja import Schema, Status
from pydantic import Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size, made_before
from workspaces.audit import Refusal
from workspaces.commands.member import add_member, change_member, remove_member
from workspaces.models import Membership, User
from workspaces.queries.member import people
from workspaces.queries.paging import in_order, newest_first

Kinds = list[Annotated[Line, Field(max_length=20)]]
routes = Routes("members")


class MemberIn(Body):
    user: Line | None = Field(None, max_length=150, description="User name of a person or service account; or `group`.")
    group: Line | None = Field(None, max_length=150, description="Name of a group of people.")
    role: Line = Field(max_length=20)
    kinds: Kinds = Field(default_factory=list, max_length=32, description="Narrows the role to these kinds; empty for all.")


class MemberChange(Body):
    role: Line = Field(max_length=20)
    kinds: Kinds = Field(default_factory=list, max_length=32)


class Removal(Body):
    reason: Line = Field("", max_length=1000)


class MemberOut(Schema):
    id: str
    uuid: UUID
    user: str | None
    group: str | None
    label: str
    role: str
    kinds: list[str]
    created_at: datetime
    url: str


class MemberList(Schema):
    items: list[MemberOut]
    next: str | None


class WayOut(Schema):
    role: str
    kinds: list[str]
    group: str


class PersonOut(Schema):
    user: str
    label: str
    kind: str
    is_active: bool
    ways: list[WayOut]
    permissions: dict[str, list[str] | None] = Field(description="Permission to the kinds it holds for; null for every kind.")


class PersonList(Schema):
    items: list[PersonOut]
    next: str | None


@routes.get("/members", needs=Permission.VIEW, kind=Kind.MEMBER, response=MemberList)
def list_members(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Memberships, newest first."""
    page = newest_first(Membership.objects.select_related("user", "group"), cursor=cursor, size=limit)
    return {"items": [_out(request, row) for row in page.items], "next": page.next}


@routes.get("/members/permissions", needs=Permission.VIEW, kind=Kind.MEMBER, response=PersonList)
def list_permissions(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Every account that may enter, by name, with its permissions and its ways in."""
    page = in_order(people(), lambda person: (person.user.label.casefold(), person.user.username), cursor=cursor, size=limit)
    items = [
        {
            "user": person.user.username,
            "label": person.user.label,
            "kind": person.user.kind,
            "is_active": person.user.is_active,
            "ways": [{"role": way.role, "kinds": way.kinds, "group": way.group} for way in person.ways],
            "permissions": {
                permission.value: None if kinds is None else sorted(kinds)
                for permission in Permission
                if (kinds := person.kinds_of(permission)) is None or kinds
            },
        }
        for person in page.items
    ]
    return {"items": items, "next": page.next}


@routes.post("/members", needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER, response=MemberOut, status=201)
def post_member(request: ApiRequest, body: MemberIn) -> Any:
    """Let an account or a group in. Nobody grants more than they hold."""
    before = made_before(request, Membership)
    if before is not None:
        return Status(201, _out(request, before))
    user = User.objects.filter(username=body.user, is_active=True).first() if body.user else None
    group = Group.objects.filter(name=body.group).first() if body.group else None
    if (body.user and user is None) or (body.group and group is None):
        raise Refusal("There is no such account that can sign in, and no such group.", field="user" if body.user else "group")
    member = add_member(actor=request.actor, user=user, group=group, role=body.role, kinds=body.kinds, id=request.chosen_id)
    return Status(201, _out(request, member))


@routes.get("/members/{member}", needs=Permission.VIEW, kind=Kind.MEMBER, response=MemberOut)
def get_member(request: ApiRequest, member: str) -> Any:
    """One membership: who, in which role, for which kinds."""
    return _out(request, Membership.objects.find(member))


@routes.patch("/members/{member}", needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER, response=MemberOut)
def patch_member(request: ApiRequest, member: str, body: MemberChange) -> Any:
    """Give a member another role or other kinds; it holds from the next request on."""
    return _out(request, change_member(actor=request.actor, member=member, role=body.role, kinds=body.kinds))


@routes.post("/members/{member}/remove", needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER)
def post_removal(request: ApiRequest, member: str, body: Removal) -> Any:
    """End a membership; tokens held here are revoked."""
    remove_member(actor=request.actor, member=member, reason=body.reason)


def _out(request: ApiRequest, row: Membership) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "uuid": row.pk,
        "user": row.user.username if row.user else None,
        "group": row.group.name if row.group else None,
        "label": row.label,
        "role": row.role,
        "kinds": row.kinds,
        "created_at": row.created_at,
        "url": reverse("member", args=[request.workspace.slug, row.public_id]),
    }
