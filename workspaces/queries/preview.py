"""The beginning of a stored file as text or as a table, without executing anything of it: no format is parsed that could call for more."""

import csv
import io
import json
from dataclasses import dataclass

from workspaces.audit import Refusal
from workspaces.models import Blob, NotFound
from workspaces.queries.registry import beginning_of
from workspaces.text import encodable

BYTES = 65_536
ROWS, COLUMNS, CELL = 20, 12, 120
LINES, LINE = 40, 400


@dataclass(frozen=True, slots=True)
class Preview:
    """A table (`head` and `rows`), or `lines` of text, or neither: the bytes are no text, or the store has lost them (or holds others), or does not
    answer. `is_cut`: there is more."""

    kind: str  # table, text, binary, lost, away
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    is_cut: bool = False


def preview_of(blob: Blob, path: str) -> Preview:
    """The first 64 KiB of a stored file that is called `path`. CSV and TSV by their endings, JSON lines as a table of the first lines' keys, other
    UTF-8 as lines. What cannot be read keeps nobody from the page that it is a part of."""
    try:
        text, is_cut = beginning_of(blob, BYTES)
    except NotFound:
        return Preview("lost")
    except Refusal:
        return Preview("away")
    if text is None:
        return Preview("binary", is_cut=is_cut)
    ending = path.rsplit(".", 1)[-1].lower()
    table = _table(text, ending, is_cut)
    if table is not None:
        return table
    lines = text.splitlines()
    return Preview("text", lines=tuple(line[:LINE] for line in lines[:LINES]), is_cut=is_cut or len(lines) > LINES)


def _table(text: str, ending: str, is_cut: bool) -> Preview | None:
    whole = text.rsplit("\n", 1)[0] if is_cut else text  # a last line may be half
    if ending in ("csv", "tsv"):
        try:
            read = csv.reader(io.StringIO(whole), delimiter="\t" if ending == "tsv" else ",")
            rows = [_cells(row) for row, _ in zip(read, range(ROWS + 2), strict=False)]
        except csv.Error:
            return None
        return Preview("table", head=rows[0], rows=tuple(rows[1 : ROWS + 1]), is_cut=is_cut or len(rows) > ROWS + 1) if rows else None
    if ending in ("jsonl", "ndjson"):
        return _json_lines(whole, is_cut)
    return None


def _json_lines(text: str, is_cut: bool) -> Preview | None:
    lines = [line for line in text.split("\n") if line.strip()]  # JSON may hold other line ends within its texts
    try:
        found = [json.loads(line) for line in lines[:ROWS]]
        if not found or not all(isinstance(entry, dict) for entry in found):
            return None
        head = list(dict.fromkeys(key for entry in found for key in entry))[:COLUMNS]
        rows = tuple(
            tuple(_cell(entry.get(key, "")) for key in head) for entry in found
        )  # may nest too deep to be written, though it was read
    except (ValueError, RecursionError):
        return None
    return Preview("table", head=tuple(encodable(key[:CELL]) for key in head), rows=rows, is_cut=is_cut or len(lines) > ROWS)


def _cells(row: list[str]) -> tuple[str, ...]:
    cells = [_cell(cell) for cell in row[:COLUMNS]]
    return tuple([*cells, "…"] if len(row) > COLUMNS else cells)


def _cell(value: object) -> str:
    text = encodable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"
