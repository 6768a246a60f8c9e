"""Bytes that are withdrawn and brought in again are told by their content, where no record leads to the copy."""

import re
from html import unescape

import pytest

from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.models import Artifact
from runs.queries.withdrawal import find_subject
from runs.queries.withdrawn_content import withdrawn_content
from tests.factories import make_user
from tests.factories_pages import add_artifact, client_of
from tests.factories_registry import TABLE
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.access import Actor, Kind
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.commands.member import add_member
from workspaces.models import DatasetVersion, Withdrawal

pytestmark = pytest.mark.django_db(transaction=True)

SHARED, OWN = "the same as in what is withdrawn", {"more.csv": b"g\n9\n"}


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory()


def frozen(laboratory: Laboratory, slug: str, files: dict[str, bytes]) -> DatasetVersion:
    dataset = create_dataset(actor=laboratory.owner, slug=slug)
    stored = [receive_file(path, [content]) for path, content in files.items()]
    return import_dataset_version(actor=laboratory.owner, dataset=dataset, role="train", files=stored)


def gone(laboratory: Laboratory, kind: str, text: str) -> Withdrawal:
    node, label = find_subject(kind, text)
    return withdraw(actor=laboratory.owner, subject=node, label=label, reason="Bad <games>.")


def seen(laboratory: Laboratory, path: str) -> str:
    """The page as it reads, without marks."""
    answer = client_of(laboratory.owner).get(f"/workspaces/lab/{path}")
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", answer.content.decode())))


def test_a_copy_is_named_before_and_after(laboratory: Laboratory) -> None:
    with laboratory.opened():
        table = DatasetVersion.objects.get(dataset__slug="table")
        copy = frozen(laboratory, "again", {"renamed.csv": TABLE, **OWN})
        frozen(laboratory, "another", OWN)
    address = f"withdrawals/new/?kind=dataset_version&id={table.public_id}"
    assert "again@1 1 of its 2 files is in it" in seen(laboratory, address)
    assert "another@1" not in seen(laboratory, address)
    assert SHARED not in seen(laboratory, "datasets/again/")
    preview = client_of(laboratory.owner).get(
        "/api/v1/workspaces/lab/withdrawals/preview", {"kind": "dataset_version", "id": table.public_id}
    )
    named = [(copy["version"], copy["shared_files"], copy["files"]) for copy in preview.json()["copies"]]
    assert (named, preview.json()["copies_count"]) == ([(1, 1, 2)], 1)
    with laboratory.opened():
        withdrawal = gone(laboratory, "dataset_version", table.public_id)
    assert f"1 of its 2 files is {SHARED}: table@1 (Bad <games>.)." in seen(laboratory, "datasets/again/")
    content = "/api/v1/workspaces/lab/datasets/{}/versions/1/withdrawn-content"
    told = client_of(laboratory.owner).get(content.format("again")).json()
    original = {"kind": "dataset_version", "label": "table@1", "withdrawal_id": withdrawal.public_id, "reason": "Bad <games>."}
    assert told == {"shared_files": 1, "files": 2, "originals": [original]}
    assert client_of(laboratory.owner).get(content.format("another")).json() == {"shared_files": 0, "files": 1, "originals": []}
    whole = client_of(laboratory.owner).get(f"/api/v1/workspaces/lab/withdrawals/{withdrawal.public_id}").json()
    assert (whole["copies"], whole["copies_count"]) == (preview.json()["copies"], 1)
    assert "again@1 1 of its 2 files is in it Withdraw" in seen(laboratory, f"withdrawals/{withdrawal.public_id}/")
    with laboratory.opened():
        gone(laboratory, "dataset_version", copy.public_id)
    assert "elsewhere" not in seen(laboratory, f"withdrawals/{withdrawal.public_id}/")  # what is withdrawn already needs no word
    assert f"Its file is {SHARED}: again@1" in seen(laboratory, "datasets/another/")
    assert SHARED not in seen(laboratory, "datasets/again/")


def test_an_artifact_that_was_uploaded_again_is_known(laboratory: Laboratory) -> None:
    with laboratory.opened():
        artifact = add_artifact(actor=laboratory.owner, run=launch(laboratory), path="games.csv", content=b"g\n1\n")
        copy = frozen(laboratory, "games", {"g.csv": b"g\n1\n"})
        withdrawal = gone(laboratory, "artifact", Artifact.objects.get(pk=artifact.pk).public_id)
        found = withdrawn_content(copy)
        assert found is not None and (found.shared, found.files) == (1, 1)
        assert [(one.label.split(" of ")[0], one.withdrawal) for one in found.originals] == [(artifact.name, withdrawal)]
        user = make_user("narrowed")
        add_member(actor=laboratory.owner, user=user, role="viewer", kinds=[Kind.DATASET])
    page = client_of(Actor.of(user)).get("/workspaces/lab/datasets/games/").content.decode()
    assert "an artifact</a>" in page and "games.csv" not in page.split("notice-attention")[1].split("</p>")[0]
    told = client_of(Actor.of(user)).get("/api/v1/workspaces/lab/datasets/games/versions/1/withdrawn-content").json()
    assert told["originals"][0]["label"] is None
    with laboratory.opened():
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="Good.")
        assert withdrawn_content(copy) is None
