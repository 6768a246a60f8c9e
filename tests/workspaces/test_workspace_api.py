"""The installation's routes: me, my workspaces, making one as plain fields, as the JSON and as the YAML of the seed."""

import json

import pytest
from django.test import Client

from tests.factories import make_member, make_user, make_workspace
from tests.factories_people import bearer, make_token, signed_in
from workspaces.access import Actor, Role, SiteRole
from workspaces.models import Workspace

AUTOGO = """{
  "workspace": "autogo-main",
  "compute_pools": ["ssh-a100-west", "spot-h100-batch"],
  "benchmarks": ["go-fast-learning", "arena-elo-regression"],
  "shared_memory": ["failed-search-configs", "promoted-openings"],
  "policies": ["launch-next-sweep", "promote-checkpoint"],
  "budgets": { "gpu_hours_per_week": 1200, "max_concurrent_runs": 48 }
}"""
W2S = """workspace_id: w2s-medqa
teacher_agents: weak-labeler-v3, rubric-judge-v2
student_agents: strong-candidate-a, strong-candidate-b
datasets: weak_labels_2026_05, disagreement_holdout, reviewed_promotions
gates: no_holdout_regression, calibrated_disagreement_gain, reviewer_approval
"""


@pytest.fixture
def creator(db: None) -> Client:
    return signed_in(Actor.of(make_user("carla", SiteRole.CREATE_WORKSPACE)))


def test_plain_fields_make_a_workspace_owned_by_who_asks(creator: Client) -> None:
    body = {"slug": "lab-7", "name": "Seventh", "billing_account": "R&D", "cost_centre": "7", "zone": "Europe/Berlin"}
    answer = creator.post("/api/v1/workspaces", body, "application/json")
    assert answer.status_code == 201
    made = answer.json()
    assert (made["id"], made["status"], made["name"]) == ("ws_lab-7", "configuring", "Seventh")
    assert [row["slug"] for row in creator.get("/api/v1/workspaces").json()["items"]] == ["lab-7"]
    assert Workspace.objects.get().zone == "Europe/Berlin"


@pytest.mark.parametrize(("text", "kind", "slug"), [(AUTOGO, "application/json", "autogo-main"), (W2S, "application/yaml", "w2s-medqa")])
def test_the_seeds_examples_work_as_written_and_twice(creator: Client, text: str, kind: str, slug: str) -> None:
    first = creator.post("/api/v1/workspaces", text, kind)
    assert (first.status_code, first.json()["slug"]) == (201, slug)
    again = creator.post("/api/v1/workspaces", text, kind)
    assert again.status_code == 200
    assert {step["did"] for step in again.json()["steps"]} == {"unchanged"}


def test_unknown_keys_are_named(creator: Client) -> None:
    steps = creator.post("/api/v1/workspaces", {"slug": "lab-8", "colour": "red"}, "application/json").json()["steps"]
    assert any(step["did"] == "ignored" and "colour" in step["words"] for step in steps)


def test_one_key_makes_one_workspace(creator: Client) -> None:
    for _ in range(2):
        answer = creator.post("/api/v1/workspaces", {"slug": "lab-9"}, "application/json", headers={"idempotency-key": "once"})
        assert answer.status_code == 201
    assert Workspace.objects.count() == 1


@pytest.mark.parametrize("body", ["", "{", '{"slug": "new"}', '{"name": "x"}', '{"slug": "a", "zone": "Mars/Olympus"}', "\x00", "[1]"])
def test_what_cannot_be_read_is_422_with_its_faults(creator: Client, body: str) -> None:
    answer = creator.post("/api/v1/workspaces", body, "application/json")
    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    assert answer.json()["errors"]
    assert not Workspace.objects.exists()


@pytest.mark.django_db
def test_without_the_site_role_nobody_makes_one_and_a_token_never_does() -> None:
    workspace, owner = make_workspace()
    plain = signed_in(Actor.of(make_user("bob")))
    assert plain.post("/api/v1/workspaces", {"slug": "mine"}, "application/json").status_code == 403
    _, text = make_token(workspace, owner, "workspace:write", "member:read")
    assert bearer(text).post("/api/v1/workspaces", {"slug": "mine"}, "application/json").status_code == 403
    assert Client().post("/api/v1/workspaces", {"slug": "mine"}, "application/json").status_code == 401
    assert Workspace.objects.count() == 1


@pytest.mark.django_db
def test_a_stranger_does_not_update_by_declaration() -> None:
    workspace, _ = make_workspace()
    stranger = signed_in(Actor.of(make_user("bob", SiteRole.CREATE_WORKSPACE)))
    assert stranger.post("/api/v1/workspaces", {"slug": "lab", "name": "Taken over"}, "application/json").status_code in (409, 422)
    researcher = signed_in(make_member(workspace, Role.RESEARCHER))
    assert researcher.post("/api/v1/workspaces", {"slug": "lab", "name": "Taken over"}, "application/json").status_code == 403
    assert Workspace.objects.get().name == "Lab"


@pytest.mark.django_db
def test_me_tells_a_browser_who_it_is() -> None:
    _, owner = make_workspace()
    me = signed_in(owner).get("/api/v1/me").json()
    assert (me["user"], me["token"], me["site_roles"]) == ("lab-owner", None, ["create_workspace"])
    assert Client().get("/api/v1/me").status_code == 401


@pytest.mark.django_db
def test_members_by_api_with_role_above_ones_own_and_foreign_keys_refused() -> None:
    workspace, _ = make_workspace()
    admin = make_member(workspace, Role.ADMIN)
    client = signed_in(admin)
    make_user("ada")
    url = "/api/v1/workspaces/lab/members"
    assert client.post(url, {"user": "ada", "role": "owner"}, "application/json").status_code == 422
    more = {"user": "ada", "role": "viewer", "workspace_id": "x", "is_superuser": True}
    assert client.post(url, more, "application/json").status_code == 422
    made = client.post(url, {"user": "ada", "role": "viewer", "kinds": ["run"]}, "application/json")
    assert made.status_code == 201
    own = next(row for row in client.get(url).json()["items"] if row["user"] == "admin-lab")
    assert client.patch(f"{url}/{own['id']}", json.dumps({"role": "owner"}), "application/json").status_code == 422
    permissions = {row["user"]: row["permissions"] for row in client.get(f"{url}/permissions").json()["items"]}
    assert permissions["ada"] == {"view": ["run"]}
    assert permissions["admin-lab"]["approve"] is None
    assert "transfer" not in permissions["admin-lab"]
    assert client.post(f"{url}/{made.json()['id']}/remove", {}, "application/json").status_code == 200
    assert client.get(f"{url}/{made.json()['id']}").status_code == 404
