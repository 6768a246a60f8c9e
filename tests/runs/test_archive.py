"""An archived workspace: nothing in it is launched or changed at any door, everything can be read, and work under way ends as was chosen."""

import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client

from labsite.owner import as_owner
from runs.commands.archive import archive_workspace, unarchive_workspace
from runs.commands.cancel_many import cancel_own_runs
from runs.commands.launch import launch_run, retry_run
from runs.commands.sweep import create_sweep
from runs.jobs.advance import advance_sweep
from runs.jobs.cancel import end_cancelled
from runs.jobs.tidy import tidy_workspace
from runs.launch import LaunchRequest
from runs.models import Attempt, QueueItem, Run, Sweep
from tests.factories import make_member
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, dispatch, drive, launch, make_laboratory, watch
from tests.rules.routes import routes
from tests.rules.test_gets import address
from tests.runs.attempts import WAITS, kill_launcher, let_go, settled, started, watch_until
from tests.walls.rows import fill
from workspaces.access import Actor, Permission
from workspaces.audit import Archived, Denied, Draft, Refusal, command
from workspaces.commands.benchmark import create_benchmark
from workspaces.commands.limit import set_limit
from workspaces.commands.member import remove_member
from workspaces.commands.recount import correct_ledger, recount_ledger
from workspaces.commands.token import create_token
from workspaces.models import Approval, AuditEvent, LedgerAccount, Limit, Membership, Recount, Unit, Workspace
from workspaces.queries.ledger import recount
from workspaces.verbs import Verb

SPACE = {"kind": "grid", "axes": {}, "seeds": [1, 2]}

pytestmark = pytest.mark.django_db(transaction=True)


def archive(laboratory: Laboratory, *, cancels_running: bool = False) -> AuditEvent:
    with laboratory.opened():
        archive_workspace(actor=laboratory.owner, reason="The study is over.", cancels_running=cancels_running)
        return AuditEvent.objects.latest("sequence")


def carry_out(laboratory: Laboratory) -> None:
    end_cancelled(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)


@command(Verb.BENCHMARK_CREATED, needs=Permission.EDIT_REGISTRY)
def take_long(event: Draft, *, actor: Actor, began: threading.Event, may_go_on: threading.Event) -> None:
    began.set()
    assert may_go_on.wait(20)


def test_what_waits_is_cancelled_and_its_reservation_released() -> None:
    laboratory = make_laboratory(at_once=1)
    with laboratory.opened():
        waiting = [launch(laboratory), launch(laboratory)]
        assert LedgerAccount.objects.get(unit="gpu_ms", window="week", side="reserved").balance > 0
    event = archive(laboratory)
    with laboratory.opened():
        assert {run.status for run in Run.objects.all()} == {"cancelling"}, "out of the queue, however many, and ended behind the command"
        assert not QueueItem.objects.exists()
    carry_out(laboratory)
    with laboratory.opened():
        assert {run.status for run in Run.objects.all()} == {"cancelled"}
        assert {run.reason_code for run in Run.objects.all()} == {"workspace_archived"}
        assert not QueueItem.objects.exists()
        assert LedgerAccount.objects.get(unit="gpu_ms", window="week", side="reserved").balance == 0
        assert recount() == []
        assert event.verb == "workspace.archived"
        assert event.subject_type == "workspace"
        named = set(event.subjects.values_list("object_id", flat=True))
        assert {run.pk for run in waiting} <= named
    dispatch(laboratory)
    with laboratory.opened():
        assert not Attempt.objects.exists()


def test_a_held_launch_is_cancelled_with_its_request() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        set_limit(actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=1, mode=Limit.Mode.APPROVAL)
        held = launch(laboratory)
        assert held.status == "awaiting_approval"
    archive(laboratory)
    carry_out(laboratory)
    with laboratory.opened():
        assert Run.objects.get(pk=held.pk).status == "cancelled"
        assert Approval.objects.get().status == Approval.Status.VOID


def test_running_work_goes_on_to_its_end() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, _ = started(laboratory)
    event = archive(laboratory)
    with laboratory.opened():
        assert event.subjects.filter(object_id=run.pk).count() == 0
    let_go(laboratory, run)
    assert drive(laboratory, run).status == "succeeded"
    settled(laboratory)


