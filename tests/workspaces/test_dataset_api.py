"""Datasets over the API: streamed uploads, what a broken one leaves behind, downloads, and what strangers see."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_workspace, scope
from tests.factories_registry import make_dataset_version
from workspaces.access import Actor
from workspaces.models import AuditEvent, Blob, Dataset, DatasetVersion, Workspace

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture
def lab(settings: Any, tmp_path: Path, client: Client) -> tuple[Workspace, Actor, Client]:
    settings.LABSITE_REGIONS = {"local": tmp_path}
    workspace, actor = make_workspace("lab", region="local")
    assert actor.user is not None
    client.force_login(actor.user)
    return workspace, actor, client


def url(*parts: str) -> str:
    return "/".join(["/api/v1/workspaces/lab/datasets", *parts])


def make(client: Client, slug: str = "table") -> None:
    assert client.post(url(), json.dumps({"slug": slug}), content_type=JSON).status_code == 201


def upload(client: Client, content: bytes, query: str = "role=holdout&path=holdout.csv", **headers: Any) -> Any:
    return client.post(f"{url('table', 'versions')}?{query}", content, content_type="text/csv", **headers)


def test_created_is_declared_until_a_version_comes(lab: tuple[Workspace, Actor, Client]) -> None:
    client = lab[2]
    answer = client.post(url(), json.dumps({"slug": "my-table", "name": "Tabelle 表 <b>"}), content_type=JSON)
    assert answer.status_code == 201
    body = answer.json()
    assert (body["id"], body["status"], body["version"]) == ("ds_my-table", "declared", None)
    assert client.get(body["url"]).status_code == 200
    for spelling in ("ds_my-table", "ds_my_table", "my_table", body["uuid"]):
        assert client.get(url(spelling)).json()["uuid"] == body["uuid"]
    assert client.post(url(), json.dumps({"slug": "my_table"}), content_type=JSON).status_code == 422


def test_upload_is_hashed_counted_and_downloadable(lab: tuple[Workspace, Actor, Client], tmp_path: Path) -> None:
    client = lab[2]
    make(client)
    content = b'a,b\r\n1,"two\nlines"\r\n3,4\r\n'
    answer = upload(client, content, "role=holdout&path=h%C3%B6ld/%E8%A1%A8.csv&source=lab%20book")
    assert answer.status_code == 201, answer.content
    version = answer.json()
    assert (version["number"], version["role"], version["records"], version["bytes"]) == (1, "holdout", 2, len(content))
    assert version["source"] == "lab book"
    file = version["files"][0]
    assert file["path"] == "höld/表.csv"
    for address in (file["url"], url("table", "versions", "1", "files", "höld/表.csv")):
        download = client.get(address)
        assert b"".join(download.streaming_content) == content  # type: ignore[attr-defined]
        assert download["X-Content-Type-Options"] == "nosniff"
        assert download["Content-Disposition"] == "attachment; filename*=utf-8''%E8%A1%A8.csv"
        assert download["Content-Length"] == str(len(content))


def test_same_content_names_the_version_that_holds_it(lab: tuple[Workspace, Actor, Client]) -> None:
    client = lab[2]
    make(client)
    assert upload(client, b"a\n1\n").status_code == 201
    again = upload(client, b"a\n1\n")
    assert again.status_code == 409
    assert "version 1" in again.json()["detail"]
    assert upload(client, b"a\n2\n").json()["number"] == 2
    assert upload(client, b"a\n1\n").json()["number"] == 3
    with scope.open_workspace(lab[0].pk):
        assert Blob.objects.count() == 2  # the first content is kept once


def test_zero_bytes_are_refused_in_words(lab: tuple[Workspace, Actor, Client]) -> None:
    make(lab[2])
    answer = upload(lab[2], b"")
    assert answer.status_code == 422
    assert "empty" in answer.json()["detail"]


def test_cut_upload_leaves_nothing(lab: tuple[Workspace, Actor, Client], tmp_path: Path) -> None:
    client = lab[2]
    make(client)
    with scope.open_workspace(lab[0].pk):
        before = AuditEvent.objects.count()
    cut: dict[str, Any] = {"wsgi.input": BytesIO(b"a,b\n1,2\n"), "CONTENT_LENGTH": "4000"}
    answer = upload(client, b"", **cut)
    assert answer.status_code == 409
    assert "cut" in answer.json()["detail"]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    with scope.open_workspace(lab[0].pk):
        assert not Blob.objects.exists()
        assert not DatasetVersion.objects.exists()
        assert AuditEvent.objects.count() == before


def test_larger_than_an_upload_may_be_is_refused_before_reading(lab: tuple[Workspace, Actor, Client], settings: Any) -> None:
    settings.UPLOAD_BYTES = 10
    make(lab[2])
    answer = upload(lab[2], b"a" * 11)
    assert answer.status_code == 422
    assert "10 bytes" in answer.json()["detail"]


def test_several_files_as_form(lab: tuple[Workspace, Actor, Client]) -> None:
    client = lab[2]
    make(client)

    def part(name: str, content: bytes) -> bytes:
        head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: text/csv\r\n\r\n'
        return head.encode() + content + b"\r\n"

    whole = (
        part("a.csv", b"h\n1\n")
        + part("b.csv", b"h\n1\n2\n")
        + b'--x\r\nContent-Disposition: form-data; name="complete"\r\n\r\n1\r\n--x--\r\n'
    )
    cut = whole[: whole.index(b"2\n")]
    address = f"{url('table', 'versions')}?role=train"
    answer = client.generic("POST", address, cut, content_type="multipart/form-data; boundary=x")
    assert answer.status_code == 422
    assert "cut" in answer.json()["detail"]
    answer = client.generic("POST", address, whole, content_type="multipart/form-data; boundary=x")
    assert answer.status_code == 201, answer.content
    assert [(file["path"], file["bytes"]) for file in answer.json()["files"]] == [("a.csv", 4), ("b.csv", 6)]
    assert answer.json()["records"] == 3


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a//b", "a/./b", "a\\b", "C:x", "a%09b", "x" * 300, "a%E2%80%AEb", "/".join("a" * 20)]
)
def test_bad_paths_are_refused(lab: tuple[Workspace, Actor, Client], tmp_path: Path, path: str) -> None:
    make(lab[2])
    answer = upload(lab[2], b"a\n1\n", f"role=train&path={path}")
    assert answer.status_code == 422
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize(
    "body",
    [
        {"slug": "a", "name": "x" * 1_000_000},
        {"slug": "a", "name": "nul\x00"},
        {"slug": "a", "name": "\ud800"},
        {"slug": "a", "unknown": 1},
        {"slug": "a", "origin": "stolen"},
        {"slug": 7},
        {"slug": "New"},
        {"slug": "new"},
        {"slug": "../a"},
        {"slug": "a" * 32},
        {},
        [],
        None,
    ],
)
def test_bad_bodies_are_refused(lab: tuple[Workspace, Actor, Client], body: Any) -> None:
    answer = lab[2].post(url(), json.dumps(body), content_type=JSON)
    assert answer.status_code == 422, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    with scope.open_workspace(lab[0].pk):
        assert not Dataset.objects.exists()


def test_foreign_and_missing_look_the_same(lab: tuple[Workspace, Actor, Client]) -> None:
    client = lab[2]
    make(client)
    other, stranger = make_workspace("other", region="local")
    with scope.open_workspace(other.pk):
        foreign = make_dataset_version(stranger, "secret")
    missing = client.get(url("nothing-here"))
    for text in (str(foreign.dataset_id), foreign.dataset.public_id):
        answer = client.get(url(text))
        assert (answer.status_code, answer.content) == (404, missing.content)
    answer = client.get(url("table", "versions", foreign.public_id))
    assert (answer.status_code, answer.json()["detail"]) == (404, "There is no such dataset version here.")
    assert client.get("/api/v1/workspaces/other/datasets").content == client.get("/api/v1/workspaces/nowhere/datasets").content


def test_list_pages_by_cursor_and_filters(lab: tuple[Workspace, Actor, Client]) -> None:
    client = lab[2]
    for number in range(5):
        make(client, f"set-{number}")
    first = client.get(f"{url()}?limit=3").json()
    second = client.get(f"{url()}?limit=3&cursor={first['next']}").json()
    assert [item["slug"] for item in first["items"] + second["items"]] == [f"set-{number}" for number in (4, 3, 2, 1, 0)]
    assert second["next"] is None
    assert [item["slug"] for item in client.get(f"{url()}?q=SET-3").json()["items"]] == ["set-3"]
    assert client.get(f"{url()}?cursor=abc").status_code == 422
    assert client.get(f"{url()}?limit=0").status_code == 422


def test_idempotent_create_makes_one(lab: tuple[Workspace, Actor, Client]) -> None:
    client = lab[2]
    make(client)
    headers = {"HTTP_IDEMPOTENCY_KEY": "k1"}
    first = upload(client, b"a\n1\n", **headers)
    second = upload(client, b"a\n1\n", **headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] == second.json()["id"]
    with scope.open_workspace(lab[0].pk):
        assert DatasetVersion.objects.count() == 1
