"""Tables as CSV files (RFC 4180), streamed. The scope of a page ends with its view, so each piece opens the workspace anew."""

import csv
import io
import json
import math
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.http import StreamingHttpResponse

from workspaces import scope

Cell = str | int | float | list[Any] | dict[str, Any] | None
Piece = tuple[list[Sequence[Cell]], str]  # rows, and the cursor of the next piece ("" at the end)
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_file(name: str, head: Sequence[str], piece: Callable[[str], Piece], *, workspace_id: uuid.UUID) -> StreamingHttpResponse:
    """A download. `piece(cursor)` answers rows and the next cursor, and is called with the workspace's scope open, first with ""."""
    response = StreamingHttpResponse(_lines(head, piece, workspace_id), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def safe(cell: Cell) -> str | int | float | None:
    """A text that a spreadsheet would read as a formula gets an apostrophe before it; numbers stay numbers. What is no number has the name
    that metrics.jsonl uses; lists and objects are JSON."""
    match cell:
        case str():
            return f"'{cell}" if cell.startswith(FORMULA) else cell
        case float() if not math.isfinite(cell):
            return "NaN" if math.isnan(cell) else "Infinity" if cell > 0 else "'-Infinity"
        case list() | dict():
            return json.dumps(cell, ensure_ascii=False)
        case _:
            return cell


def _lines(head: Sequence[str], piece: Callable[[str], Piece], workspace_id: uuid.UUID) -> Iterator[bytes]:
    yield _spell([head])
    cursor = ""
    while True:
        with scope.open_workspace(workspace_id):
            rows, cursor = piece(cursor)
        if rows:
            yield _spell(rows)
        if not cursor:
            return


def _spell(rows: Sequence[Sequence[Cell]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerows([[safe(cell) for cell in row] for row in rows])
    return buffer.getvalue().encode()
