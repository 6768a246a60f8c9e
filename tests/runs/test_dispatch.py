"""From the queue to the pool: who starts, who waits for what, in which window it is charged; side by side and on the real local pool."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from runs.commands.run import cancel_run
from runs.jobs import dispatch as dispatching
from runs.lifecycle import ACTIVE, TERMINAL, RunStatus
from runs.models import Attempt, Run
from tests.factories_registry import make_agent_version
from tests.factories_runs import HOUR, dispatch, drive, launch, make_laboratory, watch
from tests.runs.attempts import WAITS, content, in_threads, let_go, settled, started
from workspaces import store
from workspaces.commands.limit import set_limit
from workspaces.commands.pool import bind_pool, change_pool
from workspaces.models import AgentFile, LedgerAccount, Limit, Pool, Unit
from workspaces.queries.ledger import recount

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]


@pytest.mark.parametrize("at_once", [1, 4])
def test_dispatchers_and_watchers_side_by_side_start_and_end_everything_once(at_once: int) -> None:
    code = b"open('../outputs/starts', 'a').write('started')\n"
    laboratory = make_laboratory(code=code, at_once=at_once)
    with laboratory.opened():
        runs = [launch(laboratory, gpu_ms=HOUR) for _ in range(5)]
    most: list[int] = []
    deadline = time.monotonic() + 60

    def work() -> None:
        while time.monotonic() < deadline:
            dispatch(laboratory)
            with laboratory.opened():
                most.append(Run.objects.filter(status__in=sorted(ACTIVE)).count())
            watch(laboratory)
            with laboratory.opened():
                if not Run.objects.exclude(status__in=sorted(TERMINAL)).exists():
                    return

    assert in_threads(4, work) == []
    assert max(most) <= at_once
    with laboratory.opened():
        for run in runs:
            run.refresh_from_db()
            assert run.status == RunStatus.SUCCEEDED
            assert Attempt.objects.get(run=run).number == 1
            assert content(laboratory, run, "starts") == b"started"
    settled(laboratory)


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_what_cannot_be_staged_fails_and_releases_everything(damage: str) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory, gpu_ms=HOUR)
        blob = AgentFile.objects.select_related("blob").get().blob
        place = store.local_path(blob.region, laboratory.workspace.pk, blob.sha256)
        assert place is not None
        place.unlink()
        if damage == "changed":
            place.write_bytes(b"print('something else')\n")
    dispatch(laboratory)
    with laboratory.opened():
        run.refresh_from_db()
        assert (run.status, run.reason_code, run.spent_gpu_ms) == (RunStatus.FAILED, "could_not_start", 0)
        assert "store" in run.reason or "hash" in run.reason
    assert settled(laboratory)["available"] == 100 * HOUR


def test_a_reservation_follows_its_run_into_the_window_where_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(weekly_gpu_hours=10)
    with laboratory.opened():
        set_limit(
            actor=laboratory.owner, unit=Unit.API_MICROS, window=Limit.Window.WEEK, amount=10_000_000, mode=Limit.Mode.STOP, reason="api"
        )
        run = launch(laboratory, gpu_ms=HOUR, api_micros=2_000_000)
        before = run.budget_window_at
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(days=7))
    dispatch(laboratory)
    with laboratory.opened():
        run.refresh_from_db()
        assert before is not None and run.budget_window_at is not None
        assert timedelta(days=6) < run.budget_window_at - before < timedelta(days=8)
        for unit, amount in (("gpu_ms", HOUR), ("api_micros", 2_000_000)):
            held = dict(LedgerAccount.objects.filter(unit=unit, window="week", side="reserved").values_list("starts_at", "balance"))
            assert held == {before: 0, run.budget_window_at: amount}
    done = drive(laboratory, run)
    assert done.status == RunStatus.SUCCEEDED
    with laboratory.opened():
        spent = dict(LedgerAccount.objects.filter(unit="gpu_ms", window="week", side="spent").values_list("starts_at", "balance"))
        assert spent == {before: 0, run.budget_window_at: done.spent_gpu_ms}
        assert recount() == []


def test_a_run_without_room_in_its_window_lets_smaller_ones_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(weekly_gpu_hours=10)
    with laboratory.opened():
        large = launch(laboratory, gpu_ms=8 * HOUR)
        small = launch(laboratory, gpu_ms=1 * HOUR)
        set_limit(actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=2 * HOUR, mode=Limit.Mode.STOP, reason="less")
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(days=7))
    assert drive(laboratory, small).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert Run.objects.get(pk=large.pk).status == RunStatus.QUEUED


def test_a_raised_rate_charges_nobody_more_than_was_agreed() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, _ = started(laboratory, gpu_ms=HOUR)
    with laboratory.opened():
        change_pool(actor=laboratory.owner, pool=Pool.objects.get(slug="local"), milli_gpu_per_slot=1_000_000)
    let_go(laboratory, run)
    assert drive(laboratory, run).spent_gpu_ms < 60_000
    settled(laboratory)


def test_an_engine_is_shared_by_its_places() -> None:
    first, second = make_laboratory("one", code=WAITS, slots=1, engine_slots=1), make_laboratory("two", code=WAITS, slots=1, engine_slots=1)
    run, _ = started(first)
    with second.opened():
        other = launch(second)
    dispatch(second)
    with second.opened():
        assert (Run.objects.get(pk=other.pk).status, Attempt.objects.count()) == (RunStatus.QUEUED, 0)
    let_go(first, run)
    assert drive(first, run).status == RunStatus.SUCCEEDED
    dispatch(second)
    let_go(second, other)
    assert drive(second, other).status == RunStatus.SUCCEEDED
    settled(second)


def test_a_full_pool_does_not_hold_up_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "BATCH", 4)
    laboratory = make_laboratory(code=WAITS, slots=1)
    with laboratory.opened():
        bind_pool(actor=laboratory.owner, engine="local", slug="other", slots=1, isolation=Pool.Isolation.NONE)
        waiting = [launch(laboratory, priority=1) for _ in range(6)]
        passing = launch(laboratory, pool="other")
    dispatch(laboratory)
    with laboratory.opened():
        assert Run.objects.get(pk=passing.pk).is_active
        assert Run.objects.get(pk=waiting[0].pk).is_active
        for run in waiting[1:]:
            cancel_run(actor=laboratory.owner, run=run)
    for run in (waiting[0], passing):
        let_go(laboratory, run)
        assert drive(laboratory, run).status == RunStatus.SUCCEEDED


def test_two_slots_wait_for_two_and_nobody_overtakes_them() -> None:
    laboratory = make_laboratory(code=WAITS, slots=2)
    run, _ = started(laboratory)
    with laboratory.opened():
        make_agent_version(laboratory.owner, "wide", code=b"print(1)\n", slots=2)
        wide, narrow = launch(laboratory, agent="wide"), launch(laboratory)
    dispatch(laboratory)
    with laboratory.opened():
        assert {Run.objects.get(pk=one.pk).status for one in (wide, narrow)} == {"queued"}
    let_go(laboratory, run)
    assert drive(laboratory, wide).status == RunStatus.SUCCEEDED
    dispatch(laboratory)
    let_go(laboratory, narrow)
    assert drive(laboratory, narrow).status == RunStatus.SUCCEEDED
    settled(laboratory)
