"""What an operator stops of somebody else's: the menu opens on the page at every width, and sends nothing without a reason."""

import pytest

from runs.commands.sweep import create_sweep
from runs.models import Run, Sweep
from tests.browser.conftest import Visit
from tests.factories import make_member
from tests.factories_pages import HOSTILE
from tests.factories_registry import make_agent_version
from tests.factories_runs import launch, make_laboratory
from tests.runs.test_sweep import GRID, REQUEST, SCHEMA

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")])
def test_stopping_what_is_anothers_takes_a_reason(visit: Visit, width: int, scheme: str) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        make_agent_version(laboratory.owner, slug="sweeper", parameter_schema=SCHEMA, wall_seconds=60)
        sweep = create_sweep(actor=laboratory.owner, name=f"{HOSTILE} {'long ' * 20}"[:100], space=GRID, request=REQUEST)
        run = launch(laboratory)
        operator = make_member(laboratory.workspace, "operator")
    visitor = visit(operator, width=width, scheme=scheme)
    page = visitor.page
    for path, opens, sends, words in (
        (f"runs/{run.public_id}/", "Cancel", "Cancel run", "Lab-Owner will read it"),
        (f"sweeps/{sweep.public_id}/", "Stop sweep", "Stop sweep", "Lab-Owner will read it"),
    ):
        visitor.go(f"/workspaces/lab/{path}")
        page.locator("details.menu summary", has_text=opens).click()
        menu = page.locator("details.menu[open] .menu-list")
        visitor.reads(words, within=menu)
        box = menu.bounding_box()
        assert box is not None
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, f"{path} opens beside the page: {box}"
        assert not visitor.sideways()
        assert not visitor.barriers()
        visitor.shoot(sends.replace(" ", "-"))
        visitor.press(sends, within=menu)
        assert page.locator("[name=reason]:invalid").count() == 1, "the browser asks for the reason"
    with laboratory.opened():
        assert Run.objects.get(pk=run.pk).status == "queued"
        assert Sweep.objects.get(pk=sweep.pk).status == "running"
    menu.get_by_role("textbox").fill("Its data is wrong")
    with page.expect_navigation():
        visitor.press("Stop sweep", within=menu)
    with laboratory.opened():
        assert Sweep.objects.get(pk=sweep.pk).status == "stopped"
