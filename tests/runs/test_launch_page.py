"""The launch page: the estimate before anything is written, refusals with their arithmetic, input kept, and parameters as fields."""

import html
import json
import re

import pytest

from runs.forms.parameters import parameter_fields, parameters_of
from runs.models import Certificate, Run
from tests.factories_pages import client_of
from tests.factories_registry import make_agent_version, make_dataset_version
from tests.factories_resources import join
from tests.factories_runs import Laboratory, make_laboratory
from workspaces.access import Role
from workspaces.agent_inputs import Need
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import import_dataset_version
from workspaces.commands.limit import set_limit
from workspaces.models import AuditEvent, Dataset
from workspaces.units import size

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


def test_an_agent_does_not_start_without_the_data_that_it_needs(laboratory: Laboratory) -> None:
    """Said when the agent is chosen, refused when it is launched all the same; with the data the same launch goes through."""
    with laboratory.opened():
        needs = (Need("dataset", "train"), Need("artifact", "model", required=False))
        make_agent_version(laboratory.owner, "trainer", inputs=needs)
        make_dataset_version(laboratory.owner, "exam", role="holdout", content=b"a,b\n5,6\n")
    client, asked = client_of(laboratory.owner), ASKED | {"agent": "trainer", "datasets": []}
    draft = client.get(ADDRESS, {"benchmark": "accuracy", "agent": "trainer"}).content.decode()
    assert "This agent needs a dataset of role train." in draft
    assert "it is given nothing. Add a dataset of role train to its inputs." in re.sub(r"<[^>]+>|\s+", " ", draft).replace("  ", " ")
    for given, words in (([], "given nothing"), (["exam"], "given exam@1")):
        response = client.post(ADDRESS, asked | {"datasets": given, "act": "launch"})
        assert response.status_code == 409
        assert f"trainer version 1 needs a dataset of role train; it is {words}." in response.content.decode()
    with laboratory.opened():
        assert not Run.objects.exists()
        assert [certificate.verdict for certificate in Certificate.objects.all()] == ["refused", "refused"]
    assert client.post(ADDRESS, asked | {"datasets": ["table", "exam"], "act": "check"}).status_code == 200
    assert client.post(ADDRESS, asked | {"datasets": ["table"], "act": "launch"}).status_code == 303


def test_the_api_and_a_sweep_refuse_it_too(laboratory: Laboratory) -> None:
    with laboratory.opened():
        make_agent_version(laboratory.owner, "player", inputs=(Need("dataset", name="games"),))
    client, base = client_of(laboratory.owner), "/api/v1/workspaces/lab"
    asked = {"benchmark_id": "accuracy", "agent_id": "player", "dataset_ids": ["table"], "budget": {"gpu_hours": 0.01}, "reason": "why"}
    run = client.post(f"{base}/runs", json.dumps(asked), content_type="application/json")
    sweep = client.post(f"{base}/sweeps", json.dumps(asked | {"space": {"kind": "grid", "seeds": [1, 2]}}), content_type="application/json")
    assert (run.status_code, sweep.status_code) == (409, 422)
    for answer in (run, sweep):
        assert (
            "player version 1 needs the dataset games; it is given table@1. Add the dataset games to its inputs." in answer.json()["detail"]
        )
    with laboratory.opened():
        make_dataset_version(laboratory.owner, "games", content=b"a,b\n5,6\n")
    asked["dataset_ids"] = ["games"]
    assert client.post(f"{base}/runs", json.dumps(asked), content_type="application/json").status_code == 201


PICK = re.compile(r'name="datasets"\s+value="([^"]+)"([^>]*)')


def picks(body: str) -> dict[str, bool]:
    """The datasets that the form offers, and whether each is chosen."""
    return {value: "checked" in rest for value, rest in PICK.findall(body)}


def test_one_of_hundreds_of_datasets_is_found_by_a_part_of_its_name_and_what_is_chosen_stays(laboratory: Laboratory) -> None:
    with laboratory.opened():
        for number in range(1, 71):
            make_dataset_version(laboratory.owner, f"games-{number:03d}", content=f"a,b\n{number},0\n".encode())
    client = client_of(laboratory.owner)
    first = client.get(ADDRESS).content.decode()
    assert len(picks(first)) == 60
    assert "The first 60 of 71 are shown; look for the others by name." in first
    draft = ASKED | {"datasets": ["games-069"], "act": "find", "find": "GAMES-07"}
    for answer in (client.post(ADDRESS, draft), client.get(ADDRESS, draft)):
        body = answer.content.decode()
        assert answer.status_code == 200
        assert picks(body) == {"games-069": True, "games-070": False}
        assert "1 found." in body
        assert 'value="GAMES-07"' in body
        assert 'value="to see"' in body
    nothing = client.get(ADDRESS, {"find": "no such"}).content.decode()
    assert "No dataset has this in its name or id." in nothing
    # What was looked for last does not bear on what may be launched.
    assert client.post(ADDRESS, draft | {"act": "launch"}).status_code == 303
    with laboratory.opened():
        assert [entry.slug for entry in Run.objects.get().inputs.all()] == ["games-069"]


