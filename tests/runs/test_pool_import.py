"""Versions from a path on a pool's machine, this one and a host behind a real sshd: only what a site operator listed, and never what is labsite's."""

import contextlib
import hashlib
import inspect
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured
from django.test import Client

from runs.commands.dataset_import import WantedFile, request_import
from runs.jobs.dataset_import import read_import
from runs.models import DatasetImport
from runs.pools import listed
from runs.pools.base import PoolError
from runs.pools.isolation import Isolation
from runs.pools.local import LocalPool
from runs.pools.ssh_thread import close_all
from tests.factories_people import make_operator
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.pools.ssh_host import SSHHost
from tests.runs.test_ssh_engine import add_far_pool
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.dataset import create_dataset
from workspaces.models import Dataset, DatasetVersion, EventPayload

pytestmark = pytest.mark.django_db(transaction=True)
CONTENT = b"a,b\n1,2\n3,4\n" * 100_000


class Place:
    """A pool and a listed folder of its machine, with a dataset to import into."""

    def __init__(self, laboratory: Laboratory, pool: str, folder: Path) -> None:
        self.laboratory, self.pool, self.folder = laboratory, pool, folder
        with laboratory.opened():
            self.dataset = create_dataset(actor=laboratory.owner, slug="brought", origin="external", licence="CC0-1.0")

    def address(self, name: str) -> str:
        return f"pool://{self.pool}{self.folder}/{name}"

    def ask(self, *names: str, **more: Any) -> DatasetImport:
        files = [WantedFile(self.address(name), **more) for name in names]
        with self.laboratory.opened():
            return request_import(actor=self.laboratory.owner, dataset=self.dataset, role="train", files=files, reason="it lies there")

    def read(self, *names: str, **more: Any) -> DatasetImport:
        asked = self.ask(*names, **more)
        with self.laboratory.opened():
            inspect.unwrap(read_import)(Actor.system(job_id="read_import"), asked.pk)  # the job itself, without its bell
            return DatasetImport.objects.select_related("version").get(pk=asked.pk)

    def refusal(self, *names: str) -> str:
        """Why nothing was imported, having made sure that nothing was."""
        with self.laboratory.opened():
            before = DatasetVersion.objects.count()
        done = self.read(*names)
        with self.laboratory.opened():
            assert (done.status, DatasetVersion.objects.count()) == ("failed", before)
        return done.failure


