"""Croissant out, as its own reader takes it, and in, held to its word."""

import copy
import hashlib
import inspect
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as labsite
from django.test import Client

from runs.jobs.dataset_import import read_import
from runs.models import DatasetImport
from tests.factories import make_workspace, scope
from tests.factories_registry import stored
from tests.runs.file_server import FileServer
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.commands.live_dataset import make_live
from workspaces.croissant import BadCroissant, licence_in, read_document
from workspaces.models import Dataset, DatasetVersion, Workspace

PYTHON = Path(labsite.BASE_DIR) / ".venv-croissant" / "bin" / "python"
VALIDATE = """
import json, sys
import mlcroissant
found = mlcroissant.Dataset(jsonld=json.load(sys.stdin)).metadata
issues = found.ctx.issues
files = [[file.name, file.sha256, file.content_size, file.content_url] for file in found.distribution]
print(json.dumps({"errors": sorted(issues.errors), "warnings": sorted(issues.warnings), "version": found.version, "files": files}))
"""
READ = """
import json, sys
import mlcroissant
place = json.load(sys.stdin)["place"]
found = mlcroissant.Dataset(jsonld=place)
rows = {table["name"]: [list(row.values()) for row in found.records(table["@id"])] for table in json.load(open(place))["recordSet"]}
print(json.dumps(rows, default=lambda value: value.decode() if isinstance(value, bytes) else value.item()))
"""
BASE = "/workspaces/lab/datasets"
API = "/api/v1/workspaces/lab/datasets"
IMPORTS = "/api/v1/workspaces/lab/dataset-imports"
CONTENT = b"a,b\n1,2\n"


def validated(document: dict[str, Any]) -> dict[str, Any]:
    """What mlcroissant, the specification's own reader, says of it."""
    found: dict[str, Any] = asked(VALIDATE, document)
    return found


