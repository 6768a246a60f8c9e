"""Everything that must work without JavaScript: signing in, an estimate, a launch, a decision, a refusal, a menu, a run from its start to its end,
lists that are filtered, sorted and paged, a comparison, a sweep."""

import re
import time
from pathlib import Path

import pytest

from runs.models import Run, Sweep
from tests.browser.conftest import Visit
from tests.browser.laboratories import PASSWORD, stepwise_laboratory, worker
from tests.browser.test_approver import ask, held_laboratory, status_of
from tests.browser.visitor import Visitor
from tests.factories import make_member
from tests.factories_pages import copy_runs, score_runs
from tests.factories_runs import Laboratory, launch, make_laboratory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_launching_and_approving_without_script(visit: Visit, tmp_path: Path) -> None:
    laboratory = held_laboratory()
    researcher, approver = (make_member(laboratory.workspace, role) for role in ("researcher", "approver"))
    asking = visit(researcher, java_script_enabled=False)
    asking.go("/workspaces/lab/")
    asking.follow("Launch a run")
    asking.page.get_by_label("Benchmark", exact=True).select_option("accuracy")
    asking.page.get_by_label("Agent", exact=True).select_option("worker")
    asking.page.get_by_label("table").check()
    asking.page.get_by_label("Budget").fill("4")
    asking.page.get_by_label("Why").fill("by hand")
    asking.press("Check")
    asking.reads("an approver decides")
    asking.reads("4 GPU-hours")
    asking.press("Ask for approval")
    asking.reads("by hand")
    with laboratory.opened():
        run = Run.objects.get()
    assert run.status == "awaiting_approval"

    deciding = visit(approver, java_script_enabled=False)
    deciding.go("/workspaces/lab/")
    deciding.reads("by hand")
    deciding.press("Approve")
    deciding.reads("Nothing waits for a decision")
    assert status_of(laboratory, run) == "queued"

    asking.page.reload()
    asking.page.locator("summary", has_text="Cancel run").click()
    asking.press("Cancel run")
    asking.reads("cancelled")
    assert status_of(laboratory, run) == "cancelled"


def signed_in(visit: Visit, laboratory: Laboratory, *, width: int = 1440) -> Visitor:
    """A researcher who went through the sign-in page without JavaScript."""
    researcher = make_member(laboratory.workspace, "researcher", "rosalind")
    assert researcher.user
    researcher.user.set_password(PASSWORD)
    researcher.user.save()
    visitor = visit(width=width, java_script_enabled=False)
    visitor.sign_in("rosalind", PASSWORD)
    visitor.reads("Raise accuracy")
    return visitor


def reload_until(visitor: Visitor, text: str | re.Pattern[str], *, seconds: float = 40) -> None:
    """What a reader without JavaScript does: ask for the page again."""
    deadline = time.monotonic() + seconds
    while not visitor.main.get_by_text(text).count():
        assert time.monotonic() < deadline, f"{text} does not come on {visitor.page.url}: {visitor.main.inner_text()[:2000]}"
        visitor.page.wait_for_timeout(200)
        visitor.page.reload()


def test_a_run_from_sign_in_to_its_score_on_a_phone(visit: Visit, tmp_path: Path) -> None:
    laboratory = stepwise_laboratory(tmp_path / "gate")
    visitor = signed_in(visit, laboratory, width=390)
    page, tabs = visitor.page, visitor.page.get_by_role("navigation", name="Parts of this run")
    visitor.follow("Launch a run")
    visitor.expected.add(422)
    visitor.press("Launch")
    visitor.reads("This field is required")
    page.get_by_label("Benchmark", exact=True).select_option("accuracy")
    page.get_by_label("Agent", exact=True).select_option("worker")
    page.get_by_label("table").check()
    page.get_by_label("Budget").fill("101")
    page.get_by_label("Why").fill("by hand")
    visitor.expected.add(409)
    visitor.press("Launch")
    visitor.reads("101 GPU-hours more would make 101 of 100 this week")
    assert page.get_by_label("Why").input_value() == "by hand"
    page.get_by_label("Budget").fill("0.5")
    visitor.press("Launch")
    run = page.url.split("?")[0]
    with worker(laboratory):
        reload_until(visitor, re.compile(r"^running\b"))
        visitor.follow("Log", within=tabs)
        reload_until(visitor, "epoch 1 begins")
        (tmp_path / "gate").touch()
        reload_until(visitor, "epoch 2 is done")
        visitor.go(run)
        reload_until(visitor, "succeeded")
    for tab, words in (("Metrics", "loss"), ("Inputs & outputs", "model.json"), ("Certificate", "GPU-hours a week"), ("Cost", "release")):
        visitor.follow(tab, within=tabs)
        visitor.reads(re.compile(words, re.IGNORECASE), within=visitor.main)
        assert not visitor.sideways()
    visitor.go(run)
    visitor.press("Retry")
    visitor.reads("Retry of")
    page.locator("summary", has_text="Cancel run").click()
    page.get_by_label("Why, if you like").fill("one is enough")
    visitor.press("Cancel run")
    visitor.reads("one is enough")
    with laboratory.opened():
        assert sorted(Run.objects.values_list("status", flat=True)) == ["cancelled", "succeeded"]


