"""A researcher's day: sign in, see what a run would cost, launch it, watch it, cancel another, and follow a score to all that it rests on."""

import re
from pathlib import Path

import pytest

from runs.models import Run
from tests.browser.conftest import Visit
from tests.browser.laboratories import PASSWORD, stepwise_laboratory, worker
from tests.browser.visitor import Visitor
from tests.factories import make_member
from tests.factories_registry import make_agent_version, make_dataset_version
from tests.factories_runs import HOUR, Laboratory, launch, make_laboratory
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Benchmark

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


RUNNING = re.compile(r"^running\b")  # the state; "Running for" stands on the page from the start


def fill_launch(visitor: Visitor, *, reason: str, hours: str = "0.5") -> None:
    """Choose what runs; the estimate comes before anything is asked for."""
    page = visitor.page
    page.get_by_label("Benchmark", exact=True).select_option("accuracy")
    page.get_by_label("Agent", exact=True).select_option("worker")
    page.get_by_label("table").check()
    page.get_by_label("Budget").fill(hours)
    page.get_by_label("Why").fill(reason)
    page.get_by_label("Why").press("Tab")
    visitor.reads("Reserved now, at most")
    visitor.reads(f"{float(hours):.2f} GPU-hours")


def with_password(laboratory: Laboratory, visit: Visit) -> Visitor:
    """A browser for a researcher of the workspace who signs in as rosalind."""
    researcher = make_member(laboratory.workspace, "researcher", "rosalind")
    assert researcher.user
    researcher.user.set_password(PASSWORD)
    researcher.user.save()
    return visit()


def test_an_estimate_that_comes_while_the_button_is_pressed_takes_no_click_away(visit: Visit, tmp_path: Path) -> None:
    laboratory = stepwise_laboratory(tmp_path / "gate")
    visitor = with_password(laboratory, visit)
    visitor.sign_in("rosalind", PASSWORD)
    visitor.follow("Launch a run")
    fill_launch(visitor, reason="does it learn at all")
    page = visitor.page
    page.get_by_label("Budget").fill("0.4")
    launch_it = page.get_by_role("button", name="Launch", exact=True).first
    launch_it.scroll_into_view_if_needed()
    place = launch_it.bounding_box()
    assert place
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.mouse.down()  # and the field that was left asks for an estimate
    page.wait_for_timeout(200)
    page.mouse.up()
    visitor.reads("does it learn at all")
    with laboratory.opened():
        assert Run.objects.get().requested_by.username == "rosalind"


def test_a_run_from_estimate_to_settled_cost(visit: Visit, tmp_path: Path) -> None:
    laboratory = stepwise_laboratory(tmp_path / "gate")
    visitor = with_password(laboratory, visit)

    visitor.sign_in("rosalind", PASSWORD)  # one workspace is open to her: its home is where she lands
    visitor.reads("Raise accuracy")
    visitor.follow("Launch a run")
    fill_launch(visitor, reason="does it learn at all")
    visitor.shoot("estimate")
    visitor.press("Launch")

    with worker(laboratory):
        visitor.reads("does it learn at all")
        visitor.reads(RUNNING)  # by itself: the page asks again
        visitor.shoot("running")
        visitor.follow("Log", within=visitor.page.get_by_role("navigation", name="Parts of this run"))
        visitor.reads("epoch 1 begins")
        assert not visitor.page.get_by_text("epoch 2 is done").count()
        (tmp_path / "gate").touch()
        visitor.reads("epoch 2 is done", seconds=40)
        visitor.reads("succeeded", seconds=40)
        visitor.reads("0.81")
        visitor.reads("GPU-hours spent")
        visitor.follow("Metrics", within=visitor.page.get_by_role("navigation", name="Parts of this run"))
        curve = visitor.page.get_by_role("img", name=re.compile("loss")).first
        curve.wait_for()
        visitor.shoot("metrics")
        visitor.follow("Cost", within=visitor.page.get_by_role("navigation", name="Parts of this run"))
        for entry in ("reserve", "spend", "release"):
            visitor.reads(re.compile(entry, re.IGNORECASE), within=visitor.page.get_by_role("table", name=re.compile("Ledger entries")))


def test_a_running_run_is_cancelled(visit: Visit, tmp_path: Path) -> None:
    laboratory = stepwise_laboratory(tmp_path / "gate")
    with laboratory.opened():
        run = launch(laboratory, gpu_ms=HOUR, name="no-good")
    visitor = visit(laboratory.owner)
    with worker(laboratory):
        visitor.go("/workspaces/lab/runs/")
        visitor.follow("no-good")
        visitor.reads(RUNNING)
        visitor.page.locator("summary", has_text="Cancel run").click()
        visitor.page.get_by_label("Why, if you like").fill("wrong seed")
        visitor.press("Cancel run")
        visitor.reads("cancelled", seconds=40)
        visitor.reads("wrong seed")
        visitor.reads("GPU-hours spent")
    with laboratory.opened():
        run.refresh_from_db()
        assert (run.status, run.reserved_gpu_ms) == ("cancelled", 0)


