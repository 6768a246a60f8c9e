"""Where it came from and what rests on it, by clicks: from the best score of a benchmark to every window, code, person and decision under it."""

import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from labsite.owner import as_owner
from runs.models import Artifact, Evaluation, Run, RunInput
from runs.queries.lineage import Node, Way, walk
from runs.queries.lineage_edges import NodeKind
from runs.queries.lineage_graph import graph_of, groups_of
from runs.queries.lineage_nodes import Descriptions, words_of
from runs.queries.lineage_rows import RECORD, kinds_in
from tests.factories import make_user
from tests.factories_pages import HOSTILE, client_of, copy_runs
from tests.factories_runs import Laboratory
from tests.runs.story import chain_of, live_story, make_story_laboratory
from workspaces.access import Actor, Kind, Permission, Rights
from workspaces.commands.member import add_member
from workspaces.models import AgentVersion, DatasetVersion

pytestmark = pytest.mark.django_db(transaction=True)
HERE = "/workspaces/lab"


@pytest.fixture
def laboratory() -> Laboratory:
    return make_story_laboratory()


@pytest.fixture
def runs(laboratory: Laboratory) -> dict[str, Run]:
    return live_story(laboratory)


@pytest.fixture
def browser(laboratory: Laboratory) -> Client:
    return client_of(laboratory.owner)


def read(browser: Client, address: str) -> str:
    answer = browser.get(address.partition("#")[0])
    assert answer.status_code == 200, address
    return str(answer.content.decode())


def links_in(body: str) -> list[str]:
    return [unescape(found) for found in re.findall(r'href="([^"]+)"', body)]


def rows_in(body: str) -> list[str]:
    return re.findall(r"<tr>.*?</tr>", body.partition("<tbody>")[2], re.DOTALL)


def test_from_the_best_score_every_source_is_a_click_or_two_away(laboratory: Laboratory, runs: dict[str, Run], browser: Client) -> None:
    board = read(browser, f"{HERE}/benchmarks/accuracy/")
    with laboratory.opened():
        score = Evaluation.objects.get()
        window = DatasetVersion.objects.get(dataset__slug="self-play-window-1")
        codes = {f"{HERE}/agents/{version.agent.slug}/#version-{version.number}" for version in AgentVersion.objects.all()}
    lineage = f"{HERE}/evaluations/{score.public_id}/lineage/"
    page = lineage.removesuffix("lineage/")
    assert page in links_in(board)
    assert lineage in links_in(read(browser, page))
    links = links_in(read(browser, lineage))
    wanted = {
        f"{HERE}/datasets/self-play-window-1/?version={window.number}",
        f"{HERE}/datasets/table/?version=1",
        f"{HERE}/runs/?person={laboratory.owner.user}",
        *(f"{HERE}/runs/{run.public_id}/" for run in runs.values()),
        *codes,
    }
    assert wanted <= set(links)
    for link in wanted:
        read(browser, link)


def test_a_circle_which_only_a_broken_record_holds_is_drawn_once_and_ends(
    laboratory: Laboratory, runs: dict[str, Run], browser: Client
) -> None:
    """No command makes one; whoever owns the database can."""
    with laboratory.opened():
        made = Artifact.objects.get(kind="checkpoint")
    with as_owner(), laboratory.opened():
        RunInput.objects.create(run=made.run, slug="itself", kind="artifact", artifact=made, sha256="0" * 64)
    page = f"{HERE}/runs/{made.run.public_id}/lineage/"
    for address in (page, f"{page}?way=down", f"{page}?as=table", f"{HERE}/artifacts/{made.public_id}/lineage/"):
        assert made.run.public_id in read(browser, address)
    document = json.loads(read(browser, f"{page}prov.json"))
    used = [one for one in document["used"].values() if one["prov:entity"] == f"item:{made.public_id}"]
    assert f"item:{made.run.public_id}" in {one["prov:activity"] for one in used}
    generated = [one for one in document["wasGeneratedBy"].values() if one["prov:entity"] == f"item:{made.public_id}"]
    assert {one["prov:activity"] for one in generated} == {f"item:{made.run.public_id}"}


def test_every_page_of_a_thing_leads_to_its_lineage_both_ways(laboratory: Laboratory, runs: dict[str, Run], browser: Client) -> None:
    with laboratory.opened():
        checkpoint = Artifact.objects.get(kind="checkpoint")
    for page, noun in (
        (f"{HERE}/runs/{runs['trainer'].public_id}/", f"{HERE}/runs/{runs['trainer'].public_id}/lineage/"),
        (f"{HERE}/artifacts/{checkpoint.public_id}/", f"{HERE}/artifacts/{checkpoint.public_id}/lineage/"),
        (f"{HERE}/datasets/self-play-window-1/", f"{HERE}/datasets/self-play-window-1/versions/1/lineage/"),
        (f"{HERE}/agents/judge/", f"{HERE}/agents/judge/versions/1/lineage/"),
        (f"{HERE}/benchmarks/accuracy/", f"{HERE}/benchmarks/accuracy/contracts/1/lineage/"),
    ):
        links = links_in(read(browser, page))
        assert {noun, f"{noun}?way=down"} <= set(links), page
        assert "<svg" in read(browser, noun)
        assert "<svg" in read(browser, f"{noun}?way=down")


