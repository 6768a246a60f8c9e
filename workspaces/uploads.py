"""Files that a request carries, streamed into the store: the raw body, or the parts of a form.

A form ends with the field `complete`. Django reads a form that was cut as one that ended early; without its last field it was cut, and
nothing is kept. A raw body is measured against its Content-Length.
"""

from collections.abc import Iterator
from typing import BinaryIO, cast

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest
from django.http.request import UnreadablePostError

from workspaces.audit import Refusal
from workspaces.bundles import MAX_BYTES, BadBundle, read_bundle
from workspaces.commands.blob import SentFile, StoredFile, receive_file, receive_files, room_left
from workspaces.store import CHUNK
from workspaces.units import size

PIECE = 262_144  # read at once: memory of this size is used again, that of a MiB is fetched anew from the system for each piece
CUT = "The upload was cut before its end. Nothing was kept; send it again."


def announced_bytes(request: HttpRequest) -> int:
    """The Content-Length. Refuses a body without one, an empty one, and one larger than an upload may be."""
    if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
        raise Refusal("Send the file with its Content-Length; a chunked body is not taken.", field="file")
    text = str(request.META.get("CONTENT_LENGTH") or "0")
    count = int(text) if text.isdecimal() and len(text) < 20 else 0
    if count == 0:
        raise Refusal("The file is empty: there is nothing in it to keep. Send a file with content.", field="file")
    if count > settings.UPLOAD_BYTES:
        raise Refusal(f"An upload may have {size(settings.UPLOAD_BYTES)}; this one announces {size(count)}.", field="file")
    return count


def receive_body(request: HttpRequest, path: str, *, has_header: bool = True) -> StoredFile:
    """Stream the raw body into the store as the file `path`."""
    count = announced_bytes(request)
    return receive_file(path, body_of(request), expected_bytes=count, most_bytes=settings.UPLOAD_BYTES, has_header=has_header)


def body_of(request: HttpRequest) -> Iterator[bytes]:
    """The raw body in pieces. Refuses one that is cut, after the pieces that came."""
    try:
        while chunk := request.read(PIECE):
            yield chunk
    except UnreadablePostError as error:
        raise Refusal(CUT, field="file") from error


def form_files(request: HttpRequest, name: str) -> list[UploadedFile]:
    """The files of one field of a form, which Django has put into a temporary file each. Refuses a form that was cut."""
    try:
        files = request.FILES.getlist(name)
        is_whole = bool(request.POST.get("complete"))
    except UnreadablePostError as error:
        raise Refusal(CUT, field=name) from error
    if files and not is_whole:
        raise Refusal(CUT, field=name)
    return files


def receive_form_files(request: HttpRequest, name: str, *, has_header: bool = True) -> list[StoredFile]:
    """Stream every file of a form's field into the store, under the name that it was sent with."""
    announced_bytes(request)
    return _receive_parts(form_files(request, name), has_header=has_header)


def receive_archive(request: HttpRequest, name: str, *, has_header: bool = True) -> list[StoredFile]:
    """The files inside the one zip or tar.gz of a form's field, streamed into the store one by one; nothing is unpacked to a path. What is refused
    in the middle leaves only files that no row names."""
    announced_bytes(request)
    files = form_files(request, name)
    if len(files) != 1:
        raise Refusal(f"To be unpacked, send one zip or tar.gz; these are {len(files)} files.", field=name)
    room = room_left()
    most = settings.UPLOAD_BYTES if room is None else max(min(settings.UPLOAD_BYTES, room), 0)
    try:
        with files[0].open() as archive:
            members = read_bundle(cast(BinaryIO, archive), most_bytes=most)
            return receive_files((SentFile(file.path, file.chunks) for file in members), has_header=has_header)
    except BadBundle as error:
        raise Refusal(str(error), field=name) from error


def _receive_parts(files: list[UploadedFile], *, has_header: bool = True) -> list[StoredFile]:
    sent = [SentFile(file.name or "", file.chunks(CHUNK), file.size) for file in files]
    return receive_files(sent, announced_bytes=sum(file.size or 0 for file in files), has_header=has_header)


def receive_bundle(request: HttpRequest, name: str) -> list[StoredFile]:
    """The code of an agent out of a form: one zip or tar.gz, or else the files themselves."""
    if announced_bytes(request) > MAX_BYTES:
        raise Refusal(f"A bundle may have {size(MAX_BYTES)}.", field=name)
    files = form_files(request, name)
    if not files:
        raise Refusal("An agent version needs its code: a zip, a tar.gz, or the files themselves.", field=name)
    if len(files) > 1 or not (files[0].name or "").lower().endswith((".zip", ".tar.gz", ".tgz")):
        return _receive_parts(files)
    try:
        with files[0].open() as archive:
            members = read_bundle(cast(BinaryIO, archive))
            return receive_files(SentFile(file.path, file.chunks, is_executable=file.is_executable) for file in members)
    except BadBundle as error:
        raise Refusal(str(error), field=name) from error


def is_form(request: HttpRequest) -> bool:
    return request.content_type == "multipart/form-data"
