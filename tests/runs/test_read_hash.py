"""Rows whose hash is taken from what a command has read, instead of asking the database for them once more."""

import pytest

from runs.commands.attempt import start_attempt
from runs.models import Attempt, QueueItem, Run
from tests.factories_runs import dispatch, launch, make_laboratory
from workspaces.access import Actor
from workspaces.audit import Refusal, row_hash
from workspaces.canonical import read_hash
from workspaces.commands.pool import bind_pool
from workspaces.models import LedgerAccount, Token

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_was_read_has_the_hash_of_what_the_database_holds() -> None:
    laboratory = make_laboratory(at_once=1)
    with laboratory.opened():
        launch(laboratory)
        launch(laboratory)
    dispatch(laboratory)
    with laboratory.opened():
        for model in (Run, Attempt, QueueItem, LedgerAccount, Token):
            rows = list(model._base_manager.all())
            assert rows, model
            assert [read_hash(row) for row in rows] == [row_hash(row) for row in rows]
        run = Run.objects.first()
        assert run is not None
        run.reason = "another"
        assert read_hash(run) != row_hash(run)


def test_a_claim_of_a_run_that_was_moved_meanwhile_starts_nothing() -> None:
    """The dispatcher has read the queue before; the slots that it would take are those of a pool that the run is not in any more."""
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory)
        other = bind_pool(actor=laboratory.owner, engine="local", slug="other", slots=1, isolation="none", milli_gpu_per_slot=1000)
        run.pool = other  # as it would have been read
        with pytest.raises(Refusal, match="moved to another pool"):
            start_attempt(actor=Actor.system(job_id="test"), run=run)
        assert not Attempt.objects.exists()
