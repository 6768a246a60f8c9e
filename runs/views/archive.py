"""Pages that archive a workspace and take it out of the archive."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.urls import reverse

from runs.commands.archive import archive_workspace, unarchive_workspace
from runs.forms.archive import ArchiveForm
from runs.queries.archive import unfinished
from workspaces.forms.resource import ReasonForm
from workspaces.pages import PageRequest, redirect
from workspaces.views.form_page import form_page


def workspace_archive(request: PageRequest) -> HttpResponseBase:
    form = ArchiveForm(request.POST or None)

    def save(form: ArchiveForm) -> HttpResponseBase:
        cancels = form.cleaned_data["running"] == "cancel"
        archived = archive_workspace(actor=request.actor, reason=form.cleaned_data["reason"], cancels_running=cancels)
        messages.success(request, f"{archived.name} is archived.")
        return redirect("workspace-settings", archived.slug)

    lead = f"Nothing is launched or changed here any more, and everything stays readable. {unfinished().words}"
    title = f"Archive {request.workspace.name}"
    return form_page(request, form, save, title=title, submit="Archive workspace", lead=lead, trail=_trail(request), back=_above(request))


def workspace_unarchive(request: PageRequest) -> HttpResponseBase:
    form = ReasonForm(request.POST or None)

    def save(form: ReasonForm) -> HttpResponseBase:
        opened = unarchive_workspace(actor=request.actor, reason=form.cleaned_data["reason"])
        messages.success(request, f"{opened.name} is open again.")
        return redirect("workspace-settings", opened.slug)

    lead = "It can be changed again, and launches are admitted as its limits allow. What was cancelled does not come back by itself."
    title = f"Unarchive {request.workspace.name}"
    return form_page(request, form, save, title=title, submit="Unarchive workspace", lead=lead, trail=_trail(request), back=_above(request))


def _above(request: PageRequest) -> str:
    return reverse("workspace-settings", args=[request.workspace.slug])


def _trail(request: PageRequest) -> tuple[tuple[str, str], ...]:
    return (("Settings", _above(request)),)
