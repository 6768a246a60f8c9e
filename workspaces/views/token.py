"""Tokens: the list, making one (shown once), ending one."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render

from workspaces.access import Kind, Permission
from workspaces.audit import Refusal
from workspaces.commands.token import create_token, revoke_token
from workspaces.forms.refusal import show_refusal
from workspaces.forms.token import TokenForm
from workspaces.models import User
from workspaces.pages import PageRequest, redirect
from workspaces.queries.member import people
from workspaces.queries.token_list import tokens


def token_list(request: PageRequest) -> HttpResponse:
    """One's own tokens; for who manages members, everybody's."""
    manages = request.rights.allows(Permission.MANAGE_MEMBERS, Kind.MEMBER)
    rows = tokens(holder=None if manages else request.user)
    live = sum(row.status == "active" for row in rows)
    return render(request, "workspaces/token_list.html", {"rows": rows, "live": live, "manages": manages})


def token_add(request: PageRequest) -> HttpResponse:
    holders = {request.user.username: request.user}
    if request.rights.allows(Permission.MANAGE_MEMBERS, Kind.MEMBER):
        holders |= {person.user.username: person.user for person in people() if person.user.kind != User.Kind.PERSON}
    form = TokenForm(request.POST or None, holders=[(name, user.label) for name, user in holders.items()])
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            values = form.cleaned_data
            try:
                token, text = create_token(
                    actor=request.actor, holder=holders[values["holder"]], name=values["name"], scopes=form.scopes(), days=values["days"]
                )
            except Refusal as refusal:
                show_refusal(form, refusal)
                status = 409
            else:
                return render(request, "workspaces/token_made.html", {"token": token, "text": text}, status=201)
    return render(request, "workspaces/token_add.html", {"form": form}, status=status)


def token_revoke(request: PageRequest, token: str) -> HttpResponse:
    row = revoke_token(actor=request.actor, token=token)
    messages.success(request, f"The token {row.name} is revoked; its next request is refused.")
    return redirect("token-list", request.workspace.slug)
