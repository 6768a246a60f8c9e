"""Uploads in pieces, by the tus protocol: what is acknowledged stays, what is announced is checked, and one writes at a time."""

import base64
import hashlib
import http.client
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from runs.commands.archive import archive_workspace, unarchive_workspace
from tests.factories import make_member, make_workspace, scope
from tests.factories_people import bearer, make_token
from workspaces import store
from workspaces.access import Actor
from workspaces.commands.blob import stored_bytes
from workspaces.commands.dataset import create_dataset
from workspaces.commands.limit import set_limit
from workspaces.commands.token import revoke_token
from workspaces.commands.upload import append, find_upload, tidy_uploads
from workspaces.models import AuditEvent, DatasetVersion, Limit, NotFound, Token, Unit, Upload, Workspace

CONTENT = b"a,b\n" + b"1,2\n" * 50_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
BASE = "/api/v1/workspaces/lab"
TUS = {"Tus-Resumable": "1.0.0"}
PIECE = "application/offset+octet-stream"


@pytest.fixture
def lab(db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Workspace, Actor]:
    monkeypatch.setattr(settings, "LABSITE_REGIONS", {"local": tmp_path / "store"})
    monkeypatch.setattr(settings, "UPLOADS", tmp_path / "uploads")
    workspace, actor = make_workspace("lab", region="local")
    with scope.open_workspace(workspace.pk):
        create_dataset(actor=actor, slug="set")
    return workspace, actor


@pytest.fixture
def client(lab: tuple[Workspace, Actor]) -> Client:
    return bearer(make_token(*lab, "dataset:read", "dataset:write")[1])


def metadata(**told: str) -> str:
    return ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in told.items())


def begin(client: Client, length: int = len(CONTENT), **told: str) -> Any:
    headers = {**TUS, "Upload-Length": str(length), "Upload-Metadata": metadata(filename="table.csv", **told)}
    return client.post(f"{BASE}/uploads", headers=headers)


def begun(client: Client, length: int = len(CONTENT), **told: str) -> str:
    answer = begin(client, length, **told)
    assert answer.status_code == 201, answer.content
    return str(urlsplit(answer["Location"]).path)


def send(client: Client, place: str, offset: int, content: bytes) -> Any:
    return client.patch(place, content, content_type=PIECE, headers={**TUS, "Upload-Offset": str(offset)})


def stands(client: Client, place: str) -> int:
    answer = client.head(place, headers=TUS)
    assert (answer.status_code, answer["Cache-Control"], answer["Tus-Resumable"]) == (200, "no-store", "1.0.0")
    return int(answer["Upload-Offset"])


def publish(client: Client, place: str) -> Any:
    return client.post(f"{BASE}/datasets/set/versions?role=train&upload={place.rpartition('/')[2]}")


def incoming() -> list[str]:
    return sorted(path.name for path in Path(settings.UPLOADS).rglob("*") if path.is_file())


def test_pieces_become_a_version_of_a_dataset(client: Client, lab: tuple[Workspace, Actor]) -> None:
    place = begun(client, sha256=SHA256)
    assert stands(client, place) == 0
    first = send(client, place, 0, CONTENT[:70_000])
    assert (first.status_code, first["Upload-Offset"]) == (204, "70000")
    assert publish(client, place).status_code == 422, "it is not whole yet"
    assert send(client, place, 70_000, CONTENT[70_000:]).status_code == 204
    assert stands(client, place) == len(CONTENT)
    assert incoming() == [], "it lies in the store"
    answer = publish(client, place)
    assert answer.status_code == 201, answer.content
    assert (answer.json()["records"], [file["sha256"] for file in answer.json()["files"]]) == (50_000, [SHA256])
    assert client.head(place, headers=TUS).status_code == 404, "it has become a version"
    with scope.open_workspace(lab[0].pk):
        assert b"".join(store.open("local", lab[0].pk, SHA256)) == CONTENT
        assert AuditEvent.objects.filter(verb="dataset_version.imported").count() == 1


def test_several_uploads_are_one_version(client: Client) -> None:
    places = []
    for name in ("a.csv", "b.csv"):
        answer = client.post(f"{BASE}/uploads", headers={**TUS, "Upload-Length": "4", "Upload-Metadata": metadata(filename=name)})
        places.append(urlsplit(answer["Location"]).path)
        assert send(client, places[-1], 0, b"a\n1\n").status_code == 204
    names = "&".join(f"upload={place.rpartition('/')[2]}" for place in places)
    made = client.post(f"{BASE}/datasets/set/versions?role=train&{names}")
    assert [file["path"] for file in made.json()["files"]] == ["a.csv", "b.csv"]


