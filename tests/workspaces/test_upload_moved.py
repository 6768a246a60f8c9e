"""How an upload gets into the store: moved where that lies on its disk, copied else; and whatever breaks off, nothing of it is lost or wrong."""

import os
import resource
import time
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from tests.factories import scope
from tests.workspaces.test_upload import CONTENT, SHA256, begun, client, incoming, lab, publish, send, stands
from workspaces import store
from workspaces.access import Actor
from workspaces.local_store import LocalStore
from workspaces.models import DatasetVersion, Upload, Workspace

__all__ = ["client", "lab"]


def stored(lab: tuple[Workspace, Actor]) -> bytes:
    with scope.open_workspace(lab[0].pk):
        assert DatasetVersion.objects.get().records == 50_000
        return b"".join(store.open("local", lab[0].pk, SHA256))


def test_on_one_disk_the_file_itself_is_moved_and_is_young(client: Client, lab: tuple[Workspace, Actor]) -> None:
    place = begun(client, sha256=SHA256)
    send(client, place, 0, CONTENT[:100])
    (name,) = incoming()
    (came,) = Path(settings.UPLOADS).rglob(name)
    inode, long_ago = came.stat().st_ino, time.time() - 10 * 86_400
    assert send(client, place, 100, CONTENT[100:]).status_code == 204
    kept = store.local_path("local", lab[0].pk, SHA256)
    assert kept is not None
    assert (kept.stat().st_ino, kept.stat().st_mode & 0o777) == (inode, 0o600)
    assert kept.stat().st_mtime > long_ago
    assert publish(client, place).status_code == 201
    assert stored(lab) == CONTENT


def test_a_file_that_waited_for_days_is_not_tidied_away_as_it_is_moved(lab: tuple[Workspace, Actor], tmp_path: Path) -> None:
    place = tmp_path / "waited"
    place.write_bytes(CONTENT)
    os.utime(place, (1, 1))
    with scope.open_workspace(lab[0].pk):
        assert store.takes_file("local", lab[0].pk, place)
        store.put_file("local", lab[0].pk, place, SHA256)
        assert not store.store_of("local").remove_old(lab[0].pk, SHA256, older_than_seconds=86_400)


def test_from_another_disk_it_is_copied(client: Client, lab: tuple[Workspace, Actor], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStore, "takes_file", lambda *_: False)
    place = begun(client, sha256=SHA256)
    assert send(client, place, 0, CONTENT).status_code == 204
    assert incoming() == []
    assert publish(client, place).status_code == 201
    assert stored(lab) == CONTENT


@pytest.mark.parametrize("dies", ["before", "after"])
def test_killed_while_it_is_moved_it_is_there_for_the_next_who_asks(
    client: Client, lab: tuple[Workspace, Actor], monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    place, put = begun(client, sha256=SHA256), store.put_file

    def killed(*given: Any) -> None:
        if dies == "after":
            put(*given)
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(store, "put_file", killed)
        with pytest.raises(SystemExit):
            send(client, place, 0, CONTENT)
    with scope.open_workspace(lab[0].pk):
        assert Upload.objects.get().sha256 == SHA256
    assert len(incoming()) == (dies == "before")
    assert stands(client, place) == len(CONTENT)
    assert publish(client, place).status_code == 201
    assert incoming() == []
    assert stored(lab) == CONTENT


def test_where_the_disk_takes_a_part_that_part_came_and_no_more(client: Client, lab: tuple[Workspace, Actor]) -> None:
    place, room = begun(client, sha256=SHA256), 100_001
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        answer = send(client, place, 0, CONTENT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (answer.status_code, "no room" in answer.json()["detail"]) == (409, True), answer.content
    assert stands(client, place) == room
    assert send(client, place, room, CONTENT[room:]).status_code == 204
    assert publish(client, place).status_code == 201
    assert stored(lab) == CONTENT
