"""Counting the records of a table while its bytes pass by: rows of CSV and TSV (RFC 4180), lines of JSON Lines. Pure."""


class RecordCount:
    """Counts lines with text in them, taking a line break between quotes as part of its record."""

    def __init__(self, *, quotes: bool, has_header: bool) -> None:
        self._quotes = quotes
        self._has_header = has_header
        self._is_quoted = False
        self._has_text = False
        self._lines = 0

    def feed(self, chunk: bytes) -> None:
        for number, part in enumerate(chunk.split(b'"') if self._quotes else [chunk]):
            if number:
                self._is_quoted = not self._is_quoted
                self._has_text = True
            if self._is_quoted:
                continue
            first, *others = part.replace(b"\r", b"\n").split(b"\n")
            self._has_text = self._has_text or bool(first.strip())
            for line in others:
                self._lines += self._has_text
                self._has_text = bool(line.strip())

    @property
    def records(self) -> int:
        """Records so far, the header not counted."""
        return max(self._lines + self._has_text - self._has_header, 0)


def counter_for(path: str, *, has_header: bool) -> RecordCount | None:
    """A counter for files whose records can be told from their bytes; by the ending of the name."""
    ending = path.rpartition(".")[2].lower()
    if ending in ("csv", "tsv"):
        return RecordCount(quotes=True, has_header=has_header)
    if ending in ("jsonl", "ndjson"):
        return RecordCount(quotes=False, has_header=False)
    return None
