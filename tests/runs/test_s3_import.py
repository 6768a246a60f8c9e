"""Imports from a real S3 server on loopback (moto's, in an environment of its own): signed, refused without keys, and nothing of ours signed in."""

import hashlib
import http.client
import inspect
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import obstore
import pytest
from django.conf import settings as labsite
from obstore.store import S3Store

from runs.commands.dataset_import import WantedFile, request_import
from runs.jobs.dataset_import import read_import
from runs.models import DatasetImport
from runs.object_address import Keys, keys_of, place_of
from runs.outbound import Forbidden
from tests.factories import make_workspace, scope
from workspaces.access import Actor
from workspaces.commands.dataset import create_dataset
from workspaces.commands.secret import create_secret
from workspaces.models import Dataset, Secret, Workspace

SERVER = Path(labsite.BASE_DIR) / ".venv-s3" / "bin" / "moto_server"
KEYS = Keys("AKIAEXAMPLE", "a-secret-key")
CONTENT = b"a,b\n" + b"1,2\n" * 500_000


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    if not SERVER.exists():
        pytest.skip("no S3 server here; `make .venv-s3/installed` makes its environment")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(  # our own server, on loopback
        [SERVER, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while not _answers(port) and time.monotonic() < deadline:
            time.sleep(0.1)  # until the deadline above
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def lab(endpoint: str, settings: Any, tmp_path: Path, db: None) -> tuple[Workspace, Actor, Dataset, Secret]:
    settings.LABSITE_REGIONS = {"local": tmp_path / "store"}
    settings.IMPORTS = tmp_path / "imports"
    settings.IMPORT_HOSTS = [endpoint.removeprefix("http://")]
    workspace, actor = make_workspace("lab", region="local")
    with scope.open_workspace(workspace.pk):
        dataset = create_dataset(actor=actor, slug="d", origin="external", licence="CC0-1.0")
        secret = create_secret(actor=actor, name="BUCKET", value=f"{KEYS.access_key_id}:{KEYS.secret_access_key}")
    return workspace, actor, dataset, secret


def put(endpoint: str, key: str, content: bytes) -> None:
    store = S3Store(
        "data", endpoint=endpoint, region="us-east-1", access_key_id=KEYS.access_key_id, secret_access_key=KEYS.secret_access_key,
        client_options={"allow_http": True},
    )  # fmt: skip
    made = http.client.HTTPConnection(endpoint.removeprefix("http://"))
    made.request("PUT", "/data")
    assert made.getresponse().status in (200, 409)
    made.close()
    obstore.put(store, key, content)


def brought(lab: tuple[Workspace, Actor, Dataset, Secret], *addresses: str, **more: Any) -> DatasetImport:
    workspace, actor, dataset, secret = lab
    with scope.open_workspace(workspace.pk):
        files = [WantedFile(address) for address in addresses]
        asked = request_import(actor=actor, dataset=dataset, role="train", files=files, secret=secret, **more)
        inspect.unwrap(read_import)(Actor.system(job_id="read_import"), asked.pk)  # the job itself, without its bell
        return DatasetImport.objects.select_related("version").get(pk=asked.pk)


def test_objects_become_a_version(lab: Any, endpoint: str) -> None:
    put(endpoint, "sets/a file+ü.csv", CONTENT)
    put(endpoint, "sets/b.csv", b"a\n1\n")
    done = brought(lab, "s3://data/sets/a file+ü.csv", "s3://data/sets/b.csv", endpoint=endpoint)
    assert (done.status, done.failure) == ("done", "")
    assert done.version is not None
    assert (done.version.records, done.version.source) == (500_001, "s3://data/sets/a file+ü.csv, and 1 more file")
    assert done.found[0]["etag"]


def test_what_is_not_there_is_said(lab: Any, endpoint: str) -> None:
    put(endpoint, "a.csv", b"a\n1\n")
    done = brought(lab, "s3://data/missing.csv", endpoint=endpoint)
    assert done.status == "failed"
    assert "s3://data/missing.csv cannot be read: it answered 404" in done.failure
    assert KEYS.secret_access_key not in done.failure


class Between:
    """A line to the S3 server that breaks once, in the middle of the object; what is done then is done before it answers again."""

    def __init__(self, endpoint: str, at_break: Callable[[], None]) -> None:
        self._to, self._at_break = int(endpoint.rpartition(":")[2]), at_break
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.breaks = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                self._carry(self._listener.accept()[0])

    def _carry(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._to)) as server:
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += client.recv(65_536)
            head, _, rest = asked.partition(b"\r\n\r\n")
            server.sendall(head + b"\r\nConnection: close\r\n\r\n" + rest)
            count = 0
            with suppress(OSError):  # the client has read enough
                while piece := server.recv(65_536):
                    client.sendall(piece)
                    count += len(piece)
                    if not self.breaks and count > 500_000:
                        self.breaks += 1
                        self._at_break()
                        return

    def close(self) -> None:
        self._listener.close()


@pytest.mark.parametrize("is_changed", [False, True])
def test_an_object_that_changes_while_it_is_read_leaves_nothing(
    lab: Any, endpoint: str, settings: Any, tmp_path: Path, is_changed: bool
) -> None:
    """The line breaks, as lines do; what is read on is only the object that was begun."""
    put(endpoint, "moving.csv", CONTENT)
    other = CONTENT.replace(b"1,2", b"3,4")
    line = Between(endpoint, lambda: put(endpoint, "moving.csv", other) if is_changed else None)
    settings.IMPORT_HOSTS = [line.endpoint.removeprefix("http://")]
    try:
        done = brought(lab, "s3://data/moving.csv", endpoint=line.endpoint)
    finally:
        line.close()
    assert line.breaks == 1
    if not is_changed:
        assert (done.status, done.failure) == ("done", "")
        assert done.found[0]["sha256"] == hashlib.sha256(CONTENT).hexdigest()
        return
    assert (done.status, done.version) == ("failed", None)
    assert "changed while it was read; nothing was kept" in done.failure
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []


def test_an_endpoint_inside_is_not_asked_unless_it_is_listed(lab: Any, endpoint: str, settings: Any) -> None:
    settings.IMPORT_HOSTS = []
    done = brought(lab, "s3://data/a.csv", endpoint=endpoint.replace("http://", "https://"))
    assert "an address inside" in done.failure


def test_nothing_of_this_machine_is_signed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("AWS_SESSION_TOKEN", "machine"),
        ("AWS_ACCESS_KEY_ID", "MACHINE"),
        ("AWS_ENDPOINT_URL", "https://machine.example"),
    ):
        monkeypatch.setenv(name, value)
    place = place_of("s3://bucket/dir/a.csv", endpoint="https://s3.example.org", region="eu-central-1", keys=KEYS)
    signed = place.sign()
    assert signed.startswith("https://s3.example.org/bucket/dir/a.csv?")
    assert "machine" not in signed.lower()
    assert KEYS.secret_access_key not in signed
    assert place.shown == "s3://bucket/dir/a.csv"
    assert place_of("s3://bucket/a b.csv").sign() == "https://s3.us-east-1.amazonaws.com/bucket/a%20b.csv"


@pytest.mark.parametrize(
    ("address", "options"),
    [
        ("s3://bucket", {}),
        ("s3://bucket/dir/", {}),
        ("s3://BUCKET/a", {}),
        ("s3://a@b/a", {}),
        ("s3://bucket/a", {"region": "x.example.org/"}),
        ("s3://bucket/a", {"endpoint": "http://127.0.0.1:9"}),
        ("s3://bucket/a", {"endpoint": "https://s3.example.org/path"}),
        ("s3://bucket/a", {"endpoint": "https://user:word@s3.example.org"}),
    ],
)
def test_what_names_no_object_is_refused(address: str, options: dict[str, str]) -> None:
    with pytest.raises(Forbidden):
        place_of(address, **options)  # type: ignore[arg-type]  # texts alone


def test_a_secret_of_another_form_tells_nothing() -> None:
    assert keys_of("AK:SK:with:colons\n") == Keys("AK", "SK:with:colons")
    with pytest.raises(Forbidden) as refused:
        keys_of("hf_sometoken")
    assert "hf_" not in str(refused.value)
