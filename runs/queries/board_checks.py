"""May a board be trusted: what speaks for and against the order of its first two, as its page and the API say it."""

import math

from runs.admission import EVALUATE
from runs.models import Evaluation
from runs.queries.on_holdout import on_holdout
from runs.queries.samples import doubts_of
from runs.queries.scoreboard import Score, Scoreboard
from runs.seed_intervals import MEAN
from workspaces.models import Contract
from workspaces.units import number, plural


def checks_of(board: Scoreboard) -> list[dict[str, str]]:
    """Lines as `parts/checklist.html` takes them; none where the page that is looked at has no scores."""
    if board.contract is None or not (board.over_seeds.rows if board.over_seeds else board.scores):
        return []
    leader = board.leader
    times = _seeds_lead(board) if board.over_seeds else board.lead_in_errors
    return [
        _measured_on(board, board.contract),
        {
            "name": "The lead is larger than chance",
            "verdict": "unknown" if times is None else "yes" if times >= 2 else "no",
            "observed": "not known" if times is None else number(min(times, 999.0), places=1),
            "required": "2",
            "line": _seeds_words(board) if board.over_seeds and times is None else _error_words(leader, times),
        },
        {
            "name": "Runs were isolated",
            "verdict": "no" if board.bare else "yes",
            "observed": f"{board.looked_at - board.bare} of {'the first ' if board.looked_at < board.ranked else ''}{board.looked_at:,}",
            "required": "",
            "line": board.contract.accepts_no_isolation_reason or "A run without isolation can read what else lies on its machine.",
        },
        *_samples_agree(board),
    ]


def _samples_agree(board: Scoreboard) -> list[dict[str, str]]:
    """Whether the files of samples say what the scores that lead do; nothing where none of them has a file."""
    files = [row for row in _leading(board) if "counts" in row.samples_read]
    if not files:
        return []
    doubts = [doubt for row in files for doubt in doubts_of(row)]
    line = doubts[0] if doubts else "Counts and, where the contract counts all samples, the mean are those of the file."
    name, observed = "Its file of samples says the same", "" if not doubts else plural(len(doubts), "doubt", "doubts")
    return [{"name": name, "verdict": "no" if doubts else "yes", "observed": observed, "required": "", "line": line}]


def _leading(board: Scoreboard) -> list[Evaluation]:
    if board.over_seeds is None:
        return [board.leader.evaluation] if board.leader else []
    keys = board.over_seeds.leader.scores if board.over_seeds.leader else ()
    return list(Evaluation.objects.filter(pk__in=keys).exclude(samples_read={}).select_related("contract").order_by("pk")) if keys else []


def _measured_on(board: Scoreboard, contract: Contract) -> dict[str, str]:
    """Whether who leads was measured on the contract's holdout: over seeds each of the scores that make the row."""
    holdout, leader = contract.holdout, board.leader
    row = board.over_seeds.leader if board.over_seeds else None
    scores = row.scores if row is not None else (leader.evaluation.pk,) if leader is not None else ()
    if holdout is None:
        verdict, observed = "unknown", "not here" if contract.names_holdout else "none named"
        what = "The contract's holdout is not in this workspace" if contract.names_holdout else "The contract names no holdout"
        line = f"{what}, so nothing says that the runs had not seen the data."
    else:
        others = len(scores) - len(on_holdout(scores)) if scores else 0
        verdict, observed = "no" if others else "yes" if scores else "unknown", f"version {holdout.number}"
        line = holdout.dataset.name if scores else "Who leads is told on the first page."
        if others and leader is not None:
            is_own = leader.evaluation.run.kind != EVALUATE
            line = f"{leader.evaluation.run.name} {'reported its score itself' if is_own else f'did not read {holdout.label}'}."
        elif others:
            line = f"Of the scores that lead {others:,} of {len(scores):,} come from runs that did not evaluate on {holdout.label}."
    return {"name": "Measured on a frozen holdout", "verdict": verdict, "observed": observed, "required": "", "line": line}


def _error_words(leader: Score | None, times: float | None) -> str:
    if times is not None:
        return "In standard errors of the difference; under 2 it may be chance."
    if leader is not None and leader.evaluation.standard_error is None:
        return "The leader reported no standard error."
    return "It takes two scores with a standard error each."


def _seeds_lead(board: Scoreboard) -> float | None:
    """The lead of a mean in its own standard errors, the two rows taken as independent; None where that is not known."""
    together = board.over_seeds
    if together is None or together.leader is None or together.follower is None:
        return None
    first, second = together.leader.score.value, together.follower.score.value
    error = together.lead_error
    if first is None or second is None or error is None:
        return None
    if first == second:  # led by a tie rule alone
        return 0.0
    return abs(first - second) / error if error > 0 else math.inf


def _seeds_words(board: Scoreboard) -> str:
    """Why the lead is not held against chance."""
    if board.over_seeds is not None and board.over_seeds.over != MEAN:
        return "Of medians no standard error is known; look whether their intervals overlap."
    return "It takes two rows of two runs each."
