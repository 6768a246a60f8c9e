"""Agents over the API: code in the body or as an archive, what a version may say, and what is refused."""

import base64
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.factories import make_workspace, scope
from tests.factories_archives import DAMAGED
from workspaces.access import Actor
from workspaces.models import Agent, AgentFile, AgentVersion, Blob, Workspace

pytestmark = pytest.mark.django_db
BASE = "/api/v1/workspaces/lab/agents"
CODE = base64.b64encode(b"print(1)\n").decode()
SCHEMA = {"type": "object", "properties": {"epochs": {"type": "integer", "minimum": 1}, "pattern": {"type": "string"}}}


@pytest.fixture
def lab(settings: Any, tmp_path: Path, client: Client) -> tuple[Workspace, Client]:
    settings.LABSITE_REGIONS = {"local": tmp_path}
    workspace, actor = make_workspace("lab", region="local")
    assert isinstance(actor, Actor)
    assert actor.user is not None
    client.force_login(actor.user)
    assert post(client, "", {"slug": "policy-runner", "part": "worker"}).status_code == 201
    return workspace, client


def post(client: Client, path: str, body: Any) -> Any:
    return client.post(f"{BASE}{path}", json.dumps(body), content_type="application/json")


def version(**changed: Any) -> dict[str, Any]:
    return {"argv": ["python", "main.py"], "files": [{"path": "main.py", "content_base64": CODE}], **changed}


def test_a_version_says_what_it_needs(lab: tuple[Workspace, Client]) -> None:
    client, needs = lab[1], [{"kind": "dataset", "role": "train"}, {"kind": "artifact", "role": "model", "required": False}]
    first = post(client, "/policy-runner/versions", version()).json()
    body = post(client, "/policy-runner/versions", version(inputs=needs)).json()
    assert body["inputs"] == [
        {"kind": "dataset", "role": "train", "name": "", "required": True},
        {"kind": "artifact", "role": "model", "name": "", "required": False},
    ]
    assert body["content_hash"] != first["content_hash"]
    page = client.get("/workspaces/lab/agents/policy-runner/").content.decode()
    assert "needs a dataset of role train" in page
    assert "may be given an artifact of kind model" in page
    for wrong in ({"kind": "dataset", "role": "exam"}, {"kind": "artifact", "name": "x"}, {"kind": "dataset", "name": "No Slug"}):
        refused = post(client, "/policy-runner/versions", version(inputs=[wrong]))
        assert refused.status_code == 422, refused.content
        assert refused.json()["errors"][0]["field"] == "inputs"


def test_version_with_code_in_the_body(lab: tuple[Workspace, Client]) -> None:
    client = lab[1]
    answer = post(
        client, "/policy-runner/versions", version(parameter_schema=SCHEMA, secrets=["HF_TOKEN"], outputs=[{"glob": "model/*.json"}])
    )
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert (body["number"], body["argv"], body["pools"], body["secrets"]) == (1, ["python", "main.py"], [], ["HF_TOKEN"])
    assert [(file["path"], file["bytes"]) for file in body["files"]] == [("main.py", 9)]
    assert client.get(f"{BASE}/agent_policy_runner").json()["version"] == 1
    again = post(
        client, "/policy-runner/versions", version(parameter_schema=SCHEMA, secrets=["HF_TOKEN"], outputs=[{"glob": "model/*.json"}])
    )
    assert again.status_code == 409
    assert "version 1" in again.json()["detail"]
    changed = post(client, "/policy-runner/versions", version(parameter_schema=SCHEMA)).json()
    assert changed["number"] == 2
    assert (changed["bundle_hash"] == body["bundle_hash"], changed["content_hash"] == body["content_hash"]) == (True, False)


def archive(**files: bytes) -> SimpleUploadedFile:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as opened:
        for name, content in files.items():
            opened.writestr(name.replace("__", "/"), content)
    return SimpleUploadedFile("code.zip", raw.getvalue())


def test_version_with_an_archive(lab: tuple[Workspace, Client]) -> None:
    spec = json.dumps({"argv": ["python", "pkg/main.py"]})
    form = {"spec": spec, "bundle": archive(pkg__main=b"print(1)", pkg__table=b"x"), "complete": "1"}
    answer = lab[1].post(f"{BASE}/policy-runner/versions/upload", form)
    assert answer.status_code == 201, answer.content
    assert [file["path"] for file in answer.json()["files"]] == ["pkg/main", "pkg/table"]