def test_every_version_of_a_dataset_is_found_by_its_name_with_an_at(laboratory: Laboratory) -> None:
    with laboratory.opened():
        dataset = Dataset.objects.get(slug="table")
        for number in range(2, 13):
            file = receive_file("table.csv", [f"a,b\n{number},0\n".encode()])
            import_dataset_version(actor=laboratory.owner, dataset=dataset, role="train", files=[file])
    client = client_of(laboratory.owner)
    assert list(picks(client.get(ADDRESS, {"find": "table"}).content.decode())) == ["table"]
    assert list(picks(client.get(ADDRESS, {"find": "table@"}).content.decode())) == [f"table@{number}" for number in range(12, 0, -1)]
    assert list(picks(client.get(ADDRESS, {"find": "tab@3"}).content.decode())) == ["table@3"]
    chosen = client.get("/workspaces/lab/sweeps/new/", {"find": "nowhere", "datasets": ["table@2"]}).content.decode()
    assert picks(chosen) == {"table@2": True}


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
    assert "7.0 is above 1, the most that is allowed." in too_much.content.decode()
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


TUNER = {
    "type": "object",
    "additionalProperties": False,
    "required": ["rate"],
    "properties": {
        "rate": {"type": "number", "minimum": 0, "maximum": 1, "description": "Learning rate"},
        "columns": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True, "default": ["age", "size"]},
        "layers": {"type": "array", "items": {"type": "integer"}},
        "schedule": {"type": "object", "description": "<b>steps</b>"},
        "epochs": {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 40},
    },
}


@pytest.fixture
def tuner(laboratory: Laboratory) -> Laboratory:
    with laboratory.opened():
        make_agent_version(laboratory.owner, "tuner", parameter_schema=TUNER, wall_seconds=60)
    return laboratory


def test_each_parameter_says_what_it_is_and_what_holds_when_it_is_empty(tuner: Laboratory) -> None:
    body = client_of(tuner.owner).get(ADDRESS, {"agent": "tuner"}).content.decode()
    assert "Learning rate. Number from 0 to 1; needed." in body
    assert "Whole number from 1 to 10,000; 40 where empty." in body
    assert "List of texts, one a line, none twice; age, size where empty." in body
    assert "&lt;b&gt;steps&lt;/b&gt;. An object of JSON; left out where empty." in body
    assert 'class="errorlist"' not in body  # nobody has been asked for anything yet
    assert "Parameters as JSON" not in body


def test_lists_and_objects_are_written_in_fields_of_their_own(tuner: Laboratory) -> None:
    client = client_of(tuner.owner)
    given = {"p.rate": "0.5", "p.columns": "age\r\n mean of all, squared \r\n", "p.layers": "8\n16", "p.schedule": '{"at": [1, 2]}'}
    assert client.post(ADDRESS, ASKED | {"agent": "tuner", "act": "launch"} | given).status_code == 303
    with tuner.opened():
        run = Run.objects.get()
    wanted = {"rate": 0.5, "columns": ["age", "mean of all, squared"], "layers": [8, 16], "schedule": {"at": [1, 2]}, "epochs": 40}
    assert run.parameters == wanted
    again = client.get(f"{ADDRESS}?agent=tuner&benchmark=accuracy&parameters={json.dumps(run.parameters)}").content.decode()
    assert "age\nmean of all, squared</textarea>" in again
    assert "[8, 16]</textarea>" in again


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"p.rate": "7"}, "7.0 is above 1, the most that is allowed."),
        ({"p.rate": "fast"}, "Enter a number."),
        ({"p.rate": "1", "p.columns": "age\nage"}, "names something twice."),
        ({"p.rate": "1", "p.columns": "[1]"}, "entry 0: 1 is not a text."),
        ({"p.rate": "1", "p.layers": "wide"}, "wide is not a number; write one entry a line."),
        ({"p.rate": "1", "p.layers": "1.5"}, "entry 0: 1.5 is not a whole number."),
        ({"p.rate": "1", "p.schedule": "{"}, "This is not JSON"),
        ({"p.rate": "1", "p.schedule": "[1]"}, "[1] is not an object."),
        ({"p.rate": "1", "p.schedule": "[NaN]"}, "NaN is no number of JSON"),
        ({}, "This field is required."),
    ],
    ids=lambda value: str(value)[:40],
)
@pytest.mark.parametrize("act", ["check", "launch"])
def test_a_fault_stands_at_its_field_and_the_estimate_stays(tuner: Laboratory, given: dict[str, str], words: str, act: str) -> None:
    response = client_of(tuner.owner).post(ADDRESS, ASKED | {"agent": "tuner", "act": act, "name": "kept words"} | given)
    body = html.unescape(response.content.decode())
    assert response.status_code in (409, 422)
    assert body.count(words) == 1
    assert re.search(rf'<ul class="errorlist" id="id_p\.\w+_error"><li>[^<]*{re.escape(words)}', body)
    for kept in ('value="kept words"', "0.02 GPU-hours", "GPU-hours a week", "Reckoned without the fields that need another look."):
        assert kept in body
    with tuner.opened():
        assert not Run.objects.exists()


