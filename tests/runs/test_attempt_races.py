"""Two that act on one attempt at once: a start that is given up stays given up, and what is reported as the end comes is counted or refused."""

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from runs.commands import report
from runs.commands.attempt import FIRST_FENCE, end_attempt, start_attempt
from runs.jobs import dispatch as dispatching
from runs.jobs import lease
from runs.models import Attempt, Run, Watch
from runs.place import place_of
from runs.pools.base import Exit, Observation, Order, PoolError, Status
from runs.pools.local import LocalPool
from runs.queries.claim import is_first
from runs.queries.order import order_of, token_id
from tests.factories_runs import Laboratory, dispatch, drive, launch, make_laboratory, watch_only
from tests.runs.attempts import WAITS, let_go, settled, started, watch_until
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.limit import set_limit
from workspaces.models import EngineSlot, LedgerAccount, Limit, Token, Unit
from workspaces.queries.token import actor_behind

pytestmark = pytest.mark.django_db(transaction=True)
SYSTEM = Actor.system(job_id="test")


def refuses(self: LocalPool, order: Order) -> None:
    raise PoolError("table.csv could not be staged: no space left on the device")


def unreachable(attempt: Attempt) -> LocalPool:
    raise PoolError("the key of gpu-host was revoked; give the pool another secret")


def test_a_start_that_was_given_up_is_not_made_by_one_who_still_stages_it(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(code=WAITS)
    with laboratory.opened():
        run = launch(laboratory)
        attempt = Attempt.objects.select_related("pool__engine", "run").get(pk=start_attempt(actor=SYSTEM, run=run).pk)
        late, submit = order_of(attempt), LocalPool.submit
        monkeypatch.setattr(LocalPool, "submit", refuses)
        dispatching.submit(SYSTEM, attempt, FIRST_FENCE)
        monkeypatch.setattr(LocalPool, "submit", submit)
        assert Run.objects.get(pk=run.pk).status == "failed"
        assert EngineSlot.objects.count() == 0
        place = place_of(attempt)
        place.submit(late)
        assert place.observe(scope.current_id().hex, attempt.key).status == Status.EXITED, "its name is barred"
        assert not any(place.read(scope.current_id().hex, attempt.key, "stdout.log", offset=0, limit=10))


def test_a_dispatcher_passes_by_what_another_one_is_about_to_start() -> None:
    laboratory = make_laboratory(code=WAITS)
    with laboratory.opened():
        first, second = launch(laboratory), launch(laboratory)
    claims, goes = threading.Event(), threading.Event()

    def claim() -> None:
        try:
            with laboratory.opened(), transaction.atomic():
                assert is_first(first.pk)
                claims.set()
                goes.wait(30)
        finally:
            connection.close()

    other = threading.Thread(target=claim)
    other.start()
    assert claims.wait(30)
    try:
        with laboratory.opened():
            with pytest.raises(Refusal, match=f"Another dispatcher is about to start {first.name}"):
                start_attempt(actor=SYSTEM, run=first)
            start_attempt(actor=SYSTEM, run=second)
    finally:
        goes.set()
        other.join()
    with laboratory.opened():
        assert start_attempt(actor=SYSTEM, run=first).number == 1, "nobody claims it any more"


def test_what_cannot_be_barred_is_not_said_to_have_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory)
    with monkeypatch.context() as broken:
        broken.setattr(LocalPool, "submit", refuses)
        broken.setattr(LocalPool, "cancel", lambda *args, **kwargs: refuses(*args[:2]))
        dispatch(laboratory)
        with laboratory.opened():
            assert Run.objects.get(pk=run.pk).status == "starting", "nobody knows yet"
            assert EngineSlot.objects.count() == 1
    assert drive(laboratory, run).status == "succeeded"


