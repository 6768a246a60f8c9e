"""A benchmark: who leads, by how much, and whether to trust it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlencode

from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from runs.charts import Intervals, intervals
from runs.queries.board_checks import checks_of
from runs.queries.contract_check import checked
from runs.queries.contract_facts import moment_of
from runs.queries.quota import Quota, quota_of
from runs.queries.scoreboard import BY_MEAN, BY_MEDIAN, BY_SCORE, FARTHEST, MOST_COLUMNS, BoardView, Score, Scoreboard, scoreboard
from runs.queries.unscored import UnscoredRun
from runs.views.benchmark_seeds import seeds_answer, seeds_cells, seeds_head
from workspaces.access import Kind, Permission
from workspaces.models import Benchmark, Contract
from workspaces.pages import PageRequest
from workspaces.queries.registry import contracts_of
from workspaces.units import number, plural
from workspaces.views.csv_file import Cell, Piece, csv_file

CHOICES = (("All scores", False), ("Best of each agent", True))
ORDER_CHOICES = (("By score", BY_SCORE), ("By mean rank", BY_MEAN), ("By median rank", BY_MEDIAN))
NO_NUMBER = "The score is no finite number."
CSV_HEAD = (
    "rank", "sharing the rank", "run", "name", "score", "standard error", "95 % from", "95 % to", "samples", "errored", "abstained",
    "agent", "agent version", "made by", "isolation", "contract", "state", "why no rank", "scored or ended at", "doubts",
)  # fmt: skip


def benchmark(request: PageRequest, benchmark: str) -> HttpResponseBase:
    """`rows=best`: the best score of each agent; `metric=<key>`: a column of another metric, and mean and median rank over all that are shown;
    `lower=<key>`: less of that metric is better; `order=mean|median`: by that rank; `from=<n>`: the page after so many scores; `by=<key>`: the
    metric of the contract that ranks; `rows=all`: each score for itself, where the contract ranks over seeds; `contract=<n>`: under that version of
    the contract, which holds no more."""
    found = Benchmark.objects.find(benchmark)
    contracts = contracts_of(found)
    board = _board(request, found)
    contract = board.contract or (contracts[0] if contracts else None)
    drawn = _drawn(board)
    last, total = (board.over_seeds.last, board.over_seeds.total) if board.over_seeds else (board.last, board.total)
    context = {
        "benchmark": found,
        "contracts": contracts,
        "contract": contract,
        "board": board,
        "rows": list(zip(board.scores, drawn.rows[1:], strict=True)),
        "older": [(score, None) for score in board.older],
        "ticks": drawn.ticks,
        "leader_at": drawn.rows[0].at if drawn.rows[0] is not None else "",
        "chips": _chips(board),
        "leads": _leads(board),
        "moment": moment_of(contract, timezone.now()) if contract is not None and not board.is_past else "",
        "columns": _columns(board),
        "heads": _heads(board),
        "orders": [
            (words, address(replace(board.view, order=order, start=0)), board.view.order == order) for words, order in ORDER_CHOICES
        ],
        "address": address(board.view),
        "over_time": address(BoardView(by=board.view.by, version=board.view.version)),
        "next_page": address(replace(board.view, start=last)) if last < total else "",
        "first": board.view.start + 1,
        "shown": last - board.view.start,
        "last": last,
        "total": total,
        "first_page": address(replace(board.view, start=0)) if board.view.start else "",
        "sees_scores": request.rights.allows(Permission.VIEW, Kind.EVALUATION),
        "quota": None if board.is_past else _quota(request, contract),
        "answer": seeds_answer(board) if board.over_seeds else _answer(board),
        "checks": checks_of(board),
        "checked": checked(contract),
    }
    return render(request, "runs/benchmark.html", context)


def benchmark_csv(request: PageRequest, benchmark: str) -> HttpResponseBase:
    """What the page shows of the board, row by row in its order: scores, or over seeds the rows of runs, then what has none. Scores under older
    versions of the contract are in none but the file of their own version."""
    found = Benchmark.objects.find(benchmark)
    board = _board(request, found)

    def piece(cursor: str) -> Piece:
        if board.over_seeds is not None:
            return seeds_cells(board), ""
        return [*(_score_cells(board, score) for score in board.scores), *(_unscored_cells(board, row) for row in board.unscored.rows)], ""

    ranks = (", rank",) if board.view.metrics else ()
    head = (*CSV_HEAD, *(f"{_column(name)}{what}" for name in board.columns for what in ("", ", standard error", *ranks)))
    if board.view.metrics:
        head = (*head, "mean rank", "median rank")
    if board.over_seeds is not None:
        head = seeds_head(board)
    return csv_file(f"{request.workspace.slug}-{found.slug}", head, piece, workspace_id=request.workspace.pk)


def _column(metric: str) -> str:
    """A reader of the file finds each column by its name: a metric that bears the name of another column is told from it."""
    return f"metric {metric}" if metric in (*CSV_HEAD, "mean rank", "median rank") else metric


def address(view: BoardView) -> str:
    """The query string that asks for this view; always starts with `?`."""
    asked: list[tuple[str, str]] = [("rows", "best")] if view.is_best else [("rows", "all")] if view.is_single else []
    asked += [("contract", str(view.version))] if view.version else []
    asked += [("by", view.by)] if view.by else []
    asked += [("metric", name) for name in view.metrics]
    asked += [("lower", name) for name in view.lower]
    asked += [("order", view.order)] if view.order != BY_SCORE and view.metrics else []
    return "?" + urlencode([*asked, ("from", str(view.start))] if view.start else asked)


def _board(request: PageRequest, found: Benchmark) -> Scoreboard:
    """What the address asks for; nothing for whom may see no scores."""
    if not request.rights.allows(Permission.VIEW, Kind.EVALUATION):
        return Scoreboard(contract=None)
    view = BoardView(
        is_best=request.GET.get("rows") == "best",
        metrics=tuple(request.GET.getlist("metric")),
        lower=tuple(request.GET.getlist("lower")),
        order=request.GET.get("order", BY_SCORE),
        start=min(_number(request.GET.get("from", "")), FARTHEST),
        is_single=request.GET.get("rows") == "all",
        by=request.GET.get("by", ""),
        version=_number(request.GET.get("contract", "")),
    )
    return scoreboard(found, view)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0


def _quota(request: PageRequest, contract: Contract | None) -> Quota | None:
    """What the reader has left, where the contract limits them and they may launch at all."""
    if contract is None or not request.rights.allows(Permission.LAUNCH_RUN, Kind.RUN):
        return None
    return quota_of(contract, request.user, now=timezone.now(), workspace=request.workspace)


def _drawn(board: Scoreboard) -> Intervals:
    """The intervals of the page, after that of the leader: every page is drawn against it."""
    shown = [(score.evaluation.value, score.evaluation.standard_error) for score in board.scores]
    first = board.leader.evaluation if board.leader is not None else None
    return intervals([(first.value, first.standard_error) if first is not None else (math.nan, None), *shown])


def _chips(board: Scoreboard) -> list[tuple[str, str, bool]]:
    """(words, address, is chosen)"""
    view, contract = board.view, board.contract
    if contract is not None and contract.over_seeds:
        label = str(Contract.OverSeeds(contract.over_seeds).label)
        chosen = [
            (label[:1].upper() + label[1:], False, False),
            ("Each score for itself", False, True),
            ("Best of each agent", True, False),
        ]
    else:
        chosen = [(words, best, False) for words, best in CHOICES]
        view = replace(view, is_single=False)
    return [
        (words, address(replace(view, is_best=best, is_single=single, start=0)), (view.is_best, view.is_single) == (best, single))
        for words, best, single in chosen
    ]


def _leads(board: Scoreboard) -> list[tuple[str, str, bool]]:
    """(metric, address, is chosen) of each that may rank; none where the contract has one alone."""
    metrics = board.contract.all_metrics if board.contract is not None else ()
    if len(metrics) < 2:
        return []
    return [
        (metric.metric, address(replace(board.view, by=metric.metric if number else "", metrics=(), start=0)), metric == board.leading)
        for number, metric in enumerate(metrics)
    ]


def _heads(board: Scoreboard) -> list[tuple[str, bool, str]]:
    """Each column: its name with its unit, whether less of it is better, and, where the contract is silent, the address that turns it."""
    view, heads = board.view, []
    declared = {metric.metric: metric for metric in board.contract.all_metrics} if board.contract is not None else {}
    for name in board.columns:
        known = declared.get(name)
        if known is not None:
            heads.append((f"{name}, {known.unit}" if known.unit else name, known.is_lower_better, ""))
            continue
        is_lower = name in view.lower
        lower = tuple(other for other in view.lower if other != name) if is_lower else (*view.lower, name)
        heads.append((name, is_lower, address(replace(view, lower=lower, start=0))))
    return heads


def _columns(board: Scoreboard) -> list[tuple[str, str, bool]]:
    """Each other metric with the address that adds or takes away its column; empty where there are as many as fit."""
    chosen, found = board.view.metrics, []
    for name in board.offered:
        if name in chosen:
            found.append((name, address(replace(board.view, metrics=tuple(other for other in chosen if other != name))), True))
        else:
            fits = len(chosen) < MOST_COLUMNS
            found.append((name, address(replace(board.view, metrics=(*chosen, name))) if fits else "", False))
    return found


def _score_cells(board: Scoreboard, score: Score) -> Sequence[Cell]:
    row, made, between = score.evaluation, score.made_by, score.interval
    return (
        score.rank, score.sharing if score.rank is not None else None, row.run.public_id, row.run.name, row.value, row.standard_error,
        between and between.low, between and between.high, row.samples, row.errored,
        row.abstained, made.agent.slug,
        made.agent_version.number, made.public_id, score.isolation, row.contract.version, row.run.status,
        "" if score.rank is not None else NO_NUMBER, row.created_at.isoformat(), " ".join(score.doubts),
        *_other_cells(score, has_ranks=bool(board.view.metrics)),
    )  # fmt: skip


def _other_cells(score: Score, *, has_ranks: bool) -> list[Cell]:
    """Each other metric with its error, where they are asked for with its rank, then mean and median rank."""
    ranks, cells = score.ranks, list[Cell]()
    for at, other in enumerate(score.others, start=1):
        cells += [other.value, other.standard_error, *([None if ranks is None else ranks.of[at]] if has_ranks else [])]
    return [*cells, *(((None, None) if ranks is None else (ranks.mean, ranks.median)) if has_ranks else ())]


def _unscored_cells(board: Scoreboard, row: UnscoredRun) -> Sequence[Cell]:
    run = row.run
    ended = run.ended_at.isoformat() if run.ended_at is not None else None
    return (
        None, None, run.public_id, run.name, None, None, None, None, None, None, None,
        run.agent.slug, run.agent_version.number, run.public_id, run.isolation,
        board.contract.version if board.contract is not None else None, run.status, row.reason, ended, None,
        *(None for _ in board.columns for _ in range(3 if board.view.metrics else 2)), *((None, None) if board.view.metrics else ()),
    )  # fmt: skip


def _answer(board: Scoreboard) -> str:
    """Who leads and by how much; empty while nothing is scored."""
    leader = board.leader
    if leader is None:
        return ""
    value = number(leader.evaluation.value, leader.evaluation.standard_error)
    unit = f" {board.leading.unit}" if board.leading.unit else ""
    if board.tied > 1:
        return f"{plural(board.tied, 'score', 'scores')} share the lead with {value}{unit}"
    if board.lead is None:
        alone = "the only agent with a score" if board.view.is_best else "the only score so far"
        return f"{leader.evaluation.run.name} leads with {value}{unit}, {alone}"
    if not board.lead:
        return f"{leader.evaluation.run.name} leads with {value}{unit}, the earliest of equal scores"
    return f"{leader.evaluation.run.name} leads with {value}{unit}, {number(board.lead, board.lead_error)} ahead"
