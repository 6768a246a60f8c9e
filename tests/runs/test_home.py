"""The home page: objective with its best under the current contract, budget burn, what is blocked and why, and live parts."""

import html
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.commands.run import cancel
from runs.launch import LaunchRequest
from runs.models import QueueItem, Run
from runs.queries.estimate import estimate
from runs.queries.home_aim import Aim, aim
from runs.queries.home_scores import boards
from runs.queries.queue import waiting_runs
from tests.factories import make_workspace
from tests.factories_pages import add_attempt, client_of, copy_runs, leave_queue, score_runs, see, set_run
from tests.factories_runs import HOUR, Laboratory, launch, make_laboratory
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.pool import bind_pool, change_pool
from workspaces.models import Benchmark, Pool
from workspaces.queries.objective import current_objective


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory(at_once=2, slots=2)


def home(laboratory: Laboratory) -> str:
    response = client_of(laboratory.owner).get("/workspaces/lab/")
    assert response.status_code == 200
    return response.content.decode()


def aimed() -> Aim | None:
    objective = current_objective()
    return aim(objective, boards(timezone.now(), first=objective.benchmark_id if objective else None))


def test_best_is_of_the_current_contract_only(laboratory: Laboratory) -> None:
    with laboratory.opened():
        made = copy_runs(actor=laboratory.owner, pattern=launch(laboratory), count=4)
        scores: dict[Run, tuple[float, float | None]] = {
            made[0]: (0.5, 0.01),
            made[1]: (0.95, 0.02),
            made[2]: (float("nan"), None),
            made[3]: (float("inf"), None),
        }
        score_runs(actor=laboratory.owner, scores=scores)
        found = aimed()
        assert found
        assert found.best
        assert found.best.value == 0.95
        assert found.is_reached
    body = home(laboratory)
    assert "0.950" in body
    assert "± 0.020" in body
    assert "reached" in body
    with laboratory.opened():
        publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="minimize")
        found = aimed()
        assert found
        assert found.best is None
        assert not found.is_reached


def test_budget_shows_what_is_reserved_and_when_it_ends(laboratory: Laboratory) -> None:
    with laboratory.opened():
        launch(laboratory, gpu_ms=2 * 3_600_000)
    body = home(laboratory)
    ledger, limits = '<a class="plain" href="/workspaces/lab/ledger/">', '<a class="plain" href="/workspaces/lab/budget/">'
    assert f"{ledger}<b>2</b></a> of {limits}100 GPU-hours</a> committed" in body
    reserved = '<a class="plain" href="/workspaces/lab/runs/?status=open">1 run</a>'
    assert f"Reserved by {reserved}</dt><dd>{ledger}2</a></dd>" in body
    assert "Europe/Berlin" in body


def test_what_blocks_is_said_with_its_reason(laboratory: Laboratory) -> None:
    with laboratory.opened():
        spare = bind_pool(actor=laboratory.owner, engine="local", slug="spare", slots=2, isolation="none")
        launch(laboratory, pool="spare")
        change_pool(actor=laboratory.owner, pool=spare, is_accepting=False, reason="not needed")
    page = home(laboratory)
    assert "spare takes no new work: Lab-Owner closed it" in page
    assert "1 run waits for it. It starts once an operator opens spare again." in page


def test_a_run_that_wants_more_slots_than_its_pool_has_left_is_blocked(laboratory: Laboratory) -> None:
    with laboratory.opened():
        run = launch(laboratory)
        set_run(actor=laboratory.owner, run=run, slots=3)
    page = home(laboratory)
    assert "1 queued run cannot start." in page
    assert "It needs 3 slots and local has 2." in page


def test_a_run_that_waits_for_its_turn_is_not_blocked(laboratory: Laboratory) -> None:
    with laboratory.opened():
        first, second, _ = (launch(laboratory, name=name) for name in ("one", "two", "three"))
        for run in (first, second):
            take(laboratory, run)
    page = home(laboratory)
    assert "2 of 2 runs run at once." in page  # said beside the run
    assert 'id="blocked" hidden' in page


def test_a_closed_pool_for_which_nothing_waits_is_not_blocked(laboratory: Laboratory) -> None:
    with laboratory.opened():
        launch(laboratory)  # waits for its turn on another
        spare = bind_pool(actor=laboratory.owner, engine="local", slug="spare", slots=1, isolation="none")
        change_pool(actor=laboratory.owner, pool=spare, is_accepting=False, reason="not needed")
    page = home(laboratory)
    assert 'id="blocked" hidden' in page
    assert ">closed</span>" in page


def test_a_workspace_that_is_not_set_up_says_what_is_missing(db: None) -> None:
    _, owner = make_workspace("bare")
    body = client_of(owner).get("/workspaces/bare/").content.decode()
    assert "has no objective yet" in body
    assert "Bind at least one pool." in body
    assert "Set GPU-hours a week" in body


