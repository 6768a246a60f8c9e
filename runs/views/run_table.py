"""The list of runs with the columns that a reader chose: heads that sort and give way, cells, and the same as rows of a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import QueryDict

from runs.forms.run_list import with_query
from runs.queries.run_columns import FIXED, Column, Offers, column_of
from runs.queries.run_list import RunRow
from runs.queries.run_order import is_sortable
from workspaces.ids import canonical
from workspaces.views.csv_file import Cell

USUAL_SORTS = {"score": "score", "spent": "spent", "asked": None}  # columns that the list sorts in a way of its own


@dataclass(frozen=True, slots=True)
class Head:
    """A chosen column as the table's head and the picker show it; an empty query is no link."""

    column: Column
    is_figure: bool
    sort_query: str
    direction: str  # "ascending", "descending" or ""
    without_query: str
    earlier_query: str


def heads_of(columns: Sequence[Column], rows: Sequence[RunRow], query: QueryDict, *, sort: str, has_score_order: bool) -> list[Head]:
    names = [column.name for column in columns]
    heads = []
    for at, column in enumerate(columns):
        is_figure = column.is_figure and not (column.kind == "parameter" and any(isinstance(_of(row, column), str) for row in rows))
        sort_query, direction = _sorting(column, rows, query, sort, has_score_order)
        heads.append(
            Head(
                column=column,
                is_figure=is_figure,
                sort_query=sort_query,
                direction=direction,
                without_query=with_query(query, col=names[:at] + names[at + 1 :]),
                earlier_query=with_query(query, col=[*names[: at - 1], column.name, names[at - 1], *names[at + 1 :]]) if at else "",
            )
        )
    return heads


def _sorting(column: Column, rows: Sequence[RunRow], query: QueryDict, sort: str, has_score_order: bool) -> tuple[str, str]:
    """Where the head leads, largest first and then smallest first, and how the list is ordered by it now."""
    if column.name in USUAL_SORTS:
        is_current = sort == (USUAL_SORTS[column.name] or "newest")
        if column.name == "score" and not has_score_order:
            return "", ""
        return with_query(query, sort=USUAL_SORTS[column.name]), "descending" if is_current else ""
    is_current = sort.removeprefix("-") == column.name
    numbers = column.kind != "parameter" or any(is_number(_of(row, column)) for row in rows)
    if not is_sortable(column) or not (numbers or is_current):
        return "", ""
    is_largest_first = sort == f"-{column.name}"
    direction = "" if not is_current else "descending" if is_largest_first else "ascending"
    return with_query(query, sort=column.name if is_largest_first else f"-{column.name}"), direction


def cells_of(columns: Sequence[Column], row: RunRow, now: datetime) -> list[tuple[Column, Any]]:
    """What stands in each column; None where a run has nothing there."""
    return [(column, row.seconds(now) if column.kind == "seconds" else _of(row, column)) for column in columns]


def _of(row: RunRow, column: Column) -> Any:
    if column.name == "score":
        return None if row.score is None else (row.score, row.error)
    return row.chosen.get(column.name)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def choices_of(columns: Sequence[Column], offers: Offers) -> list[tuple[str, list[Column]]]:
    """What the picker offers besides the chosen columns, in groups that hold something."""
    chosen = {column.name for column in columns}
    groups = [
        ("Parameters", offers.parameters),
        ("Metrics, last value", offers.metrics),
        ("Scores", offers.scores),
        ("Of every run", list(FIXED)),
    ]
    found = [(words, [column_of(name) for name in names if name not in chosen]) for words, names in groups]
    return [(words, group) for words, group in found if group]


def csv_head(columns: Sequence[Column]) -> tuple[str, ...]:
    return ("run", "name", "state", *(column.head or column.name for column in columns))


def csv_cells(columns: Sequence[Column], row: RunRow, now: datetime) -> list[Cell]:
    return [
        canonical("run", None, row.id),
        row.name,
        row.status,
        *(_csv(row, column, value) for column, value in cells_of(columns, row, now)),
    ]


def _csv(row: RunRow, column: Column, value: Any) -> Cell:
    match column.kind, value:
        case "score", (number, _):
            return float(number)
        case _, bool():
            return "true" if value else "false"
        case _, datetime():
            return value.isoformat().replace("+00:00", "Z")
        case "benchmark", _:
            return row.benchmark
        case "agent", _:
            return f"{row.agent} v{row.agent_version}"
        case "person", _:
            return row.person
        case _, str() | int() | float() | list() | dict():
            return value
    return None
