"""The page of a pool: what its runs use now, and what they used over the last hour."""

import math
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from runs.models import MetricChunk, MetricSeries, Run
from runs.queries.pool_hour import PoolHour, pool_hour
from tests.factories import make_member
from tests.factories_pages import add_attempt, client_of, set_run
from tests.factories_people import signed_in
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.models import AuditEvent, Pool

PAGE = "/workspaces/lab/pools/local/"


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


def sample(run: Run, key: str, begun: datetime, samples: list[tuple[float, float]], *, attempt: int = 1) -> None:
    """What a launcher measured: (seconds since the start, value); a chunk for every two points."""
    series, _ = MetricSeries.objects.get_or_create(run=run, key=f"system/{key}", defaults={"count": 1, "last": samples[-1][1]})
    for place in range(0, len(samples), 2):
        points = samples[place : place + 2]
        MetricChunk.objects.create(
            series=series,
            attempt_number=attempt,
            steps=[int(seconds) for seconds, _ in points],
            values=[value for _, value in points],
            times=[begun.timestamp() + seconds for seconds, _ in points],
        )


def run_of(laboratory: Laboratory, begun: datetime, ended: datetime | None = None) -> Run:
    run = launch(laboratory)
    add_attempt(actor=laboratory.owner, run=run, status="ended" if ended else "running")
    values = {"status": "succeeded", "ended_at": ended} if ended else {"status": "running"}
    set_run(actor=laboratory.owner, run=run, started_at=begun, **values)
    return run


def hour(now: datetime) -> PoolHour:
    return pool_hour(Pool.objects.get(), now)


def test_runs_at_the_same_time_add_up_and_gaps_stay_gaps(laboratory: Laboratory) -> None:
    now = timezone.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
    begun = now - timedelta(minutes=30)
    with laboratory.opened():
        for share in (100.0, 50.0):
            run = run_of(laboratory, begun, begun + timedelta(minutes=3))
            sample(run, "cpu_percent", begun, [(5.0 * tick, share) for tick in range(1, 37)])
            sample(run, "memory_bytes", begun, [(5.0 * tick, 2e9) for tick in range(1, 37)])
        found = hour(now)
    assert found.cores
    assert found.gigabytes
    assert found.gpu_percent is None
    known = {minute: value for minute, value in found.cores if not math.isnan(value)}
    assert known == pytest.approx({-29.0: 1.5, -28.0: 1.5, -27.0: 1.5})
    assert dict(found.gigabytes)[-28.0] == pytest.approx(4.0)
    assert len(found.cores) == 60


def test_a_run_of_half_a_minute_counts_for_half_a_minute(laboratory: Laboratory) -> None:
    now = timezone.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
    begun = now - timedelta(minutes=10)
    with laboratory.opened():
        run = run_of(laboratory, begun, begun + timedelta(seconds=30))
        sample(run, "cpu_percent", begun, [(5.0 * tick, 200.0) for tick in range(1, 7)])
        found = hour(now)
    assert found.cores
    assert dict(found.cores)[-9.0] == pytest.approx(1.0)


def test_a_sample_speaks_for_all_the_time_since_the_one_before(laboratory: Laboratory) -> None:
    """A run of a day is sampled every few minutes; its curve has no holes, and none before its second attempt began."""
    now = timezone.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
    with laboratory.opened():
        run = run_of(laboratory, now - timedelta(hours=30))
        sample(run, "cpu_percent", now - timedelta(hours=30), [(30 * 3600 - 60 * minutes, 100.0) for minutes in (45, 40, 35)])
        sample(run, "cpu_percent", now - timedelta(minutes=20), [(300.0 * tick, 300.0) for tick in range(1, 5)], attempt=2)
        found = hour(now)
    assert found.cores
    values = dict(found.cores)
    assert [values[float(minute)] for minute in range(-59, -34)] == pytest.approx([1.0] * 25)
    assert all(math.isnan(values[float(minute)]) for minute in range(-34, -19))
    assert [values[float(minute)] for minute in range(-19, 1)] == pytest.approx([3.0] * 20)


