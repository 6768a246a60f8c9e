"""How far sweeps are is counted by the database: a row for each status, however many members; a retry stands for what it repeats."""

from typing import Any

import pytest
from django.db import connection

from runs.commands.launch import retry_run
from runs.commands.run import cancel_run
from runs.jobs.advance import advance_sweep
from runs.models import Run, Sweep
from runs.queries.sweep import progress_of
from tests.factories_runs import Laboratory
from tests.runs.test_sweep_pages import NEW, asked, laboratory, sign_in

pytestmark = pytest.mark.django_db(transaction=True)

__all__ = ["laboratory"]


def test_progress_counts_members_and_reads_a_row_for_each_status(laboratory: Laboratory) -> None:  # the fixture
    sign_in(laboratory).post(NEW, asked(act="launch", name="many", **{"v.rate": "0.1", "seeds": "1..7", "gpu_hours": "0.1"}))
    advance_sweep(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    read: list[int] = []

    def count_rows(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        found = execute(sql, params, many, context)
        read.append(context["cursor"].rowcount)
        return found

    with laboratory.opened():
        sweep = Sweep.objects.get()
        runs = list(Run.objects.filter(sweep=sweep).order_by("sweep_member"))
        for run in runs[:3]:
            cancel_run(actor=laboratory.owner, run=run)
        retry_run(actor=laboratory.owner, run=Run.objects.get(pk=runs[0].pk))
        again = retry_run(actor=laboratory.owner, run=Run.objects.get(pk=runs[1].pk))
        cancel_run(actor=laboratory.owner, run=again.run)
        with connection.execute_wrapper(count_rows):
            progress = progress_of([sweep])[sweep.pk]
    assert (progress.members, progress.launched, progress.waiting) == (7, len(runs), len(runs) - 2)
    assert (progress.active, progress.succeeded, progress.failed) == (0, 0, 2)
    assert len(runs) > 3
    assert read == [2]  # queued and cancelled
