"""A workspace whose files lie in a bucket of a real S3 server: a run, what it reads and leaves, and what becomes of that."""

import inspect
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import obstore
import pytest
from django.conf import settings
from django.core.cache import cache

from labsite.doctor import WORKSPACE_CHECKS
from runs.commands.artifact import delete_artifact, remove_artifact
from runs.commands.export import request_export
from runs.jobs.export import make_export
from runs.jobs.tidy import tidy_workspace
from runs.lifecycle import RunStatus
from runs.models import Artifact, Attempt, Export
from tests.factories_pages import add_artifact, client_of
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from tests.s3_server import S3Server, running_server
from workspaces import scope, store
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.bucket import Bucket
from workspaces.commands.blob import receive_file, stored_bytes, tidy_store
from workspaces.commands.reconcile import recheck_files, reconcile_files
from workspaces.models import AgentFile, Blob

SYSTEM = Actor.system(job_id="test")
TRAINER = b"""
import json, shutil
rows = open("../inputs/table/table.csv").read()
print("read")
with open("../outputs/report.txt", "w") as report:
    report.write("rows:" + rows)
with open("../events.jsonl", "a") as events:
    events.write(json.dumps({"type": "artifact", "path": "report.txt", "name": "report", "kind": "report", "metadata": {}}) + "\\n")
"""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with running_server() as found:
        yield found


