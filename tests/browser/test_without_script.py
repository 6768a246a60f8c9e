"""Everything that must work without JavaScript: signing in, an estimate, a launch, a decision, a refusal, a menu."""

from pathlib import Path

import pytest

from runs.models import Run
from tests.browser.conftest import Visit
from tests.browser.test_approver import held_laboratory, status_of
from tests.factories import make_member

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
