"""The list of runs, as a page and as a file."""

from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from runs.forms.run_list import RunFilterForm, with_query
from runs.queries.run_list import RunRow, choices, matching, page_of_runs, sorts_by_score
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


def run_list(request: PageRequest) -> HttpResponseBase:
    form = RunFilterForm(request.GET, choices())
    wanted = form.wanted()
    try:
        page, is_lost = page_of_runs(wanted, zone=request.workspace.zone, cursor=request.GET.get("after", "")), False
    except BadCursor:
        page, is_lost = page_of_runs(wanted, zone=request.workspace.zone), True
    now = timezone.now()
    total = matching(wanted, request.workspace.zone).count()
    context = {
        "form": form,
        "wanted": wanted,
        "rows": [(row, canonical("run", None, row.id), row.seconds(now)) for row in page.items],
        "next_cursor": page.next or "",
        "total": total,
        "total_words": f"of {total:,}",
        "is_lost": is_lost,
        "chips": form.chips(),
        "sorts": {
            name: {"query": with_query(request.GET, sort=None if name == "newest" else name), "is_current": wanted.sort == name}
            for name, _, _ in HEADS
        },
        "sorts_by_score": sorts_by_score(wanted),
        "wants_benchmark": wanted.sort == "score" and not sorts_by_score(wanted),
        "failures_query": with_query(request.GET, failures=None if wanted.hides_failures else "hidden"),
        "csv_query": with_query(request.GET),
    }
    return render(request, "runs/run_list.html", context)


def run_list_csv(request: PageRequest) -> HttpResponseBase:
    wanted = RunFilterForm(request.GET, choices()).wanted()
    workspace: Workspace = request.workspace

    def piece(cursor: str) -> Piece:
        page = page_of_runs(wanted, zone=workspace.zone, cursor=cursor, size=500)
        return [_cells(row) for row in page.items], page.next or ""

    return csv_file(f"{workspace.slug}-runs", CSV_HEAD, piece, workspace_id=workspace.pk)


def _cells(row: RunRow) -> list[Cell]:
    times = [moment.isoformat().replace("+00:00", "Z") if moment else "" for moment in (row.created_at, row.started_at, row.ended_at)]
    return [
        canonical("run", None, row.id), row.name, row.number, row.status, row.reason, row.benchmark, row.contract, row.agent, row.agent_version,
        row.pool, row.person, row.score, row.error, row.spent_gpu_ms, row.reserved_gpu_ms, *times,
    ]  # fmt: skip
