"""The launch page: the estimate before anything is written, refusals with their arithmetic, input kept, and parameters as fields."""

import re

import pytest

from runs.forms.parameters import parameter_fields, parameters_of
from runs.models import Certificate, Run
from tests.factories_pages import client_of
from tests.factories_registry import make_agent_version
from tests.factories_resources import join
from tests.factories_runs import Laboratory, make_laboratory
from workspaces.access import Role
from workspaces.commands.limit import set_limit
from workspaces.models import AuditEvent

ADDRESS = "/workspaces/lab/runs/launch/"
ASKED = {"benchmark": "accuracy", "agent": "worker", "datasets": ["table"], "reason": "to see"}
SCHEMA = {
    "type": "object",
    "required": ["rate"],
    "properties": {
        "rate": {"type": "number", "minimum": 0, "maximum": 1, "description": "learning rate"},
        "epochs": {"type": "integer", "default": 3, "minimum": 1},
        "mode": {"enum": ["fast", "slow"]},
        "shuffle": {"type": "boolean", "default": True},
        "note": {"type": "string", "maxLength": 20},
    },
}


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


def events(laboratory: Laboratory) -> int:
    with laboratory.opened():
        return AuditEvent.objects.count()


def test_check_shows_cost_and_certificate_and_writes_nothing(laboratory: Laboratory) -> None:
    before = events(laboratory)
    client = client_of(laboratory.owner)
    for response in (client.post(ADDRESS, ASKED | {"act": "check"}), client.get(ADDRESS, ASKED)):
        body = response.content.decode()
        assert response.status_code == 200
        assert "0.02 GPU-hours" in body
        assert "GPU-hours a week" in body
        assert 'value="to see"' in body
    assert events(laboratory) == before


def test_launch_leads_to_the_run(laboratory: Laboratory) -> None:
    client = client_of(laboratory.owner)
    response = client.post(ADDRESS, ASKED | {"act": "launch", "seed": "7", "name": "mine"})
    assert response.status_code == 303
    with laboratory.opened():
        run = Run.objects.get()
    assert response["Location"] == f"/workspaces/lab/runs/{run.public_id}/"
    assert (run.name, run.seed, run.trigger_reason, run.status) == ("mine", 7, "to see", "queued")


def test_refused_launch_keeps_the_input_and_shows_the_arithmetic(laboratory: Laboratory) -> None:
    response = client_of(laboratory.owner).post(ADDRESS, ASKED | {"act": "launch", "gpu_hours": "101", "name": "too much"})
    body = response.content.decode()
    assert response.status_code == 409
    assert "Refused. Nothing was reserved." in body
    assert "101 GPU-hours more would make 101 of 100 this week" in body
    assert "wait until" in body
    assert 'value="too much"' in body
    with laboratory.opened():
        assert Certificate.objects.get().verdict == "refused"
        assert not Run.objects.exists()
        assert AuditEvent.objects.order_by("-sequence")[0].verb == "launch.refused"


@pytest.mark.parametrize(
    "wrong",
    [
        {"benchmark": "nowhere"},
        {"gpu_hours": "-1"},
        {"gpu_hours": "NaN"},
        {"gpu_hours": "1e400"},
        {"seed": "x"},
        {"seed": str(2**64)},
        {"version": "99"},
        {"datasets": ["table", "nothing"]},
        {"pool": "elsewhere"},
        {"name": "x" * 201},
        {"reason": "a\x00b"},
    ],
    ids=str,
)
def test_wrong_input_is_shown_beside_its_field(laboratory: Laboratory, wrong: dict[str, object]) -> None:
    response = client_of(laboratory.owner).post(ADDRESS, ASKED | {"act": "launch"} | wrong)
    assert response.status_code == 422
    assert 'class="errorlist"' in response.content.decode()


