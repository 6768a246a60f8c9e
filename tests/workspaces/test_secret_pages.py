"""Secrets as people and scripts use them: the value goes in, and never out."""

import hashlib
import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from labsite.owner import as_owner
from tests.factories import Role, make_member
from tests.factories_pages import HOSTILE, client_of
from tests.factories_registry import make_agent_version
from tests.factories_runs import Laboratory, make_laboratory
from tests.factories_secrets import CANARY, PLAIN
from workspaces.commands.secret import create_secret
from workspaces.models import IdempotencyKey, Pool, Secret
from workspaces.queries.sealed import value_of

pytestmark = pytest.mark.django_db(transaction=True)
BASE, API = "/workspaces/lab/secrets/", "/api/v1/workspaces/lab/secrets"
ALLOWED = {"agents": ["worker"], "pools": ["local"]}


@pytest.fixture
def lab(db: None) -> Laboratory:
    return make_laboratory()


@pytest.fixture
def client(lab: Laboratory) -> Client:
    return client_of(lab.owner)


def stored_value(lab: Laboratory, name: str = "HF_TOKEN") -> str:
    with lab.opened():
        return value_of(Secret.objects.get(name=name, revoked_at=None))


def send(client: Client, method: str, path: str, body: Any, **headers: str) -> Any:
    return getattr(client, method)(path, json.dumps(body), content_type="application/json", headers=headers)


def test_a_secret_is_kept_replaced_and_revoked_by_forms(lab: Laboratory, client: Client) -> None:
    empty = client.get(BASE).content.decode()
    assert "No secret is kept here" in empty and "New secret" in empty
    made = client.post(BASE + "new/", {"name": "HF_TOKEN", "kind": "value", "value": CANARY, "description": HOSTILE, **ALLOWED})
    assert made.status_code == 303
    page = client.get(made["Location"]).content.decode()
    assert "may be read by 1 agent on 1 pool" in page and "secrets/HF_TOKEN" in page and "<script>alert" not in page
    assert stored_value(lab) == CANARY
    change = client.get(made["Location"] + "change/").content.decode()
    assert re.search(r'value="worker"[^>]*checked', change) and re.search(r'value="local"[^>]*checked', change)
    assert client.post(made["Location"] + "change/", {"agents": [], "pools": ["local"], "description": ""}).status_code == 303
    assert "may be read by no run yet" in client.get(made["Location"]).content.decode()
    assert client.post(made["Location"] + "rotate/", {"value": PLAIN, "reason": "the old one leaked"}).status_code == 303
    assert stored_value(lab) == PLAIN
    assert client.post(made["Location"] + "revoke/", {"reason": ""}).status_code == 422
    assert client.post(made["Location"] + "revoke/", {"reason": "moved"}).status_code == 303
    gone = client.get(made["Location"]).content.decode()
    assert "was revoked" in gone and "Replace value" not in gone
    assert client.post(made["Location"] + "rotate/", {"value": CANARY}).status_code == 409


def test_a_typed_value_is_never_written_back(client: Client) -> None:
    form = client.get(BASE + "new/").content.decode()
    field = re.search(r'<input[^>]*name="value"[^>]*>', form)
    assert field and 'type="password"' in field[0] and 'autocomplete="off"' in field[0]
    for wrong in ({"name": "small"}, {"agents": ["nobody"]}, {"rotate_after_days": "0"}, {"kind": "ssh_key"}):
        answer = client.post(BASE + "new/", {"name": "HF_TOKEN", "kind": "value", "value": PLAIN, "description": "kept", **wrong})
        text = answer.content.decode()
        assert answer.status_code in (409, 422) and PLAIN not in text and "kept" in text, wrong
        field = re.search(r'<input[^>]*name="value"[^>]*>', text)
        assert field and " value=" not in field[0]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"file": b"two lines\nof a value\n"}, 303),
        ({"file": b"\xff\xfe\x00\x01binary of it"}, 422),
        ({"file": b"x" * 65_537}, 409),
        ({"file": b"short"}, 409),
        ({"file": b"a file with it", "value": PLAIN}, 422),
        ({"file": b""}, 422),
        ({"value": ""}, 422),
        ({"value": "x" * 65_537}, 422),
        ({"value": "12345678\x00"}, 422),
    ],
)
def test_a_value_comes_typed_or_as_a_file(lab: Laboratory, client: Client, sent: dict[str, Any], status: int) -> None:
    body = {"name": "HF_TOKEN", "kind": "value", "value": "", **sent}
    if "file" in sent:
        body["file"] = SimpleUploadedFile("value.txt", sent["file"])
    answer = client.post(BASE + "new/", body)
    assert answer.status_code == status, answer.content.decode()
    if status == 303:
        assert stored_value(lab) == sent["file"].decode()


