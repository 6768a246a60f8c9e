"""Workspaces: those that one may enter, making one, settling it step by step, opening it."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse

from workspaces.access import SiteRole, workspaces_of
from workspaces.audit import Refusal
from workspaces.commands.workspace import activate_workspace, configure_workspace, create_workspace
from workspaces.forms.refusal import show_refusal
from workspaces.forms.workspace import SETTLING, NewWorkspaceForm, ZoneForm, settling_form
from workspaces.models import Workspace
from workspaces.pages import PageRequest, redirect
from workspaces.queries.workspace import creation_steps

# Steps that have a page of their own instead of a small form: step -> page, words of the link.
ELSEWHERE = {
    "owners": ("member-list", "Members"),
    "pools": ("pool-list", "Pools"),
    "budgets": ("budget", "Budget"),
    "objective": ("objective", "Objective"),
}


def start(request: PageRequest) -> HttpResponse:
    """`/` leads to the one workspace that is open to the reader; else to the list."""
    found = workspaces_of(request.user)
    if len(found) != 1 or found[0].status == Workspace.Status.CONFIGURING:
        return redirect("workspace-list", status=302)
    return redirect("home", found[0].slug, status=302)


def workspace_list(request: PageRequest) -> HttpResponse:
    found = workspaces_of(request.user)
    may_create = request.actor.has_site_role(SiteRole.CREATE_WORKSPACE)
    return render(request, "workspaces/workspace_list.html", {"found": found, "may_create": may_create})


def workspace_create(request: PageRequest) -> HttpResponse:
    form, status = NewWorkspaceForm(request.POST or None), 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                made = create_workspace(actor=request.actor, owners=[request.user], **form.cleaned_data)
            except Refusal as refusal:
                show_refusal(form, refusal)
                status = 409
            else:
                return redirect("workspace-setup", made.slug)
    return render(request, "workspaces/workspace_create.html", {"form": form}, status=status)


def workspace_setup(request: PageRequest) -> HttpResponse:
    """What the workspace still lacks before it launches anything, each step with the form or the page that settles it."""
    return _setup(request)


def workspace_settings(request: PageRequest) -> HttpResponse:
    return _settings(request)


def workspace_configure(request: PageRequest, step: str) -> HttpResponse:
    """Settle one step; shown again on the page that asked where something is wrong."""
    if step not in SETTLING:
        raise Http404
    form, status = settling_form(step, request.workspace, request.POST), 422
    is_setup = request.POST.get("from") == "setup"
    if form.is_valid():
        try:
            configure_workspace(actor=request.actor, **form.cleaned_data)
        except Refusal as refusal:
            show_refusal(form, refusal)
            status = 409
        else:
            messages.success(request, "Settled.")
            return redirect("workspace-setup" if is_setup else "workspace-settings", request.workspace.slug)
    return (_setup if is_setup else _settings)(request, step, form, status)


def workspace_activate(request: PageRequest) -> HttpResponse:
    opened = activate_workspace(actor=request.actor)
    messages.success(request, f"{opened.name} is open for launches.")
    return redirect("workspace-settings", opened.slug)


def _setup(request: PageRequest, asked: str = "", form: Any = None, status: int = 200) -> HttpResponse:
    workspace = request.workspace
    steps = creation_steps(workspace)
    shown = [
        {
            "step": step,
            "form": form if step.name == asked else settling_form(step.name, workspace) if step.name in SETTLING else None,
            "value": _value(step.name, workspace),
            "page": _page(step.name, workspace),
        }
        for step in steps
    ]
    left = sum(not step.is_done for step in steps)
    return render(
        request,
        "workspaces/workspace_setup.html",
        {"steps": shown, "left": left, "total": len(steps), "zones": ZoneForm.zones()},
        status=status,
    )


def _settings(request: PageRequest, asked: str = "", form: Any = None, status: int = 200) -> HttpResponse:
    workspace = request.workspace
    forms = [
        {"name": name, "form": form if name == asked else settling_form(name, workspace), "value": _value(name, workspace)}
        for name in SETTLING
        if name != "region" or name == asked or not workspace.region
    ]
    return render(
        request,
        "workspaces/workspace_settings.html",
        {"forms": forms, "facts": _facts(workspace), "zones": ZoneForm.zones()},
        status=status,
    )


def _page(step: str, workspace: Workspace) -> dict[str, str] | None:
    if step not in ELSEWHERE:
        return None
    name, words = ELSEWHERE[step]
    try:
        return {"url": reverse(name, args=[workspace.slug]), "words": words}
    except NoReverseMatch:
        return None


def _value(step: str, workspace: Workspace) -> str:
    """What is settled now, in words."""
    match step:
        case "name":
            return workspace.name
        case "billing":
            return " · ".join(text for text in (workspace.billing_account, workspace.cost_centre) if text)
        case "boundary" if workspace.boundary_kind:
            return f"{workspace.get_boundary_kind_display()}: {workspace.boundary_reason}"
        case "zone" if workspace.zone:
            return f"{workspace.zone}, weeks begin on {dict(ZoneForm.base_fields['week_start'].choices)[workspace.week_start]}"  # type: ignore[attr-defined]  # a choice field
        case "visibility":
            return workspace.get_visibility_display()
        case "region":
            return workspace.region
    return ""


def _facts(workspace: Workspace) -> list[dict[str, str]]:
    rows = (
        ("Short name", workspace.slug),
        ("Id", workspace.public_id),
        ("UUID", str(workspace.pk)),
        ("Billing", _value("billing", workspace)),
        ("Boundary", _value("boundary", workspace)),
        ("Clock", _value("zone", workspace)),
        ("Visibility", _value("visibility", workspace)),
        ("Store", workspace.region),
    )
    return [{"label": label, "value": value or "not settled"} for label, value in rows]
