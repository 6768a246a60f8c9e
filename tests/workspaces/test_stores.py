"""What every store keeps to, asked of each: a folder of this machine, and a bucket of a real S3 server on loopback."""

import hashlib
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import obstore
import pytest

from tests.s3_server import S3Server, running_server
from workspaces.bucket import Bucket
from workspaces.local_store import LocalStore
from workspaces.s3_store import PART, S3Store
from workspaces.store import Store, StoreAway, StoreDamaged, StoreMissing

PLACE = uuid.UUID("01890000-0000-7000-8000-000000000001")
OTHER = uuid.UUID("01890000-0000-7000-8000-000000000002")
CONTENT = b"some bytes"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
DAY = 86_400.0


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with running_server() as found:
        yield found


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return LocalStore(tmp_path)
    server: S3Server = request.getfixturevalue("server")
    return S3Store(server.region(tmp_path))


@pytest.fixture
def bucket(server: S3Server, tmp_path: Path) -> Bucket:
    return server.region(tmp_path)


def grow_old(store: Store, tmp_path: Path) -> None:
    """As if nobody had put or renewed anything since 1970."""
    for path in tmp_path.rglob("*"):
        if path.is_file():
            os.utime(path, (0, 0))


def test_put_names_the_file_by_its_content_and_open_gives_any_part(store: Store) -> None:
    assert store.put_stream(PLACE, [CONTENT[:4], b"", CONTENT[4:]]) == (SHA256, len(CONTENT))
    assert b"".join(store.open(PLACE, SHA256)) == CONTENT
    assert b"".join(store.open(PLACE, SHA256, start=5, end=8)) == CONTENT[5:8]
    assert b"".join(store.open(PLACE, SHA256, start=4)) == CONTENT[4:]
    assert b"".join(store.open(PLACE, SHA256, start=100)) == b""
    assert b"".join(store.open(PLACE, SHA256, start=3, end=100)) == CONTENT[3:]
    assert store.exists(PLACE, SHA256)
    assert store.size(PLACE, SHA256) == len(CONTENT)
    path = store.local_path(PLACE, SHA256)
    assert path is not None
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("count", [0, 1, PART - 1, PART, PART + 1, 3 * PART + 7])
def test_files_of_every_length_come_back(store: Store, count: int) -> None:
    content = os.urandom(1000) * (count // 1000 + 1)
    content = content[:count]
    sha256, kept = store.put_stream(PLACE, [content])
    assert (sha256, kept) == (hashlib.sha256(content).hexdigest(), count)
    pieces = list(store.open(PLACE, sha256))
    assert b"".join(pieces) == content
    assert all(len(piece) <= 1_048_576 for piece in pieces)
    middle = b"".join(store.open(PLACE, sha256, start=count // 3, end=count // 2))
    assert middle == content[count // 3 : count // 2]


def test_workspaces_share_nothing(store: Store) -> None:
    store.put_stream(PLACE, [CONTENT])
    assert not store.exists(OTHER, SHA256)
    assert store.local_path(OTHER, SHA256) is None
    assert not store.renew(OTHER, SHA256)
    assert list(store.hashes(OTHER, older_than_seconds=-60)) == []
    with pytest.raises(StoreMissing):
        store.open(OTHER, SHA256)


@pytest.mark.parametrize("text", ["", "..", "../../etc/passwd", "A" * 64, "0" * 63, f"{SHA256}/x", f"{SHA256}\n"])
def test_no_text_becomes_a_name(store: Store, text: str) -> None:
    for ask in (store.exists, store.size, store.local_path, store.open, store.renew):
        with pytest.raises(StoreMissing):
            ask(PLACE, text)
    with pytest.raises(TypeError):
        store.exists("../x", SHA256)  # type: ignore[arg-type]  # what a careless caller could pass


def test_a_broken_stream_leaves_nothing(store: Store, tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield CONTENT
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        store.put_stream(PLACE, broken())
    assert list(store.hashes(PLACE, older_than_seconds=-60)) == []
    assert list(tmp_path.rglob("incoming/*")) == []


def test_what_is_young_stays_and_what_is_old_goes(store: Store, tmp_path: Path) -> None:
    store.put_stream(PLACE, [CONTENT])
    assert list(store.hashes(PLACE, older_than_seconds=DAY)) == []
    assert not store.remove_old(PLACE, SHA256, older_than_seconds=60)
    grow_old(store, tmp_path)
    assert list(store.hashes(PLACE, older_than_seconds=DAY)) == [SHA256]
    assert store.renew(PLACE, SHA256)
    assert not store.remove_old(PLACE, SHA256, older_than_seconds=60)
    grow_old(store, tmp_path)
    assert store.remove_old(PLACE, SHA256, older_than_seconds=60)
    assert not store.remove_old(PLACE, SHA256, older_than_seconds=-60)
    assert not store.exists(PLACE, SHA256)
    assert not store.renew(PLACE, SHA256)
    assert store.local_path(PLACE, SHA256) is None


def test_the_same_content_put_again_is_young(store: Store, tmp_path: Path) -> None:
    store.put_stream(PLACE, [CONTENT])
    grow_old(store, tmp_path)
    store.put_stream(PLACE, [CONTENT])
    assert not store.remove_old(PLACE, SHA256, older_than_seconds=60)
    assert list(store.hashes(PLACE, older_than_seconds=-60)) == [SHA256]


def test_whoever_is_told_that_it_is_there_finds_it_although_others_remove_it(store: Store, tmp_path: Path) -> None:
    """Puts, renewals and removals of one content at once: what was put or renewed after a removal's instant is never removed by it."""
    lost: list[str] = []
    is_over = threading.Event()

    def remove() -> None:
        while not is_over.is_set():
            store.remove_old(PLACE, SHA256, older_than_seconds=0.5)

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        for turn in range(12):
            store.put_stream(PLACE, [CONTENT])
            if not store.exists(PLACE, SHA256):
                lost.append(f"put {turn}")
            grow_old(store, tmp_path)
            if store.renew(PLACE, SHA256) and not store.exists(PLACE, SHA256):
                lost.append(f"renewed {turn}")
    finally:
        is_over.set()
        remover.join()
    assert lost == []


def test_tidying_takes_what_a_killed_process_left(store: Store, tmp_path: Path) -> None:
    store.put_stream(PLACE, [CONTENT])
    (incoming,) = tmp_path.rglob("incoming")
    (incoming / "left").write_bytes(b"x")
    assert store.tidy_incoming(PLACE, older_than_seconds=DAY) == 0
    grow_old(store, tmp_path)
    assert store.tidy_incoming(PLACE, older_than_seconds=DAY) == 1
    assert b"".join(store.open(PLACE, SHA256)) == CONTENT


def test_a_place_that_is_not_there_is_away_and_has_lost_nothing(store: Store, tmp_path: Path) -> None:
    gone: Store = LocalStore(tmp_path / "unmounted")
    if isinstance(store, S3Store):
        gone = S3Store(replace(store.bucket, bucket="lab-none-of-ours", local=tmp_path / "none"))
        assert "no bucket lab-none-of-ours" in gone.probe()
    for look in (gone.exists, gone.size, gone.open, gone.local_path):
        with pytest.raises(StoreAway):
            look(PLACE, SHA256)
    if isinstance(gone, S3Store):
        for ask in (
            lambda: gone.put_stream(PLACE, [CONTENT]),
            lambda: gone.renew(PLACE, SHA256),
            lambda: gone.remove_old(PLACE, SHA256, older_than_seconds=-60),
            lambda: list(gone.hashes(PLACE, older_than_seconds=-60)),
        ):
            with pytest.raises(StoreAway):
                ask()
    assert not store.exists(PLACE, SHA256)


# --- Of a bucket alone --------------------------------------------------------------------------------------------------------------------


def test_objects_lie_below_the_prefix_by_workspace_and_hash(server: S3Server, bucket: Bucket) -> None:
    S3Store(bucket).put_stream(PLACE, [CONTENT])
    assert server.names(bucket) == [f"{PLACE.hex}/blobs/{SHA256[:2]}/{SHA256}"]


def test_a_copy_is_fetched_where_there_is_none_and_never_one_that_is_damaged(server: S3Server, bucket: Bucket, tmp_path: Path) -> None:
    S3Store(bucket).put_stream(PLACE, [CONTENT])
    elsewhere = S3Store(Bucket(bucket.bucket, bucket.prefix, tmp_path / "elsewhere", bucket.keys_file, bucket.endpoint))
    path = elsewhere.local_path(PLACE, SHA256)
    assert path is not None
    assert path.read_bytes() == CONTENT
    path.unlink()
    obstore.put(server.client(bucket), f"{PLACE.hex}/blobs/{SHA256[:2]}/{SHA256}", b"some bytez")
    with pytest.raises(StoreDamaged):
        elsewhere.local_path(PLACE, SHA256)
    assert [found for found in (tmp_path / "elsewhere" / "copies").rglob("*") if found.is_file()] == []


@pytest.mark.parametrize("count", [10, 2 * PART + 1])
def test_what_is_removed_as_old_while_it_is_sent_is_sent_again(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """A row lets go of the same content after the put has begun: its removal takes object and copy just before the put looks again."""
    store, content = S3Store(bucket), bytes(count)
    send = store._send
    removed: list[bool] = []

    def meanwhile(*told: Any) -> None:
        send(*told)
        if not removed:
            grow_old(store, tmp_path)
            removed.append(S3Store(bucket).remove_old(PLACE, hashlib.sha256(content).hexdigest(), older_than_seconds=60))

    monkeypatch.setattr(store, "_send", meanwhile)
    sha256, _ = store.put_stream(PLACE, [content])
    assert removed == [True]
    assert b"".join(store.open(PLACE, sha256)) == content
    path = store.local_path(PLACE, sha256)
    assert path is not None
    assert path.read_bytes() == content


def test_copies_keep_to_their_limit_and_those_in_use_stay(server: S3Server, tmp_path: Path) -> None:
    store = S3Store(server.region(tmp_path, copy_bytes=2_500))
    put: Callable[[int], str] = lambda turn: store.put_stream(PLACE, [bytes([turn]) * 1000])[0]  # noqa: E731  # read as put(3)
    hashes = [put(turn) for turn in range(3)]
    copies = tmp_path / "here" / "copies"
    assert len(list(copies.rglob("blobs/*/*"))) == 3  # all of this hour
    for age, sha256 in zip((30_000, 20_000, 10_000), hashes, strict=True):
        (path,) = copies.rglob(sha256)
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    assert store.local_path(PLACE, hashes[0]) is not None  # asked for: in use
    put(9)
    kept = {path.name for path in copies.rglob("blobs/*/*")}
    assert hashes[0] in kept
    assert {hashes[1], hashes[2]}.isdisjoint(kept)
    assert all(store.exists(PLACE, sha256) for sha256 in hashes)


def test_a_bucket_that_does_not_answer_is_away_and_not_empty(server: S3Server, bucket: Bucket) -> None:
    bucket.keys_file.chmod(0o644)  # readable to others: not used
    with pytest.raises(StoreAway):
        S3Store(bucket).exists(PLACE, SHA256)
    assert "does not answer" in S3Store(bucket).probe()
    assert server.secret not in S3Store(bucket).probe()