def test_a_piece_at_another_offset_is_refused_and_changes_nothing(client: Client) -> None:
    place = begun(client)
    send(client, place, 0, CONTENT[:100])
    for offset in (0, 50, 101):
        assert send(client, place, offset, b"x").status_code == 409
    assert stands(client, place) == 100
    assert send(client, place, 100, b"x" * len(CONTENT)).status_code == 413
    assert send(client, place, 100, CONTENT[100:]).status_code == 204
    assert publish(client, place).status_code == 201


def test_what_a_killed_server_wrote_and_did_not_acknowledge_is_cut_off(client: Client, lab: tuple[Workspace, Actor]) -> None:
    place = begun(client, sha256=SHA256)
    send(client, place, 0, CONTENT[:1000])
    (file,) = (path for path in Path(settings.UPLOADS).rglob("*") if path.is_file())
    file.write_bytes(CONTENT[:1000] + b"half a page of something")
    assert stands(client, place) == 1000
    assert send(client, place, 1000, CONTENT[1000:]).status_code == 204
    assert publish(client, place).status_code == 201


def test_other_bytes_than_announced_are_refused_and_forgotten(client: Client) -> None:
    place = begun(client, sha256="0" * 64)
    answer = send(client, place, 0, CONTENT)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "sha256")
    assert client.head(place, headers=TUS).status_code == 404
    assert incoming() == []


def test_two_writers_at_once_are_refused(lab: tuple[Workspace, Actor], client: Client) -> None:
    place = begun(client)
    answers: list[int] = []

    def slow() -> Iterator[bytes]:
        yield CONTENT[:10]
        answers.append(send(client, place, 0, b"x").status_code)
        yield CONTENT[10:20]

    with scope.open_workspace(lab[0].pk):
        upload = find_upload(lab[1], place.rpartition("/")[2])
        append(upload, slow(), offset=0)
    assert answers == [423]
    assert stands(client, place) == 20


def test_an_upload_that_is_deleted_while_it_is_written_is_missing(lab: tuple[Workspace, Actor], client: Client) -> None:
    place = begun(client)

    def slow() -> Iterator[bytes]:
        yield CONTENT[:10]
        assert client.delete(place, headers=TUS).status_code == 204
        yield CONTENT[10:]

    with scope.open_workspace(lab[0].pk):
        upload = find_upload(lab[1], place.rpartition("/")[2])
        with pytest.raises(NotFound):
            append(upload, slow(), offset=0)
        assert (Upload.objects.count(), incoming()) == (0, [])


