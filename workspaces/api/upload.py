"""`/uploads`: files that arrive in pieces, over as many connections as it takes, by the tus resumable upload protocol 1.0.0
(https://tus.io/protocols/resumable-upload): its core and the extensions creation, expiration and termination. `POST` with Upload-Length, then
`PATCH` with Upload-Offset; after a break `HEAD` says where to go on. Upload-Metadata: `filename`, and if wanted `sha256` (checked at the end) and
`header` (`absent` for a table without one). A whole upload becomes part of a version by `POST /datasets/<id>/versions?upload=<id>`.
"""

import base64
import binascii
from collections.abc import Callable
from datetime import UTC
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.utils.http import http_date

from workspaces import uploads
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.problem import problem
from workspaces.audit import Refusal
from workspaces.commands.upload import Busy, WrongOffset, append, begin_upload, find_upload, forget_upload
from workspaces.models import Upload

routes = Routes("uploads")
VERSION = "1.0.0"
WRITES: dict[str, Any] = {"needs": Permission.IMPORT_DATA, "kind": Kind.DATASET}


@routes.post("/uploads", **WRITES, streams=True)
def post_upload(request: ApiRequest) -> HttpResponseBase:
    """Begin an upload; `Location` is where its pieces go."""
    return begin(request, "uploads")


@routes.head("/uploads/{upload}", **WRITES)
def head_upload(request: ApiRequest, upload: str) -> HttpResponseBase:
    """Where an upload stands."""
    return stands(find_upload(request.actor, upload))


@routes.patch("/uploads/{upload}", **WRITES, streams=True)
def patch_upload(request: ApiRequest, upload: str) -> HttpResponseBase:
    """The next piece, at the offset at which the upload stands: 409 at another, 423 while another request writes."""
    return take_piece(request, lambda: find_upload(request.actor, upload))


@routes.delete("/uploads/{upload}", **WRITES)
def delete_upload(request: ApiRequest, upload: str) -> HttpResponseBase:
    """Forget an upload and what came of it."""
    return forget(find_upload(request.actor, upload))


# --- Pieces, for uploads of runs too -----------------------------------------------------------------------------------------------------


def begin(
    request: ApiRequest, path: str, *, holder: str = "", same: Callable[[str], str] = str, check: Callable[[str], None] | None = None
) -> HttpResponseBase:
    """The answer with which an upload begins; `path` is where the workspace has them. `same` is what the file's name is kept as, `check` may
    refuse it."""
    wrong = _wrong_version(request)
    if wrong:
        return wrong
    told = _metadata(request.headers.get("Upload-Metadata", ""))
    name = same(told.get("filename", ""))
    if check is not None:
        check(name)
    upload = begin_upload(
        actor=request.actor, path=name, length=_number(request, "Upload-Length"), sha256=told.get("sha256", ""),
        has_header=told.get("header") != "absent", holder=holder,
    )  # fmt: skip
    answer = _answer(201, upload)
    answer["Location"] = request.build_absolute_uri(f"/api/v1/workspaces/{request.workspace.slug}/{path}/{upload.public_id}")
    return answer


def stands(upload: Upload) -> HttpResponseBase:
    answer = _answer(200, upload)
    answer["Cache-Control"] = "no-store"
    return answer


def take_piece(request: ApiRequest, find: Callable[[], Upload]) -> HttpResponseBase:
    wrong = _wrong_version(request)
    if wrong:
        return wrong
    if request.content_type != "application/offset+octet-stream":
        return problem(415, "A piece has the content type application/offset+octet-stream.")
    found = find()
    offset = _number(request, "Upload-Offset")
    if offset + uploads.announced_bytes(request) > found.length:
        return problem(413, f"The upload announced {found.length:,} bytes; this piece would pass them.")
    try:
        return _answer(204, append(found, uploads.body_of(request), offset=offset))
    except Busy as error:
        return problem(423, str(error))
    except WrongOffset:
        return problem(409, f"The upload stands at {found.offset:,}; a piece begins there.")


def forget(upload: Upload) -> HttpResponseBase:
    forget_upload(upload)
    answer = HttpResponse(status=204)
    answer["Tus-Resumable"] = VERSION
    return answer


def _wrong_version(request: ApiRequest) -> HttpResponse | None:
    if request.headers.get("Tus-Resumable") == VERSION:
        return None
    answer = problem(412, f"Send Tus-Resumable: {VERSION}.")
    answer["Tus-Version"] = VERSION
    return answer


def _answer(status: int, upload: Upload) -> HttpResponse:
    answer = HttpResponse(status=status)
    answer["Tus-Resumable"] = VERSION
    answer["Upload-Offset"] = str(upload.offset)
    answer["Upload-Length"] = str(upload.length)
    answer["Upload-Expires"] = http_date(upload.expires_at.astimezone(UTC).timestamp())
    return answer


def _number(request: ApiRequest, name: str) -> int:
    text = request.headers.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Refusal(f"The header {name} is a number of bytes.", field=name)
    return int(text)


def _metadata(text: str) -> dict[str, str]:
    """Pairs of a key and a value in Base64 between commas, as the protocol spells them."""
    told: dict[str, str] = {}
    for pair in filter(None, map(str.strip, text[:8192].split(","))):
        key, _, value = pair.partition(" ")
        try:
            told[key] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise Refusal(f"The value of {key[:40]} in Upload-Metadata is no text in Base64.", field="Upload-Metadata") from error
    return told
