"""Downloads: whole, from where one broke off, and never other bytes than the hash says."""

import hashlib
import http.client
import inspect
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.cache import cache
from django.test import Client

from runs.jobs.tidy import tidy_workspace
from runs.models import Artifact
from runs.queries.reading import read_back
from tests.factories_pages import add_artifact, client_of
from tests.factories_people import make_token
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces import scope, store
from workspaces.access import Actor
from workspaces.commands.agent import create_agent, publish_agent_version
from workspaces.commands.blob import receive_file
from workspaces.commands.reconcile import recheck_files, reconcile_files
from workspaces.models import AuditEvent, Blob, EventPayload

CONTENT = bytes(range(256)) * 20_000
SIZE = len(CONTENT)
TAG = f'"{hashlib.sha256(CONTENT).hexdigest()}"'
SYSTEM = Actor.system(job_id="test")


@pytest.fixture
def laboratory(db: None) -> Iterator[Laboratory]:
    laboratory = make_laboratory()
    cache.delete(f"damaged-{laboratory.workspace.pk.hex}")
    with laboratory.opened():
        yield laboratory


@pytest.fixture
def artifact(laboratory: Laboratory) -> Artifact:
    return add_artifact(actor=laboratory.owner, run=launch(laboratory), path="model.bin", content=CONTENT, kind="model")


def address(artifact: Artifact) -> str:
    return f"/workspaces/lab/artifacts/{artifact.public_id}/file/"


def flip(blob: Blob) -> Path:
    """One bit, as a disk does."""
    place = store.local_path("local", scope.current_id(), blob.sha256)
    assert place
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.write_bytes(content)
    return place


@pytest.mark.parametrize(
    ("headers", "status", "part", "said"),
    [
        ({}, 200, slice(0, SIZE), None),
        ({"Range": "bytes=0-0"}, 206, slice(0, 1), f"bytes 0-0/{SIZE}"),
        ({"Range": "bytes=100-"}, 206, slice(100, SIZE), f"bytes 100-{SIZE - 1}/{SIZE}"),
        ({"Range": "bytes=-5"}, 206, slice(SIZE - 5, SIZE), f"bytes {SIZE - 5}-{SIZE - 1}/{SIZE}"),
        ({"Range": f"bytes=-{SIZE * 2}"}, 206, slice(0, SIZE), f"bytes 0-{SIZE - 1}/{SIZE}"),
        ({"Range": "bytes=3-99999999999"}, 206, slice(3, SIZE), f"bytes 3-{SIZE - 1}/{SIZE}"),
        ({"Range": f"bytes={SIZE}-"}, 416, slice(0, 0), f"bytes */{SIZE}"),
        ({"Range": "bytes=-0"}, 416, slice(0, 0), f"bytes */{SIZE}"),
        ({"Range": "bytes=5-2"}, 200, slice(0, SIZE), None),
        ({"Range": "bytes=0-1,4-5"}, 200, slice(0, SIZE), None),
        ({"Range": "lines=0-1"}, 200, slice(0, SIZE), None),
        ({"Range": "bytes=\u0661-"}, 200, slice(0, SIZE), None),
        ({"Range": "bytes=4-7", "If-Range": TAG}, 206, slice(4, 8), f"bytes 4-7/{SIZE}"),
        ({"Range": "bytes=4-7", "If-Range": '"other"'}, 200, slice(0, SIZE), None),
        ({"Range": "bytes=4-7", "If-Range": f"W/{TAG}"}, 200, slice(0, SIZE), None),
        ({"If-None-Match": TAG}, 304, slice(0, 0), None),
    ],
)  # fmt: skip
def test_a_range_of_an_artifact(
    laboratory: Laboratory, artifact: Artifact, headers: Any, status: int, part: slice, said: str | None
) -> None:
    answer = client_of(laboratory.owner).get(address(artifact), headers=headers)
    assert (answer.status_code, answer.get("Content-Range"), answer["ETag"], answer["Accept-Ranges"]) == (status, said, TAG, "bytes")
    assert answer.getvalue() == CONTENT[part]
    if status in (200, 206):
        assert int(answer["Content-Length"]) == part.stop - part.start


