"""A run on a host that is gone for good ends by an operator's decision, and only while its pool does not answer. On the real local pool."""

from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from runs.commands import lost
from runs.commands.lost import declare_lost
from runs.commands.run import cancel_run
from runs.jobs.tidy import tidy_workspace
from runs.lifecycle import AttemptStatus, RunStatus
from runs.models import Attempt, Run, Watch
from runs.pools.base import Observation, PoolError
from runs.pools.local import LocalPool
from tests.factories_pages import client_of
from tests.factories_resources import join
from tests.factories_runs import Laboratory, launch, make_laboratory, watch, watch_only
from tests.factories_seed import caller_for
from tests.runs.attempts import WAITS, folder_of, in_threads, kept, let_go, settled, started, until
from tests.runs.ended import collect_late, fresh
from workspaces.access import Actor, Role
from workspaces.audit import Denied, Refusal
from workspaces.models import AuditEvent, EngineSlot

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory(code=WAITS)


@pytest.fixture
def running(laboratory: Laboratory) -> tuple[Run, Attempt]:
    """A run that labsite has seen running; it is let go after the test's own part by whoever wants its end."""
    run, attempt = started(laboratory)
    watch(laboratory)
    return run, attempt


def silence(attempt: Attempt, *, seconds: int = 120) -> None:
    """The pool has not answered about it for so long."""
    Watch.objects.filter(attempt=attempt).update(observed="unknown", observed_at=timezone.now() - timedelta(seconds=seconds))


def operator(laboratory: Laboratory) -> Actor:
    return join(laboratory.owner, "olga", Role.OPERATOR)


def test_it_is_lost_with_the_reason_and_holds_nothing_any_more(laboratory: Laboratory, running: tuple[Run, Attempt]) -> None:
    run, attempt = running
    with laboratory.opened():
        silence(attempt)
        assert EngineSlot.objects.exists()
        declare_lost(actor=operator(laboratory), run=run, reason=" The machine burned. ")
        run.refresh_from_db()
        attempt.refresh_from_db()
        assert (run.status, run.reason_code, run.reserved_gpu_ms) == (RunStatus.LOST, "declared_lost", 0)
        assert "Olga declared it lost" in run.reason
        assert "may still run there until its wall limit" in run.reason
        assert run.reason.endswith("The machine burned.")
        assert (attempt.status, attempt.exit_reason) == (AttemptStatus.LOST, "launcher_lost")
        assert 0 < run.spent_gpu_ms < 60_000
        event = AuditEvent.objects.get(verb="run.declared_lost")
        assert (event.actor_label, event.subject_id) == ("Olga", run.pk)
        with pytest.raises(Refusal, match="is lost and has no attempt"):
            declare_lost(actor=laboratory.owner, run=run, reason="again")
    settled(laboratory)
    let_go(laboratory, run)


