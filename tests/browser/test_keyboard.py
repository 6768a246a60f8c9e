"""The keyboard alone: the skip link, a focus that can be seen, shortcuts, menus and dialogs that give the focus back."""

import pytest

from tests.browser.conftest import Visit
from tests.browser.visitor import Visitor
from tests.factories_runs import make_laboratory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
FOCUS = """() => { const e = document.activeElement, s = getComputedStyle(e), b = e.getBoundingClientRect();
    return {tag: e.tagName, text: (e.innerText || e.getAttribute('aria-label') || e.name || '').trim().slice(0, 40),
        seen: (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== 'none',
        there: b.width > 0 && b.height > 0 && b.bottom > 0 && b.top < innerHeight}; }"""


@pytest.fixture
def visitor(visit: Visit) -> Visitor:
    visitor = visit(make_laboratory().owner)
    visitor.go("/workspaces/lab/")
    return visitor


def test_the_first_key_leads_to_the_content(visitor: Visitor) -> None:
    visitor.page.keyboard.press("Tab")
    assert visitor.page.evaluate(FOCUS)["text"] == "To the content"
    assert visitor.page.evaluate(FOCUS)["there"], "the skip link cannot be seen"
    visitor.page.keyboard.press("Enter")
    assert visitor.page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("path", ["/workspaces/lab/", "/workspaces/lab/runs/launch/", "/workspaces/lab/members/"])
def test_the_focus_can_be_seen_everywhere(visitor: Visitor, path: str) -> None:
    visitor.go(path)
    unseen, met = [], set()
    for _ in range(80):
        visitor.page.keyboard.press("Tab")
        focus = visitor.page.evaluate(FOCUS)
        if focus["tag"] == "BODY":
            break
        met.add(focus["text"])
        if not (focus["seen"] and focus["there"]):
            unseen.append(focus)
    assert not unseen, unseen
    assert len(met) > 8


def test_shortcuts_menus_and_dialogs(visitor: Visitor) -> None:
    page = visitor.page
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    dialog.wait_for()
    assert not visitor.barriers()
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")

    menu = page.locator("summary[aria-label$='account']")
    menu.focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Preferences").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Preferences").wait_for(state="hidden")
    assert str(page.evaluate("document.activeElement.getAttribute('aria-label')")).endswith("account")

    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_url("**/workspaces/lab/runs/")
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.wait_for_url("**/workspaces/lab/")
    if page.locator("[data-search]").count():
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.matches('[data-search]')")


def test_a_launch_by_keyboard(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/workspaces/lab/runs/launch/")
    page.get_by_label("Benchmark", exact=True).focus()
    page.keyboard.type("acc")
    page.keyboard.press("Tab")
    page.keyboard.type("wor")
    page.keyboard.press("Tab")
    visitor.reads("Reserved now, at most")
    button = page.get_by_role("button", name="Launch", exact=True)
    for _ in range(40):
        page.keyboard.press("Tab")
        if button.evaluate("e => e === document.activeElement"):
            break
    page.keyboard.press("Enter")
    visitor.reads("queued")


@pytest.mark.parametrize(("path", "varied", "button"), [("runs/launch", "", "Launch"), ("sweeps/new", "Seeds", "Launch sweep")])
def test_leaving_the_last_field_launches_nothing_and_keeps_the_place(visitor: Visitor, path: str, varied: str, button: str) -> None:
    page, there = visitor.page, f"/workspaces/lab/{path}/"
    visitor.go(f"{there}?benchmark=accuracy&agent=worker&datasets=table")
    if varied:
        page.get_by_label(varied, exact=True).fill("1..2")
        page.get_by_label(varied, exact=True).blur()
        visitor.reads("2 seeds")
    page.get_by_label("Why").fill("to see")
    launch = page.get_by_role("button", name=button, exact=True)
    with page.expect_response(lambda answer: answer.request.method == "POST") as drafted:
        for _ in range(10):
            page.keyboard.press("Tab")
            if launch.evaluate("e => e === document.activeElement"):
                break
    assert drafted.value.status == 200
    page.wait_for_load_state("networkidle")
    assert page.url.split("?")[0].endswith(there)
    assert launch.evaluate("e => e === document.activeElement"), "the place on the page was lost"
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: there not in url)