def test_filtering_sorting_paging_and_comparing_runs(visit: Visit) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        pattern = launch(laboratory, name="pattern", seed=7)
        made = copy_runs(actor=laboratory.owner, pattern=pattern, count=70, statuses=["succeeded", "failed"])
        score_runs(actor=laboratory.owner, scores={made[0]: (0.7, 0.02), made[2]: (0.9, 0.02)})
    visitor = signed_in(visit, laboratory)
    page, rows = visitor.page, visitor.page.get_by_role("table").get_by_role("row")
    visitor.go("/workspaces/lab/runs/")
    visitor.reads("71 runs")
    seen = set(rows.get_by_role("rowheader").all_inner_texts())
    visitor.follow("Next page")
    more = set(rows.get_by_role("rowheader").all_inner_texts())
    assert more
    assert not seen & more
    assert len(seen | more) == 71
    visitor.follow("From the start")

    page.locator("[name=status]").select_option("succeeded")
    page.locator("[name=benchmark]").select_option("accuracy")
    visitor.press("Filter")
    visitor.reads("35 runs")
    visitor.follow("Score")
    assert rows.get_by_role("rowheader").all_inner_texts()[:2] == [made[2].name, made[0].name]
    assert "status=succeeded" in page.url
    for name in (made[0].name, made[2].name):
        page.get_by_label(f"Choose {name}").check()
    visitor.press("Compare chosen")
    for text in (made[0].name, made[2].name, "0.90"):
        visitor.reads(text, within=visitor.main)
    page.go_back()
    page.get_by_label("Remove the filter", exact=False).first.click()
    visitor.follow("Show all")
    visitor.reads("71 runs")


def test_a_request_is_refused_with_words_and_a_sweep_is_asked_for_and_stopped(visit: Visit) -> None:
    laboratory = held_laboratory()
    run = ask(laboratory, "odd-idea")
    approver = visit(make_member(laboratory.workspace, "approver", "grace"), java_script_enabled=False)
    approver.go("/workspaces/lab/approvals/")
    approver.page.get_by_role("listitem").filter(has_text="why odd-idea is worth it").get_by_role("link").first.click()
    approver.page.get_by_label("Comment").fill("not this week")
    approver.press("Refuse", within=approver.main)
    approver.reads("not this week")
    assert status_of(laboratory, run) == "aborted"

    visitor = signed_in(visit, laboratory)
    page = visitor.page
    visitor.go("/workspaces/lab/sweeps/new/")
    page.get_by_label("Benchmark", exact=True).select_option("accuracy")
    page.get_by_label("Agent", exact=True).select_option("worker")
    page.get_by_label("table").check()
    page.get_by_label("Seeds", exact=True).fill("1..3")
    visitor.press("Check")
    visitor.reads("3 seeds")
    visitor.press("Launch sweep")
    page.locator("summary", has_text="Stop sweep").click()
    page.locator("form[action$='/stop/'] [name=reason]").fill("a better idea")
    visitor.press("Stop sweep")
    visitor.reads("a better idea")
    with laboratory.opened():
        assert Sweep.objects.get().status == "stopped"