def test_the_api_and_files_of_datasets_and_agents_take_ranges_too(laboratory: Laboratory, artifact: Artifact) -> None:
    _, text = make_token(laboratory.workspace, laboratory.owner, "artifact:read", "dataset:read", "agent:read")
    client = Client(headers={"authorization": f"Bearer {text}", "range": "bytes=1-2"})
    base = "/api/v1/workspaces/lab"
    for path in (
        f"artifacts/{artifact.public_id}/content",
        "datasets/table/versions/1/files/table.csv",
        "agents/worker/versions/1/files/main.py",
    ):
        answer = client.get(f"{base}/{path}")
        assert (answer.status_code, len(answer.getvalue())) == (206, 2)
    for page in ("datasets/table/versions/1/files/table.csv", "agents/worker/versions/1/files/main.py"):
        answer = client_of(laboratory.owner).get(f"/workspaces/lab/{page}", headers={"range": "bytes=1-2"})
        assert (answer.status_code, len(answer.getvalue())) == (206, 2)


def test_a_damaged_file_is_cut_off_noted_and_put_on_record_until_it_is_whole_again(laboratory: Laboratory, artifact: Artifact) -> None:
    place = flip(artifact.blob)
    client = client_of(laboratory.owner)
    answer = client.get(address(artifact))
    came: list[bytes] = []
    with pytest.raises(store.StoreDamaged):
        came.extend(answer.streaming_content)  # type: ignore[attr-defined]  # a stream, as the answer of a file is
    assert sum(map(len, came)) < SIZE
    assert not artifact.blob.missing_at
    inspect.unwrap(tidy_workspace)(SYSTEM, laboratory.workspace.pk)
    event = AuditEvent.objects.filter(verb="workspace.files_reconciled").latest("sequence")
    assert EventPayload.objects.get(event=event).body["details"]["missing"] == [artifact.blob.sha256]
    assert "was not found whole in the store" in client.get(address(artifact).removesuffix("file/")).content.decode()
    assert reconcile_files(SYSTEM).found == [], "it is as long as it was, and still damaged"
    assert read_back(artifact.blob) != artifact.blob.sha256
    receive_file("again.bin", [CONTENT])  # the same content, put anew, heals it
    assert place.read_bytes() == CONTENT
    assert [blob.pk for blob in reconcile_files(SYSTEM).found] == [artifact.blob_id]
    assert client.get(address(artifact)).getvalue() == CONTENT
    assert recheck_files(SYSTEM) == []


def test_a_damaged_file_of_code_is_in_no_bundle_and_no_preview(laboratory: Laboratory) -> None:
    agent = create_agent(actor=laboratory.owner, slug="bundled")
    file = receive_file("main.py", [b"print('one of a kind')\n"])
    publish_agent_version(actor=laboratory.owner, agent=agent, argv=["python", "main.py"], files=[file])
    client = client_of(laboratory.owner)
    bundle = "/workspaces/lab/agents/bundled/versions/1/bundle/"
    assert client.get(bundle).getvalue()
    flip(Blob.objects.get(sha256=file.sha256))
    assert client.get(bundle).status_code == 404
    assert client.get("/workspaces/lab/agents/bundled/?version=1&file=main.py").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_curl_goes_on_where_it_was_cut_and_fails_on_damage(live_server: Any, tmp_path: Path) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl here")
    laboratory = make_laboratory()
    with laboratory.opened():
        artifact = add_artifact(actor=laboratory.owner, run=launch(laboratory), path="model.bin", content=CONTENT, kind="model")
    _, text = make_token(laboratory.workspace, laboratory.owner, "artifact:read")
    (tmp_path / "curlrc").write_text(f'header = "Authorization: Bearer {text}"\n')
    target = tmp_path / "model.bin"
    target.write_bytes(CONTENT[:1_234_567])
    url = f"{live_server.url}/api/v1/workspaces/lab/artifacts/{artifact.public_id}/content"
    asked = [curl, "-sS", "--fail", "--noproxy", "*", "-K", str(tmp_path / "curlrc"), "-o", str(target), url]
    subprocess.run([*asked[:-1], "-C", "-", url], check=True, timeout=60)
    assert target.read_bytes() == CONTENT
    with laboratory.opened():
        flip(artifact.blob)
    # Django's server for tests would wait for another request on the line that it broke off; gunicorn closes it.
    (tmp_path / "curlrc").write_text(f'header = "Authorization: Bearer {text}"\nheader = "Connection: close"\n')
    assert subprocess.run(asked, check=False, timeout=60, capture_output=True).returncode == 18, "the transfer ended before its length"
    line = http.client.HTTPConnection(urlsplit(live_server.url).netloc)
    line.request("GET", urlsplit(url).path, headers={"Authorization": f"Bearer {text}", "Range": f"bytes={SIZE}-"})
    assert line.getresponse().status == 416
    line.close()