def test_a_draft_is_not_asked_for_what_comes_next(tuner: Laboratory) -> None:
    response = client_of(tuner.owner).post(ADDRESS, ASKED | {"agent": "tuner", "p.epochs": "0"}, headers={"hx-request": "true"})
    body = response.content.decode()
    assert "0.02 GPU-hours" in body
    assert "0 is below 1, the least that is allowed." in body
    assert "required" not in body


def test_too_small_a_budget_is_said_and_the_rest_is_reckoned(laboratory: Laboratory) -> None:
    response = client_of(laboratory.owner).post(ADDRESS, ASKED | {"act": "check", "gpu_hours": "0.0001"})
    body = response.content.decode()
    assert response.status_code == 422
    assert "Ask for at least that." in body
    assert 'value="0.0001"' in body
    assert "0.02 GPU-hours" in body


def test_parameters_that_a_version_does_not_take_are_named(tuner: Laboratory) -> None:
    body = client_of(tuner.owner).get(ADDRESS, {"agent": "tuner", "parameters": '{"momentum": 0.9, "rate": 0.25}'}).content.decode()
    assert "<bdi>momentum</bdi>: this version of the agent does not take it" in body
    assert 'value="0.25"' in body


def test_only_a_schema_that_names_nothing_is_one_field_of_json() -> None:
    fields = parameter_fields({"type": "object"})
    assert list(fields) == ["parameters"]
    assert fields["parameters"].clean('{"grid": [1]}') == {"grid": [1]}
    assert parameters_of({"parameters": {"grid": [1]}, "name": "x"}) == {"grid": [1]}
    assert list(parameter_fields({"oneOf": [{"required": ["a"]}], "properties": {"a": {}, "b": {}}})) == ["parameters"]
    assert parameter_fields({}) == {}
    assert list(parameter_fields({"properties": {"odd": True, "grid": {"type": ["array", "null"]}}})) == ["p.grid", "p.odd"]


def test_free_parameters_name_the_keys_that_are_allowed(laboratory: Laboratory) -> None:
    schema = {"type": "object", "oneOf": [{}], "properties": {"rate": {"type": "number"}, "epochs": {}}, "additionalProperties": False}
    with laboratory.opened():
        make_agent_version(laboratory.owner, "free", parameter_schema=schema)
    asked = ASKED | {"agent": "free", "act": "launch", "parameters": '{"momentum": 1}'}
    response = client_of(laboratory.owner).post(ADDRESS, asked)
    body = html.unescape(response.content.decode())
    assert response.status_code == 409
    assert '"momentum" is no parameter of this agent; it takes epochs, rate.' in body
    assert '{"momentum": 1}</textarea>' in body


def test_inputs_are_rows_with_version_role_and_size(laboratory: Laboratory) -> None:
    with laboratory.opened():
        files = [receive_file("table.csv", [b"a,b\n1,2\n3,4\n"])]
        version = import_dataset_version(actor=laboratory.owner, dataset=Dataset.objects.get(), role="validation", files=files)
    client = client_of(laboratory.owner)
    body = client.get(ADDRESS).content.decode()
    row = re.search(r'<label class="pick".*?</label>', body, re.DOTALL)
    assert row
    assert [words in row[0] for words in ("version 2", version.role, size(version.bytes))] == [True] * 3
    assert body.count('class="pick"') == 1
    for named, rows in (("table@2", 1), ("table@1", 2)):
        page = client.get(ADDRESS, {"datasets": named}).content.decode()
        assert page.count('class="pick"') == rows
        assert re.search(rf'value="{named}"[^>]* checked', page)


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
