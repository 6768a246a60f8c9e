"""Versions from other machines: whole, hashed, said where from, in the name of who asked; or a sentence, and nothing kept."""

import hashlib
import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs.commands.dataset_import import WantedFile, request_import
from runs.jobs import dataset_import as job
from runs.jobs.dataset_import import read_import
from runs.models import DatasetImport
from tests.factories import Role, make_member, make_workspace, scope
from tests.runs.file_server import FileServer
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.commands.dataset import create_dataset
from workspaces.commands.member import remove_member
from workspaces.commands.secret import create_secret
from workspaces.models import Blob, Dataset, DatasetVersion, EventPayload, Membership, Secret, Workspace

pytestmark = pytest.mark.django_db
CONTENT = b"a,b\n1,2\n3,4\n"
API = "/api/v1/workspaces/lab/datasets/d"


@pytest.fixture
def lab(settings: Any, tmp_path: Path, client: Client, server: FileServer) -> tuple[Workspace, Actor, Dataset]:
    settings.LABSITE_REGIONS = {"local": tmp_path / "store"}
    settings.IMPORTS = tmp_path / "imports"
    settings.IMPORT_HOSTS = [f"127.0.0.1:{server.port}"]
    workspace, actor = make_workspace("lab", region="local")
    assert actor.user is not None
    client.force_login(actor.user)
    with scope.open_workspace(workspace.pk):
        dataset = create_dataset(actor=actor, slug="d", origin="external", licence="CC0-1.0")
    return workspace, actor, dataset


def ask(lab: tuple[Workspace, Actor, Dataset], *files: WantedFile, **more: Any) -> DatasetImport:
    workspace, actor, dataset = lab
    with scope.open_workspace(workspace.pk):
        return request_import(actor=actor, dataset=dataset, role="train", files=files, **more)


def read(lab: tuple[Workspace, Actor, Dataset], asked: DatasetImport) -> DatasetImport:
    with scope.open_workspace(lab[0].pk):
        inspect.unwrap(read_import)(Actor.system(job_id="read_import"), asked.pk)  # the job itself, without its bell
        return DatasetImport.objects.select_related("version").get(pk=asked.pk)


def nothing_was_kept(lab: tuple[Workspace, Actor, Dataset], tmp_path: Path) -> bool:
    with scope.open_workspace(lab[0].pk):
        rows = DatasetVersion.objects.exists() or Blob.objects.exists()
    return not rows and not list((tmp_path / "store").glob("*/incoming/*"))


def test_files_become_one_version_that_says_where_it_is_from(lab: Any, server: FileServer, client: Client) -> None:
    server.files |= {"/a.csv": CONTENT, "/sub/b%20c.jsonl": b"{}\n"}
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    asked = ask(
        lab,
        WantedFile(f"{server.base}/a.csv?token=xyz", sha256=sha256, bytes=12),
        WantedFile(f"{server.base}/sub/b%20c.jsonl"),
        reason="why",
    )
    done = read(lab, asked)
    assert (done.status, done.failure) == ("done", "")
    version = done.version
    assert version is not None
    assert (version.source, version.records, version.licence) == (f"{server.base}/a.csv, and 1 more file", 3, "CC0-1.0")
    assert version.created_by == lab[1].user
    with scope.open_workspace(lab[0].pk):
        assert sorted(version.files.values_list("path", flat=True)) == ["a.csv", "b c.jsonl"]
        told = EventPayload.objects.get(event__verb="dataset_version.imported").body
        assert "xyz" not in json.dumps(told)
        assert told["reason"] == "why"
    body = client.get(f"{API}/imports/{asked.public_id}").json()
    assert (body["status"], body["version_id"], body["read"][0]["sha256"]) == ("done", version.public_id, sha256)
    for address in ("/workspaces/lab/datasets/d/", body["url"]):
        page = client.get(address).content.decode()
        assert "xyz" not in page
    assert read(lab, asked).version == version


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"sha256": "0" * 64}, "was announced"),
        ({"bytes": 11}, "were announced"),
        ({"address": "/missing.csv"}, "404"),
        ({"address": "/empty.csv"}, "is empty"),
        ({"address": "/changing.csv"}, "changed while it was read"),
    ],
)
def test_what_is_not_as_announced_leaves_nothing(lab: Any, server: FileServer, tmp_path: Path, wanted: dict[str, Any], words: str) -> None:
    server.files |= {"/good.csv": CONTENT, "/a.csv": CONTENT, "/empty.csv": b"", "/changing.csv": CONTENT}
    server.changes.add("/changing.csv")
    address = f"{server.base}{wanted.pop('address', '/a.csv')}"
    done = read(lab, ask(lab, WantedFile(f"{server.base}/good.csv"), WantedFile(address, **wanted)))
    assert done.status == "failed"
    assert words in done.failure
    assert nothing_was_kept(lab, tmp_path)


def test_a_file_without_any_record_is_no_version(lab: Any, server: FileServer, tmp_path: Path) -> None:
    server.files["/a.csv"] = b"\xef\xbb\xbf\n"
    done = read(lab, ask(lab, WantedFile(f"{server.base}/a.csv")))
    assert (done.status, done.failure.startswith("a.csv holds no record")) == ("failed", True)
    assert nothing_was_kept(lab, tmp_path)