def test_live_part_is_304_until_something_changes(laboratory: Laboratory) -> None:
    client = client_of(laboratory.owner)
    first = client.get("/workspaces/lab/?part=live")
    assert client.get("/workspaces/lab/?part=live", headers={"if-none-match": first["ETag"]}).status_code == 304
    with laboratory.opened():
        launch(laboratory, name="newcomer")
    changed = client.get("/workspaces/lab/?part=live", headers={"if-none-match": first["ETag"]})
    assert changed.status_code == 200
    body = changed.content.decode()
    assert "newcomer" in body
    for part in ("blocked", "budget", "pools"):
        assert f'id="{part}" hx-swap-oob="true"' in " ".join(body.split())


def test_a_score_comes_to_the_page_as_its_run_leaves_it(laboratory: Laboratory) -> None:
    client = client_of(laboratory.owner)
    body = client.get("/workspaces/lab/").content.decode()
    [address] = re.findall(r'hx-get="(/workspaces/lab/\?part=live[^"]*)"', body)
    assert 'id="boards"' not in client.get(html.unescape(address)).content.decode(), "nothing has ended"
    with laboratory.opened():
        [run] = copy_runs(actor=laboratory.owner, pattern=launch(laboratory), count=1, statuses=["succeeded"])
        score_runs(actor=laboratory.owner, scores={run: (0.75, None)})
    following = client.get(html.unescape(address)).content.decode()
    assert "0.75" in following
    [address] = re.findall(r'hx-get="(/workspaces/lab/\?part=live[^"]*)"', following)
    assert 'id="boards"' not in client.get(html.unescape(address)).content.decode(), "the page has it now"


def test_queries_do_not_grow_with_runs(laboratory: Laboratory) -> None:
    with laboratory.opened():
        pattern = launch(laboratory)
        copy_runs(actor=laboratory.owner, pattern=pattern, count=9, statuses=["running", "queued", "succeeded"])
    few = queries_of(laboratory)
    with laboratory.opened():
        made = copy_runs(actor=laboratory.owner, pattern=pattern, count=90, statuses=["running", "queued", "succeeded"])
        score_runs(actor=laboratory.owner, scores=dict.fromkeys(made[2::3], (0.4, None)))
    some = queries_of(laboratory)
    with laboratory.opened():
        made = copy_runs(actor=laboratory.owner, pattern=pattern, count=90, statuses=["running", "queued", "succeeded"])
        score_runs(actor=laboratory.owner, scores=dict.fromkeys(made[2::3], (0.4, None)))
    assert queries_of(laboratory) == some
    assert some <= few + 3  # with scores: the leaders, the trend, what the best rests on


def queries_of(laboratory: Laboratory) -> int:
    client = client_of(laboratory.owner)
    with CaptureQueriesContext(connection) as queries:
        client.get("/workspaces/lab/")
    return len(queries)


def test_the_queue_says_why_and_what_starts_it(laboratory: Laboratory) -> None:
    with laboratory.opened():
        first, second, third = (launch(laboratory, name=name) for name in ("one", "two", "three"))
        assert [(entry.run.name, entry.place, entry.reason) for entry in waiting_runs().items] == [
            ("one", 1, "It is next."),
            ("two", 2, "1 run goes first on local."),
            ("three", 3, "2 runs go first on local."),
        ]
        for run in (first, second):
            take(laboratory, run)
        (waiting,) = waiting_runs().items
        assert waiting.reason == "2 of 2 runs run at once."
        assert "ends within" in waiting.release
    body = client_of(laboratory.owner).get("/workspaces/lab/queue/").content.decode()
    assert "three</bdi> is number 1 on local" in body
    assert third.public_id in body


def take(laboratory: Laboratory, run: Run) -> None:
    """Put a run where its start would: out of the queue, with an attempt that runs."""
    item = QueueItem.objects.get(run=run)
    see(add_attempt(actor=laboratory.owner, run=item.run))
    set_run(actor=laboratory.owner, run=item.run, status="running", started_at=item.created_at)
    leave_queue(actor=laboratory.owner, item=item)


def test_strangers_find_no_home(laboratory: Laboratory) -> None:
    stranger = make_laboratory("other").owner
    for address in ("", "queue/", "artifacts/", "runs/launch/", "runs/csv/"):
        assert client_of(stranger).get(f"/workspaces/lab/{address}").status_code == 404


def test_an_overrun_is_said_where_everybody_looks(laboratory: Laboratory) -> None:
    with laboratory.opened():
        run = launch(laboratory, gpu_ms=HOUR, name="<b>greedy</b>")
        set_run(actor=laboratory.owner, run=run, spent_gpu_ms=run.reserved_gpu_ms + HOUR)
        cancel(actor=laboratory.owner, run=run)
    page = home(laboratory)
    assert "&lt;b&gt;greedy&lt;/b&gt; used 1 GPU-hour more than was reserved for it." in page
    assert run.public_id in page


def test_an_estimate_counts_what_outside_interfaces_may_cost(laboratory: Laboratory) -> None:
    with laboratory.opened():
        change_pool(actor=laboratory.owner, pool=Pool.objects.get(), price_micros_per_gpu_hour=3_000_000)
        request = LaunchRequest(benchmark="accuracy", agent="worker", datasets=("table",), gpu_ms=HOUR, api_micros=2_000_000)
        found = estimate(request)
    assert found.cost_micros == 5_000_000
