"""Words and rows of a scoreboard that ranks over seeds."""

from collections.abc import Sequence

from runs.queries.scoreboard import Scoreboard
from runs.queries.seed_board import Together, alike_words
from runs.queries.unscored import UnscoredRun
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
    return f"{name} leads with {value}, {over}, {number(lead, together.lead_error)} ahead"


def seeds_head(board: Scoreboard) -> tuple[str, ...]:
    together = board.over_seeds
    over = together.over if together else ""
    figures = tuple(
        f"{name}, {what}"
        for name in (board.leading.metric, *board.columns)
        for what in (over, "95 % from", "95 % to", "standard error", "runs")
    )
    return (*HEAD, *figures, "first scored or ended at", "run", "name", "state", "why no score")


def seeds_cells(board: Scoreboard) -> list[Sequence[Cell]]:
    """The rows of the page, as they stand there, then the runs without a score."""
    rows: list[Sequence[Cell]] = [
        (
            row.rank, row.sharing if row.rank is not None else None, row.version.agent.slug, row.version.number, row.words, row.seeds,
            row.score.count, *(cell for found in (row.score, *row.others) for cell in _figures(found)), row.first_at.isoformat(),
            "", "", "", "",
        )
        for row in (board.over_seeds.rows if board.over_seeds else [])
    ]  # fmt: skip
    return [*rows, *(_unscored_cells(board, row) for row in board.unscored.rows)]


def _unscored_cells(board: Scoreboard, row: UnscoredRun) -> Sequence[Cell]:
    run, figures = row.run, (1 + len(board.columns)) * len(_figures(Together()))
    parameters = {name: value for name, value in run.parameters.items() if name != "seed"}
    return (
        None, None, run.agent.slug, run.agent_version.number, alike_words(parameters), None, None, *(None for _ in range(figures)),
        run.ended_at.isoformat() if run.ended_at is not None else None, run.public_id, run.name, run.status, row.reason,
    )  # fmt: skip


def _figures(found: Together) -> tuple[Cell, ...]:
    between = found.interval
    return found.value, between.low if between else None, between.high if between else None, found.error, found.count
