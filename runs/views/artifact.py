"""Artifacts: the list, and the file itself."""

from django.http import HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header

from runs.models import Artifact
from runs.queries.artifact import kinds, page_of_artifacts
from workspaces import store
from workspaces.audit import Refusal
from workspaces.pages import PageRequest
from workspaces.queries.paging import BadCursor


def artifact_list(request: PageRequest) -> HttpResponseBase:
    text, kind = request.GET.get("q", "").strip()[:250], request.GET.get("kind", "")[:40]
    try:
        page = page_of_artifacts(text=text, kind=kind, cursor=request.GET.get("after", ""))
    except BadCursor:
        page = page_of_artifacts(text=text, kind=kind)
    context = {"artifacts": page.items, "next_cursor": page.next or "", "text": text, "kind": kind, "kinds": kinds()}
    return render(request, "runs/artifact_list.html", context)


def artifact(request: PageRequest, artifact: str) -> HttpResponseBase:
    """The file as an attachment, never shown in place: what a run has written must not act as a page of labsite."""
    found = Artifact.objects.find(artifact, "blob")
    try:
        pieces = store.open(found.blob.region, request.workspace.pk, found.blob.sha256)
    except store.StoreMissing as missing:
        raise Refusal(f"The store no longer holds {found.name or found.path}; its hash was {found.blob.sha256}.") from missing
    response = StreamingHttpResponse(pieces, content_type="application/octet-stream")
    response["Content-Length"] = str(found.blob.bytes)
    response["Content-Disposition"] = content_disposition_header(True, file_name(found)) or "attachment"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def file_name(artifact: Artifact) -> str:
    """The last part of its path without what a file system or a header could stumble over."""
    last = artifact.path.replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(character if character.isprintable() and character not in '<>:"|?*' else "_" for character in last).strip(". ")
    return kept[:150] or artifact.public_id