def test_htmx_gets_the_form_alone(laboratory: Laboratory) -> None:
    body = client_of(laboratory.owner).post(ADDRESS, ASKED, headers={"hx-request": "true"}).content.decode()
    assert body.lstrip().startswith("<form")
    assert "<html" not in body


def test_parameters_are_fields_of_the_chosen_version(laboratory: Laboratory) -> None:
    with laboratory.opened():
        make_agent_version(laboratory.owner, "tuner", parameter_schema=SCHEMA, wall_seconds=60)
    client = client_of(laboratory.owner)
    asked = ASKED | {"agent": "tuner", "act": "launch"}
    body = client.get(ADDRESS, {"agent": "tuner"}).content.decode()
    assert set(re.findall(r'name="p\.(\w+)"', body)) == set(SCHEMA["properties"])
    assert client.post(ADDRESS, asked).status_code == 422
    too_much = client.post(ADDRESS, asked | {"p.rate": "7"})
    assert too_much.status_code == 409
    assert "rate: 7" in too_much.content.decode()
    assert client.post(ADDRESS, asked | {"p.rate": "0.5", "p.shuffle": "false", "p.mode": "slow"}).status_code == 303
    with laboratory.opened():
        run = Run.objects.get()
    assert run.parameters == {"rate": 0.5, "epochs": 3, "mode": "slow", "shuffle": False}
    link = re.search(
        r'class="button"\s+href="(/workspaces/lab/runs/launch/[^"]*)"',
        client.get(f"/workspaces/lab/runs/{run.public_id}/").content.decode(),
    )
    assert link
    body = client.get(link[1].replace("&amp;", "&")).content.decode()
    assert 'value="0.5"' in body
    assert '<option value="slow" selected>' in body


def test_a_schema_that_is_not_simple_is_one_field_of_json() -> None:
    fields = parameter_fields({"type": "object", "properties": {"grid": {"type": "array"}}})
    assert list(fields) == ["parameters"]
    assert fields["parameters"].clean('{"grid": [1]}') == {"grid": [1]}
    assert parameters_of({"parameters": {"grid": [1]}, "name": "x"}) == {"grid": [1]}
    assert parameter_fields({}) == {}


def test_above_an_asking_limit_the_run_waits_for_another_person(laboratory: Laboratory) -> None:
    with laboratory.opened():
        set_limit(actor=laboratory.owner, unit="gpu_ms", window="run", amount=3_600, mode="approval", reason="small steps")
        researcher, viewer = join(laboratory.owner, "researcher"), join(laboratory.owner, "viewer", Role.VIEWER)
        approver = join(laboratory.owner, "approver", Role.APPROVER)
    assert client_of(viewer).get(ADDRESS).status_code == 403
    assert "Ask for approval" in client_of(researcher).get(ADDRESS, ASKED).content.decode()
    assert client_of(researcher).post(ADDRESS, ASKED | {"act": "launch", "name": "big"}).status_code == 303
    assert ">Approve<" not in client_of(researcher).get("/workspaces/lab/").content.decode()
    body = client_of(approver).get("/workspaces/lab/").content.decode()
    decide = re.search(r'action="(/workspaces/lab/approvals/[^"]+/decide/)"', body)
    seen = re.search(r'name="seen_hash" value="([0-9a-f]{64})"', body)
    assert decide
    assert seen
    stale = client_of(approver).post(decide[1], {"decision": "approve", "seen_hash": "0" * 64, "back": "//elsewhere.example/"})
    assert stale.status_code == 409
    assert 'href="/workspaces/lab/"' in stale.content.decode()
    agreed = client_of(approver).post(decide[1], {"decision": "approve", "seen_hash": seen[1], "back": "https://elsewhere.example/"})
    assert (agreed.status_code, agreed["Location"]) == (303, "/workspaces/lab/")
    with laboratory.opened():
        assert Run.objects.get().status == "queued"
    assert client_of(approver).post(decide[1], {"decision": "approve", "seen_hash": seen[1]}).status_code == 409
