"""One dataset among many on the launch form: found by typing, with the keyboard alone, and on a phone without JavaScript."""

import pytest

from tests.browser.conftest import Visit
from tests.factories_registry import make_dataset_version
from tests.factories_runs import Laboratory, make_laboratory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
FORM = "/workspaces/lab/runs/launch/?benchmark=accuracy&agent=worker"


@pytest.fixture
def laboratory() -> Laboratory:
    laboratory = make_laboratory()
    with laboratory.opened():
        for number in range(1, 71):
            make_dataset_version(laboratory.owner, f"self-play-window-{number}", content=f"a,b\n{number},0\n".encode())
    return laboratory


def test_typing_a_part_of_the_name_leaves_few_and_keeps_what_is_chosen(visit: Visit, laboratory: Laboratory) -> None:
    visitor = visit(laboratory.owner)
    page = visitor.page
    visitor.go(FORM)
    visitor.reads("The first 60 of 71 are shown")
    find = page.get_by_label("Look for datasets by name or id")
    find.focus()
    page.keyboard.type("window-7")
    visitor.reads("2 found.")
    assert find.evaluate("e => e === document.activeElement"), "the place on the page was lost while typing"
    page.keyboard.press("Tab")  # the button
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    chosen = page.get_by_role("checkbox", checked=True)
    chosen.wait_for()
    name = chosen.get_attribute("value")
    assert name in ("self-play-window-7", "self-play-window-70")
    find.fill("table")
    visitor.reads("1 found.")
    assert page.get_by_role("checkbox").count() == 2
    assert page.get_by_role("checkbox", checked=True).get_attribute("value") == name
    assert not visitor.barriers()
    visitor.shoot("few")


def test_on_a_phone_without_script(visit: Visit, laboratory: Laboratory) -> None:
    visitor = visit(laboratory.owner, width=390, java_script_enabled=False)
    page = visitor.page
    visitor.go(FORM)
    find = page.get_by_label("Look for datasets by name or id")
    box = find.bounding_box()
    assert box is not None
    assert box["width"] > 150
    find.fill("window-69")
    find.press("Enter")
    visitor.reads("1 found.")
    visitor.shoot("found")
    page.get_by_label("self-play-window-69").check()
    page.get_by_label("Look for datasets by name or id").fill("")
    visitor.press("Filter")
    assert page.get_by_label("self-play-window-69", exact=False).first.is_checked()
    page.get_by_label("Why").fill("found by name")
    visitor.press("Launch")
    visitor.reads("queued")
    with laboratory.opened():
        visitor.reads("self-play-window-69")
