"""Pages of who decides while somebody is away."""

from datetime import datetime

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from workspaces.access import Permission, may_hold
from workspaces.commands.delegation import delegate, end_delegation
from workspaces.forms.approval import DelegationForm
from workspaces.models import Delegation, NotFound
from workspaces.pages import PageRequest, redirect
from workspaces.queries.approval_talk import delegations_of
from workspaces.queries.member import people
from workspaces.views.form_page import form_page

MOST = 100


def delegation_list(request: PageRequest) -> HttpResponseBase:
    now = timezone.now()
    found = list(delegations_of(request.actor.user)[:MOST]) if request.actor.user is not None else []
    rows = [(row, request.actor.is_user(row.giver_id), state_of(row, now)) for row in found]
    return render(request, "workspaces/delegations.html", {"rows": rows})


def state_of(row: Delegation, now: datetime) -> str:
    """`ended`, `waiting` for its first day, or `active`."""
    if row.ended_at is not None or row.ends_at <= now:
        return "ended"
    return "active" if row.starts_at <= now else "waiting"


def delegation_new(request: PageRequest) -> HttpResponseBase:
    named = [
        (person.user.username, person.user.label)
        for person in people()
        if may_hold(person.user, Permission.APPROVE) and person.user.is_active and not request.actor.is_user(person.user.pk)
    ]
    form = DelegationForm(request.POST or None, people=named, zone=request.workspace.zone or "UTC")
    above = reverse("delegation-list", args=[request.workspace.slug])

    def save(form: DelegationForm) -> HttpResponseBase:
        given = form.cleaned_data
        delegate(
            actor=request.actor,
            username=given["username"],
            starts_at=given["starts_at"],
            ends_at=given["ends_at"],
            reason=given["reason"],
        )
        return redirect("delegation-list", request.workspace.slug)

    return form_page(
        request,
        form,
        save,
        title="Let somebody decide while you are away",
        submit="Let them decide",
        lead="They decide in your name, on what neither of you asked for, and with no more than you may at that moment.",
        trail=(("Approvals", reverse("approval-list", args=[request.workspace.slug])), ("While away", above)),
        back=above,
    )


def delegation_end(request: PageRequest, delegation: str) -> HttpResponseBase:
    found = Delegation.objects.find(delegation, "giver", "delegate")
    if not (request.actor.is_user(found.giver_id) or request.actor.is_user(found.delegate_id)):
        raise NotFound("delegation")
    end_delegation(actor=request.actor, delegation=found)
    return redirect("delegation-list", request.workspace.slug)
