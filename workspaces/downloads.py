"""Stored files as downloads: an attachment that no browser runs or guesses at, under its own name (RFC 6266, RFC 5987)."""

from collections.abc import Iterator

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header


def attachment(chunks: Iterator[bytes], *, path: str, size: int, sha256: str) -> StreamingHttpResponse:
    """The answer that saves `chunks` under the last part of `path`, whatever script the name is written in."""
    response = StreamingHttpResponse(chunks, content_type="application/octet-stream")
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
    kept = "".join(character if character.isprintable() and character not in '<>:"|?*' else "_" for character in last).strip(". ")
    return kept[:150] or "file"