def test_one_who_was_replaced_may_still_start_it_where_the_pool_s_key_was_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stood still with the key in memory. Said to have failed, the program would run for nobody's money and in nobody's place."""
    laboratory = make_laboratory(code=WAITS)
    with laboratory.opened():
        run = launch(laboratory)
        attempt = Attempt.objects.select_related("pool__engine", "run").get(pk=start_attempt(actor=SYSTEM, run=run).pk)
        replaced, late = place_of(attempt), order_of(attempt)
        Watch.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        held = lease.take(attempt.pk, is_collecting=False)
        assert held is not None
        with monkeypatch.context() as revoked, lease.until_done(held):
            revoked.setattr(dispatching, "place_of", unreachable)
            dispatching.submit(SYSTEM, attempt, held.fence)
        assert Run.objects.get(pk=run.pk).status == "starting", "nobody knows"
        assert EngineSlot.objects.count() == 1
        replaced.submit(late)
    let_go(laboratory, run)
    assert drive(laboratory, run).status == "succeeded"
    settled(laboratory)


@pytest.mark.parametrize("said", [-1e300, 3600])
def test_one_that_ended_before_its_start_was_seen_began_when_it_can_have(monkeypatch: pytest.MonkeyPatch, said: float) -> None:
    """Its own clock is an hour ahead, or what it says of it is no time at all."""
    laboratory = make_laboratory(code=WAITS)
    with laboratory.opened():
        run = launch(laboratory)
        attempt = Attempt.objects.select_related("pool__engine", "run").get(pk=start_attempt(actor=SYSTEM, run=run).pk)
        ended = Exit(0, None, time.time() + said, time.time() + said, "exit", peak_memory_bytes=None, cpu_seconds=None)
        with monkeypatch.context() as patched:
            patched.setattr(LocalPool, "observe", lambda *_: Observation(Status.EXITED, exit=ended))
            dispatching.submit(SYSTEM, attempt, FIRST_FENCE)
        found = Attempt.objects.get(pk=attempt.pk)
        assert found.started_at is not None
        assert found.created_at <= found.started_at <= timezone.now()
        Watch.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    let_go(laboratory, run)
    assert drive(laboratory, run).status == "succeeded"
    settled(laboratory)


def ends(laboratory: Laboratory, attempt: Attempt) -> None:
    def end() -> None:
        try:
            with laboratory.opened():
                now = time.time()
                ended = Exit(0, None, now - 1, now, "exit", peak_memory_bytes=None, cpu_seconds=None)
                fence = Watch.objects.get(attempt=attempt).lease_fence
                end_attempt(actor=SYSTEM, attempt=Attempt.objects.get(pk=attempt.pk), fence=fence, ended=ended)
        finally:
            connection.close()

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()


def test_spend_reported_as_the_end_is_recorded_is_refused_and_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(code=WAITS)
    limit: dict[str, Any] = {
        "unit": Unit.API_MICROS,
        "window": Limit.Window.WEEK,
        "amount": 10**8,
        "mode": Limit.Mode.STOP,
        "reason": "api",
    }
    with laboratory.opened():
        set_limit(actor=laboratory.owner, **limit)
    run, attempt = started(laboratory, api_micros=10_000_000)
    watch_only(laboratory)
    let_through = report.own_attempt

    def then_it_ends(actor: Actor, asked: Run) -> Attempt:
        found = let_through(actor, asked)
        monkeypatch.setattr(report, "own_attempt", let_through)
        ends(laboratory, attempt)
        return found

    monkeypatch.setattr(report, "own_attempt", then_it_ends)
    with laboratory.opened():
        actor = actor_behind(Token.objects.select_related("holder").get(pk=token_id(attempt)))
        assert actor is not None
        body = {"type": "api_spend", "micros": 4_000_000, "currency": "EUR", "what": "judge"}
        with pytest.raises(Refusal, match="takes no more reports"):
            report.report_events(actor=actor, run=run, bodies=[body])
        assert Watch.objects.get(attempt=attempt).api_spend_micros == Run.objects.get(pk=run.pk).spent_api_micros == 0
    let_go(laboratory, run)


SPENDS = (
    b"import json, os, time\n"
    b"with open('../events.jsonl', 'w') as file:\n"
    b"    file.write('no line\\n' * 30)\n"
    b"    for currency in ('EUR', 'JPY'):\n"
    b"        file.write(json.dumps({'type': 'api_spend', 'micros': 5000000, 'currency': currency, 'what': 'x'}) + '\\n')\n"
    b"time.sleep(50)\n"
)


def test_spend_beyond_its_limit_ends_the_run() -> None:
    laboratory = make_laboratory(code=SPENDS.replace(b"('EUR', 'JPY')", b"('EUR', 'EUR')"))
    with laboratory.opened():
        set_limit(actor=laboratory.owner, unit=Unit.API_MICROS, window=Limit.Window.WEEK, amount=10**8, mode=Limit.Mode.STOP, reason="api")
        run = launch(laboratory, api_micros=8_000_000)
    done = drive(laboratory, run)
    assert (done.status, done.reason_code, done.spent_api_micros) == ("failed", "budget_exceeded", 10_000_000)
    assert done.reason == "The run's spend limit was reached."
    with laboratory.opened():
        attempt = Attempt.objects.get(run=run)
        assert attempt.exit_reason == "spend_limit"
        assert attempt.ended_at is not None
        assert (attempt.ended_at - attempt.created_at).total_seconds() < 45, "the program slept to its end"


@pytest.mark.parametrize("is_by_api", [False, True])
def test_spend_in_another_currency_is_not_added_and_ends_the_run(is_by_api: bool) -> None:
    laboratory = make_laboratory(code=WAITS if is_by_api else SPENDS)
    limit: dict[str, Any] = {
        "unit": Unit.API_MICROS,
        "window": Limit.Window.WEEK,
        "amount": 10**8,
        "mode": Limit.Mode.STOP,
        "reason": "api",
    }
    with laboratory.opened():
        set_limit(actor=laboratory.owner, **limit)
    if is_by_api:
        run, attempt = started(laboratory, api_micros=20_000_000)
        with laboratory.opened():
            actor = actor_behind(Token.objects.select_related("holder").get(pk=token_id(attempt)))
            assert actor is not None
            bodies = [{"type": "api_spend", "micros": 5_000_000, "currency": currency, "what": "x"} for currency in ("EUR", "JPY")]
            report.report_events(actor=actor, run=run, bodies=bodies)
    else:
        with laboratory.opened():
            run = launch(laboratory, api_micros=20_000_000)
    done = drive(laboratory, run)
    assert (done.status, done.reason_code, done.spent_api_micros) == ("failed", "budget_exceeded", 5_000_000)
    assert "another currency" in done.reason
    with laboratory.opened():
        assert any("another currency" in line["reason"] for line in Watch.objects.get(attempt__run=run).bad_lines)


def test_each_week_bears_what_was_used_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    with laboratory.opened():
        place_of(attempt).cancel(scope.current_id().hex, attempt.key, grace_seconds=0)
    watch_until(laboratory, run, "queued")
    with laboratory.opened():
        run.refresh_from_db()
    first = run.spent_gpu_ms
    assert first > 0
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(days=7))
    dispatch(laboratory)
    let_go(laboratory, run)
    done = drive(laboratory, run)
    with laboratory.opened():
        spent = (
            LedgerAccount.objects.filter(unit="gpu_ms", window="week", side="spent").order_by("starts_at").values_list("balance", flat=True)
        )
        assert list(spent) == [first, done.spent_gpu_ms - first]
