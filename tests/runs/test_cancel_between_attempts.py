"""A run whose attempt was lost, and which would be started again, is cancelled alike one by one, by the hundred and with the workspace."""

from itertools import product

import pytest
from django.utils import timezone

from labsite.owner import as_owner
from runs.commands.archive import archive_workspace
from runs.commands.cancel_many import cancel_own_runs
from runs.commands.run import cancel, may_cancel
from runs.lifecycle import ACTIVE, TERMINAL, WAITING, AttemptStatus, RunStatus, can_be_cancelled
from runs.models import Attempt, Run
from runs.queries.cancelling import cancel_plan
from tests.factories_pages import add_attempt
from tests.factories_runs import Laboratory, collect, launch, make_laboratory, watch_only
from tests.runs.attempts import WAITS, kill_launcher, settled, started, until
from workspaces import scope
from workspaces.access import rights_of


def between_attempts(laboratory: Laboratory) -> Run:
    """A run whose launcher was lost, on record, and which nobody has put back in the queue yet."""
    run, attempt = started(laboratory)
    kill_launcher(laboratory, attempt)

    def is_lost() -> bool:
        watch_only(laboratory)
        with laboratory.opened():
            return Attempt.objects.get(pk=attempt.pk).status == AttemptStatus.LOST

    until(is_lost, "the loss on record")
    return run


@pytest.mark.pool
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("by", ["one", "many", "archive"])
def test_it_is_cancelled_and_not_started_again(by: str) -> None:
    laboratory = make_laboratory(code=WAITS)
    run = between_attempts(laboratory)
    with laboratory.opened():
        if by == "one":
            cancel(actor=laboratory.owner, run=run)
        elif by == "many":
            plan = cancel_plan(Run.objects.all(), laboratory.owner, rights_of(laboratory.owner, scope.current_id()))
            done = cancel_own_runs(actor=laboratory.owner, runs=[run.pk])
            assert (plan.working, plan.ended) == (done.working, done.left) == (1, 0), "the page said what the command did"
        else:
            archive_workspace(actor=laboratory.owner, reason="over", cancels_running=True)
        assert Run.objects.get().status == RunStatus.CANCELLING
    collect(laboratory)
    with laboratory.opened():
        assert (Run.objects.get().status, Attempt.objects.count()) == (RunStatus.CANCELLED, 1)
    settled(laboratory)


@pytest.mark.django_db(transaction=True)
def test_the_run_s_page_and_the_plan_for_many_agree_on_what_can_be_cancelled() -> None:
    """Over every status of a run and of its newest attempt, behind an older one that was lost."""
    laboratory = make_laboratory()
    with laboratory.opened():
        owner = laboratory.owner
        rights = rights_of(owner, scope.current_id())
        run = launch(laboratory)
        attempts = [add_attempt(actor=owner, run=run, number=number, status="lost") for number in (1, 2)]
    with as_owner(), laboratory.opened():
        for status, newest in product(RunStatus, AttemptStatus):
            Run.objects.filter(pk=run.pk).update(status=status, ended_at=timezone.now() if status in TERMINAL else None)
            Attempt.objects.filter(pk=attempts[1].pk).update(status=newest)
            run.refresh_from_db()
            expected = can_be_cancelled(status, newest)
            assert may_cancel(owner, rights, run) == expected, (status, newest)
            plan = cancel_plan(Run.objects.all(), owner, rights)
            assert ([row.pk for row in plan.runs], plan.ended) == (([run.pk], 0) if expected else ([], 1)), (status, newest)


def test_what_can_be_cancelled() -> None:
    assert not any(
        can_be_cancelled(status, newest) for status, newest in product(TERMINAL | {RunStatus.CANCELLING}, [None, *AttemptStatus])
    )
    assert all(can_be_cancelled(status, newest) for status, newest in product(WAITING, [None, *AttemptStatus]))
    for status in ACTIVE - {RunStatus.CANCELLING}:
        assert {newest for newest in AttemptStatus if not can_be_cancelled(status, newest)} == {AttemptStatus.ENDED}
