"""Pages of exports: the list, one with what is in it and what is not, asking for one, taking it away."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from runs.commands.export import record_download, remove_export, request_export
from runs.export_tar import tar_bytes, tar_stream
from runs.forms.export import ExportForm
from runs.models import Export
from runs.queries.export_files import choices, free_bytes
from runs.queries.export_list import download_of, page_of_exports, progress_of
from runs.views.live import live
from workspaces import checkpoint
from workspaces.downloads import attachment
from workspaces.pages import PageRequest, redirect
from workspaces.queries.paging import BadCursor
from workspaces.units import size
from workspaces.views.form_page import form_page


def export_list(request: PageRequest) -> HttpResponseBase:
    try:
        page = page_of_exports(cursor=request.GET.get("after", ""))
    except BadCursor:
        page = page_of_exports()
    ready = sum(export.status == Export.Status.READY for export in page.items)
    under_way = next((export for export in page.items if export.status in Export.OPEN), None)
    context = {"exports": page.items, "next_cursor": page.next or "", "ready": ready, "under_way": under_way}
    return render(request, "runs/export_list.html", context)


def export(request: PageRequest, export: str) -> HttpResponseBase:
    found = Export.objects.find(export, "requested_by")
    context = {
        "export": found,
        "progress": progress_of(found),
        "is_live": found.status in Export.OPEN,
        "files": found.contents.get("files", []),
        "blobs": found.contents.get("blobs"),
        "left_out": found.contents.get("left_out", []),
        "chain": found.contents.get("chain"),
        "rows": sum(entry["rows"] or 0 for entry in found.contents.get("files", [])),
        "key": checkpoint.public_key_hex(),
    }
    if request.GET.get("part") == "live":
        response = live(request, "runs/export_live.html", context)
        if found.status not in Export.OPEN:
            response["HX-Refresh"] = "true"  # what may be done with it has changed as well
        return response
    return render(request, "runs/export.html", context)


def export_new(request: PageRequest) -> HttpResponseBase:
    form = ExportForm(request.POST or None, choices=choices())

    def save(form: ExportForm) -> HttpResponseBase:
        made = request_export(actor=request.actor, files=form.cleaned_data["carries"], reason=form.cleaned_data["reason"])
        return redirect("export", request.workspace.slug, made.public_id)

    above = reverse("export-list", args=[request.workspace.slug])
    lead = (
        "Every definition, run, metric, artifact's name, score, ledger entry and event, as JSON lines with hashes. No secret's value, no token, no "
        f"password. The disk has {size(free_bytes())} left."
    )
    trail = (("Exports", above),)
    return form_page(
        request, form, save, title=f"Export {request.workspace.name}", submit="Make export", lead=lead, trail=trail, back=above
    )


def export_download(request: PageRequest, export: str) -> HttpResponseBase:
    """A POST, since taking it away is put on record; the answer is the export as one tar file."""
    found = record_download(actor=request.actor, export=Export.objects.find(export))
    place = download_of(request.workspace, found)
    stream = tar_stream(place.folder, root=place.name, mtime=place.mtime)
    return attachment(stream, path=f"{place.name}.tar", size=tar_bytes(place.folder), sha256=found.manifest_sha256)


def export_remove(request: PageRequest, export: str) -> HttpResponseBase:
    found = remove_export(actor=request.actor, export=Export.objects.find(export))
    messages.success(request, f"Export {found.number} is removed.")
    return redirect("export-list", request.workspace.slug)
