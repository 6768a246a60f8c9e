"""Each number on the home page leads to the list behind it: its HTML is walked, and figures that stand outside a link are found."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import urljoin

import pytest
from django.utils import timezone

from runs.models import Artifact, Attempt, Run
from tests.factories_pages import add_artifact, add_attempt, add_line, client_of, copy_runs, score_runs, see, set_run
from tests.factories_runs import HOUR, Laboratory, launch, make_laboratory
from tests.runs.test_home_parts import add_piece, sampled
from workspaces.commands.dataset import create_dataset
from workspaces.commands.limit import set_limit
from workspaces.commands.live_dataset import cut_window, make_live
from workspaces.commands.objective import set_objective
from workspaces.commands.pool import bind_pool, change_pool
from workspaces.models import Limit, Unit

HOME = "/workspaces/lab/"
WITHOUT_LINK = {
    "time": "an instant is no count of anything",
    "bdi": "a name, or words that a person or a program wrote",
    "svg": "a drawing; its figure stands beside it as a link",
    "progress": "the same percentage stands beside it as a link",
    "title=This browser remembers no earlier visit of yours.": "24 hours is what the page compares with",
    "id=blocked": "whole sentences; the button beside each leads to what is behind it",
}
EMPTY = frozenset({"br", "img", "input", "link", "meta", "hr", "use", "line", "rect", "circle", "path"})


class Page(HTMLParser):
    """What of the page's content stands inside links and what does not."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.outside: list[str] = []
        self.links: list[tuple[str, str]] = []  # (text, address)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links.append(("", dict(attrs).get("href") or ""))
        if tag not in EMPTY:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in [name for name, _ in self.open]:  # an empty element that closes itself was never opened
            while self.open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self.open]
        if "main" not in tags or not data.strip():
            return
        if "a" in tags:
            text, address = self.links[-1]
            self.links[-1] = (f"{text} {data.strip()}".strip(), address)
        elif re.search(r"\d", data) and not any(reason in WITHOUT_LINK for reason in self._reasons()):
            self.outside.append(" ".join(data.split()))

    def _reasons(self) -> Iterator[str]:
        for tag, attributes in self.open:
            yield tag
            yield from (f"{name}={value}" for name, value in attributes.items())


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    """Something of everything that the home page counts."""
    laboratory = make_laboratory(at_once=9, slots=9)
    owner = laboratory.owner
    with laboratory.opened():
        set_objective(actor=owner, statement="Raise accuracy to 0.99 by May", benchmark="accuracy", target=0.99, due_on=None)
        set_limit(actor=owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=HOUR, mode=Limit.Mode.APPROVAL, reason="r")
        scored = copy_runs(actor=owner, pattern=launch(laboratory), count=2)
        made = add_artifact(actor=owner, run=scored[0], path="model.json", content=b"{}", kind="model")
        assert Artifact.objects.get().pk == made.pk
        score_runs(actor=owner, scores={scored[0]: (0.975, 0.033), scored[1]: (0.9, 0.05)}, subject_artifact=made)
        sampled(laboratory, cpu_percent=[150], memory_bytes=[5e8], gpu_0_percent=[20])
        sampled(laboratory)
        going = launch(laboratory, name="run 7")
        set_run(actor=owner, run=going, status="running", started_at=timezone.now())
        attempt = add_attempt(actor=owner, run=going)
        for other in Attempt.objects.exclude(pk=attempt.pk):
            see(other)
        see(attempt, progress_done=3.0, progress_total=5.0, progress_text="3 of 5")
        add_line(attempt, 1, "memory_write", collection="c", kind="fact", body={"text": "lesson 4"})
        launch(laboratory, name="too dear", gpu_ms=2 * HOUR)
        games = make_live(actor=owner, dataset=create_dataset(actor=owner, slug="games", name="Games"))
        for number in (1, 2):
            add_piece(actor=owner, dataset=games, number=number, records=180)
            if number == 1:
                cut_window(actor=owner, dataset=games)
        spare = bind_pool(actor=owner, engine="local", slug="spare", slots=2, isolation="none")
        launch(laboratory, pool="spare")
        change_pool(actor=owner, pool=spare, is_accepting=False, reason="not needed")
    return laboratory


def page_of(laboratory: Laboratory) -> Page:
    answer = client_of(laboratory.owner).get(HOME)
    assert answer.status_code == 200
    page = Page()
    page.feed(answer.content.decode())
    return page


def test_no_figure_stands_outside_a_link(laboratory: Laboratory) -> None:
    page = page_of(laboratory)
    assert page.outside == []
    assert page.open == [], "the walk went from the first tag to the last"


def test_figures_lead_to_what_is_behind_them(laboratory: Laboratory) -> None:
    page = page_of(laboratory)
    with laboratory.opened():
        leader, going = Artifact.objects.get().run, Run.objects.get(name="run 7")
    wanted = {
        r"0\.990?": "benchmarks/accuracy/",
        r"0\.015 to go": "benchmarks/accuracy/",
        r"0\.975 ± 0\.033": f"runs/{leader.public_id}/",
        r"100 GPU-hours": "budget/",
        r"CPU 1\.5 cores · memory 500(\.0)? MB · GPU 20 % · measured of 1 of 3 runs": "pools/local/",
        r"360 records · 1 window · 180 in no window yet": "datasets/games/",
        r"2 B|2 bytes": f"artifacts/{Artifact.prefix}_",
        r"contract 1": "benchmarks/accuracy/",
        r"\d+ runs?": "runs/?status=open",
        r"60 %": f"runs/{going.public_id}/",
    }
    for text, address in wanted.items():
        found = [href for shown, href in page.links if re.fullmatch(text, shown)]
        assert any(href.startswith(f"{HOME}{address}") for href in found), (
            text,
            found,
            sorted(shown for shown, _ in page.links if re.search(r"\d", shown)),
        )
    free = next(href for shown, href in page.links if re.fullmatch(r"9\d(\.\d+)?", shown))
    assert free == f"{HOME}budget/"


def test_every_link_of_a_figure_answers(laboratory: Laboratory) -> None:
    client = client_of(laboratory.owner)
    addresses = {urljoin(HOME, href).partition("#")[0] for shown, href in page_of(laboratory).links if re.search(r"\d", shown)}
    assert len(addresses) >= 8
    for address in sorted(addresses):
        assert client.get(address).status_code == 200, address


def test_the_runs_that_hold_some_of_the_budget_are_those_that_have_not_ended(laboratory: Laboratory) -> None:
    body = client_of(laboratory.owner).get(f"{HOME}runs/?status=open").content.decode()
    assert "too dear" in body
    assert "run 7" in body