def test_gpus_are_averaged_not_added(laboratory: Laboratory) -> None:
    now = timezone.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
    begun = now - timedelta(minutes=5)
    with laboratory.opened():
        for percent in (20.0, 40.0):
            run = run_of(laboratory, begun, now)
            sample(run, "gpu_0_percent", begun, [(15.0 * tick, percent) for tick in range(1, 21)])
        found = hour(now)
    assert found.gpu_percent
    assert dict(found.gpu_percent)[-2.0] == pytest.approx(30.0)


def test_other_pools_other_hours_and_broken_numbers_do_not_count(laboratory: Laboratory) -> None:
    now = timezone.now()
    with laboratory.opened():
        old = run_of(laboratory, now - timedelta(hours=3), now - timedelta(hours=2))
        sample(old, "cpu_percent", now - timedelta(hours=3), [(5.0, 100.0)])
        odd = run_of(laboratory, now - timedelta(minutes=5))
        sample(odd, "cpu_percent", now - timedelta(minutes=5), [(5.0, math.nan), (10.0, math.inf), (15.0, -1.0)])
        assert hour(now).charts == []
    page = client_of(laboratory.owner).get(PAGE).content.decode()
    assert "Nothing was measured in the last hour." in page


def test_the_page_shows_use_now_and_over_the_hour(laboratory: Laboratory) -> None:
    now = timezone.now()
    with laboratory.opened():
        run = run_of(laboratory, now - timedelta(minutes=5))
        sample(run, "cpu_percent", now - timedelta(minutes=5), [(5.0 * tick, 180.0) for tick in range(1, 60)])
        sample(run, "memory_bytes", now - timedelta(minutes=5), [(5.0 * tick, 1.5e9) for tick in range(1, 60)])
    page = client_of(laboratory.owner).get(PAGE).content.decode()
    assert "1.8 cores" in page
    assert "1.5 GB" in page
    assert "not measured" in page  # GPU
    assert "CPU in the last hour, cores" in page
    assert "GPU in the last hour" not in page
    assert run.public_id in page
    assert "?pool=local" in page


def test_the_api_says_what_the_page_says_and_goes_to_the_engine(laboratory: Laboratory) -> None:
    client, api = client_of(laboratory.owner), "/api/v1/workspaces/lab/pools/local"
    with laboratory.opened():
        run = run_of(laboratory, timezone.now())
        MetricSeries.objects.create(run=run, key="system/cpu_percent", count=1, last=150.0)
    told = client.get(f"{api}/state").json()
    assert (told["takes_work"], told["taken"], told["running"], told["measured"], told["cpu_cores"]) == (True, 1, 1, 1, 1.5)
    assert (told["gpu_percent"], told["memory_bytes"]) == (None, None), "what nobody has measured is not 0"
    assert told["free"] == told["slots"] - 1
    seen = client.post(f"{api}/test").json()
    assert (seen["is_reachable"], seen["words"], seen["warnings"]) == (True, "local is on this machine.", [])
    reason = {"reason": "a new cooler"}
    assert client.post(f"{api}/open", reason, content_type="application/json").status_code == 409, "it is open"
    assert client.post(f"{api}/close", reason, content_type="application/json").json()["status"] == "closed"
    told = client.get(f"{api}/state").json()
    assert (told["takes_work"], told["free"]) == (False, 0)
    assert client.post(f"{api}/open", reason, content_type="application/json").json()["status"] == "ready"
    with laboratory.opened():
        assert AuditEvent.objects.filter(verb__startswith="pool.").order_by("-sequence")[0].verb == "pool.opened"


def test_balances_that_are_right_are_not_corrected_by_the_api_either(laboratory: Laboratory) -> None:
    client, api = client_of(laboratory.owner), "/api/v1/workspaces/lab/ledger/correct"
    answer = client.post(api, {"reason": "to be sure"}, content_type="application/json")
    assert (answer.status_code, "nothing to correct" in answer.content.decode()) == (409, True)
    assert client.post(api, {"reason": ""}, content_type="application/json").status_code == 422
    assert (
        signed_in(make_member(laboratory.workspace, "viewer")).post(api, {"reason": "x"}, content_type="application/json").status_code
        == 403
    )
