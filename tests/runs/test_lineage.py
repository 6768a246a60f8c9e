"""Where a score came from and what rests on a dataset: walked over what real runs have left, and over a chain of a thousand."""

from dataclasses import replace

import pytest
from django.utils.html import escape

from labsite.owner import as_owner
from runs.models import Artifact, Evaluation, Run, RunInput
from runs.queries.lineage import Node, Way, walk
from runs.queries.lineage_decided import NOT_VOUCHED
from runs.queries.lineage_edges import CONTENT, NodeKind, Relation
from runs.queries.lineage_nodes import describe
from runs.queries.prov import prov_document
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.story import chain_of, live_story, make_story_laboratory
from tests.runs.test_memory import SYSTEM, read_for, reviewer, vouched, written
from workspaces.access import rights_of
from workspaces.models import DatasetVersion

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def laboratory() -> Laboratory:
    return make_story_laboratory()


@pytest.fixture
def runs(laboratory: Laboratory) -> dict[str, Run]:
    return live_story(laboratory)


def test_a_score_rests_on_every_run_window_artifact_and_person_under_it(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    player, trainer, judge = (Node(NodeKind.RUN, runs[name].pk) for name in ("player", "trainer", "judge"))
    with laboratory.opened():
        score = Node(NodeKind.EVALUATION, Evaluation.objects.get().pk)
        checkpoint = Node(NodeKind.ARTIFACT, Artifact.objects.get(kind="checkpoint").pk)
        window = Node(NodeKind.DATASET_VERSION, DatasetVersion.objects.get(dataset__slug="self-play-window-1").pk)
        table = Node(NodeKind.DATASET_VERSION, DatasetVersion.objects.get(dataset__slug="table").pk)
        found = walk([score], Way.UP)
        steps = {node: found.distance[node] for node in (score, judge, checkpoint, trainer, window, player, table)}
    assert list(steps.values()) == [0, 1, 1, 2, 3, 4, 2]
    assert found.of(NodeKind.PERSON) == [laboratory.owner.user.pk] if laboratory.owner.user else False
    assert (len(found.of(NodeKind.AGENT_VERSION)), len(found.of(NodeKind.CONTRACT)), found.is_whole) == (3, 1, True)
    assert {(link.relation, link.earlier) for link in found.links if link.later == window} == {
        (Relation.GENERATED_BY, player),
        (Relation.ATTRIBUTED_TO, Node(NodeKind.PERSON, laboratory.owner.user.pk)),  # type: ignore[union-attr]  # a person, as made
    }


def test_what_rests_on_a_window_is_what_was_made_of_it_and_nothing_else(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    with laboratory.opened():
        window = Node(NodeKind.DATASET_VERSION, DatasetVersion.objects.get(dataset__slug="self-play-window-1").pk)
        found = walk([window], Way.DOWN, along=CONTENT)
        made = set(Artifact.objects.exclude(run=runs["player"]).values_list("pk", flat=True))
        scores = set(Evaluation.objects.values_list("pk", flat=True))
    assert set(found.of(NodeKind.RUN)) == {runs["trainer"].pk, runs["judge"].pk}
    assert set(found.of(NodeKind.ARTIFACT)) == made
    assert set(found.of(NodeKind.EVALUATION)) == scores
    assert len(found.nodes) == 1 + 2 + len(made) + len(scores)


def test_of_another_workspace_nothing_is_found(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    other = make_laboratory("other")
    with other.opened():
        found = walk([Node(NodeKind.RUN, runs["judge"].pk)], Way.UP)
    assert (found.nodes, found.links) == ([Node(NodeKind.RUN, runs["judge"].pk)], ())


def test_a_chain_is_walked_to_its_end_and_a_circle_ends(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    keys = chain_of(laboratory, runs["player"], 200)
    with laboratory.opened():
        up = walk([Node(NodeKind.RUN, keys[-1])], Way.UP, along=CONTENT)
        assert up.distance[Node(NodeKind.RUN, keys[0])] == 2 * 199
        part = walk([Node(NodeKind.RUN, keys[-1])], Way.UP, along=CONTENT, most=50)
        assert (part.is_whole, len(part.nodes)) == (False, 50)
        assert max(part.distance.values()) < 60
    with as_owner(), laboratory.opened():
        last = Artifact.objects.get(run_id=keys[-1])
        RunInput.objects.create(run_id=keys[0], slug="y", kind="artifact", artifact=last, sha256="0" * 64)
    with laboratory.opened():
        around = walk([Node(NodeKind.RUN, keys[3])], Way.DOWN, along=CONTENT)
    assert set(around.of(NodeKind.RUN)) >= set(keys)


def test_memory_is_walked_through_both_ways_and_is_no_content(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    with laboratory.opened():
        score = Evaluation.objects.get()
        entry = vouched(laboratory, evidence=(("evaluation", score.public_id),))
        read_for(actor=SYSTEM, run=runs["player"])
        memory, measured, reader = (
            Node(NodeKind.MEMORY, entry.pk),
            Node(NodeKind.EVALUATION, score.pk),
            Node(NodeKind.RUN, runs["player"].pk),
        )
        up, down = walk([memory], Way.UP), walk([measured], Way.DOWN)
        links = {(link.relation, link.later, link.earlier) for link in (*up.links, *down.links) if memory in (link.later, link.earlier)}
        as_content = walk([measured], Way.DOWN, along=CONTENT)
        made_of = walk([reader], Way.UP, along=CONTENT)
        document = prov_document(down, rights_of(laboratory.owner, laboratory.workspace.pk), laboratory.workspace)
    author = Node(NodeKind.PERSON, laboratory.owner.user.pk)  # type: ignore[union-attr]  # a person, as made
    assert links == {
        (Relation.DERIVED_FROM, memory, measured),
        (Relation.ATTRIBUTED_TO, memory, author),
        (Relation.INFLUENCED_BY, memory, Node(NodeKind.PERSON, reviewer(laboratory).user.pk)),  # type: ignore[union-attr]  # as above
        (Relation.USED, reader, memory),
    }
    assert (up.distance[measured], down.distance[memory], down.distance[reader]) == (1, 1, 2)
    # A withdrawal, and the search for holdouts under a checkpoint, do not pass through words: the run that read them holds nothing of the score.
    assert memory not in as_content.distance
    assert reader not in as_content.distance
    assert measured not in made_of.distance
    assert document["entity"][f"item:{entry.public_id}"]["prov:label"] == "Wide nets learn faster"


def test_the_pages_tell_of_memory_and_its_name_only_to_whom_may_see_it(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    hostile = "<script>alert(1)</script>"
    with laboratory.opened():
        rests_on = (("run", runs["trainer"].public_id),)
        entry = vouched(laboratory, hostile, evidence=rests_on)
        fresh = Node(NodeKind.MEMORY, written(laboratory, "Not looked at yet", evidence=rests_on).pk)
        read_for(actor=SYSTEM, run=runs["judge"])
        rights = rights_of(laboratory.owner, laboratory.workspace.pk)
        without = replace(rights, grants={})
        assert describe([fresh], rights, "lab")[fresh].doubt == NOT_VOUCHED
        told = describe([Node(NodeKind.MEMORY, entry.pk)], without, "lab")
    browser, place = client_of(laboratory.owner), f"/workspaces/{laboratory.workspace.slug}"
    for address in (f"memory/{entry.public_id}/lineage/?way=down", f"runs/{runs['judge'].public_id}/lineage/"):
        page = browser.get(f"{place}/{address}").content.decode()
        assert "&lt;script&gt;alert(1)" in page
        assert hostile not in page
    own = browser.get(f"{place}/memory/{entry.public_id}/lineage/").content.decode()
    assert "speaks of" in own
    assert escape(runs["trainer"].name) in own
    assert browser.get(f"/api/v1{place}/lineage/memory_entry/{entry.public_id}").json()["wasDerivedFrom"]
    assert [each.label for each in told.values()] == ["a memory entry"]
