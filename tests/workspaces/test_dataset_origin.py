"""Where a version is from: demanded where its class says so, kept with the version, shown, and changed only with a reason."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.factories import Role, make_member, make_workspace, scope
from tests.factories_registry import TABLE, stored
from workspaces import manifest
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.commands.dataset import change_dataset, create_dataset, import_dataset_version, set_origin
from workspaces.models import AuditEvent, Dataset, DatasetVersion, Workspace

pytestmark = pytest.mark.django_db
API = "/api/v1/workspaces/lab/datasets"


@pytest.fixture
def lab(settings: Any, tmp_path: Path, client: Client) -> tuple[Workspace, Actor, Client]:
    settings.LABSITE_REGIONS = {"local": tmp_path}
    workspace, actor = make_workspace("lab", region="local")
    assert actor.user is not None
    client.force_login(actor.user)
    return workspace, actor, client


def bring(actor: Actor, dataset: Dataset, content: bytes = b"a\n1\n", /, **said: Any) -> DatasetVersion:
    return import_dataset_version(actor=actor, dataset=dataset, role="train", files=[stored("table.csv", content)], **said)


@pytest.mark.parametrize(
    ("origin", "said", "field"),
    [
        ("external", {}, "source"),
        ("external", {"licence": "CC0-1.0"}, "source"),
        ("external", {"source": "https://example.org/a.csv"}, "licence"),
        ("reusable", {"evidence": "seen by two people"}, "licence"),
        ("reusable", {"evidence": "seen by two people", "licence": "not known"}, "licence"),
        ("reusable", {"licence": "CC0-1.0"}, "evidence"),
        ("self_play", {"source": "somewhere"}, "evidence"),
        ("private", {"licence": "ours"}, "licence"),
    ],
)
def test_what_the_class_demands_is_demanded(lab: tuple[Workspace, Actor, Client], origin: str, said: dict[str, str], field: str) -> None:
    workspace, actor, _ = lab
    with scope.open_workspace(workspace.pk):
        dataset = create_dataset(actor=actor, slug="d", origin=origin)
        with pytest.raises(Refusal) as refused:
            bring(actor, dataset, TABLE, **said)
        assert refused.value.field == field
        assert not DatasetVersion.objects.exists()


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        ("external", {"source": "not known", "licence": "not known"}),
        ("external", {"source": "UCI", "licence": "CC BY 4.0"}),
        ("reusable", {"evidence": "seen by two people", "licence": "LicenseRef-own"}),
        ("self_play", {"evidence": "played by the program of 1997"}),
        ("benchmark", {}),
        ("private", {}),
    ],
)
def test_what_is_said_is_enough(lab: tuple[Workspace, Actor, Client], origin: str, said: dict[str, str]) -> None:
    workspace, actor, _ = lab
    with scope.open_workspace(workspace.pk):
        assert bring(actor, create_dataset(actor=actor, slug="d", origin=origin), TABLE, **said).origin == origin


def test_a_version_keeps_what_was_said_of_it(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, actor, client = lab
    with scope.open_workspace(workspace.pk):
        dataset = create_dataset(actor=actor, slug="d", origin="external", licence="not known")
        first = bring(actor, dataset, source="a web page")
        set_origin(
            actor=actor, dataset=dataset, origin="reusable", licence="cc0-1.0", evidence="the author's letter of 3 May", reason="They answered"
        )  # fmt: skip
        second = bring(actor, dataset, b"a\n2\n", source="the author")
        said = [(row.origin, row.licence, row.evidence) for row in (first, second)]
        assert said == [("external", "NOASSERTION", ""), ("reusable", "CC0-1.0", "the author's letter of 3 May")]
        event = AuditEvent.objects.get(verb="dataset.origin_set")
        assert event.subject_label == "d"
    body = client.get(f"{API}/d/versions/1").json()
    assert (body["origin"], body["licence"], body["source"], body["imported_by"]) == ("external", "NOASSERTION", "a web page", "lab-owner")
    page = client.get("/workspaces/lab/datasets/d/?version=1").content.decode()
    assert "licence not known" in page
    assert "derived from external data" in page
    assert "a web page" in page
    assert "Lab-Owner" in page
    assert "https://spdx.org/licenses/CC0-1.0" in client.get("/workspaces/lab/datasets/d/").content.decode()


def test_a_change_of_class_wants_a_reason_and_a_right(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, actor, client = lab
    with scope.open_workspace(workspace.pk):
        dataset = create_dataset(actor=actor, slug="d")
        with pytest.raises(Refusal, match="Say why"):
            set_origin(actor=actor, dataset=dataset, origin="reusable", licence="MIT", evidence="seen", reason=" ")
        with pytest.raises(Refusal, match="cannot be changed"):
            change_dataset(actor=actor, dataset=dataset, origin="reusable")
    viewer = make_member(workspace, Role.VIEWER)
    with scope.open_workspace(workspace.pk), pytest.raises(Denied):
        set_origin(actor=viewer, dataset=dataset, origin="benchmark", licence="", evidence="", reason="why not")
    address = "/workspaces/lab/datasets/d/origin/"
    refused = client.post(address, {"origin": "reusable", "licence": "our own", "evidence": "seen", "reason": "why"})
    assert refused.status_code == 409
    assert "LicenseRef-our-own" in refused.content.decode()
    assert (
        client.post(address, {"origin": "benchmark", "licence": "", "evidence": "of the Go benchmark", "reason": "why"}).status_code == 303
    )
    sent = json.dumps({"origin": "external", "licence": "unknown", "reason": "it was copied"})
    body = client.post(f"{API}/d/origin", sent, content_type="application/json").json()
    assert (body["origin"], body["licence"], body["evidence"]) == ("external", "NOASSERTION", "")


def test_the_hash_of_a_version_proves_one_file(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, actor, client = lab
    with scope.open_workspace(workspace.pk):
        dataset = create_dataset(actor=actor, slug="d")
        files = [stored(f"part {number}.csv", b"n\n%d\n" % number) for number in range(5)]
        version = import_dataset_version(actor=actor, dataset=dataset, role="train", files=files)
        assert version.content_hash == manifest.hash_of(files, manifest.TREE)
    proof = client.get(f"{API}/d/versions/1/proofs/part%203.csv").json()
    assert (proof["index"], proof["count"], proof["content_hash"]) == (3, 5, version.content_hash)
    assert json.loads(proof["entry"]) == ["part 3.csv", files[3].sha256, 4]
    assert client.get("/workspaces/lab/datasets/d/versions/1/proofs/part%203.csv").json() == proof
    assert client.get(f"{API}/d/versions/1/proofs/part%209.csv").status_code == 404


def test_what_was_frozen_under_a_list_keeps_its_hash(lab: tuple[Workspace, Actor, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, actor, client = lab
    with scope.open_workspace(workspace.pk):
        dataset = create_dataset(actor=actor, slug="d")
        files = [stored("table.csv", b"a\n1\n")]
        with monkeypatch.context() as before:
            before.setattr(manifest, "TREE", manifest.LIST)  # as every version was frozen then
            version = import_dataset_version(actor=actor, dataset=dataset, role="train", files=files)
        assert (version.hash_form, version.content_hash) == (manifest.LIST, manifest.hash_of(files, manifest.LIST))
        with pytest.raises(Refusal, match="holds already"):
            bring(actor, dataset)
    refused = client.get(f"{API}/d/versions/1/proofs/table.csv")
    assert refused.status_code == 409
    assert "proves all files together" in refused.content.decode()
