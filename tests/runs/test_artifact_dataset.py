"""An artifact frozen as a version: derived from it, as closed as what its run has read, and by those who may see artifacts."""

import json

import pytest
from django.test import Client

from runs.commands import artifact_dataset
from runs.commands.artifact import delete_artifact, remove_artifact
from runs.commands.artifact_dataset import import_artifact
from runs.commands.egress import set_egress
from runs.models import Artifact, Run
from runs.queries.lineage import Node, Way, walk
from runs.queries.lineage_edges import NodeKind
from tests.factories_pages import add_artifact
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces import store
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal
from workspaces.commands.dataset import create_dataset
from workspaces.models import Blob, Dataset, Workspace

pytestmark = pytest.mark.django_db


def made(laboratory: Laboratory, content: bytes = b"g\n1\n") -> tuple[Run, Artifact]:
    run = launch(laboratory)
    return run, add_artifact(actor=laboratory.owner, run=run, path="outputs/games.csv", content=content)


def test_a_version_is_derived_from_its_artifact() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run, artifact = made(laboratory)
        dataset = create_dataset(actor=laboratory.owner, slug="games", origin="self_play", licence="CC0-1.0")
        blobs = Blob.objects.count()
        version = import_artifact(actor=laboratory.owner, dataset=dataset, artifact=artifact, role="train", records=1)
        assert (version.source_artifact_id, version.origin, version.bytes) == (artifact.pk, "self_play", 4)
        assert version.source == f"games.csv of {run.public_id}"
        assert Blob.objects.count() == blobs
        up = walk([Node(NodeKind.DATASET_VERSION, version.pk)], Way.UP)
        assert up.distance[Node(NodeKind.ARTIFACT, artifact.pk)] == 1
        assert up.distance[Node(NodeKind.RUN, run.pk)] == 2
        down = walk([Node(NodeKind.RUN, run.pk)], Way.DOWN)
        assert Node(NodeKind.DATASET_VERSION, version.pk) in down.distance
        with pytest.raises(Refusal, match="holds already"):
            import_artifact(actor=laboratory.owner, dataset=dataset, artifact=artifact, role="train")


def test_what_was_made_of_something_closed_is_closed() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        _, artifact = made(laboratory)
        read = Dataset.objects.get(slug="table")
        set_egress(actor=laboratory.owner, dataset=read, egress="restricted", reason="people are in it")
        dataset = create_dataset(actor=laboratory.owner, slug="games")
        import_artifact(actor=laboratory.owner, dataset=dataset, artifact=artifact, role="train")
        dataset.refresh_from_db()
        assert dataset.egress == "restricted"


def test_none_is_made_of_what_is_deleted() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        _, artifact = made(laboratory)
        dataset = create_dataset(actor=laboratory.owner, slug="games")
        delete_artifact(actor=laboratory.owner, artifact=artifact, reason="No use.")
        with pytest.raises(Refusal, match="restore it first"):
            import_artifact(actor=laboratory.owner, dataset=dataset, artifact=artifact, role="train")
        remove_artifact(actor=laboratory.owner, artifact=artifact)
        with pytest.raises(Refusal, match="gone for good"):
            import_artifact(actor=laboratory.owner, dataset=dataset, artifact=artifact, role="train")
        assert not dataset.versions.exists()


def test_none_is_made_of_blank_lines() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        _, artifact = made(laboratory, b"\xef\xbb\xbf\n\n")
        dataset = create_dataset(actor=laboratory.owner, slug="games")
        with pytest.raises(Refusal, match=r"games\.csv holds no record"):
            import_artifact(actor=laboratory.owner, dataset=dataset, artifact=artifact, role="train")
        assert import_artifact(actor=laboratory.owner, dataset=dataset, artifact=artifact, role="train", path="g.txt").number == 1


def test_one_is_made_while_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """No byte is copied, so none is needed; nobody waits for the store under the ledger's lock."""
    laboratory = make_laboratory()
    done: list[str] = []

    def away(*_: object, **__: object) -> None:
        done.append("asked the store")
        raise store.StoreAway

    def locked(event: Draft) -> Workspace:
        done.append("took the lock")
        return lock_ledger(event)

    with laboratory.opened():
        _, artifact = made(laboratory)
        dataset = create_dataset(actor=laboratory.owner, slug="games")
        monkeypatch.setattr(store, "open", away)
        monkeypatch.setattr(artifact_dataset, "lock_ledger", locked)
        assert import_artifact(actor=laboratory.owner, dataset=dataset, artifact=artifact, role="train").number == 1
    assert done == ["asked the store", "took the lock"]


def test_by_page_and_api(client: Client) -> None:
    laboratory = make_laboratory()
    assert laboratory.owner.user is not None
    client.force_login(laboratory.owner.user)
    with laboratory.opened():
        run, artifact = made(laboratory)
        create_dataset(actor=laboratory.owner, slug="games")
    base = f"/workspaces/{laboratory.workspace.slug}/datasets/games/"
    wrong = client.post(f"{base}from-artifact/", {"artifact": "art_none", "role": "train"})
    assert wrong.status_code == 409
    assert "no such artifact" in wrong.content.decode()
    assert client.post(f"{base}from-artifact/", {"artifact": artifact.public_id, "role": "train"}).status_code == 303
    page = client.get(base).content.decode()
    assert "Made from" in page
    assert run.public_id in page
    sent = json.dumps({"artifact": artifact.public_id, "role": "validation", "path": "kept/g.csv"})
    answer = client.post(f"/api/v1{base}from-artifact", sent, content_type="application/json")
    assert answer.status_code == 201
    assert answer.json()["source_artifact_id"] == artifact.public_id
    assert answer.json()["files"][0]["path"] == "kept/g.csv"
