"""Artifacts that a run sends in pieces: what has come stays, the hash is checked, the limit is kept, and nobody else writes them."""

import base64
import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings as configured
from django.db import connection
from django.test import Client

from runs.models import Artifact, Attempt, Run
from runs.queries.order import token_id, token_secret
from tests.factories import make_member
from tests.factories_people import bearer, make_token
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.factories_submissions import end, start
from workspaces import store
from workspaces.commands.blob import stored_bytes
from workspaces.commands.limit import set_limit
from workspaces.models import AuditEvent, Blob, Limit, Unit, Upload
from workspaces.queries import token

pytestmark = pytest.mark.django_db(transaction=True)
CONTENT = os.urandom(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
TUS = {"Tus-Resumable": "1.0.0"}
PIECE = "application/offset+octet-stream"


@pytest.fixture
def laboratory(settings: Any, tmp_path: Path) -> Laboratory:
    settings.LABSITE_REGIONS = {"local": tmp_path / "store"}
    settings.UPLOADS = tmp_path / "uploads"
    return make_laboratory()


@pytest.fixture
def run(laboratory: Laboratory) -> Run:
    with laboratory.opened():
        run = launch(laboratory)
        start(run)
    return run


def own_client(laboratory: Laboratory, run: Run) -> Client:
    with laboratory.opened():
        attempt = Attempt.objects.filter(run=run).latest("number")
        return bearer(token.spell("run", laboratory.workspace.pk, token_id(attempt), token_secret(attempt)))


def base(run: Run) -> str:
    return f"/api/v1/workspaces/lab/runs/{run.public_id}"


def begin(client: Client, run: Run, *, length: int = len(CONTENT), **told: str) -> Any:
    words = {"filename": "model.bin", **told}
    told_in_base64 = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in words.items())
    return client.post(f"{base(run)}/uploads", headers={**TUS, "Upload-Length": str(length), "Upload-Metadata": told_in_base64})


def begun(client: Client, run: Run, **told: Any) -> str:
    answer = begin(client, run, **told)
    assert answer.status_code == 201, answer.content
    return str(urlsplit(answer["Location"]).path)


def send(client: Client, place: str, offset: int, content: bytes) -> Any:
    return client.patch(place, content, content_type=PIECE, headers={**TUS, "Upload-Offset": str(offset)})


def keep(client: Client, run: Run, place: str, **more: str) -> Any:
    query = "&".join(f"{name}={value}" for name, value in {"upload": place.rpartition("/")[2], **more}.items())
    return client.post(f"{base(run)}/artifacts?{query}")


def content(laboratory: Laboratory, path: str = "model.bin") -> bytes:
    with laboratory.opened():
        return b"".join(store.open("local", laboratory.workspace.pk, Artifact.objects.get(path=path).blob.sha256))


def test_pieces_become_an_artifact_of_the_run(laboratory: Laboratory, run: Run) -> None:
    client = own_client(laboratory, run)
    place = begun(client, run, sha256=SHA256)
    assert place.startswith(f"{base(run)}/uploads/upload_")
    assert send(client, place, 0, CONTENT[:1000]).status_code == 204
    assert keep(client, run, place).status_code == 422, "it is not whole"
    assert send(client, place, 5, b"x").status_code == 409
    assert client.head(place, headers=TUS)["Upload-Offset"] == "1000"
    assert send(client, place, 1000, CONTENT[1000:]).status_code == 204
    kept = keep(client, run, place, kind="model", name="Model")
    assert (kept.status_code, kept.json()["path"], kept.json()["kind"], kept.json()["sha256"]) == (201, "model.bin", "model", SHA256)
    assert content(laboratory) == CONTENT
    assert client.head(place, headers=TUS).status_code == 404, "it has become what it was for"
    assert keep(client, run, place).status_code == 404
    with laboratory.opened():
        event = AuditEvent.objects.get(verb="artifact.stored")
        assert (event.actor_label, Upload.objects.count()) == (run.name, 0)


def test_other_bytes_than_announced_are_refused_and_forgotten(laboratory: Laboratory, run: Run) -> None:
    client = own_client(laboratory, run)
    place = begun(client, run, sha256="0" * 64)
    answer = send(client, place, 0, CONTENT)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "sha256")
    assert client.head(place, headers=TUS).status_code == 404
    with laboratory.opened():
        assert (Upload.objects.count(), Artifact.objects.count()) == (0, 0)


KILLED = """
import os, signal, sys
import django
django.setup()
from workspaces import scope
from workspaces.commands.upload import append
from workspaces.models import Upload
def chunks():
    for place in range(0, 200_000, 1000):
        yield content[place : place + 1000]
    os.kill(os.getpid(), signal.SIGKILL)
content = open(sys.argv[2], "rb").read()
import uuid
from workspaces.commands import upload as commands
commands.NOTED_BYTES = 50_000
with scope.open_workspace(uuid.UUID(hex=sys.argv[1])):
    append(Upload.objects.get(), chunks(), offset=0)
"""


def test_a_server_that_is_killed_in_the_middle_loses_nothing_acknowledged_and_the_upload_goes_on(
    laboratory: Laboratory, run: Run, tmp_path: Path
) -> None:
    client = own_client(laboratory, run)
    place = begun(client, run, sha256=SHA256)
    (tmp_path / "content").write_bytes(CONTENT)
    program = "from pathlib import Path\nfrom django.conf import settings\n"
    program += f"settings.DATABASES['default']['NAME'] = {configured.DATABASES['default']['NAME']!r}\n"
    program += f"settings.UPLOADS = Path({str(configured.UPLOADS)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", program + KILLED, laboratory.workspace.pk.hex, str(tmp_path / "content")],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "labsite.settings"}, cwd=configured.BASE_DIR, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == -9, done.stderr[-1000:]
    offset = int(client.head(place, headers=TUS)["Upload-Offset"])
    assert offset == 200_000, "four times 50,000 were noted"
    assert send(client, place, offset, CONTENT[offset:]).status_code == 204
    assert keep(client, run, place).status_code == 201
    assert content(laboratory) == CONTENT