def test_cut_or_hostile_archives_make_no_version(lab: tuple[Workspace, Client]) -> None:
    workspace, client = lab
    spec = json.dumps({"argv": ["python", "main.py"]})
    address = f"{BASE}/policy-runner/versions/upload"
    answers = [
        client.post(address, {"spec": spec, "bundle": archive(main=b"x")}),
        client.post(address, {"spec": spec, "complete": "1"}),
        client.post(address, {"bundle": archive(main=b"x"), "complete": "1"}),
        client.post(address, {"spec": "[", "bundle": archive(main=b"x"), "complete": "1"}),
        client.post(address, {"spec": spec, "bundle": archive(**{"..__evil": b"x"}), "complete": "1"}),
        client.post(address, {"spec": spec, "bundle": SimpleUploadedFile("code.zip", b"no zip"), "complete": "1"}),
        client.post(address, "{}", content_type="application/json"),
    ]
    for name, (make, words) in DAMAGED.items():
        sent = SimpleUploadedFile("code.zip" if name.startswith("zip") else "code.tar.gz", make())
        answers.append(client.post(address, {"spec": spec, "bundle": sent, "complete": "1"}))
        assert words in answers[-1].content.decode(), name
    assert [answer.status_code for answer in answers] == [422] * len(answers)
    with scope.open_workspace(workspace.pk):
        assert not AgentVersion.objects.exists()
        assert not AgentFile.objects.exists()
        assert not Blob.objects.exists()


DEEP: Any = {}
for _ in range(40):
    DEEP = {"type": "object", "properties": {"x": DEEP}}


@pytest.mark.parametrize(
    "changed",
    [
        {"argv": []},
        {"argv": [""]},
        {"argv": ["a\x00b"]},
        {"argv": ["x" * 1001]},
        {"argv": "python main.py"},
        {"files": []},
        {"files": [{"path": "../main.py", "content_base64": CODE}]},
        {"files": [{"path": "a.py", "content_base64": CODE}, {"path": "A.py", "content_base64": CODE}]},
        {"files": [{"path": "a.py", "content_base64": "ü"}]},
        {"parameter_schema": []},
        {"parameter_schema": {"type": "array"}},
        {"parameter_schema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}},
        {"parameter_schema": {"type": "object", "properties": {"a": {"pattern": "(a+)+$"}}}},
        {"parameter_schema": {"type": "object", "properties": {"a": {"patternProperties": {"(a+)+$": {}}}}}},
        {"parameter_schema": {"type": "object", "$ref": "http://169.254.169.254/"}},
        {"parameter_schema": {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}},
        {"parameter_schema": DEEP},
        {"parameter_schema": {"type": "object", "enum": list(range(3000))}},
        {"parameter_schema": {"type": "object", "title": "\x00"}},
        {"environment": {"LD_PRELOAD": "evil.so"}},
        {"environment": {"LABSITE_JOB": "x"}},
        {"environment": {"A B": "x"}},
        {"environment": {"A": "x\ny"}},
        {"secrets": ["../etc"]},
        {"tools": ["Rm -rf"]},
        {"outputs": [{"glob": "../*"}]},
        {"outputs": [{"glob": "*", "kind": "UPPER"}]},
        {"slots": 0},
        {"wall_seconds": -5},
        {"memory_bytes": 2**60},
        {"completion": "never"},
        {"kind": "../x"},
        {"colour": "blue"},
    ],
)
def test_bad_versions(lab: tuple[Workspace, Client], changed: dict[str, Any]) -> None:
    answer = post(lab[1], "/policy-runner/versions", version(**changed))
    assert answer.status_code == 422, answer.content
    with scope.open_workspace(lab[0].pk):
        assert not AgentVersion.objects.exists()


def test_pools_of_elsewhere_and_missing_agents(lab: tuple[Workspace, Client]) -> None:
    client = lab[1]
    assert post(client, "/policy-runner/versions", version(pools=["pool_ssh_a100"])).status_code == 404
    assert post(client, "/nobody/versions", version()).status_code == 404
    assert client.get(f"{BASE}/nobody").status_code == 404
    with scope.open_workspace(lab[0].pk):
        assert Agent.objects.count() == 1


def test_the_tools_of_a_version_are_shown(lab: tuple[Workspace, Client]) -> None:
    client = lab[1]
    answer = post(client, "/policy-runner/versions", version(tools=["gtp", "gnugo", "gtp"]))
    assert answer.json()["tools"] == ["gnugo", "gtp"]
    page = " ".join(client.get("/workspaces/lab/agents/policy-runner/").content.decode().split())
    assert '<dt>Tools</dt> <dd class="mono"> gnugo, gtp </dd>' in page