def asked(code: str, document: dict[str, Any]) -> Any:
    if not PYTHON.exists():
        pytest.skip("no mlcroissant here; `make .venv-croissant/installed` makes its environment")
    done = subprocess.run([PYTHON, "-c", code], input=json.dumps(document).encode(), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def lab(settings: Any, tmp_path: Path, client: Client, db: None, server: FileServer) -> tuple[Workspace, Actor]:
    settings.LABSITE_REGIONS = {"local": tmp_path / "store"}
    settings.IMPORTS = tmp_path / "imports"
    settings.IMPORT_HOSTS = [f"127.0.0.1:{server.port}"]
    workspace, actor = make_workspace("lab", region="local")
    assert actor.user is not None
    client.force_login(actor.user)
    return workspace, actor


def test_what_is_written_is_valid(lab: tuple[Workspace, Actor], client: Client) -> None:
    workspace, actor = lab
    with scope.open_workspace(workspace.pk):
        dataset = create_dataset(actor=actor, slug="d", name="Tabelle 表 <b>", licence="CC-BY-4.0", description="Two columns.")
        files = [stored("dir/a file.csv", CONTENT), stored("b.jsonl", b"{}\n")]
        version = import_dataset_version(actor=actor, dataset=dataset, role="train", files=files)
    document = client.get(f"{API}/d/croissant.json").json()
    found = validated(document)
    assert (found["errors"], found["warnings"]) == ([], [])
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    address = f"http://testserver{API}/d/versions/1/files/dir/a%20file.csv"
    assert ["dir/a file.csv", sha256, "8 B", address] in found["files"]
    assert (document["license"], found["version"], document["isLiveDataset"]) == ("https://spdx.org/licenses/CC-BY-4.0", "1.0.0", False)
    assert version.content_hash in document["citeAs"]
    page = client.get(f"{BASE}/d/croissant.json?version=1")
    assert page["Content-Type"] == "application/ld+json"
    assert page.json()["distribution"][0]["sha256"] == document["distribution"][0]["sha256"]
    assert client.get(f"{API}/d/croissant.json?version=2").status_code == 404


def test_columns_of_tables_are_said_and_read_by_their_header(lab: tuple[Workspace, Actor], client: Client, tmp_path: Path) -> None:
    workspace, actor = lab
    tables = {
        "a.csv": 'id,größe in cm,name/label,when\n1,1.5,x,2026\n2,.5,"y, z",\n',
        "b.tsv": "\ufeffn\tm\n7\t8e-1\n",
        "long.csv": "a,b\n" + "1,2\n" * 20_000 + "1.5,x\n",
    }
    others = {
        "twice.csv": "a,a\n1,2\n",
        "none.csv": "1,2\n3,4\n",
        "empty.csv": "a,\n1,2\n",
        "ragged.csv": "a,b\n1\n",
        "semi.csv": "a;b\n1;2\n",
    }
    with scope.open_workspace(workspace.pk):
        dataset = create_dataset(actor=actor, slug="d", licence="CC-BY-4.0")
        files = [stored(path, text.encode()) for path, text in (tables | others).items()]
        files.append(stored("wide.csv", tables["a.csv"].encode("utf-16")))
        import_dataset_version(actor=actor, dataset=dataset, role="train", files=files)
    document = client.get(f"{API}/d/croissant.json").json()
    assert (validated(document)["errors"], validated(document)["warnings"]) == ([], [])
    fields = {table["name"]: [(field["name"], field["dataType"]) for field in table["field"]] for table in document["recordSet"]}
    assert fields == {
        "a.csv": [("id", "sc:Integer"), ("größe in cm", "sc:Float"), ("name/label", "sc:Text"), ("when", "sc:Integer")],
        "b.tsv": [("n", "sc:Integer"), ("m", "sc:Float")],
        "long.csv": [("a", "sc:Text"), ("b", "sc:Text")],
    }
    for entry in document["distribution"]:
        (tmp_path / str(entry["name"])).write_bytes(tables.get(entry["name"], "").encode())
        entry["contentUrl"] = entry["name"]
    (tmp_path / "croissant.json").write_text(json.dumps(document))
    rows = asked(READ, {"place": str(tmp_path / "croissant.json")})
    assert (rows["a.csv"][0], rows["a.csv"][1][:3]) == ([1, 1.5, "x", 2026], [2, 0.5, "y, z"])
    assert (rows["b.tsv"], len(rows["long.csv"]), rows["long.csv"][-1]) == ([[7, 0.8]], 20_001, ["1.5", "x"])


def test_a_store_that_is_away_is_asked_once(lab: tuple[Workspace, Actor], client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, owner = lab
    with scope.open_workspace(workspace.pk):
        files = [stored(f"table-{number}.csv", b"a,b\n1,2\n%d,3\n" % number) for number in range(3)]
        import_dataset_version(actor=owner, dataset=create_dataset(actor=owner, slug="tables"), role="train", files=files)
    asked: list[object] = []

    def away(*given: object) -> None:
        asked.append(given)
        raise Refusal("The store does not answer.")

    monkeypatch.setattr("workspaces.queries.croissant.beginning_of", away)
    document = client.get(f"{API}/tables/croissant.json").json()
    assert (len(asked), len(document["distribution"]), "recordSet" in document) == (1, 3, False)


def test_what_grows_says_so(lab: tuple[Workspace, Actor], client: Client) -> None:
    workspace, actor = lab
    with scope.open_workspace(workspace.pk):
        make_live(actor=actor, dataset=create_dataset(actor=actor, slug="d", licence="not known"))
    document = client.get(f"{API}/d/croissant.json").json()
    assert (document["isLiveDataset"], document["license"], document["distribution"]) == (True, "NOASSERTION", [])
    assert validated(document)["errors"] == []


def described(server: FileServer, content: bytes = CONTENT) -> dict[str, Any]:
    server.files["/a.csv"] = content
    return {
        "@context": {"@vocab": "https://schema.org/"},
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": {"en": "Penguins"},
        "description": "Bills and flippers.",
        "license": ["https://creativecommons.org/licenses/by/4.0/"],
        "url": "https://example.org/penguins",
        "version": "2.1.0",
        "creator": [{"@type": "Person", "name": "Gorman"}, {"name": "Horst"}],
        "citeAs": "Gorman et al., 2014",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": "table",
                "name": "penguins.csv",
                "contentUrl": f"{server.base}/a.csv",
                "contentSize": f"{len(content)} B",
                "encodingFormat": "text/csv",
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        ],
    }


def brought(lab: tuple[Workspace, Actor], client: Client, document: dict[str, Any]) -> DatasetImport:
    sent = json.dumps({"document": document, "slug": "penguins", "role": "train", "reason": "why"})
    answer = client.post(IMPORTS, sent, content_type="application/json")
    assert answer.status_code == 201, answer.content
    with scope.open_workspace(lab[0].pk):
        asked = DatasetImport.objects.get()
        inspect.unwrap(read_import)(Actor.system(job_id="read_import"), asked.pk)
        return DatasetImport.objects.select_related("version__dataset").get()


def test_what_is_read_becomes_a_dataset_and_a_version(lab: tuple[Workspace, Actor], client: Client, server: FileServer) -> None:
    done = brought(lab, client, described(server))
    assert (done.status, done.failure) == ("done", "")
    version = done.version
    assert version is not None
    dataset = version.dataset
    assert (dataset.name, dataset.description, dataset.origin) == ("Penguins", "Bills and flippers.", "external")
    assert (version.licence, version.records) == ("CC-BY-4.0", 1)
    assert "Gorman et al., 2014" in version.evidence
    assert "version 2.1.0" in version.evidence
    written = client.get(f"{API}/penguins/croissant.json").json()
    assert [file.sha256 for file in read_document(written).files] == [hashlib.sha256(CONTENT).hexdigest()]


def test_a_hash_that_does_not_match_leaves_no_version(lab: tuple[Workspace, Actor], client: Client, server: FileServer) -> None:
    document = described(server)
    server.files["/a.csv"] = b"a,b\n1,3\n"
    done = brought(lab, client, document)
    assert done.status == "failed"
    assert "was announced" in done.failure
    with scope.open_workspace(lab[0].pk):
        assert not DatasetVersion.objects.exists()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"conformsTo": "http://example.org/"}, "does not say that it conforms"),
        ({"conformsTo": None}, "does not say that it conforms"),
        ({"name": ""}, "no name"),
        ({"distribution": []}, "names no file"),
        ({"distribution": ["a"]}, "no object"),
        ({"distribution": [{"@type": "cr:FileSet", "name": "all"}]}, "not by a pattern"),
        ({"sha256": None}, "no SHA-256"),
        ({"sha256": "0"}, "no SHA-256"),
        ({"contentUrl": "data/a.csv"}, "no address of its own"),
        ({"contentUrl": "file:///etc/passwd"}, "no address of its own"),
        ({"containedIn": {"@id": "zip"}}, "inside another file"),
        ({"name@": "../../etc/passwd"}, "empty part"),
        ({"contentUrl": "https://user:word@example.org/a"}, "no user or password"),
    ],
)
def test_what_cannot_be_held_to_its_word_is_refused(
    lab: tuple[Workspace, Actor], client: Client, server: FileServer, changed: dict[str, Any], words: str
) -> None:
    document = copy.deepcopy(described(server))
    of_file = {"sha256", "contentUrl", "containedIn", "name@"}
    for key, value in changed.items():
        place = document["distribution"][0] if key in of_file else document
        place[key.rstrip("@")] = value
    sent = json.dumps({"document": document, "slug": "penguins", "role": "train"})
    answer = client.post(IMPORTS, sent, content_type="application/json")
    assert answer.status_code in (409, 422)
    assert words in answer.content.decode()
    with scope.open_workspace(lab[0].pk):
        assert not Dataset.objects.exists()
    assert server.connections == 0