def test_of_two_uploads_of_one_path_at_once_one_is_kept_and_the_other_told(laboratory: Laboratory, run: Run) -> None:
    clients = [own_client(laboratory, run) for _ in range(2)]
    places = [begun(client, run) for client in clients]
    for client, place, letter in zip(clients, places, (b"a", b"b"), strict=True):
        assert send(client, place, 0, letter * len(CONTENT)).status_code == 204

    def kept(number: int) -> int:
        try:
            return int(keep(clients[number], run, places[number]).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(kept, range(2)))
    assert sorted(answers) == [201, 422]
    loser = answers.index(422)
    assert content(laboratory) == (b"b", b"a")[loser] * len(CONTENT), "whole, of the one that was kept"
    with laboratory.opened():
        assert Artifact.objects.filter(run=run).count() == 1
        assert Blob.objects.filter(sha256=hashlib.sha256((b"a", b"b")[loser] * len(CONTENT)).hexdigest()).count() == 0
    assert "kept already" in begin(clients[loser], run).json()["detail"]
    assert clients[loser].delete(places[loser], headers=TUS).status_code == 204


def test_of_two_whole_bodies_of_one_path_at_once_one_is_kept(laboratory: Laboratory, run: Run) -> None:
    def sent(number: int) -> int:
        try:
            body = bytes([number]) * 100_000
            client = own_client(laboratory, run)
            return int(client.post(f"{base(run)}/artifacts?path=one.bin", body, content_type="application/octet-stream").status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(sent, range(4)))
    assert sorted(answers) == [201, 422, 422, 422]
    assert content(laboratory, "one.bin") == bytes([answers.index(201)]) * 100_000


def test_what_other_uploads_have_announced_counts_against_the_limit(laboratory: Laboratory, run: Run) -> None:
    with laboratory.opened():
        amount = stored_bytes() + 1000
        set_limit(
            actor=laboratory.owner, unit=Unit.STORAGE_BYTES, window=Limit.Window.NOW, amount=amount, mode=Limit.Mode.STOP, reason="small"
        )
    client = own_client(laboratory, run)
    place = begun(client, run, length=600)
    assert begin(client, run, length=600, filename="other").status_code == 409
    assert send(client, place, 0, CONTENT[:600]).status_code == 204
    assert keep(client, run, place).status_code == 201
    assert begin(client, run, length=600, filename="other").status_code == 409
    begun(client, run, length=300, filename="other")


def test_whoever_asked_for_the_run_goes_on_with_what_it_began_and_nobody_else_does(laboratory: Laboratory, run: Run) -> None:
    owner = bearer(make_token(laboratory.workspace, laboratory.owner, "artifact:write")[1])
    colleague = bearer(make_token(laboratory.workspace, make_member(laboratory.workspace, "researcher"), "artifact:write")[1])
    narrow = bearer(make_token(laboratory.workspace, laboratory.owner, "run:write")[1])
    place = begun(own_client(laboratory, run), run)
    assert send(own_client(laboratory, run), place, 0, CONTENT[:500]).status_code == 204
    with laboratory.opened():
        other = launch(laboratory, name="other")
        start(other)
    for client in (colleague, narrow, own_client(laboratory, other)):
        assert client.head(place, headers=TUS).status_code == 403
        assert send(client, place, 500, CONTENT[500:]).status_code == 403
        assert client.delete(place, headers=TUS).status_code == 403
        assert begin(client, run).status_code == 403
        assert keep(client, run, place).status_code == 403
    elsewhere = place.replace(run.public_id, other.public_id)
    assert own_client(laboratory, other).head(elsewhere, headers=TUS).status_code == 404, "another run's upload is none of its own"
    assert owner.head(f"/api/v1/workspaces/lab/uploads/{place.rpartition('/')[2]}", headers=TUS).status_code in (403, 404)
    assert send(owner, place, 500, CONTENT[500:]).status_code == 204
    assert keep(owner, run, place).status_code == 201
    with laboratory.opened():
        event = AuditEvent.objects.get(verb="artifact.stored")
        assert laboratory.owner.user is not None
        assert (event.actor_kind, event.actor_label) == ("person", laboratory.owner.label), "the record says who sent it"


def test_once_the_run_has_ended_nothing_of_it_is_taken(laboratory: Laboratory) -> None:
    with laboratory.opened():
        run = launch(laboratory)
        attempt = start(run)
    client, owner = own_client(laboratory, run), bearer(make_token(laboratory.workspace, laboratory.owner, "artifact:write")[1])
    place = begun(client, run)
    with laboratory.opened():
        end(attempt)
    assert send(client, place, 0, CONTENT).status_code == 401
    for answer in (send(owner, place, 0, CONTENT), begin(owner, run), keep(owner, run, place)):
        assert answer.status_code in (409, 422)
        assert "not running" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["../x", "/x", "", ".labsite/attempt-1/stdout.log", "a\\b"])
def test_a_path_that_no_artifact_may_have_is_refused_before_any_byte(laboratory: Laboratory, run: Run, path: str) -> None:
    answer = begin(own_client(laboratory, run), run, filename=path)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "path")
    with laboratory.opened():
        assert Upload.objects.count() == 0
