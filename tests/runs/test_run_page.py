"""The page of a run: its facts, its live part, its log by offset, and what may be done to it by whom."""

import math
import re

import pytest
from django.http import StreamingHttpResponse

from runs.commands.sweep import create_sweep
from runs.launch import LaunchRequest
from runs.models import MetricSeries, Run
from runs.queries.frozen import thaw
from runs.queries.metric import points
from tests.factories_pages import add_artifact, add_attempt, add_series, client_of, score_runs, see, set_run
from tests.factories_registry import make_agent_version
from tests.factories_resources import join
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from workspaces.access import Role
from workspaces.commands.agent import change_agent
from workspaces.commands.benchmark import change_benchmark, publish_contract
from workspaces.models import Agent, Benchmark

CODE = b"""
import sys
for number in range(1, 3001):
    print("line", number)
sys.stdout.flush()
sys.stdout.buffer.write(b"\\x00\\xff <b>end</b>\\n")
print("to stderr", file=sys.stderr)
"""


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


@pytest.fixture
def run(laboratory: Laboratory) -> Run:
    with laboratory.opened():
        return launch(laboratory, name="first", reason="to see what it costs", seed=7)


def page(laboratory: Laboratory, run: Run, query: str = "") -> str:
    response = client_of(laboratory.owner).get(f"/workspaces/lab/runs/{run.public_id}/{query}")
    assert response.status_code == 200
    return response.content.decode()


def test_the_eight_facts_stand_beside_it(laboratory: Laboratory, run: Run) -> None:
    body = page(laboratory, run)
    facts = body[body.index("<aside") :]
    for fact in ("Workspace", "Benchmark", "Agent", "Inputs", "Why it runs", "Pool", "Outputs", "Audit trail"):
        assert f"<dt>{fact}</dt>" in facts
    with laboratory.opened():
        sha256 = run.inputs.get().sha256
    assert sha256 in facts
    assert "to see what it costs" in facts
    assert "1 event" in facts


def test_an_old_contract_says_that_its_score_does_not_compare(laboratory: Laboratory, run: Run) -> None:
    assert "does not compare" not in page(laboratory, run)
    with laboratory.opened():
        publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="minimize")
    assert "2 is current, so its score does not compare" in page(laboratory, run)


def test_it_says_what_it_ran_by_the_names_of_then_and_says_what_they_are_called_now(laboratory: Laboratory) -> None:
    with laboratory.opened():
        owner, benchmark, agent = laboratory.owner, Benchmark.objects.get(), Agent.objects.get()
        change_benchmark(actor=owner, benchmark=benchmark, name="Go arena")
        change_agent(actor=owner, agent=agent, name="First player")
        before = launch(laboratory)
        swept = create_sweep(
            actor=owner, name="", space={"kind": "grid", "seeds": [1]}, request=LaunchRequest(benchmark="accuracy", agent="worker")
        )
    assert "now called" not in page(laboratory, before)
    with laboratory.opened():
        change_benchmark(actor=owner, benchmark=benchmark, name="Chess arena")
        change_agent(actor=owner, agent=agent, name="Second player")
        after = launch(laboratory)
    head, _, facts = page(laboratory, before).partition("<aside")
    assert "<bdi>Go arena</bdi> by <bdi>First player</bdi>" in head
    assert "now called <bdi>Chess arena</bdi>" in facts
    assert "now called <bdi>Second player</bdi>" in facts
    assert "<bdi>Chess arena</bdi> by <bdi>Second player</bdi>" in page(laboratory, after)
    sweep = client_of(laboratory.owner).get(f"/workspaces/lab/sweeps/{swept.public_id}/").content.decode()
    assert "Go arena" in sweep
    assert "Chess arena" not in sweep


def test_a_new_name_takes_nothing_from_what_waits_for_an_approver(laboratory: Laboratory) -> None:
    """What an approver agrees to is what would run, and that is the same under any name."""
    with laboratory.opened():
        run, owner = launch(laboratory), laboratory.owner
        change_benchmark(actor=owner, benchmark=Benchmark.objects.get(), name="Another name")
        change_agent(actor=owner, agent=Agent.objects.get(), name="Another name")
        assert thaw(run).content_hash == run.content_hash


