"""Every page that is declared, with real, ill-meant and no content, wide and narrow, light and dark: quiet, whole and open to everyone."""

import re
from collections.abc import Iterator
from typing import Literal

import pytest

from tests.browser.conftest import Visit
from tests.browser.laboratories import MEANT_ILL, PASSWORD, full_laboratory
from tests.browser.visitor import Visitor
from tests.factories import make_user, make_workspace
from tests.rules.routes import routes
from workspaces.access import Actor
from workspaces.models import Engine, User

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]  # each walks through all pages
NO_PAGE = {
    "start": "leads on", "livez": "for machines", "readyz": "for machines", "openapi-json": "for machines", "run-log": "a raw file",
    "dataset-file": "a file", "agent-file": "a file", "agent-bundle": "a file", "artifact-file": "a file",
    "promoted-file": "a file", "promotion-statement": "a file", "dataset-proof": "a document", "dataset-croissant": "a document",
    "lab-keys": "for machines",
}  # fmt: skip
ASKS = {"withdrawal-new": "?kind=run&id={run}"}  # what a page wants to be asked for
RUN_TABS = ("log", "metrics", "files", "certificate", "cost", "audit")
OF_ACCOUNTS = ("account_login", "account_logout", "account_change_password", "account_reauthenticate")
# Rules of axe: all once, then those whose answer the theme or the width may change.
COLOURS, NARROW = ("color-contrast", "link-in-text-block"), ("scrollable-region-focusable",)
# Each a change to the page as it is open: how wide, in which theme, by which rules; None: none.
LOOKS: tuple[tuple[int, Literal["light", "dark"], tuple[str, ...] | None], ...] = (
    (1440, "light", ()),
    (1440, "dark", COLOURS),
    (390, "dark", None),
    (390, "light", NARROW),
)


def addresses(values: dict[str, str]) -> Iterator[str]:
    """Of every page whose parts `values` fills; a part that it lacks altogether fails the test where it has a run."""
    for route in routes():
        is_page = route.door is not None and "GET" in route.door["methods"] and route.method == "GET" and not route.is_api
        if not (is_page or route.name in OF_ACCOUNTS) or route.name in NO_PAGE or route.name.endswith(("-csv", "-prov")):
            continue
        lacking = [part for part in re.findall(r"<(\w+)>", route.path) if part not in values]
        if lacking:
            assert "run" not in values, f"laboratories.py has no {lacking} for /{route.path}"
            continue
        asks = ASKS.get(route.name, "")
        if asks and "run" not in values:
            continue
        url = route.url(**values) + asks.format(**values)
        yield url
        if route.name == "run":
            yield from (f"{url}?tab={tab}" for tab in RUN_TABS)
        if route.name == "run-launch" and "run" in values:
            yield f"{url}?benchmark=accuracy&agent=worker&datasets=table&gpu_hours=2"


def judge(visitor: Visitor, url: str, *, axe: bool) -> Iterator[str]:
    """Faults of one page, in each of its looks: style sheets alone know of theme and width, so that it is loaded once."""
    visitor.page.set_viewport_size({"width": 1440, "height": 1000})
    visitor.go(url)
    name = re.sub(r"\W+", "-", url.partition("/lab/")[2] or url)[:50]
    for width, scheme, rules in LOOKS:
        visitor.page.set_viewport_size({"width": width, "height": 1000})
        visitor.page.emulate_media(color_scheme=scheme)
        visitor.shoot(f"{name}-{width}-{scheme}")
        if wide := visitor.sideways():
            yield f"{url} at {width}, {scheme}: sideways, {wide}"
        if axe and rules is not None:
            yield from (f"{url} at {width}, {scheme}: {barrier}" for barrier in visitor.barriers(*rules))
    assert not visitor.page.locator("main img[src=x], main script:not([src])").count(), f"{url} makes markup of what somebody wrote"


@pytest.mark.parametrize("names", [(), MEANT_ILL], ids=["real", "ill-meant"])
def test_pages_with_content(visit: Visit, names: tuple[str, ...]) -> None:
    laboratory, values = full_laboratory(*names)
    visitor = visit(laboratory.owner)
    faults = [fault for url in addresses(values) for fault in judge(visitor, url, axe=not names)]
    assert not faults, "\n".join(faults)


def test_pages_without_content(visit: Visit) -> None:
    owner = Actor.of(make_user("emmy", *User.SiteRole.values))
    assert owner.user
    owner.user.set_password(PASSWORD)
    owner.user.save()
    Engine.objects.create(slug="local", kind=Engine.Kind.LOCAL, slots=4)
    make_workspace("lab", owner=owner.user)
    visitor = visit(owner)
    faults = [fault for url in addresses({"workspace": "lab"}) for fault in judge(visitor, url, axe=True)]
    assert not faults, "\n".join(faults)


def test_pages_of_strangers(visit: Visit) -> None:
    """What somebody sees who has not signed in, and what says that there is nothing."""
    visitor = visit()
    visitor.expected = {404}
    faults = [fault for url in ("/accounts/login/", "/accounts/signup/", "/nowhere/") for fault in judge(visitor, url, axe=True)]
    assert not faults, "\n".join(faults)