def test_a_version_asked_for_while_the_last_piece_goes_into_the_store_is_told_to_wait(
    lab: tuple[Workspace, Actor], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = begun(client)
    put, answers = store.put_file, []

    def meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(store, "put_file", put)
        answers.append(publish(client, place))
        return put(*given)

    monkeypatch.setattr(store, "put_file", meanwhile)
    assert send(client, place, 0, CONTENT).status_code == 204
    assert [answer.status_code for answer in answers] == [409]
    assert "in a moment" in answers[0].json()["detail"]
    assert publish(client, place).status_code == 201


def test_each_piece_asks_again_who_sends_it_and_whether_the_workspace_takes_any(client: Client, lab: tuple[Workspace, Actor]) -> None:
    place = begun(client)
    send(client, place, 0, CONTENT[:100])
    with scope.open_workspace(lab[0].pk):
        archive_workspace(actor=lab[1], reason="It is over.", cancels_running=False)
    for answer in (send(client, place, 100, CONTENT[100:]), begin(client)):
        assert (answer.status_code, "archived" in answer.json()["detail"]) == (409, True)
    assert stands(client, place) == 100
    with scope.open_workspace(lab[0].pk):
        unarchive_workspace(actor=lab[1], reason="It is not.")
        revoke_token(actor=lab[1], token=Token.objects.get().public_id, reason="lost")
    for answer in (send(client, place, 100, CONTENT[100:]), client.head(place, headers=TUS), client.delete(place, headers=TUS)):
        assert answer.status_code == 401
    with scope.open_workspace(lab[0].pk):
        assert Upload.objects.get().offset == 100


def test_room_is_reserved_until_a_whole_upload_is_named_or_expires(client: Client, lab: tuple[Workspace, Actor]) -> None:
    with scope.open_workspace(lab[0].pk):
        set_limit(actor=lab[1], unit=Unit.STORAGE_BYTES, window=Limit.Window.NOW, amount=1000, mode=Limit.Mode.STOP, reason="small")
    place = begun(client, 600)
    assert send(client, place, 0, CONTENT[:600]).status_code == 204
    assert begin(client, 600).status_code == 409, "its bytes lie in the store"
    with scope.open_workspace(lab[0].pk):
        Upload.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    second = begun(client, 600)
    assert send(client, second, 0, CONTENT[:600]).status_code == 204
    assert publish(client, second).status_code == 201
    begun(client, 400)


def test_room_is_reserved_for_what_is_announced(client: Client, lab: tuple[Workspace, Actor]) -> None:
    with scope.open_workspace(lab[0].pk):
        set_limit(actor=lab[1], unit=Unit.STORAGE_BYTES, window=Limit.Window.NOW, amount=1000, mode=Limit.Mode.STOP, reason="small")
    place = begun(client, 600)
    answer = begin(client, 600)
    assert (answer.status_code, "1.2 kB of 1.0 kB" in answer.json()["detail"]) == (409, True)
    assert client.delete(place, headers=TUS).status_code == 204
    assert incoming() == []
    begun(client, 600)
    with scope.open_workspace(lab[0].pk):
        assert stored_bytes() == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Tus-Resumable": "0.2.2"}, 412),
        ({"Upload-Length": "-1"}, 422),
        ({"Upload-Length": "0"}, 422),
        ({"Upload-Length": "9" * 18}, 422),
        ({"Upload-Length": "1" * 40}, 422),
        ({"Upload-Metadata": "filename !"}, 422),
        ({"Upload-Metadata": ""}, 422),
        ({"Upload-Metadata": metadata(filename="../x")}, 422),
        ({"Upload-Metadata": metadata(filename="x", sha256="A" * 64)}, 422),
    ],
)
def test_what_cannot_be_begun_is_said(client: Client, headers: dict[str, str], status: int) -> None:
    whole = {**TUS, "Upload-Length": "10", "Upload-Metadata": metadata(filename="x")}
    assert client.post(f"{BASE}/uploads", headers={**whole, **headers}).status_code == status
    assert incoming() == []


def test_nobody_else_sees_or_writes_it_and_viewers_begin_none(client: Client, lab: tuple[Workspace, Actor]) -> None:
    place = begun(client)
    other, viewer = make_member(lab[0], "researcher"), make_member(lab[0], "viewer")
    assert client.patch(place, b"x", content_type="text/plain", headers={**TUS, "Upload-Offset": "0"}).status_code == 415
    theirs = Client(headers={"x-requested-with": "test"})
    assert other.user is not None
    theirs.force_login(other.user)
    assert theirs.head(place, headers=TUS).status_code == 404
    assert viewer.user is not None
    theirs.force_login(viewer.user)
    assert begin(theirs, 10).status_code == 403


def test_an_upload_expires_with_its_bytes(client: Client, lab: tuple[Workspace, Actor]) -> None:
    place = begun(client)
    send(client, place, 0, CONTENT[:100])
    with scope.open_workspace(lab[0].pk):
        assert tidy_uploads() == 0
        Upload.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert send(client, place, 100, CONTENT[100:]).status_code == 404
        assert tidy_uploads() == 1
        assert (Upload.objects.count(), incoming()) == (0, [])


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_breaks_loses_nothing_that_came(live_server: Any, lab: tuple[Workspace, Actor]) -> None:
    _, text = make_token(*lab, "dataset:read", "dataset:write")
    client = bearer(text)
    place = begun(client, sha256=SHA256)
    line = http.client.HTTPConnection(urlsplit(live_server.url).netloc)
    line.putrequest("PATCH", place)
    for name, value in {
        **TUS,
        "Authorization": f"Bearer {text}",
        "Content-Type": PIECE,
        "Upload-Offset": "0",
        "Content-Length": str(len(CONTENT)),
    }.items():
        line.putheader(name, value)
    line.endheaders()
    line.send(CONTENT[:120_000])
    line.close()
    deadline = time.monotonic() + 30
    while (offset := stands(client, place)) < 120_000 and time.monotonic() < deadline:
        time.sleep(0.05)  # until the deadline above
    assert offset == 120_000
    assert send(client, place, offset, CONTENT[offset:]).status_code == 204
    assert publish(client, place).status_code == 201
    with scope.open_workspace(lab[0].pk):
        assert DatasetVersion.objects.get().records == 50_000