def test_the_api_takes_values_and_gives_none(lab: Laboratory, client: Client) -> None:
    body = {"name": "HF_TOKEN", "value": CANARY, **ALLOWED, "benchmarks": ["accuracy"], "rotate_after_days": 30}
    made = send(client, "post", API, body)
    assert made.status_code == 201
    found = made.json()
    assert (found["status"], found["version"], found["agents"], found["pools"], found["benchmarks"]) == (
        "ready",
        1,
        ["worker"],
        ["local"],
        ["accuracy"],
    )
    assert found["id"] == f"secret_{found['uuid'].replace('-', '')}" and client.get(found["url"]).status_code == 200
    assert client.get(f"{API}/HF_TOKEN").json() == client.get(f"{API}/{found['id']}").json() == found
    changed = send(client, "patch", f"{API}/HF_TOKEN", {"benchmarks": [], "description": "for the hub"}).json()
    assert (changed["benchmarks"], changed["agents"], changed["rotate_after_days"]) == ([], ["worker"], 30)
    assert send(client, "patch", f"{API}/HF_TOKEN", {"rotate_after_days": None}).json()["rotation_due_at"] is None
    rotated = send(client, "post", f"{API}/HF_TOKEN/rotate", {"value": PLAIN, "reason": "monthly"}).json()
    assert rotated["version"] == 2 and rotated["fingerprint"] != found["fingerprint"]
    listed = client.get(API).json()
    assert [item["name"] for item in listed["items"]] == ["HF_TOKEN"]
    assert client.get(f"{API}/HF_TOKEN/uses").json() == {"items": [], "next": None}
    gone = send(client, "post", f"{API}/HF_TOKEN/revoke", {"reason": "moved"}).json()
    assert gone["status"] == "revoked" and gone["revoked_at"]
    for answer in (found, changed, rotated, listed, gone):
        text = json.dumps(answer)
        assert CANARY not in text and PLAIN not in text and "ciphertext" not in text and "nonce" not in text
    assert client.get(f"{API}/NOT_HERE").status_code == 404
    assert send(client, "post", API, body | {"agents": ["nobody"]}).status_code == 404


def test_one_effect_for_one_key(lab: Laboratory, client: Client) -> None:
    body = {"name": "HF_TOKEN", "value": CANARY}
    first = send(client, "post", API, body, **{"Idempotency-Key": "k1"})
    again = send(client, "post", API, body, **{"Idempotency-Key": "k1"})
    assert (first.status_code, again.status_code, again.content) == (201, 201, first.content)
    with lab.opened():
        kept = IdempotencyKey.objects.get(key="k1")
        assert kept.body_hash != hashlib.sha256(json.dumps(body).encode()).hexdigest(), "a short value could be found by trying"
    assert send(client, "post", API, body | {"value": PLAIN}, **{"Idempotency-Key": "k1"}).status_code == 422
    rotation = [send(client, "post", f"{API}/HF_TOKEN/rotate", {"value": PLAIN}, **{"Idempotency-Key": "k2"}) for _ in range(2)]
    assert [answer.json()["version"] for answer in rotation] == [2, 2]
    assert stored_value(lab) == PLAIN


def test_members_see_names_and_operators_manage(lab: Laboratory) -> None:
    with lab.opened():
        create_secret(actor=lab.owner, name="HF_TOKEN", value=CANARY)
    viewer, operator = client_of(make_member(lab.workspace, Role.VIEWER)), client_of(make_member(lab.workspace, Role.OPERATOR))
    page = viewer.get(BASE + "HF_TOKEN/").content.decode()
    assert "HF_TOKEN" in page and "Replace value" not in page and "New secret" not in viewer.get(BASE).content.decode()
    for path in ("new/", "HF_TOKEN/change/", "HF_TOKEN/rotate/", "HF_TOKEN/revoke/"):
        assert viewer.get(BASE + path).status_code == 403 and viewer.post(BASE + path, {"value": PLAIN}).status_code == 403
        assert operator.get(BASE + path).status_code == 200
    assert send(viewer, "post", f"{API}/HF_TOKEN/rotate", {"value": PLAIN}).status_code == 403
    assert send(operator, "post", f"{API}/HF_TOKEN/rotate", {"value": PLAIN}).status_code == 200


def test_the_agents_and_pools_that_need_it_are_shown(lab: Laboratory, client: Client) -> None:
    with lab.opened():
        make_agent_version(lab.owner, "reader", secrets=["HF_TOKEN"])
        create_secret(actor=lab.owner, name="HF_TOKEN", value=CANARY)
    page = client.get(BASE + "HF_TOKEN/").content.decode()
    assert "/workspaces/lab/agents/reader/" in page and "not allowed" in page
    with as_owner(), lab.opened():
        Pool.objects.filter(slug="local").update(secret=Secret.objects.get())
    assert "pool that is entered with it" in client.get(BASE + "HF_TOKEN/").content.decode()


def test_a_strange_place_in_the_list_of_uses_is_not_there(lab: Laboratory, client: Client) -> None:
    made = client.post(BASE + "new/", {"name": "HF_TOKEN", "kind": "value", "value": CANARY, "description": "", **ALLOWED})
    assert client.get(made["Location"]).status_code == 200
    assert client.get(made["Location"] + "?after=x").status_code == 404