@pytest.fixture(params=["local", "ssh"])
def place(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> Iterator[Place]:
    settings.IMPORTS = tmp_path / "imports"
    laboratory = make_laboratory()
    if request.param == "local":
        folder = tmp_path / "data"
        folder.mkdir()
        settings.IMPORT_FOLDERS = [f"local:{folder}"]
        yield Place(laboratory, "local", folder)
        return
    host = SSHHost()
    folder = host.home / "data"
    folder.mkdir(mode=0o711)
    shutil.chown(folder, host.user)
    settings.IMPORT_FOLDERS = [f"gpu-host:{folder}"]
    add_far_pool(laboratory, host, make_operator())
    yield Place(laboratory, "gpu-host", folder)
    close_all()
    host.close()


def put(place: Place, name: str, content: bytes = CONTENT) -> Path:
    path = place.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def test_files_of_a_pools_machine_become_a_version_that_says_so(place: Place, client: Client) -> None:
    put(place, "a.csv")
    put(place, "sub/b c.csv", b"a,b\n1,2\n")
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    done = place.read("a.csv", "sub/b%20c.csv")
    assert (done.status, done.failure) == ("done", "")
    assert done.version is not None
    assert done.version.source == f"{place.address('a.csv')}, and 1 more file"
    with place.laboratory.opened():
        found = {file.path: (file.blob.sha256, file.blob.bytes) for file in done.version.files.select_related("blob")}
        assert found == {"a.csv": (sha256, len(CONTENT)), "b c.csv": (hashlib.sha256(b"a,b\n1,2\n").hexdigest(), 8)}
        bodies = EventPayload.objects.filter(event__verb="dataset_version.imported").values_list("body", flat=True)
        (told,) = (body for body in bodies if body["reason"] == "it lies there")
    assert [one["from"] for one in told["details"]["read"]] == [place.address("a.csv"), place.address("sub/b%20c.csv")]
    assert place.laboratory.owner.user is not None
    client.force_login(place.laboratory.owner.user)
    told = client.get(f"/api/v1/workspaces/lab/datasets/brought/imports/{done.public_id}").json()
    assert (told["status"], told["read"][0]["sha256"]) == ("done", sha256)
    assert place.address("a.csv") in client.get("/workspaces/lab/datasets/brought/").content.decode()


def test_what_is_no_plain_file_below_the_folder_is_refused_with_a_sentence(place: Place) -> None:
    secret = place.folder.parent / "secret"
    secret.write_bytes(b"not yours")
    (place.folder / "link").symlink_to(secret)
    (place.folder / "around").symlink_to(place.folder.parent)
    os.mkfifo(place.folder / "pipe")
    (place.folder / "folder").mkdir()
    assert "links are not followed" in place.refusal("link")
    assert "links are not followed" in place.refusal("around/secret")
    assert "not a regular file" in place.refusal("pipe")
    assert "not a regular file" in place.refusal("folder")
    assert "no such file" in place.refusal("missing")
    put(place, "empty", b"")
    assert "is empty" in place.refusal("empty")
    put(place, "good.csv")
    assert "was announced" in place.read("good.csv", sha256="0" * 64).failure
    for name in ("../secret", "%2e%2e/secret", "sub/./x", "a%00b", "a%ffb", ""):
        with pytest.raises(Refusal, match="names no file of a pool"):
            place.ask(name)


def test_what_is_not_listed_is_refused_when_asked_and_when_read(place: Place, settings: Any) -> None:
    put(place, "a.csv")
    asked = place.ask("a.csv")
    listed_before, settings.IMPORT_FOLDERS = settings.IMPORT_FOLDERS, [f"other:{place.folder}"]
    with pytest.raises(Refusal, match="LABSITE_IMPORT_FOLDERS"):
        place.ask("a.csv")
    with place.laboratory.opened():
        inspect.unwrap(read_import)(Actor.system(job_id="read_import"), asked.pk)
        asked.refresh_from_db()
    assert asked.status == "failed"
    assert "below no folder that a site operator listed" in asked.failure
    settings.IMPORT_FOLDERS = [f"{listed_before[0]}-more"]  # a neighbour whose name begins alike
    with pytest.raises(Refusal, match="LABSITE_IMPORT_FOLDERS"):
        place.ask("a.csv")
    file = WantedFile(f"pool://elsewhere{place.folder}/a.csv")
    with place.laboratory.opened(), pytest.raises(Refusal, match="no pool of this workspace"):
        request_import(actor=place.laboratory.owner, dataset=place.dataset, role="train", files=[file])


def test_labsites_own_and_what_runs_left_is_never_read_even_where_it_is_listed(place: Place, settings: Any) -> None:
    """By whatever name a pool reaches it: a host behind SSH may be this machine."""
    runs = place.folder / "labsite-runs"
    for name in ("runs/other/lab-1/outputs", "uids"):
        (runs / name).mkdir(parents=True)
    (runs / "runs/other/lab-1/outputs/model").write_bytes(b"of another")
    assert "in a folder of labsite" in place.refusal("labsite-runs/runs/other/lab-1/outputs/model")
    home = place.folder / "home"
    (home / "keys").mkdir(parents=True)
    (home / "keys/key").write_bytes(b"a key")
    settings.LABSITE_HOME = home
    assert "in a folder of labsite" in place.refusal("home/keys/key")
    settings.IMPORT_FOLDERS = [f"{place.pool}:{home}/keys"]
    assert "in a folder of labsite" in place.refusal("home/keys/key")
    store = put(place, "store/blob").parent
    settings.LABSITE_REGIONS = {**configured.LABSITE_REGIONS, "other": store}
    settings.IMPORT_FOLDERS = [f"{place.pool}:{place.folder}"]
    assert "in a folder of labsite" in place.refusal("store/blob")


@pytest.mark.parametrize("change", ["append", "rewrite", "shorten", "exchange"])
def test_a_file_that_changes_while_it_is_read_is_not_kept(tmp_path: Path, change: str) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(b"x" * 1_000_000)
    pool = LocalPool(tmp_path / "pool", Isolation.NONE, [], None)
    with pool.open_path(str(path), below=[str(tmp_path)], never=[]) as file:
        assert len(file.read(400_000)) == 400_000
        with path.open("r+b") as other:
            if change == "append":
                other.seek(0, os.SEEK_END)
                other.write(b"more")
            elif change == "rewrite":
                other.write(b"y")
            elif change == "shorten":
                other.truncate(10)
        if change == "exchange":
            path.unlink()
            path.write_bytes(b"z" * 1_000_000)
        with pytest.raises(OSError, match="changed while it was read"):
            file.read()


def test_a_change_on_the_far_side_arrives_as_a_sentence(place: Place) -> None:
    """A writer appends as long as the reading lasts: a version of it would be of no state that the file ever had."""
    path = put(place, "log.csv", b"a,b\n" + b"1,2\n" * 2_000_000)
    ended = threading.Event()

    def write() -> None:
        with path.open("ab") as file:
            while not ended.is_set():
                file.write(b"5,6\n")
                file.flush()
                ended.wait(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert "changed while it was read" in place.refusal("log.csv")
    finally:
        ended.set()
        writer.join()
    assert place.read("log.csv").status == "done"


def test_links_that_are_swapped_under_the_reader_lead_nowhere(tmp_path: Path) -> None:
    folder, outside = tmp_path / "data", tmp_path / "outside"
    for one, content in ((folder / "sub", b"inside"), (outside, b"outside")):
        one.mkdir(parents=True)
        (one / "file").write_bytes(content)
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            (folder / "sub").rename(folder / "aside")
            (folder / "sub").symlink_to(outside)
            (folder / "sub").unlink()
            (folder / "aside").rename(folder / "sub")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: set[bytes] = set()
    try:
        for count in range(200_000):  # the reader may meet the folder aside for as long as it is not interrupted
            if count >= 2000 and seen:
                break
            with contextlib.suppress(PoolError), listed.open_listed(f"{folder}/sub/file", below=[str(folder)], never=[]) as file:
                seen.add(file.read())
    finally:
        ended.set()
        swapper.join()
    assert seen == {b"inside"}


def test_by_page_and_api(place: Place, client: Client) -> None:
    put(place, "a.csv")
    assert place.laboratory.owner.user is not None
    client.force_login(place.laboratory.owner.user)
    page = "/workspaces/lab/datasets/brought/import/"
    assert "pool://" in client.get(page).content.decode()
    refused = client.post(page, {"role": "train", "addresses": f"pool://{place.pool}/etc/passwd"})
    assert refused.status_code == 409
    assert "is not read for people" in refused.content.decode()
    assert client.post(page, {"role": "train", "addresses": place.address("a.csv")}).status_code == 303
    sent = {"role": "train", "files": [{"address": place.address("a.csv"), "path": "kept.csv"}]}
    api = "/api/v1/workspaces/lab/datasets/brought/imports"
    body = client.post(api, json.dumps(sent), content_type="application/json").json()
    assert (body["status"], body["source"]) == ("queued", place.address("a.csv"))
    with place.laboratory.opened():
        assert Dataset.objects.get(slug="brought").imports.count() == 2
