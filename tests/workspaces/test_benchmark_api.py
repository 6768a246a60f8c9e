"""Benchmarks over the API: contracts in versions, what they may measure on, and bad input."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.factories import Role, make_member, make_workspace, scope
from tests.factories_registry import make_dataset_version
from workspaces.access import Actor
from workspaces.models import AuditEvent, Benchmark, Contract, Workspace

pytestmark = pytest.mark.django_db
BASE = "/api/v1/workspaces/lab/benchmarks"
CONTRACT = {"metric": "accuracy", "direction": "maximize"}


@pytest.fixture
def lab(settings: Any, tmp_path: Path, client: Client) -> tuple[Workspace, Actor, Client]:
    settings.LABSITE_REGIONS = {"local": tmp_path}
    workspace, actor = make_workspace("lab", region="local")
    assert actor.user is not None
    client.force_login(actor.user)
    return workspace, actor, client


def post(client: Client, path: str, body: Any, **headers: Any) -> Any:
    return client.post(f"{BASE}{path}", body if isinstance(body, str) else json.dumps(body), content_type="application/json", **headers)


def test_created_with_contract_and_public_flag(lab: tuple[Workspace, Actor, Client]) -> None:
    answer = post(lab[2], "", {"slug": "autogo-fast-learning", "is_public": True, "contract": {**CONTRACT, "unit": "Elo"}})
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert (body["id"], body["status"], body["is_public"], body["contract"]["version"]) == (
        "bench_autogo-fast-learning",
        "defined",
        True,
        1,
    )
    assert lab[2].get(f"{BASE}/bench_autogo_fast_learning").json() == body
    with scope.open_workspace(lab[0].pk):
        event = AuditEvent.objects.order_by("-sequence")[0]
        assert event.verb == "benchmark.created"
        assert set(event.subjects.values_list("type", flat=True)) == {"benchmark", "contract"}


def test_contracts_follow_one_another(lab: tuple[Workspace, Actor, Client]) -> None:
    client = lab[2]
    assert post(client, "", {"slug": "speed"}).json()["status"] == "declared"
    assert post(client, "/speed/contracts", CONTRACT).json()["version"] == 1
    again = post(client, "/speed/contracts", CONTRACT)
    assert again.status_code == 409
    assert "version 1" in again.json()["detail"]
    assert post(client, "/speed/contracts", {**CONTRACT, "direction": "minimize"}).json()["version"] == 2
    versions = client.get(f"{BASE}/speed/contracts").json()["items"]
    assert [version["version"] for version in versions] == [2, 1]
    assert versions[0]["content_hash"] != versions[1]["content_hash"]
    assert client.get(f"{BASE}/speed").json()["contract"]["version"] == 2


def test_holdout_must_have_its_role_and_be_of_here(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, actor, client = lab
    with scope.open_workspace(workspace.pk):
        make_dataset_version(actor, "training")
        holdout = make_dataset_version(actor, "held", role="holdout")
    other, stranger = make_workspace("other", region="local")
    with scope.open_workspace(other.pk):
        foreign = make_dataset_version(stranger, "theirs", role="holdout")
    answer = post(client, "", {"slug": "a", "contract": {**CONTRACT, "holdout": "training"}})
    assert answer.status_code == 422
    assert "role is holdout" in answer.json()["detail"]
    for text in (foreign.public_id, str(foreign.pk), "theirs", "nothing", "held@7", "held@x"):
        assert post(client, "", {"slug": "a", "contract": {**CONTRACT, "holdout": text}}).status_code == 404, text
    for number, text in enumerate(("held", "held@1", "ds_held@1", holdout.public_id, str(holdout.pk))):
        answer = post(client, "", {"slug": f"b{number}", "contract": {**CONTRACT, "holdout": text}})
        assert answer.json()["contract"]["holdout"] == holdout.public_id
    with scope.open_workspace(workspace.pk):
        assert not Benchmark.objects.filter(slug="a").exists()


@pytest.mark.parametrize(
    "body",
    [
        {"slug": "a", "contract": {**CONTRACT, "wall_seconds": -1}},
        {"slug": "a", "contract": {**CONTRACT, "wall_seconds": 1e99}},
        '{"slug": "a", "contract": {"metric": "m", "direction": "maximize", "wall_seconds": NaN}}',
        '{"slug": "a", "contract": {"metric": "m", "direction": "maximize", "wall_seconds": Infinity}}',
        {"slug": "a", "contract": {**CONTRACT, "metric": "m" * 251}},
        {"slug": "a", "contract": {**CONTRACT, "metric": "m\x00"}},
        {"slug": "a", "contract": {**CONTRACT, "terms": "\udfff"}},
        {"slug": "a", "contract": {**CONTRACT, "direction": "sideways"}},
        {"slug": "a", "contract": {**CONTRACT, "version": 7}},
        {"slug": "a", "is_public": "perhaps"},
        "{",
        '{"slug": "a"',
        "\x00",
    ],
)
def test_bad_bodies(lab: tuple[Workspace, Actor, Client], body: Any) -> None:
    answer = post(lab[2], "", body)
    assert answer.status_code in (400, 422), answer.content
    with scope.open_workspace(lab[0].pk):
        assert not Benchmark.objects.exists()
        assert not Contract.objects.exists()


def test_viewers_read_and_do_not_write(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, _, client = lab
    post(client, "", {"slug": "speed"})
    viewer = make_member(workspace, Role.VIEWER)
    assert viewer.user is not None
    client.force_login(viewer.user)
    assert client.get(f"{BASE}/speed").status_code == 200
    assert post(client, "", {"slug": "mine"}).status_code == 403
    assert post(client, "/speed/contracts", CONTRACT).status_code == 403
    client.logout()
    assert client.get(BASE).status_code == 401


def test_key_makes_one_benchmark(lab: tuple[Workspace, Actor, Client]) -> None:
    first, second = (post(lab[2], "", {"slug": "speed"}, HTTP_IDEMPOTENCY_KEY="k") for _ in range(2))
    assert (first.status_code, second.status_code, first.json()) == (201, 201, second.json())
