"""Counting the records of a table while its bytes pass by: rows of CSV and TSV (RFC 4180), lines of JSON Lines. Pure."""

BLANK = b" \t\r\n\x0b\x0c\x00"  # in UTF-16 every other byte of a blank line is a zero
MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")  # of UTF-8 and UTF-16, at the beginning of a file
_LONGEST_MARK = 3


class RecordCount:
    """Counts lines with text in them, taking a line break between quotes as part of its record. A byte order mark is no text."""

    def __init__(self, *, quotes: bool, has_header: bool) -> None:
        self._quotes = quotes
        self._has_header = has_header
        self._is_quoted = False
        self._has_text = False
        self._lines = 0
        self._beginning: bytes | None = b""

    def feed(self, chunk: bytes) -> None:
        if self._beginning is not None:
            chunk = self._beginning + chunk
            self._beginning = chunk if len(chunk) < _LONGEST_MARK else None
            if self._beginning is not None:
                return
            chunk = _without_mark(chunk)
        self._feed(chunk)

    def _feed(self, chunk: bytes) -> None:
        for number, part in enumerate(chunk.split(b'"') if self._quotes else [chunk]):
            if number:
                self._is_quoted = not self._is_quoted
                self._has_text = True
            if self._is_quoted:
                continue
            first, *others = part.replace(b"\r", b"\n").split(b"\n")
            self._has_text = self._has_text or bool(first.strip(BLANK))
            for line in others:
                self._lines += self._has_text
                self._has_text = bool(line.strip(BLANK))

    @property
    def records(self) -> int:
        """Records of the whole file, the header not counted."""
        if self._beginning is not None:
            self._feed(_without_mark(self._beginning))
            self._beginning = None
        return max(self._lines + self._has_text - self._has_header, 0)


def is_blank(path: str, content: bytes) -> bool:
    """Can the file's records be told from its bytes, and is there not even the beginning of one in them?"""
    counter = counter_for(path, has_header=False)
    if counter is None:
        return False
    counter.feed(content)
    return not counter.records


def _without_mark(content: bytes) -> bytes:
    mark = next((mark for mark in MARKS if content.startswith(mark)), b"")
    return content.removeprefix(mark)


def counter_for(path: str, *, has_header: bool) -> RecordCount | None:
    """A counter for files whose records can be told from their bytes; by the ending of the name."""
    if may_have_header(path):
        return RecordCount(quotes=True, has_header=has_header)
    if _ending(path) in ("jsonl", "ndjson"):
        return RecordCount(quotes=False, has_header=False)
    return None


def may_have_header(path: str) -> bool:
    """Whether the first row of such a file may be the names of its columns."""
    return _ending(path) in ("csv", "tsv")


def _ending(path: str) -> str:
    return path.rpartition(".")[2].lower()
