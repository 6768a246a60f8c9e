"""`/runs/{run}/uploads`: artifacts that arrive in pieces, over as many connections as it takes, by the same protocol as `/uploads`: `POST` with
Upload-Length, then `PATCH` with Upload-Offset; after a break `HEAD` says where to go on. With the run's own token, or by whoever asked for it;
either goes on with what the other began, and so does a later attempt of the run. A whole one is kept by
`POST /runs/<id>/artifacts?upload=<id>`.
"""

from typing import Any

from django.http import HttpResponseBase

from runs.commands.report import refuse_path, sending_attempt
from runs.models import Run
from runs.queries.secret import redactor_of
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.upload import begin, forget, stands, take_piece
from workspaces.commands.upload import find_upload, run_holder
from workspaces.models import Upload

routes = Routes("uploads")
WRITES: dict[str, Any] = {"needs": Permission.LAUNCH_RUN, "kind": Kind.ARTIFACT, "by_run": True}


@routes.post("/runs/{run}/uploads", **WRITES, streams=True)
def post_run_upload(request: ApiRequest, run: str) -> HttpResponseBase:
    """Begin an upload of an artifact while the run runs; `Location` is where its pieces go. The filename of Upload-Metadata is its path."""
    found = Run.objects.find(run)
    blot = redactor_of(sending_attempt(request.actor, found)).blot_text  # as the artifact's own path
    path = f"runs/{found.public_id}/uploads"
    return begin(request, path, holder=run_holder(found.pk), same=blot, check=lambda name: refuse_path(found, name))


@routes.head("/runs/{run}/uploads/{upload}", **WRITES)
def head_run_upload(request: ApiRequest, run: str, upload: str) -> HttpResponseBase:
    """Where an upload stands."""
    return stands(_found(request, run, upload))


@routes.patch("/runs/{run}/uploads/{upload}", **WRITES, streams=True)
def patch_run_upload(request: ApiRequest, run: str, upload: str) -> HttpResponseBase:
    """The next piece, at the offset at which the upload stands: 409 at another, 423 while another request writes."""
    return take_piece(request, lambda: _found(request, run, upload))


@routes.delete("/runs/{run}/uploads/{upload}", **WRITES)
def delete_run_upload(request: ApiRequest, run: str, upload: str) -> HttpResponseBase:
    """Forget an upload and what came of it."""
    return forget(_found(request, run, upload))


def _found(request: ApiRequest, run: str, upload: str) -> Upload:
    """Each request asks again whether its sender may send for the run, and whether the run still runs."""
    found = Run.objects.find(run)
    sending_attempt(request.actor, found)
    return find_upload(request.actor, upload, holder=run_holder(found.pk))