def test_the_live_part_answers_304_until_something_changes(laboratory: Laboratory, run: Run) -> None:
    client = client_of(laboratory.owner)
    address = f"/workspaces/lab/runs/{run.public_id}/?tab=overview&part=live"
    first = client.get(address)
    assert first.status_code == 200
    again = client.get(address, headers={"if-none-match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    with laboratory.opened():
        see(add_attempt(actor=laboratory.owner, run=run), progress_done=1.0, progress_total=4.0)
        set_run(actor=laboratory.owner, run=run, status="running", started_at=run.created_at)
    changed = client.get(address, headers={"if-none-match": first["ETag"]})
    assert changed.status_code == 200
    assert "25 % done" in changed.content.decode()


def test_a_pool_that_does_not_answer_is_shown_beside_the_status(laboratory: Laboratory, run: Run) -> None:
    with laboratory.opened():
        see(add_attempt(actor=laboratory.owner, run=run), observed="unknown", observed_reason="no answer for 40 s")
        set_run(actor=laboratory.owner, run=run, status="running", started_at=run.created_at)
    state = page(laboratory, run).partition('id="run-state"')[2][:600]
    assert ">running<" in state
    assert "pool not answering" in state
    assert "no answer for 40 s" in state


def test_own_runs_are_cancelled_by_their_owner_and_all_by_the_keeper_of_the_queue(laboratory: Laboratory) -> None:
    with laboratory.opened():
        researcher, other = join(laboratory.owner, "researcher"), join(laboratory.owner, "other")
        first, second = launch(laboratory), launch(laboratory)
        viewer = join(laboratory.owner, "viewer", Role.VIEWER)
    cancel = f"/workspaces/lab/runs/{first.public_id}/cancel/"
    assert client_of(viewer).post(cancel).status_code == 403
    assert client_of(researcher).post(cancel).status_code == 403
    assert "Cancel run" not in client_of(other).get(f"/workspaces/lab/runs/{first.public_id}/").content.decode()
    assert client_of(laboratory.owner).get(cancel).status_code == 405
    assert client_of(laboratory.owner).post(cancel, {"reason": "a better idea"}).status_code == 303
    with laboratory.opened():
        operator = join(laboratory.owner, "operator", Role.OPERATOR)
        cancelled = Run.objects.get(pk=first.pk)
    assert (cancelled.status, cancelled.reason) == ("cancelled", "a better idea")
    assert client_of(operator).post(f"/workspaces/lab/runs/{second.public_id}/cancel/", {"reason": "Wrong data"}).status_code == 303
    again = client_of(operator).post(f"/workspaces/lab/runs/{second.public_id}/cancel/", {"reason": "Wrong data"})
    assert again.status_code == 409
    assert "has ended already" in again.content.decode()


@pytest.mark.django_db(transaction=True)
def test_retry_that_is_pressed_twice_makes_one_run(laboratory: Laboratory, run: Run) -> None:
    drive(laboratory, run)
    client, address = client_of(laboratory.owner), f"/workspaces/lab/runs/{run.public_id}/"
    found = re.search(r'name="once" value="([0-9a-f]{32})"', client.get(address).content.decode())
    assert found
    answers = [client.post(f"{address}retry/", {"once": found[1]}) for _ in range(2)]
    assert answers[0]["Location"] == answers[1]["Location"] != address
    with laboratory.opened():
        assert Run.objects.count() == 2


def test_retry_leads_to_the_new_run_and_back(laboratory: Laboratory, run: Run) -> None:
    client = client_of(laboratory.owner)
    assert client.post(f"/workspaces/lab/runs/{run.public_id}/retry/").status_code == 409
    client.post(f"/workspaces/lab/runs/{run.public_id}/cancel/")
    response = client.post(f"/workspaces/lab/runs/{run.public_id}/retry/")
    assert response.status_code == 303
    body = client.get(response["Location"]).content.decode()
    assert "Retry of" in body
    assert run.public_id in body


@pytest.mark.pool
@pytest.mark.django_db(transaction=True)
def test_log_is_numbered_linked_and_read_on_by_offset(laboratory: Laboratory) -> None:
    with laboratory.opened():
        make_agent_version(laboratory.owner, "printer", code=CODE, wall_seconds=60)
        asked = launch(laboratory, agent="printer", datasets=())
    run = drive(laboratory, asked)
    assert run.status == "succeeded", run.reason
    body = page(laboratory, run, "?tab=log")
    assert 'id="L3000"' in body
    assert "&lt;b&gt;end&lt;/b&gt;" in body
    assert "\u2400\ufffd" in body
    linked = page(laboratory, run, "?tab=log&line=120")
    assert 'id="L120"' in linked
    assert 'id="L1"' not in linked
    assert "to stderr" in page(laboratory, run, "?tab=log&stream=stderr")
    client = client_of(laboratory.owner)
    piece = client.get(f"/workspaces/lab/runs/{run.public_id}/log/?stream=stdout&offset=7&next=2").content.decode()
    assert '<li id="L2">' in piece
    assert ">line 2<" in piece.replace("\n", "")
    raw = client.get(f"/workspaces/lab/runs/{run.public_id}/log/?stream=stdout")
    assert isinstance(raw, StreamingHttpResponse)
    assert b"".join(raw).endswith(b"\x00\xff <b>end</b>\n")
    assert raw["Content-Type"] == "application/octet-stream"
    assert raw["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("query", ["stream=secrets", "attempt=9", "stream=../../job.json"])
def test_no_other_file_can_be_asked_for(laboratory: Laboratory, run: Run, query: str) -> None:
    client = client_of(laboratory.owner)
    assert client.get(f"/workspaces/lab/runs/{run.public_id}/log/?{query}").status_code == 404
    assert client.get(f"/workspaces/lab/runs/{run.public_id}/?tab=log&{query}").status_code == 404


def test_curves_follow_the_attempt_that_went_over_the_steps_again(laboratory: Laboratory, run: Run) -> None:
    with laboratory.opened():
        add_series(run, "loss", [4.0, 3.0, 2.0, 1.0])
        add_series(run, "loss", [2.5, 2.25], first_step=2, attempt=2)
        add_series(run, "odd", [math.nan, math.inf, -math.inf, 1e300])
        written = points(MetricSeries.objects.get(key="loss")).items
        assert [(point.step, point.value) for point in written] == [
            (0, 4.0),
            (1, 3.0),
            (2, 2.5),
            (3, 2.25),
        ]
    body = page(laboratory, run, "?tab=metrics&y=log&x=time")
    assert body.count("<figure") == 2
    table = page(laboratory, run, "?tab=metrics&key=odd")
    assert '<td class="figure">nan</td>' in table
    response = client_of(laboratory.owner).get(f"/workspaces/lab/runs/{run.public_id}/metrics/csv/?key=odd")
    assert isinstance(response, StreamingHttpResponse)
    assert b"".join(response).decode().splitlines()[1:3] == ["0,NaN,1700000000.0", "1,Infinity,1700000001.0"]


def test_results_stand_apart_from_logs(laboratory: Laboratory, run: Run) -> None:
    with laboratory.opened():
        for path, kind in (("outputs/model.json", "model"), ("stdout.log", "log"), ("metrics.jsonl", "lines")):
            add_artifact(actor=laboratory.owner, run=run, path=path, content=path.encode(), kind=kind)
    client = client_of(laboratory.owner)
    results, records = (client.get(f"/workspaces/lab/artifacts/{query}").content.decode() for query in ("", "?part=records"))
    assert ("model.json" in results, "stdout.log" in results, "metrics.jsonl" in results) == (True, False, False)
    assert ("model.json" in records, "stdout.log" in records, "metrics.jsonl" in records) == (False, True, True)
    assert "Logs and records, 2 files" in page(laboratory, run, "?tab=files")


def test_artifacts_come_as_attachments_whatever_they_are_called(laboratory: Laboratory, run: Run) -> None:
    with laboratory.opened():
        html = add_artifact(actor=laboratory.owner, run=run, path='outputs/a\r\nX-Evil: 1"<b>.html', content=b"<script>alert(1)</script>")
    response = client_of(laboratory.owner).get(f"/workspaces/lab/artifacts/{html.public_id}/file/")
    assert isinstance(response, StreamingHttpResponse)
    assert b"".join(response) == b"<script>alert(1)</script>"
    assert response["Content-Disposition"].startswith("attachment")
    assert response["Content-Type"] == "application/octet-stream"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "X-Evil" not in response
    other = make_laboratory("other")
    assert client_of(other.owner).get(f"/workspaces/other/artifacts/{html.public_id}/file/").status_code == 404


def test_score_and_cost_stand_at_the_top(laboratory: Laboratory, run: Run) -> None:
    with laboratory.opened():
        score_runs(actor=laboratory.owner, scores={run: (0.8412, 0.0123)})
    figures = page(laboratory, run).partition('id="run-figures"')[2]
    assert "0.841" in figures
    assert "± 0.012" in figures