def test_the_table_says_in_words_what_each_thing_is_to_the_next(laboratory: Laboratory, runs: dict[str, Run], browser: Client) -> None:
    with laboratory.opened():
        score = Evaluation.objects.get()
    rows = rows_in(read(browser, f"{HERE}/evaluations/{score.public_id}/lineage/"))
    words = [re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", row))).strip() for row in rows]
    found = next(row for row in words if row.startswith("dataset Self-play"))
    assert re.search(r"read by trainer <i> used 3 ", found), found
    assert any(row.startswith("run judge <i>") and "measured accuracy 0.75" in row and "wasGeneratedBy 1" in row for row in words)
    below = rows_in(read(browser, f"{HERE}/datasets/self-play-window-1/versions/1/lineage/?way=down"))
    assert any("judge &lt;i&gt;" in row and "read" in row for row in below)
    assert not any(">table, version 1<" in row for row in below)


def test_alike_runs_are_one_box_and_the_table_of_it_holds_them(laboratory: Laboratory, runs: dict[str, Run], browser: Client) -> None:
    with laboratory.opened():
        copy_runs(actor=laboratory.owner, pattern=runs["trainer"], count=70, name=HOSTILE)
        version = runs["trainer"].agent_version
    address = f"{HERE}/agents/trainer/versions/{version.number}/lineage/?way=down"
    body = read(browser, address)
    assert "71 runs of trainer" in body
    assert "<script>alert" not in body
    group = next(link for link in links_in(body) if "-run-" in link)
    held = read(browser, f"{address.partition('?')[0]}{group}")
    assert (len(rows_in(held)), "1 to 50 of 71" in held) == (50, True)
    rest = next(link for link in links_in(held) if "from=" in link)
    assert len(rows_in(read(browser, f"{address.partition('?')[0]}{rest}"))) == 21


def test_of_a_long_chain_the_nearest_is_drawn_and_the_rest_is_reached(
    laboratory: Laboratory, runs: dict[str, Run], browser: Client
) -> None:
    keys = chain_of(laboratory, runs["player"], 100)
    with laboratory.opened():
        last = Run.objects.get(pk=keys[-1])
    body = read(browser, f"{HERE}/runs/{last.public_id}/lineage/")
    assert body.count('class="graph-box') <= 60
    counted = re.search(r"(\d+) of (\d+) things drawn, all are in the table", body)
    assert counted is not None
    assert int(counted[1]) <= 60 < 2 * 100 <= int(counted[2])
    further = next(link for link in links_in(body.partition("</svg>\n</div>")[0]) if link.endswith("/lineage/?way=up"))
    assert "things" in read(browser, further)


def narrowed(laboratory: Laboratory, *kinds: Kind) -> Any:
    user = make_user("narrowed")
    with laboratory.opened():
        add_member(actor=laboratory.owner, user=user, role="viewer", kinds=kinds)
    return client_of(Actor.of(user))


def test_who_may_not_see_datasets_sees_that_there_is_one(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    reader = narrowed(laboratory, Kind.RUN, Kind.EVALUATION)
    for document in ("", "prov.json"):
        body = read(reader, f"{HERE}/runs/{runs['trainer'].public_id}/lineage/{document}")
        assert "a dataset" in body
        assert "self-play-window" not in body
        assert "Self-play" not in body
        assert "checkpoint" not in body
    assert reader.get(f"{HERE}/datasets/self-play-window-1/versions/1/lineage/").status_code == 403


def test_a_run_without_isolation_says_that_more_may_have_been_read(laboratory: Laboratory, runs: dict[str, Run], browser: Client) -> None:
    with laboratory.opened():
        score = Evaluation.objects.get()
        bare = [run for run in Run.objects.all() if run.isolation == "none"]
    body = read(browser, f"{HERE}/evaluations/{score.public_id}/lineage/")
    assert body.count("not isolated: what else it read is not known") >= len(bare) > 0


def test_a_thing_is_the_same_in_both_counts_and_a_persons_answer_is_named_apart_from_a_policys_decision(
    laboratory: Laboratory, runs: dict[str, Run], browser: Client
) -> None:
    with laboratory.opened():
        score = Evaluation.objects.get()
    body = read(browser, f"{HERE}/evaluations/{score.public_id}/lineage/")
    assert " things drawn, all are in the table" not in body, "all are drawn: neither logs nor where it began are things that it rests on"
    assert "a line leads from what came later" in body
    with laboratory.opened():
        found = walk([Node(NodeKind.EVALUATION, score.pk)], Way.UP)
        rights = Rights({Permission.VIEW: None})
        groups = groups_of(found, rights)
        drawn = graph_of(found, Way.UP, groups, Descriptions(rights, "lab")).drawn
    assert drawn == sum(count for name, count, _ in kinds_in(found, groups) if name != RECORD)
    assert words_of(NodeKind.APPROVAL) == "person's approval"
