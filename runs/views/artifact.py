"""Artifacts: the list, one with where it came from and what came of it, and the file itself."""

from django.http import HttpResponseBase
from django.shortcuts import render

from runs.models import Artifact
from runs.queries.artifact import kinds, page_of_artifacts, uses_of_artifact
from runs.queries.promotion import promotions_of
from workspaces.downloads import attachment
from workspaces.pages import PageRequest
from workspaces.queries.paging import BadCursor
from workspaces.queries.registry import stored_content
from workspaces.queries.withdrawal import withdrawals_on


def artifact_list(request: PageRequest) -> HttpResponseBase:
    text, kind = request.GET.get("q", "").strip()[:250], request.GET.get("kind", "")[:40]
    records = request.GET.get("part") == "records"
    try:
        page = page_of_artifacts(text=text, kind=kind, records=records, cursor=request.GET.get("after", ""))
    except BadCursor:
        page = page_of_artifacts(text=text, kind=kind, records=records)
    context = {
        "artifacts": page.items,
        "next_cursor": page.next or "",
        "text": text,
        "kind": kind,
        "kinds": [] if records else kinds(),
        "is_records": records,
    }
    return render(request, "runs/artifact_list.html", context)


def artifact(request: PageRequest, artifact: str) -> HttpResponseBase:
    found = Artifact.objects.find(artifact, "blob", "run__agent", "run__agent_version", "run__requested_by")
    context = {
        "artifact": found,
        "uses": uses_of_artifact(found),
        "promotions": promotions_of(found),
        "withdrawn_by": withdrawals_on("artifact", found.pk),
    }
    return render(request, "runs/artifact.html", context)


def artifact_file(request: PageRequest, artifact: str) -> HttpResponseBase:
    """The file as an attachment, never shown in place: what a run has written must not act as a page of labsite."""
    found = Artifact.objects.find(artifact, "blob")
    return attachment(stored_content(found.blob), path=found.path, size=found.blob.bytes, sha256=found.blob.sha256)
