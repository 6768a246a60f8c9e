"""Names of files in forms, as they were sent: Django drops every character that str.isprintable() denies, and so renames an ordinary Persian file."""

import html
from typing import IO, Any

from django.core.files.uploadhandler import FileUploadHandler
from django.http.multipartparser import MultiPartParser

from workspaces.text import unprintable


class NamesAsSent(FileUploadHandler):
    """The first of the upload handlers: it has the form read by a parser that leaves names alone, and the other handlers take the files."""

    def handle_raw_input(self, input_data: IO[bytes], META: Any, content_length: int, boundary: Any, encoding: Any = None) -> Any:  # noqa: N803
        assert self.request is not None
        others = [handler for handler in self.request.upload_handlers if handler is not self]
        return _Parser(META, input_data, others, encoding).parse()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None


class _Parser(MultiPartParser):
    def sanitize_file_name(self, file_name: str) -> str | None:
        """As Django's, but for the characters: control characters go, since the name becomes a part of a temporary one; joiners stay."""
        last = html.unescape(file_name).rsplit("/")[-1].rsplit("\\")[-1]
        kept = "".join(character for character in last if unprintable(character) is None)
        return None if kept in {"", ".", ".."} else kept
