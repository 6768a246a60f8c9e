"""Invitations: the link shown once, taking it back, and the page behind it."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import render

from workspaces.audit import Refusal
from workspaces.commands.invitation import InvitationGone, accept_as_new_person, accept_invitation, revoke_invitation
from workspaces.forms.member import AcceptForm
from workspaces.forms.refusal import show_refusal
from workspaces.mail import link_of, send_invitation
from workspaces.models import Invitation
from workspaces.pages import PageRequest, redirect
from workspaces.queries.invitation import usable


def show_link(request: PageRequest, invitation: Invitation, secret: str) -> HttpResponse:
    """The only page that ever shows the link."""
    link = link_of(invitation, secret, workspace=request.workspace.slug)
    is_mailed = send_invitation(invitation, link, workspace=request.workspace.name)
    return render(request, "workspaces/invitation_made.html", {"invitation": invitation, "link": link, "is_mailed": is_mailed}, status=201)


def invitation_revoke(request: PageRequest, invitation: str) -> HttpResponse:
    row = revoke_invitation(actor=request.actor, invitation=invitation)
    messages.success(request, f"The invitation for {row.email} is revoked; its link opens nothing any more.")
    return redirect("member-list", request.workspace.slug)


def invitation_accept(request: PageRequest, invitation: str, word: str) -> HttpResponse:
    """Shown and used by whoever holds the link. Used, expired, revoked, wrong: one and the same page, as for a workspace that is none.

    `word` is the link's secret."""
    found = usable(invitation, word)
    if found is None:
        raise Http404
    form, refusal, status = AcceptForm(request.POST or None), None, 200
    if request.method == "POST":
        status = 422
        try:
            if request.user.is_authenticated:
                accept_invitation(actor=request.actor, invitation=invitation, secret=word)
                return redirect("home", request.workspace.slug)
            if form.is_valid():
                values = form.cleaned_data
                accept_as_new_person(
                    invitation=invitation,
                    secret=word,
                    username=values["username"],
                    display_name=values["display_name"],
                    password=values["password"],
                    request_id=request.actor.request_id,
                )
                messages.success(request, f"Your account is made and you are {found.role} in {request.workspace.name}. Sign in to begin.")
                return redirect("account_login")
        except InvitationGone:
            raise Http404 from None
        except Refusal as refused:
            status, refusal = 409, refused
            if not request.user.is_authenticated:
                show_refusal(form, refused)
    shown = {"invitation": found, "place": request.workspace, "form": form, "refusal": refusal}
    return render(request, "workspaces/invitation_accept.html", shown, status=status)