@pytest.fixture
def bucket(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    bucket = server.region(tmp_path)
    monkeypatch.setattr(settings, "LABSITE_REGIONS", {"local": bucket})
    monkeypatch.setattr(settings, "EXPORTS", tmp_path / "exports")
    return bucket


def key_of(blob: Blob) -> str:
    return f"{scope.current_id().hex}/blobs/{blob.sha256[:2]}/{blob.sha256}"


@pytest.mark.django_db(transaction=True)
def test_a_run_reads_and_leaves_files_of_a_bucket(
    server: S3Server, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laboratory = make_laboratory(code=TRAINER)
    # As on another machine: nothing of what was put is here as a copy.
    monkeypatch.setattr(settings, "LABSITE_REGIONS", {"local": replace(bucket, local=tmp_path / "elsewhere")})
    with laboratory.opened():
        run = launch(laboratory)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert Attempt.objects.get(run=run).exit_code == 0
        artifact = Artifact.objects.select_related("blob").get(run=run, name="report")
        in_bucket = {name.rpartition("/")[2] for name in server.names(bucket)}
        assert in_bucket >= set(Blob.objects.values_list("sha256", flat=True)), "each row's file lies in the bucket"
        _shown_and_taken_away(laboratory, artifact)
        _exported(laboratory)
        _found_both_ways(server, bucket, artifact, monkeypatch)
        _away_is_said(bucket, laboratory, artifact, monkeypatch)
        _removed(server, bucket, laboratory, artifact)


@pytest.mark.django_db(transaction=True)
def test_a_bucket_that_does_not_answer_is_said_and_nothing_is_lost(server: S3Server, bucket: Bucket) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        artifact = add_artifact(actor=laboratory.owner, run=launch(laboratory), path="model.bin", content=b"x" * 1000, kind="model")
        client, page = client_of(laboratory.owner), f"/workspaces/lab/artifacts/{artifact.public_id}"
        bucket.keys_file.chmod(0o644)  # readable to others, so not used
        deadline = time.monotonic() + 10  # for a tenth of a second the library keeps what it was told
        while (answer := client.get(f"{page}/file/")).status_code == 200 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert answer.status_code == 409
        assert "does not answer" in answer.content.decode()
        assert client.get(f"{page}/").status_code == 200
        with pytest.raises(Refusal, match="does not answer"):
            receive_file("more.bin", [b"y"])
        delete_artifact(actor=laboratory.owner, artifact=artifact, reason="No use.")
        remove_artifact(actor=laboratory.owner, artifact=artifact)  # the row goes now, the file with the next tidying
        bucket.keys_file.chmod(0o600)
        assert key_of(artifact.blob) in server.names(bucket)
        assert client.get(f"{page}/file/").status_code == 404


def _shown_and_taken_away(laboratory: Laboratory, artifact: Artifact) -> None:
    client = client_of(laboratory.owner)
    content = b"".join(store.open("local", scope.current_id(), artifact.blob.sha256))
    assert content.startswith(b"rows:")
    assert client.get(f"/workspaces/lab/artifacts/{artifact.public_id}/file/").getvalue() == content
    page = client.get("/workspaces/lab/datasets/table/?version=1&file=table.csv")
    assert page.status_code == 200
    log = client.get(f"/workspaces/lab/runs/{artifact.run.public_id}/")
    assert log.status_code == 200


def _exported(laboratory: Laboratory) -> None:
    """The code of agents travels with the rows; what an export has is not removed, so it goes without files of runs."""
    asked = request_export(actor=laboratory.owner)
    inspect.unwrap(make_export)(SYSTEM, asked.pk)
    export = Export.objects.get(pk=asked.pk)
    assert (export.status, export.failure) == ("ready", "")
    code = AgentFile.objects.select_related("blob").get().blob.sha256
    assert [path.read_bytes() for path in Path(settings.EXPORTS).rglob(f"blobs/{code[:2]}/{code}")] == [TRAINER]


def _away_is_said(bucket: Bucket, laboratory: Laboratory, artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    page, compared = f"/workspaces/lab/runs/{artifact.run.public_id}/?tab=log", f"reconciled-{scope.current_id().hex}"
    client = client_of(laboratory.owner)
    assert client.get(page).status_code == 200
    cache.delete(compared)
    with monkeypatch.context() as away:
        away.setattr(settings, "LABSITE_REGIONS", {"local": replace(bucket, keys_file=bucket.keys_file.with_name("none"))})
        assert client.get(page).status_code == 409
        [fault] = WORKSPACE_CHECKS["stored files"]()
        assert "does not answer" in fault
        inspect.unwrap(tidy_workspace)(SYSTEM, scope.current_id())  # what is no file is tidied all the same
        assert cache.get(compared) is None, "the files are compared at the next turn"
    assert not Blob.objects.exclude(missing_at=None).exists()


def _found_both_ways(server: S3Server, bucket: Bucket, artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    client, key = server.client(bucket), key_of(artifact.blob)
    content = bytes(obstore.get(client, key).bytes())
    assert reconcile_files(SYSTEM).missing == []
    with monkeypatch.context() as gone:
        gone.setattr(settings, "LABSITE_REGIONS", {"local": replace(bucket, bucket="lab-none-of-ours")})
        with pytest.raises(store.StoreAway):
            reconcile_files(SYSTEM)
    assert not Blob.objects.exclude(missing_at=None).exists(), "a bucket that is not there has lost no file"
    obstore.delete(client, key)
    assert [blob.pk for blob in reconcile_files(SYSTEM).missing] == [artifact.blob_id]
    obstore.put(client, key, content)
    assert [blob.pk for blob in reconcile_files(SYSTEM).found] == [artifact.blob_id]
    _damage_of_a_fetch_is_noted(server, bucket, artifact, monkeypatch)
    stray, _ = store.put_stream("local", scope.current_id(), [b"nobody names me"])
    monkeypatch.setattr("workspaces.commands.blob.ORPHANS_STAY_SECONDS", -5.0)
    tidy_store()
    assert not store.exists("local", scope.current_id(), stray)
    assert store.exists("local", scope.current_id(), artifact.blob.sha256)


def _damage_of_a_fetch_is_noted(server: S3Server, bucket: Bucket, artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    client, key, sha256 = server.client(bucket), key_of(artifact.blob), artifact.blob.sha256
    content = bytes(obstore.get(client, key).bytes())
    obstore.put(client, key, bytes(len(content)))
    with monkeypatch.context() as afar:  # where no copy is
        afar.setattr(settings, "LABSITE_REGIONS", {"local": replace(bucket, local=bucket.local.with_name("afar"))})
        assert store.local_path("local", scope.current_id(), sha256) is None
        assert [blob.pk for blob in recheck_files(SYSTEM)] == [artifact.blob_id]
    obstore.put(client, key, content)
    assert [blob.pk for blob in reconcile_files(SYSTEM).found] == [artifact.blob_id]


def _removed(server: S3Server, bucket: Bucket, laboratory: Laboratory, artifact: Artifact) -> None:
    before, sha256 = stored_bytes(), artifact.blob.sha256
    assert store.local_path("local", scope.current_id(), sha256) is not None  # there is a copy here
    delete_artifact(actor=laboratory.owner, artifact=artifact, reason="No use.")
    remove_artifact(actor=laboratory.owner, artifact=artifact)
    assert before - stored_bytes() == artifact.blob.bytes
    assert key_of(artifact.blob) not in server.names(bucket)
    assert store.local_path("local", scope.current_id(), sha256) is None
