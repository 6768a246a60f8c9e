"""Withdrawing a window and taking that back, by somebody who sees only what the pages show; wide and on a phone, light and dark."""

import re

import pytest

from runs.models import Run
from tests.browser.conftest import Visit
from tests.browser.visitor import Visitor
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.story import live_story, make_story_laboratory
from tests.runs.test_home_seeds import HOSTILE, STEADY, publish, score

pytestmark = [pytest.mark.browser, pytest.mark.pool, pytest.mark.django_db(transaction=True)]
WHY = "Games of one <script>contributor</script> were made up, and every checkpoint that learned from them plays for a draw it has not earned."


@pytest.fixture
def laboratory() -> Laboratory:
    return make_story_laboratory()


@pytest.fixture
def runs(laboratory: Laboratory) -> dict[str, Run]:
    return live_story(laboratory)


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_a_window_is_withdrawn_and_comes_back(visit: Visit, laboratory: Laboratory, runs: dict[str, Run], width: int, scheme: str) -> None:
    visitor = visit(laboratory.owner, width=width, scheme=scheme)
    visitor.go("/workspaces/lab/withdrawals/")
    visitor.reads("Nothing is withdrawn")
    visitor.shoot("none")
    visitor.go("/workspaces/lab/datasets/self-play-window-1/")
    visitor.follow("Withdraw")
    visitor.reads("Nothing is deleted")
    visitor.reads("Would lead")
    seen(visitor, "preview")
    visitor.page.get_by_label("Why it is not to be rested on").fill(WHY)
    visitor.press("Withdraw it")
    visitor.reads("Withdrawn with it")
    seen(visitor, "withdrawn")
    address = visitor.page.url
    visitor.go("/workspaces/lab/withdrawals/")
    seen(visitor, "list")
    visitor.go("/workspaces/lab/benchmarks/accuracy/")
    visitor.reads("1 score rests on what was withdrawn")
    seen(visitor, "board")
    visitor.go(f"/workspaces/lab/runs/{runs['trainer'].public_id}/")
    seen(visitor, "run")
    visitor.follow(re.compile("is withdrawn"))
    assert visitor.page.url == address
    visitor.page.get_by_label("Why", exact=True).fill("They were played after all.")
    visitor.press("Undo the withdrawal")
    visitor.reads("is not any more")
    seen(visitor, "undone")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")])
def test_rows_of_seeds_lead_the_preview(visit: Visit, width: int, scheme: str) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        publish(laboratory)
        score(laboratory, f"{HOSTILE} {'long ' * 20}", STEADY)
        first, second = score(laboratory, 2, (0.99, 0.70))
    visitor = visit(laboratory.owner, width=width, scheme=scheme)
    visitor.go(f"/workspaces/lab/withdrawals/new/?kind=run&id={first.public_id}")
    visitor.reads("mean of 2 runs")
    visitor.reads("Scores that go")
    visitor.reads(HOSTILE)
    seen(visitor, "another")
    visitor.go(f"/workspaces/lab/withdrawals/new/?kind=run&id={second.public_id}")
    visitor.reads("mean of 1 run")
    seen(visitor, "same")


def seen(visitor: Visitor, name: str) -> None:
    assert not visitor.barriers()
    assert not visitor.sideways()
    visitor.shoot(name)
