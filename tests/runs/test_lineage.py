"""Where a score came from and what rests on a dataset: walked over what real runs have left, and over a chain of a thousand."""

import pytest

from labsite.owner import as_owner
from runs.models import Artifact, Evaluation, Run, RunInput
from runs.queries.lineage import Node, Way, walk
from runs.queries.lineage_edges import CONTENT, NodeKind, Relation
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.story import chain_of, live_story, make_story_laboratory
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
