"""Artifacts: the list, one with where it came from and what came of it, and the file itself."""

from datetime import timedelta
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from runs.commands.artifact import delete_artifact, remove_artifact, restore_artifact, set_artifact_days, set_keep_until
from runs.forms.artifact import DaysForm, DeleteForm, KeepForm, lines_of
from runs.models import Artifact
from runs.models.artifact import GRACE
from runs.queries.artifact import kinds, page_of_artifacts, uses_of_artifact
from runs.queries.promotion import promotions_of
from runs.queries.rests import SHOWN, what_rests_on
from workspaces.downloads import stored_file
from workspaces.models import NotFound
from workspaces.pages import PageRequest, redirect
from workspaces.queries.paging import BadCursor
from workspaces.queries.preview import preview_of
from workspaces.queries.withdrawal import withdrawals_on
from workspaces.units import size
from workspaces.views.form_page import form_page
from workspaces.windows import on_clock


def artifact_list(request: PageRequest) -> HttpResponseBase:
    text, kind = request.GET.get("q", "").strip()[:250], request.GET.get("kind", "")[:40]
    records, is_deleted = (request.GET.get("part") == part for part in ("records", "deleted"))
    try:
        page = page_of_artifacts(text=text, kind=kind, records=records, is_deleted=is_deleted, cursor=request.GET.get("after", ""))
    except BadCursor:
        page = page_of_artifacts(text=text, kind=kind, records=records, is_deleted=is_deleted)
    context = {
        "artifacts": page.items,
        "next_cursor": page.next or "",
        "text": text,
        "kind": kind,
        "kinds": [] if records or is_deleted else kinds(),
        "is_records": records,
        "is_deleted": is_deleted,
    }
    return render(request, "runs/artifact_list.html", context)


def artifact(request: PageRequest, artifact: str) -> HttpResponseBase:
    found = Artifact.objects.find(artifact, "blob", "run__agent", "run__agent_version", "run__requested_by")
    context = {
        "artifact": found,
        "uses": uses_of_artifact(found),
        "promotions": promotions_of(found),
        "withdrawn_by": withdrawals_on("artifact", found.pk),
        "preview": None if found.removed_at else preview_of(found.blob, found.path),  # as long as `artifact_file` hands it out
        "kind_days": request.workspace.artifact_days.get(found.kind),
    }
    return render(request, "runs/artifact.html", context)


def artifact_file(request: PageRequest, artifact: str) -> HttpResponseBase:
    """The file as an attachment, never shown in place: what a run has written must not act as a page of labsite."""
    found = Artifact.objects.find(artifact, "blob")
    if found.removed_at is not None:
        raise NotFound("file")
    return stored_file(request, found.blob, path=found.path)


def artifact_keep(request: PageRequest, artifact: str) -> HttpResponseBase:
    found = Artifact.objects.find(artifact)
    zone = request.workspace.zone or "UTC"
    last_day = on_clock(found.keep_until - timedelta(seconds=1), ZoneInfo(zone)).date() if found.keep_until else None
    form = KeepForm(request.POST or None, initial={"until": last_day})

    def save(form: KeepForm) -> HttpResponseBase:
        set_keep_until(actor=request.actor, artifact=found, until=form.instant(zone), reason=form.cleaned_data["reason"])
        return redirect("artifact", request.workspace.slug, found.public_id)

    title = f"How long {found.name or found.path} is kept"
    return form_page(request, form, save, title=title, submit="Save", trail=_trail(request, found), back=_url(request, found))


def artifact_delete(request: PageRequest, artifact: str) -> HttpResponseBase:
    """GET says what rests on it, if anything does; POST deletes."""
    found = Artifact.objects.find(artifact, "blob")
    form = DeleteForm(request.POST or None)

    def save(form: DeleteForm) -> HttpResponseBase:
        delete_artifact(actor=request.actor, artifact=found, reason=form.cleaned_data["reason"])
        return redirect("artifact", request.workspace.slug, found.public_id)

    resting = what_rests_on([found])
    if resting and request.method == "GET":
        context = {"artifact": found, "resting": resting[:SHOWN], "resting_count": len(resting)}
        return render(request, "runs/artifact_rested_on.html", context)
    lead = (
        f"It is hidden, and to be removed in {GRACE.days} days: until then it can be restored, and its {size(found.blob.bytes)} count. "
        "Whoever cannot wait removes it from its page."
    )
    title = f"Delete {found.name or found.path}"
    return form_page(
        request, form, save, title=title, submit="Delete artifact", lead=lead, trail=_trail(request, found), back=_url(request, found)
    )


def artifact_restore(request: PageRequest, artifact: str) -> HttpResponseBase:
    found = restore_artifact(actor=request.actor, artifact=Artifact.objects.find(artifact))
    messages.success(request, f"{found.name or found.path} is back.")
    return redirect("artifact", request.workspace.slug, found.public_id)


def artifact_remove(request: PageRequest, artifact: str) -> HttpResponseBase:
    found = remove_artifact(actor=request.actor, artifact=Artifact.objects.find(artifact))
    return redirect("artifact", request.workspace.slug, found.public_id)


def artifact_days(request: PageRequest) -> HttpResponseBase:
    form = DaysForm(request.POST or None, initial={"days": lines_of(request.workspace.artifact_days)})
    above = reverse("artifact-list", args=[request.workspace.slug])

    def save(form: DaysForm) -> HttpResponseBase:
        set_artifact_days(actor=request.actor, **form.cleaned_data)
        return redirect("artifact-list", request.workspace.slug)

    lead = (
        f"After these days an artifact is hidden, {GRACE.days} days later its file is removed; never while a score, a run, a promotion or an export "
        "rests on it."
    )
    return form_page(
        request, form, save, title="How long artifacts are kept", submit="Save", lead=lead, trail=(("Artifacts", above),), back=above
    )


def _url(request: PageRequest, artifact: Artifact) -> str:
    return reverse("artifact", args=[request.workspace.slug, artifact.public_id])


def _trail(request: PageRequest, artifact: Artifact) -> tuple[tuple[str, str], ...]:
    above = reverse("artifact-list", args=[request.workspace.slug])
    return (("Artifacts", above), (artifact.name or artifact.path, _url(request, artifact)))
