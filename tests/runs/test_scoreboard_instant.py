"""A board is of one instant: what is withdrawn while it is asked for is on all of it, or on none."""

from typing import Any

import pytest
from django.db import connection
from django.db.utils import InternalError

from runs.commands.withdrawal import withdraw
from runs.models import Run
from runs.queries.scoreboard import scoreboard
from runs.queries.unscored import unscored
from runs.queries.withdrawal import find_subject
from tests.factories_pages import copy_runs, score_runs
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.runs.attempts import in_threads
from workspaces.instant import one_instant
from workspaces.models import Benchmark

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory()
    with made.opened():
        runs = copy_runs(actor=made.owner, pattern=launch(made), count=4)
        score_runs(actor=made.owner, scores={run: (place / 10, 0.1) for place, run in enumerate(runs)})
    return made


def test_a_withdrawal_in_between_is_on_the_next_board(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    late: list[list[BaseException]] = []

    def between(*args: Any) -> Any:
        """Asked for between two statements of the board."""
        if not late:
            late.append(in_threads(1, best_goes))
        return unscored(*args)

    def best_goes() -> None:
        with laboratory.opened():
            node, label = find_subject("run", Run.objects.get(evaluations__value=0.3).public_id)
            withdraw(actor=laboratory.owner, subject=node, label=label, reason="Bad.")

    monkeypatch.setattr("runs.queries.scoreboard.unscored", between)
    with laboratory.opened():
        benchmark = Benchmark.objects.get()
        before, after = scoreboard(benchmark), scoreboard(benchmark)
    assert late == [[]]
    for board, values in ((before, [0.3, 0.2, 0.1, 0.0]), (after, [0.2, 0.1, 0.0])):
        assert [score.evaluation.value for score in board.scores] == values
        assert (board.total, board.ranked) == (len(values), len(values))
        assert board.leader is not None and board.leader.evaluation.value == values[0]


def test_what_reads_in_one_instant_writes_nothing(laboratory: Laboratory) -> None:
    with laboratory.opened(), pytest.raises(InternalError, match="read-only transaction"), one_instant(), connection.cursor() as cursor:
        cursor.execute("UPDATE runs_run SET name = 'x'")