def test_pages_opened_before_the_start_go_on_by_themselves(visit: Visit, tmp_path: Path) -> None:
    laboratory = stepwise_laboratory(tmp_path / "gate")
    with laboratory.opened():
        run = launch(laboratory, gpu_ms=HOUR, name="early-bird")
    log, metrics = visit(laboratory.owner), visit(laboratory.owner)
    log.go(f"/workspaces/lab/runs/{run.public_id}/?tab=log")
    log.reads("It has not started yet")
    metrics.go(f"/workspaces/lab/runs/{run.public_id}/?tab=metrics")
    metrics.reads("The run has written no metric")
    with worker(laboratory):
        log.reads("epoch 1 begins", seconds=40)
        metrics.page.get_by_role("img", name=re.compile("loss")).first.wait_for(timeout=40_000)
        (tmp_path / "gate").touch()
        log.reads("epoch 2 is done", seconds=40)


def test_a_score_leads_to_data_code_person_and_cost(visit: Visit, tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    laboratory = stepwise_laboratory(tmp_path / "gate")
    with laboratory.opened():
        launch(laboratory, gpu_ms=HOUR, name="first-light", reason="a baseline to beat")
    visitor = visit(laboratory.owner)
    with worker(laboratory):
        visitor.go("/workspaces/lab/")
        visitor.follow("first-light")
        visitor.reads("succeeded", seconds=40)
    visitor.go("/workspaces/lab/")
    board = (
        visitor.page.get_by_role("region")
        .or_(visitor.page.locator("section"))
        .filter(has=visitor.page.get_by_role("heading", name="Scoreboard"))
    )
    visitor.reads("0.81", within=board.last)
    visitor.follow("first-light", within=board.last)

    run = visitor.page.url
    facts = visitor.page.get_by_role("complementary", name="What this run is")
    visitor.follow("table", within=facts)
    visitor.reads("table.csv")
    visitor.follow("first-light")  # the dataset says who used it
    assert visitor.page.url.split("?")[0] == run
    visitor.follow("worker", within=facts)
    visitor.reads("main.py")
    visitor.go(run)
    visitor.reads(laboratory.owner.label, within=facts)
    visitor.reads("a baseline to beat", within=facts)
    visitor.follow("Cost", within=visitor.page.get_by_role("navigation", name="Parts of this run"))
    visitor.reads("Ledger")
    visitor.follow("Audit", within=visitor.page.get_by_role("navigation", name="Parts of this run"))
    visitor.reads(re.compile("launch", re.IGNORECASE))
    visitor.go(run)
    visitor.follow("accuracy", within=facts)
    visitor.reads("first-light")


TRAINER = b"""
import json
with open("../outputs/model.json", "w") as model:
    model.write("{}")
with open("../events.jsonl", "a") as lines:
    lines.write(json.dumps({"type": "artifact", "path": "model.json", "name": "model", "kind": "model", "metadata": {}}) + "\\n")
"""
JUDGE = b"""
import json, pathlib
inputs = sorted(path.name for path in pathlib.Path("../inputs").rglob("*") if path.is_file())
assert any(name.endswith(".json") for name in inputs) and "table.csv" in inputs, inputs
with open("../events.jsonl", "a") as lines:
    lines.write(json.dumps({"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.6875, "stderr": 0.02, "samples": 400}) + "\\n")
"""


def test_a_finished_run_is_scored_by_clicks(visit: Visit) -> None:
    laboratory = make_laboratory(code=TRAINER)
    with laboratory.opened():
        holdout = make_dataset_version(laboratory.owner, "unseen", role="holdout")
        publish_contract(
            actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", holdout=holdout,
            accepts_no_isolation_reason="a test",
        )  # fmt: skip
        make_agent_version(laboratory.owner, "judge", code=JUDGE, kind="evaluate", wall_seconds=60)
        trained = launch(laboratory, gpu_ms=HOUR, name="teacher")
    visitor = visit(laboratory.owner)
    with worker(laboratory):
        visitor.go(f"/workspaces/lab/runs/{trained.public_id}/")
        visitor.reads("succeeded", seconds=40)
        visitor.page.reload()
        visitor.follow("Score this run")
        visitor.reads("it may start")
        for name in ("unseen", "model"):
            assert visitor.page.get_by_label(name, exact=False).first.is_checked()
        visitor.shoot("score")
        visitor.press("Launch")
        visitor.reads("Score teacher on records that it has not seen.")
        visitor.reads("0.688", seconds=40)
    with laboratory.opened():
        scored = Run.objects.get(kind="evaluate")
        assert [entry.artifact.run.name for entry in scored.inputs.exclude(artifact=None)] == ["teacher"]
