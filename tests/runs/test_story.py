"""The story of a run by clicks alone: from a score back to everything that it rests on, and from each of these things forward again."""

import re
from html import unescape
from urllib.parse import urldefrag, urljoin

import pytest
from django.test import Client

from runs.models import Artifact, Run
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.story import live_story, make_story_laboratory

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = "/workspaces/lab"


class Reader:
    """Somebody who knows no address, and goes only where a page of the work leads."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.seen: dict[str, str] = {}  # address -> body

    def read(self, address: str) -> str:
        address = urldefrag(address).url
        if address not in self.seen:
            response = self.client.get(address)
            assert response.status_code == 200, f"{address} answers {response.status_code}"
            self.seen[address] = response.content.decode()
        return self.seen[address]

    def links(self, address: str) -> list[str]:
        """What the page's own part leads to, without the frame that every page has."""
        body = self.read(address)
        main = body[body.index("<main") : body.index("</main>")]
        return [urljoin(address, unescape(link)) for link in re.findall(r'<a\b[^>]*?href="([^"]*)"', main.replace("\n", " "))]

    def go(self, start: str, goal: str) -> str:
        """Click the one link of the page whose whole address the pattern `goal` describes."""
        found = [link for link in self.links(start) if re.fullmatch(goal, link)]
        assert found, f"{start} leads nowhere like {goal}"
        self.read(found[0])
        return found[0]


@pytest.fixture
def laboratory() -> Laboratory:
    return make_story_laboratory()


@pytest.fixture
def chain(laboratory: Laboratory) -> dict[str, Run]:
    return live_story(laboratory)


def test_from_a_score_back_to_everything_it_rests_on(laboratory: Laboratory, chain: dict[str, Run]) -> None:
    reader = Reader(client_of(laboratory.owner))
    person = laboratory.owner.user
    assert person

    evaluation = reader.go(f"{ROOT}/benchmarks/accuracy/", rf"{ROOT}/runs/{chain['judge'].public_id}/")
    assert "0.750 ± 0.020" in reader.read(evaluation)
    assert reader.go(evaluation, rf"{ROOT}/benchmarks/accuracy/")
    checkpoint = reader.go(evaluation, rf"{ROOT}/artifacts/art_\w+/")
    assert "checkpoint &lt;b&gt;" in reader.read(checkpoint)
    training = reader.go(checkpoint, rf"{ROOT}/runs/{chain['trainer'].public_id}/")
    window = reader.go(training, rf"{ROOT}/datasets/self-play-window-1/\?version=1")
    game = reader.go(window, rf"{ROOT}/runs/{chain['player'].public_id}/")
    agent = reader.go(game, rf"{ROOT}/agents/worker/#version-1")
    assert 'id="version-1"' in reader.read(agent)
    code = reader.go(agent, rf"{ROOT}/agents/worker/\?version=1&file=main.py#code")
    assert "outputs/game-" in reader.read(code)

    for run in (evaluation, training, game):
        assert reader.go(run, rf"{ROOT}/runs/\?person={person.username}")
        budget = reader.go(run, rf"{run}\?tab=cost")
        assert "Reserve" in reader.read(budget)
        ledger = reader.go(budget, rf"{ROOT}/ledger/")
        assert reader.go(ledger, re.escape(run))
        record = reader.go(run, rf"{run}\?tab=audit")
        event = reader.go(record, rf"{ROOT}/audit/event_\w+/")
        assert reader.go(event, rf"{ROOT}/runs/[\w-]+/")


def test_from_each_thing_forward_to_what_came_of_it(laboratory: Laboratory, chain: dict[str, Run]) -> None:
    reader = Reader(client_of(laboratory.owner))
    player, trainer, judge = (f"{ROOT}/runs/{chain[name].public_id}/" for name in ("player", "trainer", "judge"))

    left = reader.go(player, rf"{player}\?tab=files")
    window = reader.go(left, rf"{ROOT}/datasets/self-play-window-1/")
    live = reader.go(left, rf"{ROOT}/datasets/self-play/")
    assert reader.go(live, re.escape(window)) == window
    games = reader.go(left, rf"{ROOT}/artifacts/art_\w+/")
    assert reader.go(games, re.escape(window)) == window  # which window does this file stand in?
    assert reader.go(window, re.escape(trainer)) == trainer  # which runs used this window?
    made = reader.go(trainer, rf"{trainer}\?tab=files")
    assert reader.go(made, re.escape(judge)) == judge
    checkpoint = reader.go(made, rf"{ROOT}/artifacts/art_\w+/")
    assert "0.750 ± 0.020" in reader.read(checkpoint)  # which scores rest on this artifact?
    assert reader.go(checkpoint, re.escape(judge)) == judge
    assert reader.go(checkpoint, rf"{ROOT}/benchmarks/accuracy/")
    agent = reader.go(judge, rf"{ROOT}/agents/judge/#version-1")
    runs = reader.go(agent, rf"{ROOT}/runs/\?agent=judge")
    assert reader.go(runs, re.escape(judge)) == judge
    person = reader.go(judge, rf"{ROOT}/runs/\?person=[\w-]+")
    assert all(reader.go(person, re.escape(run)) for run in (player, trainer, judge))


def test_no_page_of_the_story_leads_into_nothing(laboratory: Laboratory, chain: dict[str, Run]) -> None:
    client = client_of(laboratory.owner)
    reader = Reader(client)
    tabs = ("overview", "log", "metrics", "files", "certificate", "cost", "audit")
    pages = [f"{ROOT}/runs/{run.public_id}/?tab={tab}" for run in chain.values() for tab in tabs]
    pages += [
        f"{ROOT}/{rest}" for rest in ("runs/", "datasets/self-play/", "datasets/self-play-window-1/", "artifacts/", "ledger/", "audit/")
    ]
    with laboratory.opened():
        pages += [f"{ROOT}/artifacts/{artifact.public_id}/" for artifact in Artifact.objects.all()]
    pages += [f"{ROOT}/{rest}" for rest in ("agents/worker/", "benchmarks/accuracy/", "budget/", "audit/1/", "audit/12/")]
    broken = {}
    for address in sorted({urldefrag(link).url for page in pages for link in reader.links(page)}):
        if address.startswith(f"{ROOT}/") and address not in reader.seen:
            response = client.get(address)
            if response.status_code >= 400:
                broken[address] = response.status_code
            response.close()
    assert not broken


def test_a_stranger_is_led_nowhere(laboratory: Laboratory, chain: dict[str, Run]) -> None:
    other = make_laboratory("other")
    with laboratory.opened():
        artifact = Artifact.objects.get(kind="checkpoint")
    stranger = client_of(other.owner)
    for workspace in ("lab", "other"):
        for rest in ("", "file/"):
            assert stranger.get(f"/workspaces/{workspace}/artifacts/{artifact.public_id}/{rest}").status_code == 404
