"""A request is decided on, and asked about, from the keyboard and at the width of a phone."""

import pytest

from tests.browser.conftest import Visit
from tests.factories import make_member
from tests.factories_runs import HOUR, launch, make_laboratory
from workspaces.commands.limit import set_limit
from workspaces.models import Approval, ApprovalComment, Limit, Unit

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_keys_lead_to_the_buttons_and_enter_presses_them(visit: Visit) -> None:
    laboratory = make_laboratory(weekly_gpu_hours=100)
    with laboratory.opened():
        set_limit(actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=HOUR, mode=Limit.Mode.APPROVAL)
        launch(laboratory, gpu_ms=2 * HOUR)
        approval = Approval.objects.get()
        visitor = visit(make_member(laboratory.workspace, "approver", "curie"))
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 844})
    visitor.go(f"/workspaces/lab/approvals/{approval.public_id}/")
    for key, element in (("a", "value=approve"), ("r", "value=refuse"), ("c", "name=comment")):
        page.keyboard.press(key)
        assert page.locator(f"[{element}]:focus").count() == 1, key
        page.evaluate("document.activeElement.blur()")
    page.keyboard.press("q")
    page.keyboard.type("Are 2 hours enough?")  # letters of a text are no shortcuts
    page.keyboard.press("Tab")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    with laboratory.opened():
        assert ApprovalComment.objects.get().text == "Are 2 hours enough?"
        approval.refresh_from_db()
        assert approval.status == Approval.Status.PENDING
    page.keyboard.press("a")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    with laboratory.opened():
        approval.refresh_from_db()
        assert approval.status == Approval.Status.APPROVED
    assert not visitor.sideways()