def test_it_is_charged_at_most_for_the_time_that_it_had(
    laboratory: Laboratory, running: tuple[Run, Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, attempt = running

    def next_day() -> datetime:
        return timezone.now() + timedelta(days=1)

    monkeypatch.setattr(lost, "timezone", SimpleNamespace(now=next_day))
    with laboratory.opened():
        silence(attempt)
        declare_lost(actor=laboratory.owner, run=run, reason="gone")
    assert fresh(laboratory, run).spent_gpu_ms == 60_000
    settled(laboratory)
    let_go(laboratory, run)


def test_one_that_has_ended_and_whose_lines_cannot_be_read_can_be_declared_lost(
    laboratory: Laboratory, running: tuple[Run, Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, attempt = running
    let_go(laboratory, run)
    until(lambda: (folder_of(laboratory, attempt) / "state" / "exit.json").exists(), "the end")
    read = LocalPool.read

    def broken(self: LocalPool, workspace: str, key: str, name: str, **more: int) -> bytes:
        if name == "metrics.jsonl":
            raise PoolError("input/output error")
        return read(self, workspace, key, name, **more)

    monkeypatch.setattr(LocalPool, "read", broken)
    with laboratory.opened():
        silence(attempt)
    for _ in range(2):
        watch_only(laboratory)
    with laboratory.opened():
        declare_lost(actor=laboratory.owner, run=run, reason="a bad sector")
    assert fresh(laboratory, run).status == RunStatus.LOST


def test_it_is_refused_while_the_pool_answers(laboratory: Laboratory, running: tuple[Run, Attempt]) -> None:
    run, attempt = running
    with laboratory.opened():
        with pytest.raises(Refusal, match="its attempt is running there"):
            declare_lost(actor=laboratory.owner, run=run, reason="gone")
        silence(attempt, seconds=20)
        with pytest.raises(Refusal, match=r"silent about .* for 2\d s; .* after 60 s. Wait another [34]\d s"):
            declare_lost(actor=laboratory.owner, run=run, reason="gone")
        silence(attempt)
        with pytest.raises(Refusal, match="Say why"):
            declare_lost(actor=laboratory.owner, run=run, reason="  ")
        waiting = launch(laboratory)
        with pytest.raises(Refusal, match="is queued and has no attempt"):
            declare_lost(actor=laboratory.owner, run=waiting, reason="gone")
    assert fresh(laboratory, run).status == RunStatus.RUNNING
    let_go(laboratory, run)


def test_a_researcher_may_not_and_is_offered_nothing(laboratory: Laboratory, running: tuple[Run, Attempt]) -> None:
    run, attempt = running
    with laboratory.opened():
        researcher, olga = join(laboratory.owner, "rita"), operator(laboratory)
        silence(attempt)
        with pytest.raises(Denied):
            declare_lost(actor=researcher, run=run, reason="gone")
    address = f"/workspaces/lab/runs/{run.public_id}/"
    assert "Declare lost" not in client_of(researcher).get(address).content.decode()
    assert client_of(researcher).post(f"{address}lost/", {"reason": "gone"}).status_code == 403

    client = client_of(olga)
    assert f'href="{address}lost/"' in client.get(address).content.decode()
    assert "may still run there" in client.get(f"{address}lost/").content.decode()
    assert client.post(f"{address}lost/", {"reason": ""}).status_code == 422
    assert fresh(laboratory, run).status == RunStatus.RUNNING
    assert client.post(f"{address}lost/", {"reason": "gone"}).status_code == 303
    assert fresh(laboratory, run).status == RunStatus.LOST
    page = client.get(address).content.decode()
    assert "Olga declared it lost" in page
    assert f'href="{address}lost/"' not in page
    assert client.post(f"{address}lost/", {"reason": "gone"}).status_code == 409
    let_go(laboratory, run)


def test_it_is_not_offered_while_the_pool_answers(laboratory: Laboratory, running: tuple[Run, Attempt]) -> None:
    run, attempt = running
    client, address = client_of(laboratory.owner), f"/workspaces/lab/runs/{run.public_id}/"
    assert "Declare lost" not in client.get(address).content.decode()
    with laboratory.opened():
        silence(attempt, seconds=20)
    assert "Declare lost" not in client.get(address).content.decode()
    let_go(laboratory, run)


def test_one_that_is_being_cancelled_becomes_cancelled_by_the_api(laboratory: Laboratory, running: tuple[Run, Attempt]) -> None:
    run, attempt = running
    caller = caller_for(laboratory, scopes=("run:read", "run:write"))
    address = f"/api/v1/workspaces/lab/runs/{run.public_id}/declare-lost"
    assert caller.post(address, {"reason": "gone"}).status_code == 409
    with laboratory.opened():
        cancel_run(actor=laboratory.owner, run=run)
        silence(attempt)
    answer = caller.post(address, {"reason": "gone"})
    assert answer.status_code == 200, answer.content
    assert (answer.json()["status"], answer.json()["reason_code"]) == ("cancelled", "declared_lost")
    settled(laboratory)
    let_go(laboratory, run)


def test_a_late_end_changes_nothing_and_what_it_left_is_kept_then(laboratory: Laboratory, running: tuple[Run, Attempt]) -> None:
    run, attempt = running
    with laboratory.opened():
        silence(attempt)
        declare_lost(actor=laboratory.owner, run=run, reason="gone")
    before, folder = fresh(laboratory, run), folder_of(laboratory, attempt)
    collect_late(laboratory, attempt)
    with laboratory.opened():
        assert kept(run) == {}, "collected from a program that still writes"
    let_go(laboratory, run)
    until(lambda: (folder / "state" / "exit.json").exists(), "the late end")
    watch(laboratory)
    tidy_workspace(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    after = fresh(laboratory, run)
    unchanged = ("status", "reason", "reason_code", "spent_gpu_ms", "reserved_gpu_ms", "ended_at")
    assert [getattr(after, name) for name in unchanged] == [getattr(before, name) for name in unchanged]
    assert folder.exists(), "what it left was thrown away"

    def is_kept() -> bool:
        with laboratory.opened():
            Watch.objects.filter(attempt=attempt).update(lease_until=None)  # as an hour later
        collect_late(laboratory, attempt)
        with laboratory.opened():
            return "starts" in kept(run)

    until(is_kept, "its outputs")
    late = fresh(laboratory, run)
    assert (late.status, late.spent_gpu_ms) == (RunStatus.LOST, before.spent_gpu_ms)
    settled(laboratory)


def test_a_look_that_was_under_way_does_not_take_the_decision_back(
    laboratory: Laboratory, running: tuple[Run, Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, attempt = running

    def decided_meanwhile(self: LocalPool, workspace: str, key: str) -> Observation:
        if not decided:
            decided.append(in_threads(1, decide))
        raise PoolError("the host did not answer in time")

    def decide() -> None:
        with laboratory.opened():
            silence(attempt)
            declare_lost(actor=laboratory.owner, run=run, reason="gone")

    decided: list[list[BaseException]] = []
    with monkeypatch.context() as silent:
        silent.setattr(LocalPool, "observe", decided_meanwhile)
        watch_only(laboratory)
    assert decided == [[]]
    with laboratory.opened():
        assert Run.objects.get(pk=run.pk).status == RunStatus.LOST
        assert Watch.objects.get(attempt=attempt).observed == Watch.FOLDER_KEPT, "what it leaves there is still to be collected"
    let_go(laboratory, run)