def test_what_would_be_refused_is_refused_as_it_is_asked_for(lab: Any, server: FileServer) -> None:
    with pytest.raises(Refusal, match="in the clear"):
        ask(lab, WantedFile("http://127.0.0.1:1/a.csv"))
    with pytest.raises(Refusal, match="same file"):
        ask(lab, WantedFile(f"{server.base}/a.csv"), WantedFile(f"{server.base}/x/A.csv"))
    with pytest.raises(Refusal, match=r"empty part, \. or"):
        ask(lab, WantedFile(f"{server.base}/a.csv", path="../a.csv"))
    with pytest.raises(Refusal, match="at least one"):
        ask(lab)
    with pytest.raises(Refusal, match="SPDX"):
        ask(lab, WantedFile(f"{server.base}/a.csv"), licence="ours")
    assert server.connections == 0


def test_a_neighbour_of_a_listed_host_is_not_read(lab: Any, server: FileServer, settings: Any) -> None:
    settings.IMPORT_HOSTS = []
    done = read(lab, ask(lab, WantedFile(f"https://127.0.0.1:{server.port}/a.csv")))
    assert done.status == "failed"
    assert "an address inside" in done.failure
    assert server.connections == 0


def test_a_limit_of_bytes_and_of_storage_holds(lab: Any, server: FileServer, settings: Any, tmp_path: Path) -> None:
    server.files["/a.csv"] = CONTENT
    settings.IMPORT_BYTES = 5
    done = read(lab, ask(lab, WantedFile(f"{server.base}/a.csv")))
    assert "the most that is taken" in done.failure
    assert nothing_was_kept(lab, tmp_path)


def test_who_may_not_import_any_more_gets_nothing(lab: Any, server: FileServer, tmp_path: Path) -> None:
    server.files["/a.csv"] = CONTENT
    workspace, owner, dataset = lab
    researcher = make_member(workspace, Role.RESEARCHER)
    with scope.open_workspace(workspace.pk):
        asked = request_import(actor=researcher, dataset=dataset, role="train", files=[WantedFile(f"{server.base}/a.csv")])
        remove_member(actor=owner, member=Membership.objects.get(user=researcher.user).public_id)
    done = read(lab, asked)
    assert "may not import" in done.failure
    assert nothing_was_kept(lab, tmp_path)


def test_a_worker_that_dies_is_replaced_and_one_that_always_dies_is_given_up(
    lab: Any, server: FileServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.files["/a.csv"] = CONTENT
    asked = ask(lab, WantedFile(f"{server.base}/a.csv"))

    def killed(*_: Any, **__: Any) -> None:
        raise SystemExit(9)  # as a process ends: no handler of the job has its say

    with monkeypatch.context() as dying:
        dying.setattr(job, "_read", killed)
        with pytest.raises(SystemExit):
            read(lab, asked)
    assert read(lab, asked).status == "done"
    second = ask(lab, WantedFile(f"{server.base}/a.csv"), records=5)
    monkeypatch.setattr(job, "_read", killed)
    for _ in range(3):
        with pytest.raises(SystemExit):
            read(lab, second)
    assert "ended 3 times" in read(lab, second).failure


def test_a_bucket_is_opened_by_who_manages_secrets(lab: Any) -> None:
    workspace, owner, dataset = lab
    researcher = make_member(workspace, Role.RESEARCHER)
    with scope.open_workspace(workspace.pk):
        create_secret(actor=owner, name="BUCKET", value="AKIAEXAMPLE:a-secret-key")
        secret = Secret.objects.get()
        files = [WantedFile("s3://bucket/a.csv")]
        with pytest.raises(Denied):
            request_import(actor=researcher, dataset=dataset, role="train", files=files, secret=secret)
        assert request_import(actor=owner, dataset=dataset, role="train", files=files, secret=secret).secret == secret


def test_by_page_and_api(lab: Any, server: FileServer, client: Client) -> None:
    server.files |= {"/a.csv": CONTENT, "/b.csv": CONTENT + b"5,6\n"}
    address = "/workspaces/lab/datasets/d/import/"
    assert client.get(address).status_code == 200
    wrong = client.post(address, {"role": "train", "addresses": f"{server.base}/a.csv nonsense"})
    assert wrong.status_code == 422
    refused = client.post(address, {"role": "train", "addresses": "ftp://example.org/a"})
    assert refused.status_code == 409
    assert "https://" in refused.content.decode()
    made = client.post(
        address, {"role": "train", "addresses": f"{server.base}/a.csv {hashlib.sha256(CONTENT).hexdigest()}", "has_header": "on"}
    )
    assert made.status_code == 303
    assert "waits for a worker" in client.get(made["Location"]).content.decode()
    sent = {"role": "holdout", "files": [{"address": f"{server.base}/b.csv", "path": "kept.csv"}], "reason": "why"}
    body = client.post(f"{API}/imports", json.dumps(sent), content_type="application/json").json()
    assert (body["status"], body["files"]) == ("queued", 1)
    with scope.open_workspace(lab[0].pk):
        both = list(DatasetImport.objects.order_by("created_at"))
    assert [read(lab, asked).status for asked in both] == ["done", "done"]
    assert len(client.get(f"{API}/imports").json()["items"]) == 2
    assert client.get(f"{API}/versions/2").json()["files"][0]["path"] == "kept.csv"
