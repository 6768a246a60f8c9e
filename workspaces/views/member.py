"""Members: who may do what here, letting people in, changing and removing them."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.shortcuts import render

from workspaces.access import Kind, Permission
from workspaces.audit import Refusal
from workspaces.commands.invitation import invite
from workspaces.commands.member import add_member, change_member, create_service_account, leave_workspace, remove_member
from workspaces.forms.member import AddMemberForm, ChangeMemberForm, InviteForm, ServiceAccountForm
from workspaces.forms.refusal import show_refusal
from workspaces.models import Membership, User
from workspaces.pages import PageRequest, redirect
from workspaces.queries.invitation import open_invitations
from workspaces.queries.member import members, people, whole_workspace
from workspaces.views.invitation import show_link

ROWS = 100


def member_list(request: PageRequest) -> HttpResponse:
    """Who may do what here, and how each came by it."""
    everyone = people()
    wanted = request.GET.get("q", "").strip()[:120].casefold()
    found = (
        [person for person in everyone if wanted in person.user.label.casefold() or wanted in person.user.username] if wanted else everyone
    )
    start = _number(request.GET.get("after", ""))
    manages = request.rights.allows(Permission.MANAGE_MEMBERS, Kind.MEMBER)
    return render(
        request,
        "workspaces/member_list.html",
        {
            "shown": found[start : start + ROWS],
            "next_cursor": str(start + ROWS) if start + ROWS < len(found) else "",
            "persons": sum(person.user.kind == User.Kind.PERSON for person in everyone),
            "services": sum(person.user.kind != User.Kind.PERSON for person in everyone),
            "managers": sum(person.may(Permission.MANAGE_MEMBERS) for person in everyone),
            "answers": whole_workspace(everyone),
            "permissions": [permission.value.replace("_", " ") for permission in Permission],
            "groups": [row for row in members() if row.group],
            "invitations": open_invitations() if manages else [],
            "q": request.GET.get("q", "")[:120],
            "is_member": any(way.group == "" for person in everyone if person.user.pk == request.user.pk for way in person.ways),
        },
    )


def member_add(request: PageRequest) -> HttpResponse:
    """Let someone in: by invitation, an account that there is, or a new service account."""
    what, status = request.POST.get("what", ""), 200
    kinds: dict[str, type[forms.Form]] = {"invite": InviteForm, "add": AddMemberForm, "service": ServiceAccountForm}
    shown = {name: form(request.POST if name == what else None) for name, form in kinds.items()}
    asked = shown.get(what)
    if asked is not None:
        status = 422
        if asked.is_valid():
            try:
                return _let_in(request, what, asked.cleaned_data)
            except Refusal as refusal:
                show_refusal(asked, refusal)
                status = 409
    return render(request, "workspaces/member_add.html", {f"{name}_form": form for name, form in shown.items()}, status=status)


def _let_in(request: PageRequest, what: str, values: dict[str, Any]) -> HttpResponse:
    if what == "invite":
        invitation, secret = invite(actor=request.actor, **values)
        return show_link(request, invitation, secret)
    if what == "service":
        member = create_service_account(actor=request.actor, **values)
        messages.success(request, f"{member.label} is {member.role} here. Make a token for it next.")
        return redirect("token-list", request.workspace.slug)
    name, number = values.pop("user"), values.pop("group")
    user = User.objects.filter(username=name, is_active=True).first() if name else None
    group = Group.objects.filter(pk=number).first() if number else None
    if user is None and group is None:
        raise Refusal("There is nobody of that name who can sign in; invite them by e-mail.", field="user")
    member = add_member(actor=request.actor, user=user, group=group, **values)
    messages.success(request, f"{member.label} is {member.role} here now.")
    return redirect("member-list", request.workspace.slug)


def member(request: PageRequest, member: str) -> HttpResponse:
    """One membership: its role, its kinds, its end."""
    row = Membership.objects.find(member)
    form = ChangeMemberForm(initial={"role": row.role, "kinds": row.kinds})
    return render(request, "workspaces/member.html", {"member": row, "form": form})


def member_change(request: PageRequest, member: str) -> HttpResponse:
    row, form, status = Membership.objects.find(member), ChangeMemberForm(request.POST), 422
    if form.is_valid():
        try:
            changed = change_member(actor=request.actor, member=member, **form.cleaned_data)
        except Refusal as refusal:
            show_refusal(form, refusal)
            status = 409
        else:
            messages.success(request, f"{changed.label} is {changed.role} here now.")
            return redirect("member-list", request.workspace.slug)
    return render(request, "workspaces/member.html", {"member": row, "form": form}, status=status)


def member_remove(request: PageRequest, member: str) -> HttpResponse:
    label = Membership.objects.find(member).label
    remove_member(actor=request.actor, member=member, reason=request.POST.get("reason", "")[:1000])
    messages.success(request, f"{label} is no member any more.")
    return redirect("member-list", request.workspace.slug)


def member_leave(request: PageRequest) -> HttpResponse:
    leave_workspace(actor=request.actor)
    messages.success(request, f"You have left {request.workspace.name}.")
    return redirect("workspace-list")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
