"""A queue that is longer than a page: every run that waits is reached, its place and reason are the same on each, and one's own come first."""

import re
from html import unescape

import pytest
from django.test import Client

from runs.models import Run
from runs.queries.queue import waiting_of, waiting_runs
from tests.factories import make_member
from tests.factories_pages import client_of
from tests.factories_resources import join
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.access import Actor, Role
from workspaces.commands.member import remove_member
from workspaces.commands.pool import bind_pool
from workspaces.models import Membership, Pool
from workspaces.queries import paging

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/workspaces/lab/queue/"
API = "/api/v1/workspaces/lab/queue"


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    """Seven runs wait for `local`, the first of which may not start any more; two for `zoo`."""
    monkeypatch.setattr("runs.views.queue.SHOWN", 3)
    laboratory = make_laboratory()
    with laboratory.opened():
        bind_pool(actor=laboratory.owner, engine="local", slug="zoo", slots=4, isolation=Pool.Isolation.NONE)
        bob = make_member(laboratory.workspace, Role.RESEARCHER, "bob")
        launch(Laboratory(laboratory.workspace, bob))
        remove_member(actor=laboratory.owner, member=Membership.objects.get(user=bob.user).public_id)
        for pool in ("local",) * 6 + ("zoo",) * 2:
            launch(laboratory, pool=pool)
    return laboratory


def newcomer(lab: Laboratory) -> tuple[Actor, Run]:
    """Somebody whose run waits behind all others of `local`."""
    with lab.opened():
        ada = join(lab.owner, "ada", Role.RESEARCHER)
        return ada, launch(Laboratory(lab.workspace, ada))


def shown(browser: Client, url: str = PAGE) -> list[tuple[str, int]]:
    """Runs and places in the table of every page of the list, one after the other."""
    found: list[tuple[str, int]] = []
    for _ in range(20):
        page = browser.get(url).content.decode()
        rows = page.partition('id="waiting"')[2].partition("</section>")[0].split("<tr>")[2:]
        found += [(re.findall(r"runs/([^/]+)/", row)[0], int(re.findall(r'class="figure">(\d+)', row)[0])) for row in rows]
        more = re.search(r'href="([^"]+)" rel="next"', page)
        if more is None:
            return found
        url = PAGE + unescape(more[1])
    raise AssertionError("the pages have no end")


def test_every_run_that_waits_is_reached_page_by_page(lab: Laboratory) -> None:
    browser = client_of(lab.owner)
    with lab.opened():
        whole = waiting_runs().items
        assert [entry.place for entry in whole] == [1, 2, 3, 4, 5, 6, 7, 1, 2]
        assert all(waiting_of(entry.run, lab.workspace) == entry for entry in whole)
    expected = [(entry.run.public_id, entry.place) for entry in whole]
    assert shown(browser) == expected
    assert shown(browser, f"{PAGE}?pool=zoo") == expected[7:]
    assert shown(browser, f"{PAGE}?pool=local") == expected[:7]
    first = browser.get(f"{PAGE}?pool=local").content.decode()
    assert "3 shown of 7" in first
    assert "part=live" in re.findall(r'hx-get="([^"]+)"', first)[0]
    assert "pool=local" in re.findall(r'hx-get="([^"]+)"', first)[0], "what is fetched anew is the same part"
    assert "No run waits here; others do." in browser.get(f"{PAGE}?pool=none").content.decode()


def test_the_api_pages_through_all_and_says_the_same_on_each(lab: Laboratory) -> None:
    browser = client_of(lab.owner)
    whole = browser.get(API).json()["items"]
    assert "5 runs go first on local." in whole[6]["reason"], "the one that may not start is passed"
    paged, answer = [], {"next": ""}
    while answer["next"] is not None:
        answer = browser.get(API, {"limit": "2", "cursor": answer["next"]}).json()
        paged += answer["items"]
    assert paged == whole
    for place in (
        ["local", 1],
        ["a\0b", 0, 1, "0" * 32],
        ["local", 0, 1, "x"],
        ["local", "x", 1, "0" * 32],
        ["local", 10**30, 1, "0" * 32],
    ):
        cursor = paging._write(place)
        assert browser.get(API, {"cursor": cursor}).status_code < 500, place
        assert browser.get(PAGE, {"after": cursor}).status_code == 200, place


def test_own_runs_are_told_however_far_behind_they_wait(lab: Laboratory) -> None:
    viewer = client_of(make_member(lab.workspace, Role.VIEWER, "vera")).get(PAGE).content.decode()
    assert "9 runs wait" in viewer
    assert "None of them is yours" in viewer
    ada, run = newcomer(lab)
    page = client_of(ada).get(PAGE).content.decode()
    assert re.search(rf"<h1><bdi>{run.name}</bdi> is number 8 on local", page)
    assert "6 runs go first on local." in page
    assert run.public_id in page.partition('id="own"')[2].partition("</section>")[0]
    assert "3 shown of 10" in page
    owner = client_of(lab.owner).get(PAGE).content.decode()
    assert "7 more of yours wait." in owner
    assert client_of(lab.owner).get(f"{PAGE}?pool=zoo").content.decode().count("number 2 on local") == 2, "own ones of other pools too"