def test_by_page(lab: tuple[Workspace, Actor], client: Client, server: FileServer) -> None:
    assert client.get(f"{BASE}/import/").status_code == 200
    form = {"slug": "penguins", "document": json.dumps(described(server)), "role": "train"}
    assert client.post(f"{BASE}/import/", {**form, "document": "[1]"}).status_code == 422
    assert client.post(f"{BASE}/import/", {**form, "document": "{}"}).status_code == 409
    assert client.post(f"{BASE}/import/", form).status_code == 303
    assert client.post(f"{BASE}/import/", form).status_code == 409


def test_licences_as_they_are_written_elsewhere() -> None:
    assert licence_in("https://spdx.org/licenses/MIT.html") == "MIT"
    assert licence_in("https://creativecommons.org/licenses/by-nc-sa/4.0/") == "CC-BY-NC-SA-4.0"
    assert licence_in("https://creativecommons.org/publicdomain/zero/1.0/") == "CC0-1.0"
    assert licence_in({"@type": "CreativeWork", "url": "https://example.org/terms of use"}) == "LicenseRef-https-example.org-terms-of-use"
    assert (licence_in(None), licence_in("")) == ("", "")


def test_what_is_nested_too_deep_is_refused() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(BadCroissant):
        read_document({"conformsTo": "http://mlcommons.org/croissant/1.1", "name": deep, "distribution": [{}]})
