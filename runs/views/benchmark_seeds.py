"""Words and rows of a scoreboard that ranks over seeds."""

import math
from collections.abc import Sequence

from runs.queries.scoreboard import Scoreboard
from runs.queries.seed_board import SeedRow, Together
from runs.seed_intervals import MEAN
from workspaces.units import number, plural
from workspaces.views.csv_file import Cell

HEAD = ("rank", "sharing the rank", "agent", "agent version", "parameters", "seeds", "runs")


def seeds_answer(board: Scoreboard) -> str:
    """Who leads and by how much; empty while nothing is scored, and on later pages."""
    together, unit = board.over_seeds, f" {board.leading.unit}" if board.leading.unit else ""
    leader = together.leader if together else None
    if together is None or leader is None:
        return ""
    value = f"{number(leader.score.value, leader.score.error)}{unit}"
    if leader.sharing > 1:
        return f"{leader.sharing:,} share the lead with {value}"
    name = f"{leader.version.agent.name} version {leader.version.number}"
    over = f"the {together.over} of {plural(leader.score.count, 'run', 'runs')}"
    if together.follower is None:
        return f"{name} leads with {value}, {over}"
    lead = abs((leader.score.value or 0.0) - (together.follower.score.value or 0.0))
    if not lead:
        return f"{name} leads with {value}, {over}, the earliest of equal ones"
    return f"{name} leads with {value}, {over}, {number(lead, _error(leader, together.follower))} ahead"


def seeds_lead(board: Scoreboard) -> float | None:
    """The lead of a mean in its own standard errors, the two rows taken as independent; None where that is not known."""
    together = board.over_seeds
    if together is None or together.leader is None or together.follower is None:
        return None
    first, second = together.leader.score.value, together.follower.score.value
    error = _error(together.leader, together.follower)
    if first is None or second is None or error is None:
        return None
    if first == second:  # led by a tie rule alone
        return 0.0
    return abs(first - second) / error if error > 0 else math.inf


def seeds_words(board: Scoreboard) -> str:
    """Why the lead is not held against chance."""
    if board.over_seeds is not None and board.over_seeds.over != MEAN:
        return "Of medians no standard error is known; look whether their intervals overlap."
    return "It takes two rows of two runs each."


def seeds_head(board: Scoreboard) -> tuple[str, ...]:
    together = board.over_seeds
    over = together.over if together else ""
    figures = tuple(
        f"{name}, {what}"
        for name in (board.leading.metric, *board.columns)
        for what in (over, "95 % from", "95 % to", "standard error", "runs")
    )
    return (*HEAD, *figures, "first scored at")


def seeds_cells(board: Scoreboard) -> list[Sequence[Cell]]:
    """The rows of the page, as they stand there."""
    return [
        (
            row.rank, row.sharing if row.rank is not None else None, row.version.agent.slug, row.version.number, row.words, row.seeds,
            row.score.count, *(cell for found in (row.score, *row.others) for cell in _figures(found)), row.first_at.isoformat(),
        )
        for row in (board.over_seeds.rows if board.over_seeds else [])
    ]  # fmt: skip


def _figures(found: Together) -> tuple[Cell, ...]:
    between = found.interval
    return found.value, between.low if between else None, between.high if between else None, found.error, found.count


def _error(first: SeedRow, second: SeedRow) -> float | None:
    errors = (first.score.error, second.score.error)
    return math.hypot(*(error for error in errors if error is not None)) if None not in errors else None
