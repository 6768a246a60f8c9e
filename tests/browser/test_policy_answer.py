"""Who asks what a version would have changed sees the answer next, and not the top of a long form."""

import json

import pytest

from runs.commands.decision import decide_now
from tests.browser.conftest import Visit
from tests.factories_runs import make_laboratory
from tests.runs.test_policy import DOCUMENT, approved

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("width", [1440, 390])
def test_the_answer_is_what_one_sees_next(visit: Visit, width: int) -> None:
    laboratory = make_laboratory(weekly_gpu_hours=1000)
    with laboratory.opened():
        decide_now(actor=laboratory.owner, policy=approved(laboratory))
        visitor = visit(laboratory.owner, width=width)
    page = visitor.page
    visitor.expected = {422}
    visitor.go("/workspaces/lab/policies/next-sweep/propose/")
    choose = DOCUMENT["action"]["choose"] | {"axes": {"rate": [0.1, 0.2, 0.3, 0.7]}}
    for document, answer in (
        (DOCUMENT | {"action": DOCUMENT["action"] | {"choose": choose}}, "1 would have been another"),
        (DOCUMENT | {"conditions": [{"check": "nonsense"}]}, "The document is not taken"),
    ):
        page.locator("#document").fill(json.dumps(document))
        with page.expect_navigation():
            page.get_by_role("button", name="What would it have changed?").click()
        visitor.reads(answer)
        visitor.shoot(f"answer-{width}")
        top = page.locator("#would-have-changed").evaluate("element => element.getBoundingClientRect().top")
        bar = page.locator("#would-have-changed").evaluate("element => document.querySelector('header').getBoundingClientRect().bottom")
        assert bar <= top < 850, "in sight, and below the bar; little may follow it to scroll to"
        assert not visitor.sideways()
        assert not visitor.barriers()
