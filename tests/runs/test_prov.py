"""PROV-JSON of a lineage: read by the `prov` library, whole, with names that cannot break it and without those that a reader may not see."""

import json
from typing import Any

import pytest
from prov.constants import PROV_ASSOCIATION, PROV_ATTR_PLAN, PROV_DERIVATION, PROV_GENERATION, PROV_USAGE
from prov.model import ProvActivity, ProvAgent, ProvDocument, ProvEntity

from runs.models import Artifact, Evaluation, Run
from runs.queries.lineage import MOST_NODES, Node, Way, walk
from runs.queries.lineage_edges import NodeKind
from runs.queries.prov import prov_document
from tests.factories import make_user
from tests.factories_pages import HOSTILE, client_of, set_run
from tests.factories_runs import Laboratory
from tests.runs.story import chain_of, live_story, make_story_laboratory
from workspaces.access import Actor, Kind, rights_of
from workspaces.commands.member import add_member
from workspaces.models import DatasetVersion

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def laboratory() -> Laboratory:
    return make_story_laboratory()


@pytest.fixture
def runs(laboratory: Laboratory) -> dict[str, Run]:
    return live_story(laboratory)


def asked(laboratory: Laboratory, path: str, actor: Actor | None = None) -> Any:
    answer = client_of(actor or laboratory.owner).get(path)
    assert answer.status_code == 200, answer.content
    return json.loads(answer.content)


def test_a_document_is_read_by_the_library_and_holds_the_whole_walk(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    with laboratory.opened():
        set_run(actor=laboratory.owner, run=runs["trainer"], name=HOSTILE)
        score = Evaluation.objects.get()
        found = walk([Node(NodeKind.EVALUATION, score.pk)], Way.UP)
        window = DatasetVersion.objects.get(dataset__slug="self-play-window-1")
        checkpoint = Artifact.objects.select_related("blob").get(kind="checkpoint")
    written = asked(laboratory, f"/workspaces/lab/evaluations/{score.public_id}/lineage/prov.json")
    document = ProvDocument.deserialize(content=json.dumps(written), format="json")
    again = str(document.serialize(format="json"))
    assert json.loads(again).keys() == written.keys()
    assert ProvDocument.deserialize(content=again, format="json") == document
    kinds = (ProvEntity, ProvActivity, ProvAgent)
    elements = {str(element.identifier): element for kind in kinds for element in document.get_records(kind)}
    relations = [record for record in document.get_records() if record.is_relation()]
    assert (len(elements), len(relations)) == (len(found.nodes), len(found.links))
    assert {name for name, element in elements.items() if isinstance(element, ProvActivity)} == {
        f"item:{run.public_id}" for run in runs.values()
    }
    assert elements[f"item:{runs['trainer'].public_id}"].label == HOSTILE
    assert elements[f"item:{window.public_id}"].get_attribute("lab:contentHash") == {window.content_hash}
    assert elements[f"item:{checkpoint.public_id}"].get_attribute("lab:sha256") == {checkpoint.blob.sha256}
    plans = [record for record in relations if record.get_type() == PROV_ASSOCIATION]
    assert len(plans) == 3
    assert all(record.get_attribute(PROV_ATTR_PLAN) for record in plans)
    said = {(record.get_type(), *(str(value) for _, value in record.formal_attributes[:2])) for record in relations}
    ends = {name: f"item:{run.public_id}" for name, run in runs.items()}
    assert {
        (PROV_GENERATION, f"item:{score.public_id}", ends["judge"]),
        (PROV_DERIVATION, f"item:{score.public_id}", f"item:{checkpoint.public_id}"),
        (PROV_GENERATION, f"item:{checkpoint.public_id}", ends["trainer"]),
        (PROV_USAGE, ends["trainer"], f"item:{window.public_id}"),
        (PROV_GENERATION, f"item:{window.public_id}", ends["player"]),
    } <= said


def test_the_api_answers_the_same_document_for_each_kind_both_ways(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    with laboratory.opened():
        window = DatasetVersion.objects.get(dataset__slug="self-play-window-1")
        trainer = runs["trainer"]
        ids = {
            "run": trainer.public_id,
            "dataset_version": window.public_id,
            "agent_version": trainer.agent_version.public_id,
            "contract": trainer.contract.public_id,
            "artifact": Artifact.objects.get(kind="checkpoint").public_id,
            "evaluation": Evaluation.objects.get().public_id,
        }
    for kind, name in ids.items():
        for way in ("up", "down"):
            document = asked(laboratory, f"/api/v1/workspaces/lab/lineage/{kind}/{name}?way={way}")
            assert f"item:{name}" in {**document.get("entity", {}), **document.get("activity", {})}
    page = asked(laboratory, "/workspaces/lab/datasets/self-play-window-1/versions/1/lineage/prov.json?way=down")
    assert page == asked(laboratory, f"/api/v1/workspaces/lab/lineage/dataset_version/{window.public_id}?way=down")
    browser = client_of(laboratory.owner)
    assert browser.get(f"/api/v1/workspaces/lab/lineage/run/{window.public_id}").status_code == 404
    assert browser.get(f"/api/v1/workspaces/lab/lineage/run/{trainer.public_id}?way=sideways").status_code == 422


def test_a_kind_that_the_reader_may_not_see_stands_without_a_name(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    user = make_user("narrowed")
    with laboratory.opened():
        add_member(actor=laboratory.owner, user=user, role="viewer", kinds=(Kind.RUN,))
        window = DatasetVersion.objects.get(dataset__slug="self-play-window-1")
    document = asked(laboratory, f"/api/v1/workspaces/lab/lineage/run/{runs['trainer'].public_id}", Actor.of(user))
    text = json.dumps(document)
    assert not [word for word in (window.pk.hex, str(window.pk), window.content_hash, "Self-play", "self-play") if word in text]
    hidden = {name: entity for name, entity in document["entity"].items() if name.startswith("item:hidden_")}
    assert {entity["prov:label"] for entity in hidden.values()} >= {"a dataset"}
    assert {edge["prov:entity"] for edge in document["used"].values()} & hidden.keys()
    assert client_of(Actor.of(user)).get(f"/api/v1/workspaces/lab/lineage/dataset_version/{window.public_id}").status_code == 403


def test_a_walk_that_was_cut_says_so(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    keys = chain_of(laboratory, runs["player"], 40)
    last = Node(NodeKind.RUN, keys[-1])
    with laboratory.opened():
        rights = rights_of(laboratory.owner, laboratory.workspace.pk)
        cut, whole = (prov_document(walk([last], Way.UP, most=most), rights, laboratory.workspace) for most in (30, MOST_NODES))
        name = f"item:{Run.objects.get(pk=last.id).public_id}"
    assert cut["activity"][name]["lab:complete"] is False
    assert len(cut["activity"]) + len(cut["entity"]) + len(cut.get("agent", ())) == 30
    assert whole["activity"][name]["lab:complete"] is True
    assert len(whole["activity"]) == 40
