"""A benchmark: who leads, by how much, and whether to trust it."""

from django.http import HttpResponseBase
from django.shortcuts import render

from runs.queries.scoreboard import Score, Scoreboard, scoreboard
from workspaces.access import Kind, Permission
from workspaces.models import Benchmark
from workspaces.pages import PageRequest
from workspaces.queries.registry import contracts_of
from workspaces.units import number, plural

EMPTY = Scoreboard(contract=None, scores=[], older=[], total=0)


def benchmark(request: PageRequest, benchmark: str) -> HttpResponseBase:
    found = Benchmark.objects.find(benchmark)
    sees_scores = request.rights.allows(Permission.VIEW, Kind.EVALUATION)
    board = scoreboard(found) if sees_scores else EMPTY
    contracts = contracts_of(found)
    context = {
        "benchmark": found,
        "contracts": contracts,
        "contract": contracts[0] if contracts else None,
        "board": board,
        "sees_scores": sees_scores,
        "answer": _answer(board),
        "checks": _checks(board) if board.scores else [],
    }
    return render(request, "runs/benchmark.html", context)


def _answer(board: Scoreboard) -> str:
    """Who leads and by how much; empty while nothing is scored."""
    leader = board.leader
    if leader is None:
        return ""
    value = number(leader.evaluation.value, leader.evaluation.standard_error)
    unit = f" {board.contract.unit}" if board.contract and board.contract.unit else ""
    if board.tied > 1:
        return f"{plural(board.tied, 'run', 'runs')} share the lead with {value}{unit}"
    if board.lead is None:
        return f"{leader.evaluation.run.name} leads with {value}{unit}, the only score so far"
    return f"{leader.evaluation.run.name} leads with {value}{unit}, {number(board.lead, board.lead_error)} ahead"


def _checks(board: Scoreboard) -> list[dict[str, str]]:
    """What speaks for and against the order of the first two."""
    assert board.contract is not None
    holdout, times, leader = board.contract.holdout, board.lead_in_errors, board.leader
    shown = [score for score in board.scores if score.rank is not None]
    return [
        {
            "name": "Measured on a frozen holdout",
            "verdict": "yes" if holdout else "unknown",
            "observed": f"version {holdout.number}" if holdout else "none named",
            "required": "",
            "line": holdout.dataset.name
            if holdout
            else "The contract names no holdout, so nothing says that the runs had not seen the data.",
        },
        {
            "name": "The lead is larger than chance",
            "verdict": "unknown" if times is None else "yes" if times >= 2 else "no",
            "observed": "not known" if times is None else number(min(times, 999.0), places=1),
            "required": "2",
            "line": _error_words(leader, times),
        },
        {
            "name": "Runs were isolated",
            "verdict": "yes" if all(score.is_isolated for score in shown) else "no",
            "observed": f"{sum(score.is_isolated for score in shown)} of {len(shown)}",
            "required": "",
            "line": board.contract.accepts_no_isolation_reason or "A run without isolation can read what else lies on its machine.",
        },
    ]


def _error_words(leader: Score | None, times: float | None) -> str:
    if times is not None:
        return "In standard errors of the difference; under 2 it may be chance."
    if leader is not None and leader.evaluation.standard_error is None:
        return "The leader reported no standard error."
    return "It takes two scores with a standard error each."