def test_running_work_is_cancelled_where_that_was_chosen() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, _ = started(laboratory)
    archive(laboratory, cancels_running=True)
    with laboratory.opened():
        assert Run.objects.get(pk=run.pk).status == "cancelling"
    assert drive(laboratory, run).status == "cancelled"
    settled(laboratory)


def test_many_that_were_cancelled_before_it_end_in_an_archive() -> None:
    laboratory = make_laboratory(at_once=1)
    with laboratory.opened():
        runs = [launch(laboratory), launch(laboratory)]
        cancel_own_runs(actor=laboratory.owner, runs=[run.pk for run in runs])
    archive(laboratory)
    carry_out(laboratory)
    with laboratory.opened():
        assert {run.status for run in Run.objects.all()} == {"cancelled"}
        assert LedgerAccount.objects.get(unit="gpu_ms", window="week", side="reserved").balance == 0
        assert recount() == []


def test_what_was_let_go_on_is_cancelled_by_the_hundred_too() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, _ = started(laboratory)
    archive(laboratory)
    with laboratory.opened():
        assert cancel_own_runs(actor=laboratory.owner, runs=[run.pk]).working == 1
    assert drive(laboratory, run).status == "cancelled"
    settled(laboratory)


def test_an_archive_is_kept_tidy_and_its_ledger_counted_at_night() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, _ = started(laboratory)
    archive(laboratory)
    tidy_workspace(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    with laboratory.opened():
        assert Recount.objects.get().is_right
        assert recount_ledger(actor=laboratory.owner).is_right
        with pytest.raises(Archived):
            correct_ledger(actor=laboratory.owner, reason="x")
    let_go(laboratory, run)
    assert drive(laboratory, run).status == "succeeded"


def test_a_lost_run_is_not_tried_again_in_an_archive() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    watch(laboratory)
    archive(laboratory)
    kill_launcher(laboratory, attempt)
    watch_until(laboratory, run, "lost")
    with laboratory.opened():
        assert not QueueItem.objects.exists()
    settled(laboratory)


def test_every_way_to_a_run_is_closed() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, _ = started(laboratory)
    let_go(laboratory, run)
    ended = drive(laboratory, run)
    request = LaunchRequest(benchmark="accuracy", agent="worker", datasets=("table",))
    with laboratory.opened():
        _, secret = create_token(actor=laboratory.owner, name="ci", scopes=["run:write"], days=1)
        sweep = create_sweep(actor=laboratory.owner, name="s", space=SPACE, request=request)
    archive(laboratory)
    with laboratory.opened():
        with pytest.raises(Refusal, match="is archived"):
            launch_run(actor=laboratory.owner, request=request)
        with pytest.raises(Refusal, match="is archived"):
            retry_run(actor=laboratory.owner, run=ended)
        with pytest.raises(Archived):
            create_sweep(actor=laboratory.owner, name="t", space=SPACE, request=request)
        assert AuditEvent.objects.latest("sequence").verb == "launch.refused"  # with a certificate, like every refusal
    advance_sweep(workspace_id=laboratory.workspace.pk.hex, subject_id=sweep.pk.hex)
    with laboratory.opened():
        assert Sweep.objects.get(pk=sweep.pk).status == Sweep.Status.STOPPED
        assert Run.objects.count() == 1
    sent = {"benchmark_id": "accuracy", "agent_id": "worker", "dataset_ids": ["table"]}
    by_token = Client().post(
        "/api/v1/workspaces/lab/runs", sent, content_type="application/json", headers={"Authorization": f"Bearer {secret}"}
    )  # fmt: skip
    assert by_token.status_code == 409
    assert "archived" in by_token.json()["detail"]
    by_page = client_of(laboratory.owner).post(
        "/workspaces/lab/runs/launch/", {"benchmark": "accuracy", "agent": "worker", "datasets": ["table"], "act": "launch"}
    )
    assert by_page.status_code == 409
    with laboratory.opened():
        assert Run.objects.count() == 1


def test_reads_stay_and_say_it() -> None:
    laboratory = make_laboratory()
    rows = fill(laboratory.workspace) | {"user": laboratory.owner.user, "group": Group.objects.create(name="Readers")}
    with as_owner(), laboratory.opened():
        Run.objects.update(reserved_gpu_ms=0, spent_gpu_ms=0, reserved_api_micros=0, spent_api_micros=0)  # made up, and in no ledger
    client = client_of(laboratory.owner)
    pages = [route for route in routes() if route.method == "GET" and route.door is not None and route.door["scope"] == "workspace"]

    def answers() -> dict[str, int]:
        found = {}
        for route in pages:
            response = client.get(address(route, rows))
            response.close()
            found[route.path] = response.status_code
        return found

    before = answers()
    archive(laboratory)
    after = answers()
    assert {path: (before[path], after[path]) for path in before if before[path] != after[path]} == {}
    home = client.get("/workspaces/lab/").content.decode()
    assert "was archived" in home
    assert "/workspaces/lab/unarchive/" in home
    assert "/workspaces/lab/runs/launch/" not in client.get("/workspaces/lab/runs/").content.decode()


def test_a_write_that_was_under_way_finds_the_archive() -> None:
    """The freeze is asked again under the lock of the record: what began before it does not come after it."""
    laboratory = make_laboratory()
    began, may_go_on = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def late() -> None:
        try:
            with laboratory.opened():
                take_long(actor=laboratory.owner, began=began, may_go_on=may_go_on)
        except BaseException as error:
            raised.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=late)
    thread.start()
    assert began.wait(10)
    archive(laboratory)
    may_go_on.set()
    thread.join(10)
    assert [type(error) for error in raised] == [Archived]


