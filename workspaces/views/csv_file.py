"""Tables as CSV files (RFC 4180), streamed. The scope of a page ends with its view, so each piece opens the workspace anew."""

import csv
import io
import uuid
from collections.abc import Callable, Iterator, Sequence

from django.http import StreamingHttpResponse

from workspaces import scope

Cell = str | int | float | None
Piece = tuple[list[Sequence[Cell]], str]  # rows, and the cursor of the next piece ("" at the end)
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_file(name: str, head: Sequence[str], piece: Callable[[str], Piece], *, workspace_id: uuid.UUID) -> StreamingHttpResponse:
    """A download. `piece(cursor)` answers rows and the next cursor, and is called with the workspace's scope open, first with ""."""
    response = StreamingHttpResponse(_lines(head, piece, workspace_id), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def safe(cell: Cell) -> Cell:
    """A text that a spreadsheet would read as a formula gets an apostrophe before it; numbers stay numbers."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


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
