"""The list of runs, as a page and as a file."""

from typing import Any

from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from runs.forms.run_list import RunFilterForm, with_query
from runs.queries.run_columns import FIXED, MOST_COLUMNS, offers, read_columns
from runs.queries.run_list import RunRow, choices, matching, page_of_runs, sorts_by_score
from runs.views.run_table import cells_of, choices_of, csv_cells, csv_head, heads_of
from workspaces.ids import canonical
from workspaces.models import Workspace
from workspaces.pages import PageRequest
from workspaces.queries.paging import BadCursor
from workspaces.views.csv_file import Cell, Piece, csv_file

CSV_HEAD = (
    "run", "name", "number", "state", "reason", "benchmark", "contract", "agent", "agent version", "pool", "asked for by", "score",
    "standard error", "GPU ms spent", "GPU ms reserved", "asked at", "started at", "ended at",
)  # fmt: skip
HEADS = (
    ("name", "Run", ""),
    ("status", "State", ""),
    ("score", "Score", "figure"),
    ("spent", "GPU-h", "figure less"),
    ("newest", "Asked for", "figure"),
)

USUAL = tuple(FIXED[name] for name in ("score", "benchmark", "agent", "person", "spent", "ran", "asked"))  # ticked where none is chosen


def run_list(request: PageRequest) -> HttpResponseBase:
    form = RunFilterForm(request.GET, choices())
    wanted, zone = form.wanted(), request.workspace.zone
    columns, left_out = read_columns(request.GET.getlist("col"))
    try:
        page, is_lost = page_of_runs(wanted, zone=zone, cursor=request.GET.get("after", ""), columns=columns), False
    except BadCursor:
        page, is_lost = page_of_runs(wanted, zone=zone, columns=columns), True
    now = timezone.now()
    total = matching(wanted, zone).count()
    has_score_order = sorts_by_score(wanted)
    picked = columns or USUAL
    context: dict[str, Any] = {
        "form": form,
        "wanted": wanted,
        "rows": [(row, canonical("run", None, row.id), row.seconds(now), cells_of(columns, row, now)) for row in page.items],
        "heads": heads_of(columns, page.items, request.GET, sort=wanted.sort, has_score_order=has_score_order),
        "picked": heads_of(picked, page.items, request.GET, sort=wanted.sort, has_score_order=has_score_order),
        "columns_left_out": left_out,
        "most_columns": MOST_COLUMNS,
        "offered": choices_of(picked, offers([row.id for row in page.items])),
        "kept": [(name, value) for name, values in request.GET.lists() for value in values if name not in ("col", "after") and value],
        "usual_query": with_query(request.GET, col=None),
        "next_cursor": page.next or "",
        "total": total,
        "total_words": f"of {total:,}",
        "is_lost": is_lost,
        "chips": form.chips(),
        "sorts": {
            name: {"query": with_query(request.GET, sort=None if name == "newest" else name), "is_current": wanted.sort == name}
            for name, _, _ in HEADS
        },
        "sorts_by_score": has_score_order,
        "wants_benchmark": wanted.sort == "score" and not has_score_order,
        "failures_query": with_query(request.GET, failures=None if wanted.hides_failures else "hidden"),
        "csv_query": with_query(request.GET),
    }
    return render(request, "runs/run_list.html", context)


def run_list_csv(request: PageRequest) -> HttpResponseBase:
    wanted = RunFilterForm(request.GET, choices()).wanted()
    workspace: Workspace = request.workspace
    columns, _ = read_columns(request.GET.getlist("col"))
    now = timezone.now()

    def piece(cursor: str) -> Piece:
        page = page_of_runs(wanted, zone=workspace.zone, cursor=cursor, size=500, columns=columns)
        return [csv_cells(columns, row, now) if columns else _cells(row) for row in page.items], page.next or ""

    return csv_file(f"{workspace.slug}-runs", csv_head(columns) if columns else CSV_HEAD, piece, workspace_id=workspace.pk)


def _cells(row: RunRow) -> list[Cell]:
    times = [moment.isoformat().replace("+00:00", "Z") if moment else "" for moment in (row.created_at, row.started_at, row.ended_at)]
    return [
        canonical("run", None, row.id), row.name, row.number, row.status, row.reason, row.benchmark, row.contract, row.agent, row.agent_version,
        row.pool, row.person, row.score, row.error, row.spent_gpu_ms, row.reserved_gpu_ms, *times,
    ]  # fmt: skip