def test_rights_can_still_be_taken_away() -> None:
    laboratory = make_laboratory()
    left = make_member(laboratory.workspace, "viewer")
    archive(laboratory)
    with laboratory.opened():
        membership = Membership.objects.get(user=left.user)
        remove_member(actor=laboratory.owner, member=membership.public_id)
        with pytest.raises(Archived):
            create_benchmark(actor=laboratory.owner, slug="late")


def test_unarchived_it_launches_again() -> None:
    laboratory = make_laboratory()
    archive(laboratory)
    with laboratory.opened():
        with pytest.raises(Refusal, match="archived already"):
            archive_workspace(actor=laboratory.owner, reason="twice", cancels_running=False)
        opened = unarchive_workspace(actor=laboratory.owner, reason="A reviewer asks.")
        assert (opened.status, opened.archived_at) == (Workspace.Status.ACTIVE, None)
        run = launch(laboratory)
    assert drive(laboratory, run).status == "succeeded"


@pytest.mark.parametrize(("role", "may"), [("operator", True), ("researcher", False), ("approver", False), ("auditor", False)])
def test_who_may_archive(role: str, may: bool) -> None:
    laboratory = make_laboratory()
    actor = make_member(laboratory.workspace, role)
    with laboratory.opened():
        if may:
            archive_workspace(actor=actor, reason="over", cancels_running=False)
        else:
            with pytest.raises(Denied):
                archive_workspace(actor=actor, reason="over", cancels_running=False)


def test_by_page_and_by_api() -> None:
    laboratory = make_laboratory()
    client = client_of(laboratory.owner)
    assert client.post("/workspaces/lab/archive/", {"running": "go_on", "reason": ""}).status_code == 422
    assert client.post("/workspaces/lab/archive/", {"running": "go_on", "reason": "over"}).status_code == 303
    sent: Any = {"content_type": "application/json"}
    answer = client.post("/api/v1/workspaces/lab/unarchive", {"reason": "again"}, **sent)
    assert (answer.status_code, answer.json()["status"]) == (200, "active"), answer.content
    answer = client.post("/api/v1/workspaces/lab/archive", {"running": "cancel", "reason": "over"}, **sent)
    assert (answer.status_code, answer.json()["status"]) == (200, "archived")
    assert client.post("/api/v1/workspaces/lab/archive", {"running": "cancel", "reason": "x"}, **sent).status_code == 409
