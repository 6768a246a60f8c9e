"""Stored files as downloads: an attachment that no browser runs or guesses at, under its own name (RFC 6266, RFC 5987), whole or from where a
download broke off (RFC 9110, 13 and 14: one range, If-Range, If-None-Match; the ETag is the content's hash).
"""

import re
from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotModified, StreamingHttpResponse
from django.utils.http import content_disposition_header, parse_etags

from workspaces.models import Blob
from workspaces.queries.registry import stored_content
from workspaces.text import unprintable

_RANGE = re.compile(r"bytes=(?:(\d{1,19})-(\d{0,19})|-(\d{1,19}))", re.ASCII)


class StoredStream(StreamingHttpResponse):
    """Bytes of the store, which need no scope while they are sent."""


def stored_file(request: HttpRequest, blob: Blob, *, path: str) -> HttpResponseBase:
    """The answer that saves a stored file of the open workspace under the last part of `path`: 200, 206 for one range, 304, 416. A file that is
    damaged breaks off before its last piece. Raises NotFound where the store has lost it."""
    tag = f'"{blob.sha256}"'
    if tag in [one.removeprefix("W/") for one in parse_etags(request.headers.get("If-None-Match", ""))]:
        return _with_range(HttpResponseNotModified(), tag)
    asked = request.headers.get("Range", "") if request.headers.get("If-Range", tag) == tag else ""
    part = _part(asked, blob.bytes)
    if part is None:
        return _with_range(attachment(stored_content(blob), path=path, size=blob.bytes, sha256=blob.sha256), tag)
    start, end = part
    if start >= end:
        answer = HttpResponse(status=416)
        answer["Content-Range"] = f"bytes */{blob.bytes}"
        return _with_range(answer, tag)
    content = stored_content(blob, start=start, end=None if (start, end) == (0, blob.bytes) else end)
    response = attachment(content, path=path, size=end - start, sha256=blob.sha256)
    response.status_code = 206
    response["Content-Range"] = f"bytes {start}-{end - 1}/{blob.bytes}"
    return _with_range(response, tag)


def _with_range(response: HttpResponseBase, tag: str) -> HttpResponseBase:
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = tag
    return response


def _part(asked: str, size: int) -> tuple[int, int] | None:
    """Start and end (not included) of the range that is asked for, equal or crossed where it has no byte of the file; None for the whole file, which
    also answers what is no single range of bytes."""
    match = _RANGE.fullmatch(asked.replace(" ", ""))
    if match is None:
        return None
    first, last, suffix = match.groups()
    if suffix is not None:
        return max(0, size - int(suffix)), size if int(suffix) else 0
    if last and int(last) < int(first):
        return None  # no range at all, RFC 9110, 14.1.1
    return int(first), min(int(last) + 1, size) if last else size


def attachment(chunks: Iterator[bytes], *, path: str, size: int, sha256: str) -> StoredStream:
    """The answer that saves `chunks` under the last part of `path`, whatever script the name is written in."""
    response = StoredStream(chunks, content_type="application/octet-stream")
    disposition = content_disposition_header(as_attachment=True, filename=_file_name(path))
    assert disposition is not None
    response["Content-Disposition"] = disposition
    response["Content-Length"] = str(size)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["ETag"] = f'"{sha256}"'
    return response


def _file_name(path: str) -> str:
    """The last part of a path without what a file system or a header could stumble over."""
    last = path.replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(character if unprintable(character) is None and character not in '<>:"|?*' else "_" for character in last).strip(". ")
    return kept[:150] or "file"
