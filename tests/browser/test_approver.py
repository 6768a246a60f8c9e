"""An approver's day: what waits for them, deciding on the home page and on the request's own page, and never on what they asked for themselves."""

import pytest

from runs.models import Run
from tests.browser.conftest import Visit
from tests.factories import make_member
from tests.factories_runs import HOUR, Laboratory, launch, make_laboratory
from workspaces.access import Actor
from workspaces.commands.limit import set_limit
from workspaces.models import Approval, Limit, Unit

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def held_laboratory() -> Laboratory:
    """Runs above one GPU-hour wait for an approver."""
    laboratory = make_laboratory()
    with laboratory.opened():
        set_limit(
            actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=HOUR, mode=Limit.Mode.APPROVAL, reason="large runs are read"
        )  # fmt: skip
    return laboratory


def ask(laboratory: Laboratory, name: str) -> Run:
    with laboratory.opened():
        run = launch(laboratory, gpu_ms=4 * HOUR, name=name, reason=f"why {name} is worth it")
    assert run.status == "awaiting_approval"
    return run


def status_of(laboratory: Laboratory, run: Run) -> str:
    with laboratory.opened():
        return Run.objects.get(pk=run.pk).status


@pytest.fixture
def laboratory(transactional_db: None) -> Laboratory:
    return held_laboratory()


@pytest.fixture
def approver(laboratory: Laboratory) -> Actor:
    return make_member(laboratory.workspace, "approver", "grace")


def test_deciding_on_home_and_on_the_request(visit: Visit, laboratory: Laboratory, approver: Actor) -> None:
    first, second, third = (ask(laboratory, name) for name in ("early-bird", "wide-sweep", "odd-idea"))
    visitor = visit(approver)

    visitor.go("/workspaces/lab/")
    decisions = visitor.page.locator("section").filter(has=visitor.page.get_by_role("heading", name="Needs a decision")).last
    visitor.reads("why early-bird is worth it", within=decisions)
    visitor.shoot("home")
    row = decisions.get_by_role("listitem").filter(has_text="why early-bird is worth it")
    visitor.press("Approve", within=row)
    row.wait_for(state="detached")
    assert status_of(laboratory, first) == "queued"

    visitor.follow("Approvals 2", within=visitor.page.get_by_role("navigation", name="Pages", exact=True))
    visitor.reads("2 requests wait for a decision")
    visitor.page.get_by_role("listitem").filter(has_text="why wide-sweep is worth it").get_by_role("link").first.click()
    visitor.reads("Limits and rules, as they stood when it was asked")
    visitor.shoot("request")
    visitor.page.get_by_label("Comment").fill("worth a try")
    visitor.press("Approve", within=visitor.main)
    visitor.reads("worth a try")
    assert status_of(laboratory, second) == "queued"

    visitor.go("/workspaces/lab/approvals/")
    visitor.page.get_by_role("listitem").filter(has_text="why odd-idea is worth it").get_by_role("link").first.click()
    visitor.page.get_by_label("Comment").fill("not this week")
    visitor.press("Refuse", within=visitor.main)
    visitor.reads("not this week")
    assert status_of(laboratory, third) == "aborted"


def test_nobody_decides_on_their_own(visit: Visit, laboratory: Laboratory) -> None:
    run = ask(laboratory, "self-serving")
    with laboratory.opened():
        request = Approval.objects.get()
    visitor = visit(laboratory.owner)  # an owner may approve, only not this
    visitor.go("/workspaces/lab/")
    visitor.reads("why self-serving is worth it")
    assert not visitor.page.get_by_role("button", name="Approve").count()
    visitor.go(f"/workspaces/lab/approvals/{request.public_id}/")
    assert not visitor.page.get_by_role("button", name="Approve").count()
    visitor.shoot("own")
    # Whoever writes the form by hand meets the same answer in words.
    token = visitor.page.locator("[name=csrfmiddlewaretoken]").first.input_value()
    answer = visitor.page.request.post(
        f"/workspaces/lab/approvals/{request.public_id}/decide/",
        form={"csrfmiddlewaretoken": token, "decision": "approve", "seen_hash": request.content_hash},
    )
    assert answer.status == 409
    assert "Your decision was not recorded" in answer.text()
    assert status_of(laboratory, run) == "awaiting_approval"
