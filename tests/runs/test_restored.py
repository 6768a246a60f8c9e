"""A restored database is found out, and nothing is touched from it before an operator says what it is. On the real local pool."""

import io
import subprocess
from datetime import timedelta
from pathlib import Path
from shutil import rmtree
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from psycopg.conninfo import make_conninfo

from labsite.clock import Clock
from labsite.doctor import examine
from labsite.embedded.postgres import programs
from runs.commands.attempt import start_attempt
from runs.commands.lost import declare_lost
from runs.commands.queue import release_queue
from runs.jobs import lanes
from runs.jobs import watch as watching
from runs.jobs.orphans import find_orphans
from runs.jobs.tidy import tidy_workspace
from runs.models import Attempt, QueueHold, Run, Watch
from runs.place import place_of
from runs.pools.base import PoolError
from tests.factories import make_user
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, collect, dispatch, drive, launch, make_laboratory, watch, watch_only
from tests.runs.attempts import WAITS, folder_of, let_go, settled, started, until, watch_until
from tests.runs.ended import collect_late, fresh
from tests.walls.owner_sql import owner_connection
from workspaces.access import Actor, SiteRole
from workspaces.models import AuditEvent, Installation, SiteEvent
from workspaces.queries.installation import UNDECIDED, is_copy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]

WHY = "the machine burned"


def restore() -> None:
    """The database says that it is another one, as a dump does that was restored."""
    Installation.objects.update(database="7431/16384/16999")


def decide(*how: str, who: str = "olga") -> str:
    make_user(who, SiteRole.SITE_OPERATOR)
    out = io.StringIO()
    call_command("restored", *how, "--as", who, "--reason", WHY, stdout=out)
    return out.getvalue()


def all_jobs(laboratory: Laboratory) -> None:
    """All that labsite does by itself about attempts."""
    dispatch(laboratory)
    watch(laboratory)
    tidy(laboratory)
    key = laboratory.workspace.pk.hex
    find_orphans(workspace_id=key, subject_id=key)
    assert lanes.wait(30, lanes.Work.ORPHANS)


def everything(laboratory: Laboratory) -> None:
    """And what it does when it stops."""
    all_jobs(laboratory)
    call_command("interrupt_local", seconds=1)


def tidy(laboratory: Laboratory) -> None:
    tidy_workspace(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    collect(laboratory)


def files_of(laboratory: Laboratory, attempt: Attempt) -> dict[str, int]:
    """What stands in the run folder, without what its own launcher goes on writing."""
    folder = folder_of(laboratory, attempt)
    beats = ("heartbeat", "samples.jsonl")
    return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.name not in beats and path.is_file()}


def test_a_database_that_was_made_here_is_no_copy() -> None:
    laboratory = make_laboratory()
    assert not is_copy()
    assert Installation.objects.get().database.count("/") == 2
    make_user("olga", SiteRole.SITE_OPERATOR)
    with pytest.raises(CommandError, match="nothing is to be decided"):
        call_command("restored", "--apart", "--as", "olga", "--reason", WHY)
    with laboratory.opened():
        assert not QueueHold.objects.exists()


