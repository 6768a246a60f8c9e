"""The content-addressed store: exact bytes under their hash, private modes, nothing left of what broke."""

import errno
import hashlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_workspace, scope
from tests.factories_registry import make_dataset_version, stored
from workspaces import store
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.blob import receive_file, stored_bytes, tidy_store
from workspaces.commands.limit import set_limit
from workspaces.models import Blob, Limit, Unit, Workspace

PLACE = uuid.UUID("01890000-0000-7000-8000-000000000001")
CONTENT = b"some bytes"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def place(settings: Any, tmp_path: Path) -> Path:
    settings.LABSITE_REGIONS = {"local": tmp_path}
    return tmp_path


def files(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def test_put_names_the_file_by_its_content(place: Path) -> None:
    assert store.put_stream("local", PLACE, [CONTENT[:4], b"", CONTENT[4:]]) == (SHA256, len(CONTENT))
    assert files(place) == [f"{PLACE.hex}/blobs/{SHA256[:2]}/{SHA256}"]
    path = store.local_path("local", PLACE, SHA256)
    assert path is not None
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o600
    assert {parent.stat().st_mode & 0o777 for parent in path.parents if place in parent.parents} == {0o700}
    assert b"".join(store.open("local", PLACE, SHA256)) == CONTENT
    assert b"".join(store.open("local", PLACE, SHA256, start=5, end=8)) == CONTENT[5:8]
    assert b"".join(store.open("local", PLACE, SHA256, start=100)) == b""


def test_modes_do_not_follow_the_umask(place: Path) -> None:
    before = os.umask(0)
    try:
        store.put_stream("local", PLACE, [CONTENT])
    finally:
        os.umask(before)
    path = store.local_path("local", PLACE, SHA256)
    assert path is not None
    assert path.stat().st_mode & 0o777 == 0o600


def test_same_content_is_kept_once_and_workspaces_share_nothing(place: Path) -> None:
    other = uuid.UUID("01890000-0000-7000-8000-000000000002")
    store.put_stream("local", PLACE, [CONTENT])
    store.put_stream("local", PLACE, [CONTENT])
    assert len(files(place)) == 1
    assert not store.exists("local", other, SHA256)
    with pytest.raises(store.StoreMissing):
        store.open("local", other, SHA256)


def test_removed_is_gone(place: Path) -> None:
    store.put_stream("local", PLACE, [CONTENT])
    place_of_bytes = store.store_of("local")
    assert not place_of_bytes.remove_old(PLACE, SHA256, older_than_seconds=60)
    assert store.exists("local", PLACE, SHA256)
    assert place_of_bytes.remove_old(PLACE, SHA256, older_than_seconds=-60)
    assert not place_of_bytes.remove_old(PLACE, SHA256, older_than_seconds=-60)
    assert not store.exists("local", PLACE, SHA256)
    assert store.local_path("local", PLACE, SHA256) is None


@pytest.mark.parametrize("text", ["", "..", "../../etc/passwd", "A" * 64, "0" * 63, f"{SHA256}/x", f"{SHA256}\n"])
def test_no_text_becomes_a_path(place: Path, text: str) -> None:
    for ask in (store.exists, store.local_path, store.open, store.renew):
        with pytest.raises(store.StoreMissing):
            ask("local", PLACE, text)
    with pytest.raises(TypeError):
        store.exists("local", "../x", SHA256)  # type: ignore[arg-type]  # what a careless caller could pass


def test_broken_stream_leaves_nothing(place: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield CONTENT
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        store.put_stream("local", PLACE, broken())
    assert files(place) == []


def test_full_disk_is_said_and_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    (place / PLACE.hex / "incoming").mkdir(parents=True)
    with pytest.raises(store.StoreFull):
        store.put_stream("local", PLACE, [CONTENT])
    assert files(place) == []


@pytest.fixture
def lab(db: None, place: Path) -> Iterator[tuple[Workspace, Actor]]:
    workspace, actor = make_workspace("lab", region="local")
    with scope.open_workspace(workspace.pk):
        yield workspace, actor


def test_sweep_takes_what_no_row_names_once_it_is_a_day_old(lab: tuple[Workspace, Actor], place: Path) -> None:
    kept = make_dataset_version(lab[1])
    orphan = stored("orphan.txt", b"nobody names me")
    incoming = place / lab[0].pk.hex / "incoming" / "left"
    incoming.write_bytes(b"x")
    assert tidy_store() == 0
    for path in [incoming, *(place / lab[0].pk.hex / "blobs").glob("*/*")]:
        os.utime(path, (0, 0))
    assert tidy_store() == 2
    assert not store.exists("local", lab[0].pk, orphan.sha256)
    assert store.exists("local", lab[0].pk, kept.files.get().blob.sha256)


def test_bytes_are_counted_once_and_limited_with_the_arithmetic(lab: tuple[Workspace, Actor]) -> None:
    actor = lab[1]
    make_dataset_version(actor, "one", content=b"a\n" * 40)
    make_dataset_version(actor, "two", content=b"a\n" * 40)
    assert stored_bytes() == 80
    set_limit(actor=actor, unit=Unit.STORAGE_BYTES, window=Limit.Window.NOW, amount=100, mode=Limit.Mode.STOP, reason="small")
    with pytest.raises(Refusal, match=r"30 bytes more would make 110 bytes of 100 bytes of storage\. Free 10 bytes"):
        make_dataset_version(actor, "three", content=b"b\n" * 15)
    with pytest.raises(Refusal, match="110 bytes"):
        receive_file("x", [b"c" * 30], expected_bytes=30)
    make_dataset_version(actor, "four", content=b"b\n" * 10)
    assert stored_bytes() == 100
    assert Blob.objects.count() == 2


def test_no_region_says_where_to_choose_one(db: None, place: Path) -> None:
    workspace, _ = make_workspace("bare")
    with scope.open_workspace(workspace.pk), pytest.raises(Refusal, match="no storage region"):
        receive_file("x", [b"x"])
