"""Bad data by upload: a clear sentence, nothing half imported, nothing lost."""

import gzip
import io
import json
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.factories import make_workspace, scope
from tests.factories_archives import DAMAGED
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.dataset import create_dataset
from workspaces.commands.upload import begin_upload
from workspaces.models import Blob, DatasetFile, DatasetVersion, Workspace

pytestmark = pytest.mark.django_db
API = "/api/v1/workspaces/lab/datasets/d/versions"
PAGE = "/workspaces/lab/datasets/d/"


@pytest.fixture
def lab(settings: Any, tmp_path: Path, client: Client) -> tuple[Workspace, Actor, Client]:
    settings.LABSITE_REGIONS = {"local": tmp_path}
    workspace, actor = make_workspace("lab", region="local")
    assert actor.user is not None
    client.force_login(actor.user)
    with scope.open_workspace(workspace.pk):
        create_dataset(actor=actor, slug="d")
    return workspace, actor, client


def zipped(*names: str, content: bytes = b"a\n1\n", mode: int = 0) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = mode << 16
            archive.writestr(entry, content)
    return out.getvalue()


def tarred(*members: tuple[str, bytes, bytes]) -> bytes:
    """Of (name, type, target or content)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, kind, content in members:
            entry = tarfile.TarInfo(name)
            entry.type = kind
            if kind == tarfile.REGTYPE:
                entry.size = len(content)
            else:
                entry.linkname = content.decode()
            archive.addfile(entry, io.BytesIO(content) if kind == tarfile.REGTYPE else None)
    return out.getvalue()


def displaced() -> bytes:
    """A zip whose directory says that it lies further on than it does, so that its files lie before the beginning."""
    whole = bytearray(zipped("a.csv"))
    whole[-6:-2] = (int.from_bytes(whole[-6:-2], "little") + 4096).to_bytes(4, "little")
    return bytes(whole)


ARCHIVES: dict[str, tuple[Callable[[], bytes], str]] = {
    "parent": (lambda: zipped("good.csv", "../evil.csv"), "empty part"),
    "absolute": (lambda: zipped("good.csv", "/etc/evil.csv"), "relative path"),
    "drive": (lambda: zipped("C:evil.csv"), "relative path"),
    "backslash": (lambda: zipped("..\\evil.csv"), "relative path"),
    "deep": (lambda: zipped("/".join(["d"] * 30) + "/x"), "folders deep"),
    "twins": (lambda: zipped("a.csv", "A.csv"), "same file"),
    "file and folder": (lambda: zipped("a", "a/b.csv"), "folder of"),
    "link": (lambda: zipped("good.csv", mode=stat.S_IFLNK | 0o777), "link or a device"),
    "many": (lambda: zipped(*(f"{number}.csv" for number in range(1200))), "1,000 files"),
    "bomb": (lambda: zipped("zeros.csv", content=bytes(64 * 2**20)), "bomb"),
    "tar bomb": (lambda: tarred(("zeros.csv", tarfile.REGTYPE, bytes(64 * 2**20))), "bomb"),
    "cut": (lambda: zipped("a.csv", content=bytes(range(256)) * 64)[:-40], "cut short"),
    "displaced": (displaced, "broken"),
    "nothing": (lambda: zipped(), "no file"),
    "no archive": (lambda: b"a,b\n1,2\n", "neither a zip nor a tar.gz"),
    "gzip of no tar": (lambda: gzip.compress(b"a,b\n" * 500), "broken"),
    "symlink": (lambda: tarred(("a", tarfile.SYMTYPE, b"/etc/passwd")), "link, a device"),
    "hard link": (lambda: tarred(("b", tarfile.REGTYPE, b"1"), ("a", tarfile.LNKTYPE, b"b")), "link, a device"),
    "device": (lambda: tarred(("a", tarfile.CHRTYPE, b"")), "link, a device"),
    "pipe": (lambda: tarred(("a", tarfile.FIFOTYPE, b"")), "link, a device"),
    "tar parent": (lambda: tarred(("x/../../evil", tarfile.REGTYPE, b"1")), "empty part"),
    "empty file": (lambda: tarred(("a.csv", tarfile.REGTYPE, b"1"), ("b.csv", tarfile.REGTYPE, b"")), "is empty"),
    **DAMAGED,
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_bad_archive_leaves_nothing(lab: tuple[Workspace, Actor, Client], tmp_path: Path, name: str) -> None:
    workspace, _, client = lab
    make, words = ARCHIVES[name]
    sent = {"role": "train", "is_archive": "on", "complete": "1", "file": SimpleUploadedFile("data.zip", make())}
    answer = client.post(f"{PAGE}upload/", sent)
    assert answer.status_code == 409
    assert words in answer.content.decode()
    with scope.open_workspace(workspace.pk):
        assert not DatasetVersion.objects.exists()
        assert not Blob.objects.exists()
    assert not [path for path in tmp_path.rglob("*") if "evil" in path.name]
    assert not list(tmp_path.glob("*/incoming/*"))


def test_a_good_archive_is_what_is_inside(lab: tuple[Workspace, Actor, Client]) -> None:
    client = lab[2]
    sent = {
        "complete": "1",
        "file": SimpleUploadedFile("data.tgz", tarred(("./x/a.csv", tarfile.REGTYPE, b"h\n1\n"), ("b.csv", tarfile.REGTYPE, b"h\n2\n3\n"))),
    }
    answer = client.post(f"{API}?role=train&unpack=archive", sent)
    assert answer.status_code == 201, answer.content
    assert ([file["path"] for file in answer.json()["files"]], answer.json()["records"]) == (["b.csv", "x/a.csv"], 3)
    kept = client.post(f"{API}?role=train", {"complete": "1", "file": SimpleUploadedFile("data.zip", zipped("a.csv"))})
    assert [file["path"] for file in kept.json()["files"]] == ["data.zip"]
    assert client.post(f"{API}?role=train&unpack=archive&path=a", b"PK", content_type="application/zip").status_code == 422


def test_wide_long_and_not_numbers_are_kept_and_shown(lab: tuple[Workspace, Actor, Client]) -> None:
    client = lab[2]
    wide = b",".join(b"c%d" % number for number in range(5_000)) + b"\n" + b",".join([b"NaN"] * 5_000) + b"\n"
    long = json.dumps({"text": "x" * 10_000_000}).encode() + b"\n"
    nan = b'{"a": NaN, "b": Infinity, "c": -Infinity}\n' * 3
    for path, content, records in (("wide.csv", wide, 1), ("long.jsonl", long, 1), ("nan.jsonl", nan, 3)):
        answer = client.post(f"{API}?role=train&path={path}", content, content_type="application/octet-stream")
        assert answer.status_code == 201, answer.content
        assert (answer.json()["records"], answer.json()["bytes"]) == (records, len(content))
        page = client.get(PAGE)
        assert page.status_code == 200
        assert len(page.content) < 200_000
    body = client.get(f"{API}/3").content
    assert b"NaN" not in body


HALVES = b'{"a": "half \\ud800", "\\udfff": {"b": ["\\ud83d"]}}\n'


def test_half_characters_and_control_characters_are_kept_and_shown(lab: tuple[Workspace, Actor, Client]) -> None:
    client = lab[2]
    for path, content, shown in (
        ("a.jsonl", HALVES, "half \\ud800"),
        ("n.jsonl", b'{"a": "nul \\u0000"}\n', "nul"),
        ("n.csv", b"a\nx\x1b[2J\n", "x"),
        ("t.txt", b"x\x00\x1b[2J", ""),
    ):
        answer = client.post(f"{API}?role=train&path={path}", content, content_type="application/octet-stream")
        assert answer.status_code == 201, answer.content
        page = client.get(PAGE)
        assert page.status_code == 200 and shown in page.content.decode()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("   ", "blanks alone"),
        ("d/\u00a0/a.csv", "blanks alone"),
        ("a.csv.", "ends in a dot or a blank"),
        ("a.csv ", "ends in a dot or a blank"),
        ("d /a.csv", "ends in a dot or a blank"),
        ("d.../a.csv", "ends in a dot or a blank"),
        ("NUL", "name of a device"),
        ("d/con.csv", "name of a device"),
        ("aux/a.csv", "name of a device"),
        ("com1 .tar.gz", "name of a device"),
        ("LPT³.txt", "name of a device"),
        ("bell\x07.csv", "control character"),
        ("tab\t.csv", "control character"),
    ],
)
def test_a_path_that_some_machine_cannot_hold_is_refused_by_every_door(
    lab: tuple[Workspace, Actor, Client], path: str, words: str, settings: Any, tmp_path: Path
) -> None:
    workspace, actor, client = lab
    settings.UPLOADS = tmp_path / "uploads"
    raw = client.post(f"{API}?role=train&path={quote(path)}", b"a\n1\n", content_type="application/octet-stream")
    packed = [zipped("good.csv", path), tarred(("good.csv", tarfile.REGTYPE, b"a\n1\n"), (path, tarfile.REGTYPE, b"a\n1\n"))]
    unpacked = [
        client.post(f"{API}?role=train&unpack=archive", {"complete": "1", "file": SimpleUploadedFile("data.zip", archive)})
        for archive in packed
    ]
    for answer in (raw, *unpacked):
        assert (answer.status_code, words in answer.content.decode()) == (422, True), answer.content
    with scope.open_workspace(workspace.pk):
        with pytest.raises(Refusal, match=words):
            begin_upload(actor=actor, path=path, length=4)
        assert not DatasetVersion.objects.exists()


@pytest.mark.parametrize(
    "path", ["console.csv", "com/a.csv", "com10.csv", "aux2.csv", " a b.csv", ".hidden", "v1.2/a.tar.gz", "nul_model/a.csv"]
)
def test_a_path_that_only_looks_alike_is_kept(lab: tuple[Workspace, Actor, Client], path: str) -> None:
    answer = lab[2].post(f"{API}?role=train&path={quote(path)}", b"a\n1\n", content_type="application/octet-stream")
    assert (answer.status_code, [file["path"] for file in answer.json()["files"]]) == (201, [path])


BLANK = {
    "a line end.csv": b"\n",
    "a mark.csv": b"\xef\xbb\xbf",
    "a mark and a line end.csv": "\ufeff\r\n".encode("utf-16-le"),
    "names.csv": b"a,b\n",
    "a mark.jsonl": b"\xef\xbb\xbf",
    "line ends.jsonl": b"\n \n\n",
    "a line end.tsv": b"\r\n",
}


@pytest.mark.parametrize("path", BLANK)
def test_a_version_without_any_record_is_refused(lab: tuple[Workspace, Actor, Client], path: str) -> None:
    workspace, _, client = lab
    answer = client.post(f"{API}?role=train&path={path}", BLANK[path], content_type="application/octet-stream")
    assert (answer.status_code, f"{path} holds no record" in answer.content.decode()) == (422, True)
    sent = {"role": "train", "has_header": "on", "complete": "1", "file": SimpleUploadedFile(path, BLANK[path])}
    answer = client.post(f"{PAGE}upload/", sent)
    assert (answer.status_code, f"{path} holds no record" in answer.content.decode()) == (409, True)
    with scope.open_workspace(workspace.pk):
        assert not DatasetVersion.objects.exists()


def test_what_may_hold_records_is_taken(lab: tuple[Workspace, Actor, Client]) -> None:
    client = lab[2]
    assert client.post(f"{API}?role=train&path=b.bin", b"\n", content_type="application/octet-stream").status_code == 201
    first = client.post(f"{API}?role=train&path=a.csv&header=absent", b"1,2\n", content_type="application/octet-stream")
    assert (first.status_code, first.json()["records"]) == (201, 1)
    wide = client.post(f"{API}?role=train&path=w.csv", "a,b\r\n1,2\r\n3,4\r\n".encode("utf-16"), content_type="application/octet-stream")
    assert (wide.status_code, wide.json()["records"]) == (201, 2)
    files = [SimpleUploadedFile("names.csv", b"a,b\n"), SimpleUploadedFile("rows.csv", b"a,b\n1,2\n")]
    assert client.post(f"{API}?role=train", {"complete": "1", "file": files}).status_code == 201


def test_one_content_twice_is_kept_once_and_one_name_twice_is_refused(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, _, client = lab

    def send(*names: str) -> Any:
        files = [SimpleUploadedFile(name, b"a\nsame\n") for name in names]
        return client.post(f"{API}?role=train", {"complete": "1", "file": files})

    assert send("a.csv", "a.csv").status_code == 422
    assert send("a.csv", "b.csv").status_code == 201
    assert send("b.csv", "a.csv").status_code == 409
    with scope.open_workspace(workspace.pk):
        assert (Blob.objects.count(), DatasetFile.objects.count(), DatasetVersion.objects.count()) == (1, 2, 1)