def test_a_dump_is_a_copy_wherever_it_is_restored_even_over_the_database_that_it_was_made_of(tmp_path: Path) -> None:
    make_laboratory()
    dump = tmp_path / "labsite.dump"
    with owner_connection() as opened:
        info = opened.info
        at = {"host": info.host, "port": str(info.port), "user": info.user, "password": info.password}
        source, copied = info.dbname, f"{info.dbname}_restored"
    environment = {f"PG{name.upper()}": value for name, value in at.items()} | {"LC_ALL": "C"}

    def run(program: str, *arguments: str) -> None:
        done = subprocess.run([programs() / program, *arguments], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def asked(statement: str) -> Any:
        with psycopg.connect(make_conninfo(**at, dbname=copied), autocommit=True) as opened:
            return opened.execute(statement).fetchone()

    run("pg_dump", "--format=custom", f"--file={dump}", source)
    run("createdb", copied)
    try:
        run("pg_restore", "--no-owner", f"--dbname={copied}", str(dump))
        assert asked("SELECT database = lab_database() FROM workspaces_installation") == (False,)
        assert asked("UPDATE workspaces_installation SET database = lab_database() RETURNING database = lab_database()") == (True,)
        run("pg_restore", "--no-owner", "--clean", "--if-exists", f"--dbname={copied}", str(dump))
        assert asked("SELECT database = lab_database() FROM workspaces_installation") == (False,)
    finally:
        run("dropdb", copied)
    assert not is_copy()


def test_nothing_is_taken_before_somebody_says_what_a_copy_is() -> None:
    laboratory = make_laboratory(code=WAITS)
    _, attempt = started(laboratory)
    watch_only(laboratory)
    _, ended = exited_beside(laboratory)
    with laboratory.opened():
        waiting = launch(laboratory)
    restore()
    before = {one.pk: files_of(laboratory, one) for one in (attempt, ended)}
    with laboratory.opened():
        events, watches = AuditEvent.objects.count(), list(Watch.objects.order_by("pk").values())
    everything(laboratory)
    assert Clock().tick() == []
    assert {one.pk: files_of(laboratory, one) for one in (attempt, ended)} == before
    with laboratory.opened():
        assert (AuditEvent.objects.count(), list(Watch.objects.order_by("pk").values())) == (events, watches)
        assert Run.objects.get(pk=waiting.pk).status == "queued"
        assert launch(laboratory).status == "queued", "pages go on serving"
    assert UNDECIDED in [fault for finding in examine() for fault in finding.faults]
    operator = Actor.of(make_user("otto", SiteRole.SITE_OPERATOR))
    assert "manage.py restored --apart" in client_of(operator).get("/console/").content.decode()
    errors = io.StringIO()
    call_command("first_start", "--keep", stderr=errors)
    assert UNDECIDED in errors.getvalue()


def exited_beside(laboratory: Laboratory) -> tuple[Run, Attempt]:
    """One more run, whose program has ended while nobody looked."""
    with laboratory.opened():
        run = launch(laboratory)
    dispatch(laboratory)
    with laboratory.opened():
        attempt = Attempt.objects.get(run=run)
    until((folder_of(laboratory, attempt) / "state" / "pid.json").exists, "its start")
    watch_only(laboratory)
    let_go(laboratory, run)
    until((folder_of(laboratory, attempt) / "state" / "exit.json").exists, "its end")
    return run, attempt


def test_apart_nothing_of_the_other_installation_is_touched_and_its_run_can_be_given_up() -> None:
    laboratory = make_laboratory(code=WAITS)
    gone, ended = exited_beside(laboratory)
    watch_until_ended(laboratory, ended)
    run, attempt = started(laboratory)
    watch_only(laboratory)
    epoch = Installation.objects.get().epoch
    before = {one.pk: files_of(laboratory, one) for one in (attempt, ended)}
    restore()
    assert "is apart from the one" in decide("--apart")
    assert not is_copy()
    assert Installation.objects.get().epoch != epoch
    everything(laboratory)
    watch_only(laboratory)
    assert fresh(laboratory, run).status == "running"
    with laboratory.opened():
        assert Watch.objects.get(attempt=attempt).observed == "unknown"
        with pytest.raises(PoolError, match="was started by the installation"):
            place_of(Attempt.objects.select_related("run", "pool__engine").get(pk=attempt.pk))
    page = client_of(laboratory.owner).get(f"/workspaces/lab/runs/{run.public_id}/").content.decode()
    assert "it was started by the installation that this database was copied from" in page
    done = fresh(laboratory, gone)
    assert (done.status, "Not all outputs could be collected: it was started by" in done.reason) == ("succeeded", True)
    with laboratory.opened():
        Watch.objects.filter(attempt=attempt).update(observed_at=timezone.now() - timedelta(seconds=120))
        declare_lost(actor=laboratory.owner, run=run, reason="it is not ours")
    assert fresh(laboratory, run).status == "lost"
    for one in (attempt, ended):
        collect_late(laboratory, one)
    with laboratory.opened():
        Watch.objects.update(lease_until=None)
    everything(laboratory)
    assert {one.pk: files_of(laboratory, one) for one in (attempt, ended)} == before
    settled(laboratory)
    let_go(laboratory, run)


def watch_until_ended(laboratory: Laboratory, attempt: Attempt) -> None:
    """Its end is on record, and what it left waits."""

    def is_closed() -> bool:
        watch_only(laboratory)
        with laboratory.opened():
            return Attempt.objects.get(pk=attempt.pk).ended_at is not None

    until(is_closed, "the end on record")


def test_apart_what_is_launched_has_a_name_of_its_own_and_waits_for_the_queue() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory)
    restore()
    decide("--apart")
    dispatch(laboratory)
    assert fresh(laboratory, run).status == "queued"
    with laboratory.opened():
        assert QueueHold.objects.get().reason.endswith(WHY)
        release_queue(actor=laboratory.owner, reason="looked")
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        assert Attempt.objects.get(run=run).key.startswith(f"lab-{Installation.objects.get().epoch}-")
    event = SiteEvent.objects.get(verb="installation.restored")
    assert (event.actor_label, event.details["decision"], event.details["reason"]) == ("Olga", "apart", WHY)


def test_taken_over_what_runs_is_watched_to_its_end_and_what_is_missing_waits_for_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dump is older than what happened: one run ended and was removed since, of another nobody can tell."""
    monkeypatch.setattr(watching, "MISSING_GRACE_SECONDS", 0)
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    past, removed = exited_beside(laboratory)
    rmtree(folder_of(laboratory, removed))
    with laboratory.opened():
        unknown = launch(laboratory)
        claimed = start_attempt(actor=Actor.system(job_id="test"), run=unknown)
        Watch.objects.update(lease_until=None)
        assert (Attempt.objects.get(pk=removed.pk).status, claimed.status) == ("running", "created")
    epoch = Installation.objects.get().epoch
    restore()
    assert "takes the place" in decide("--take-over")
    assert Installation.objects.get().epoch == epoch
    watch_until(laboratory, past, "queued")
    all_jobs(laboratory)
    assert [fresh(laboratory, one).status for one in (run, past, unknown)] == ["running", "queued", "starting"]
    assert not folder_of(laboratory, claimed).exists()
    let_go(laboratory, run)
    watch_until(laboratory, run, "succeeded")
    assert not folder_of(laboratory, attempt).exists(), "it is ours: what was collected is removed"
    with laboratory.opened():
        release_queue(actor=laboratory.owner, reason="looked")
    watch_only(laboratory)
    assert folder_of(laboratory, claimed).exists()
    for one in (past, unknown):
        dispatch(laboratory)
        let_go(laboratory, one)
        assert drive(laboratory, one).status == "succeeded"
    settled(laboratory)


def test_only_a_site_operator_decides_and_only_with_a_reason() -> None:
    laboratory = make_laboratory()
    restore()
    assert laboratory.owner.user is not None
    with pytest.raises(CommandError, match="site operator"):
        call_command("restored", "--apart", "--as", laboratory.owner.user.username, "--reason", WHY)
    make_user("olga", SiteRole.SITE_OPERATOR)
    with pytest.raises(CommandError, match="Say why"):
        call_command("restored", "--apart", "--as", "olga", "--reason", " ")
    assert is_copy()
    with laboratory.opened():
        assert not QueueHold.objects.exists()
