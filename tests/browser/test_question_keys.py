"""A question of a policy is answered from the keyboard at the width of a phone, and its words stay words."""

import pytest

from tests.browser.conftest import Visit
from tests.factories_runs import make_laboratory
from tests.runs.test_policy import approver
from tests.runs.test_questions import HOSTILE, asked
from workspaces.models import Approval, ApprovalVote

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_question_is_answered_without_a_mouse(visit: Visit, scheme: str) -> None:
    laboratory = make_laboratory(weekly_gpu_hours=100)
    question = asked(laboratory, {"question": f"{HOSTILE} {'word ' * 150}".strip(), "choices": ["x" * 100, "no"]})
    with laboratory.opened():
        visitor = visit(approver(laboratory), scheme=scheme)
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 844})
    for path in (f"decisions/{question.subject_id.hex}/", "approvals/", f"approvals/{question.public_id}/"):
        visitor.go(f"/workspaces/lab/{path}")
        assert not visitor.sideways()
        assert not visitor.barriers()
    page.locator("[name=answer]").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("a")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    visitor.reads("answered")
    assert not visitor.sideways()
    with laboratory.opened():
        assert ApprovalVote.objects.get(approval=question).answer == "no"
        assert Approval.objects.get(pk=question.pk).status == Approval.Status.APPROVED
