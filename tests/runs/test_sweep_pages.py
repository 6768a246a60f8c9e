"""Sweeps in the browser's and the API's words: the form says the arithmetic first, the page ranks members, foreign ones are missing."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from runs.commands.run import cancel
from runs.commands.sweep import create_sweep, stop
from runs.jobs.advance import advance_sweep
from runs.launch import LaunchRequest
from runs.models import Run, Sweep
from runs.queries.sweep import table_of
from runs.views import sweep as sweep_views
from tests.factories import make_member, make_workspace
from tests.factories_pages import add_series, copy_runs, number_members, score_runs
from tests.factories_people import make_token
from tests.factories_registry import make_agent_version
from tests.factories_runs import HOUR, Laboratory, launch, make_laboratory

pytestmark = pytest.mark.django_db(transaction=True)

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "rate": {"type": "number", "minimum": 0, "default": 0.1},
        "width": {"type": "integer", "maximum": 64, "description": "Units of the layer."},
        "act": {"type": "string", "enum": ["relu", "tanh"]},
    },
}
NEW = "/workspaces/lab/sweeps/new/"


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory()
    with made.opened():
        make_agent_version(made.owner, slug="sweeper", parameter_schema=SCHEMA, wall_seconds=60)
    return made


def sign_in(laboratory: Laboratory) -> Client:
    client = Client()
    assert laboratory.owner.user
    client.force_login(laboratory.owner.user)
    return client


def asked(**given: str) -> dict[str, str]:
    return {"benchmark": "accuracy", "agent": "sweeper", "datasets": "table", "gpu_hours": "0.5", **given}


def test_the_form_says_how_many_and_what_they_reserve_before_anything_is_written(laboratory: Laboratory) -> None:
    client = sign_in(laboratory)
    page = client.post(NEW, asked(**{"v.rate": "0.1, 0.01", "v.act": "relu, tanh", "v.width": "32", "seeds": "1..3"})).content.decode()
    assert "2 act × 2 rate × 3 seeds" in page
    assert "6 GPU-hours" in page
    with laboratory.opened():
        assert not Sweep.objects.exists()


def test_a_form_becomes_a_sweep_and_one_value_no_axis(laboratory: Laboratory) -> None:
    client = sign_in(laboratory)
    answer = client.post(NEW, asked(act="launch", reason="what matters", **{"v.rate": "0.1, 0.01", "v.act": "relu, tanh", "v.width": "32"}))
    assert answer.status_code == 303
    with laboratory.opened():
        sweep = Sweep.objects.get()
        assert sweep.space == {"kind": "grid", "axes": {"rate": [0.1, 0.01], "act": ["relu", "tanh"]}}
        assert (sweep.request["parameters"], sweep.members, sweep.purpose) == ({"width": 32}, 4, "what matters")
    assert client.get(answer["Location"]).status_code == 200


def test_ranges_are_drawn_from(laboratory: Laboratory) -> None:
    client = sign_in(laboratory)
    client.post(NEW, asked(act="launch", draws="7", draw_seed="5", **{"v.rate": "0.001..1 log", "v.width": "8..64"}))
    with laboratory.opened():
        axes = {"rate": {"low": 0.001, "high": 1, "scale": "log"}, "width": {"low": 8, "high": 64, "scale": "integer"}}
        assert Sweep.objects.get().space == {"kind": "sampler", "axes": axes, "count": 7, "seed": 5}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"v.width": "32, 65"}, "the most that is allowed"),
        ({"v.rate": "0.1, fast"}, "Write values with commas"),
        ({"v.rate": "0.1..1"}, "a range is for a sampler"),
        ({"v.rate": "0.1, 0.1"}, "names 0.1 twice"),
        ({"v.rate": "NaN, 1"}, "Write values with commas"),
        ({"seeds": "1, 2, 1"}, "Seed 1 stands twice"),
        ({"seeds": "1..100000"}, "not between 1 and 1,000"),
        ({"seeds": "one"}, "whole numbers"),
        ({}, "varies something"),
        ({"v.rate": ",".join(map(str, range(201)))}, "201 rate = 201 members"),
        ({"benchmark": "elsewhere", "v.rate": "1, 2"}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_is_told_and_nothing_is_lost(laboratory: Laboratory, given: dict[str, str], words: str) -> None:
    answer = sign_in(laboratory).post(NEW, asked(act="launch", reason="kept words", **given))
    page = answer.content.decode()
    assert answer.status_code in (409, 422)
    assert words in page
    assert "kept words" in page
    with laboratory.opened():
        assert not Sweep.objects.exists()


def test_the_page_ranks_members_and_shows_what_was_varied(laboratory: Laboratory) -> None:
    client = sign_in(laboratory)
    client.post(NEW, asked(act="launch", name="<b>first</b>", **{"v.rate": "0.1, 0.01", "v.width": "32, 64"}))
    advance_sweep(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    with laboratory.opened():
        sweep = Sweep.objects.get()
        runs = list(Run.objects.order_by("sweep_member"))
        score_runs(actor=laboratory.owner, scores={runs[0]: (0.7, 0.01), runs[2]: (0.9, 0.02), runs[3]: (float("nan"), None)})
        add_series(runs[1], "loss", [1.0, 0.5])
    page = client.get(f"/workspaces/lab/sweeps/{sweep.public_id}/").content.decode()
    assert "&lt;b&gt;first" in page
    assert "<b>first" not in page
    places = [page.index(f"{run.public_id}/") for run in (runs[2], runs[0])]
    assert places == sorted(places)
    assert page.count("parallel-line") == 4
    by_loss = client.get(f"/workspaces/lab/sweeps/{sweep.public_id}/?by=loss").content.decode()
    for shown in (page, by_loss):
        assert re.search(r"Best accuracy.{0,300}0\.90", shown, re.DOTALL), "what orders the table says nothing about the best score"
    assert ('?by=loss"' in page, "by=loss&amp;best=high" in by_loss) == (True, True)
    assert by_loss.index(runs[1].public_id) < by_loss.index(runs[0].public_id), "a loss is better low without being told"
    compared = re.findall(r'name="run" value="([^"]+)"', by_loss)
    assert compared[:2] == [runs[1].public_id, runs[0].public_id], "a comparison takes the members in the table's order"
    side_by_side = client.get("/workspaces/lab/runs/compare/", {"run": compared}).content.decode()
    assert all(run.public_id in side_by_side for run in runs)
    text = b"".join(client.get(f"/workspaces/lab/sweeps/{sweep.public_id}/csv/")).decode()
    assert text.splitlines()[0] == "member,run,state,rate,width,accuracy,standard error,loss,GPU ms spent"
    assert [line.split(",")[0] for line in text.splitlines()[1:]] == ["3", "1", "2", "4"]


def test_a_sweep_by_api_is_asked_for_watched_and_stopped(laboratory: Laboratory) -> None:
    _, secret = make_token(laboratory.workspace, laboratory.owner, "run:write")
    headers = {"Authorization": f"Bearer {secret}"}
    client = Client(headers=headers)
    base = "/api/v1/workspaces/lab/sweeps"
    body = {"benchmark_id": "accuracy", "agent_id": "sweeper", "dataset_ids": ["table"], "budget": {"gpu_hours": 0.5}, "reason": "by script",
            "space": {"kind": "grid", "axes": {"rate": [0.1, 0.01]}, "seeds": [1, 2]}}  # fmt: skip
    made = client.post(base, json.dumps(body), content_type="application/json", headers={"Idempotency-Key": "one"})
    again = client.post(base, json.dumps(body), content_type="application/json", headers={"Idempotency-Key": "one"})
    assert (made.status_code, again.json()["id"]) == (201, made.json()["id"])
    assert made.json()["members"] == "2 rate × 2 seeds"
    advance_sweep(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    with laboratory.opened():
        score_runs(actor=laboratory.owner, scores={Run.objects.get(sweep_member=3): (0.9, 0.02)})
    members = client.get(f"{base}/{made.json()['id']}/members").json()
    assert [(row["member"], row["parameters"]) for row in members["items"]][:2] == [
        (3, {"rate": 0.01, "seed": 1}),
        (1, {"rate": 0.1, "seed": 1}),
    ]
    assert client.get(f"{base}/{made.json()['id']}").json()["progress"]["launched"] == 4
    stopped = client.post(f"{base}/{made.json()['id']}/stop", json.dumps({"reason": "enough"}), content_type="application/json")
    assert (stopped.status_code, stopped.json()["status"]) == (200, "stopped")
    refused = client.post(base, json.dumps(body | {"space": {"kind": "grid", "axes": {"rate": []}}}), content_type="application/json")
    assert (refused.status_code, "no value" in refused.text) == (422, True)
    assert client.get(base).json()["items"][0]["id"] == made.json()["id"]


def test_a_sweep_of_another_workspace_is_missing(laboratory: Laboratory) -> None:
    client = sign_in(laboratory)
    client.post(NEW, asked(act="launch", **{"v.rate": "0.1, 0.01"}))
    with laboratory.opened():
        sweep = Sweep.objects.get().public_id
    _, owner = make_workspace("other")
    stranger = Client()
    assert owner.user
    stranger.force_login(owner.user)
    assert stranger.get(f"/workspaces/other/sweeps/{sweep}/").status_code == 404
    viewer = make_member(laboratory.workspace, "viewer", "vera")
    assert viewer.user
    client.force_login(viewer.user)
    assert client.get(f"/workspaces/lab/sweeps/{sweep}/").status_code == 200
    assert client.get(NEW).status_code == 403
    assert client.post(f"/workspaces/lab/sweeps/{sweep}/stop/").status_code == 403


def test_budget_of_each_member_is_reserved_when_it_is_launched(laboratory: Laboratory) -> None:
    sign_in(laboratory).post(NEW, asked(act="launch", **{"v.rate": "0.1, 0.01"}))
    advance_sweep(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    with laboratory.opened():
        assert sum(run.reserved_gpu_ms for run in Run.objects.all()) == 2 * HOUR // 2


@pytest.mark.parametrize("address", ["/workspaces/lab/runs/launch/", NEW])
def test_a_character_that_no_name_has_names_no_agent(laboratory: Laboratory, address: str) -> None:
    answer = sign_in(laboratory).post(address, asked(act="launch", agent="a\x00b"))
    assert answer.status_code == 422


@pytest.mark.parametrize(("address", "model"), [("/workspaces/lab/runs/launch/", Run), (NEW, Sweep)])
def test_a_form_that_is_sent_twice_makes_one_thing(laboratory: Laboratory, address: str, model: Any) -> None:
    client = sign_in(laboratory)
    found = re.search(r'name="once" value="([0-9a-f]{32})"', client.get(address).content.decode())
    assert found
    sent = asked(act="launch", once=found[1], **{"v.rate": "0.1, 0.2"})
    answers = [client.post(address, sent) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 303]
    assert answers[0]["Location"] == answers[1]["Location"]
    with laboratory.opened():
        assert model.objects.count() == 1
    changed = client.post(address, sent | {"reason": "gone back to, and changed"})
    assert changed["Location"] != answers[0]["Location"]


@pytest.mark.parametrize(("address", "model"), [("/workspaces/lab/runs/launch/", Run), (NEW, Sweep)])
def test_a_draft_launches_nothing_whatever_it_carries(laboratory: Laboratory, address: str, model: Any) -> None:
    drafted = sign_in(laboratory).post(address, asked(act="launch", **{"v.rate": "0.1, 0.2"}), headers={"hx-request": "true"})
    assert drafted.status_code == 200
    with laboratory.opened():
        assert not model.objects.exists()


def test_a_stopped_sweep_is_watched_until_its_last_member_has_ended_and_members_lead_back(laboratory: Laboratory) -> None:
    client = sign_in(laboratory)
    client.post(NEW, asked(act="launch", name="lr", **{"v.rate": "0.1, 0.2"}))
    advance_sweep(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    with laboratory.opened():
        sweep, runs = Sweep.objects.get(), list(Run.objects.order_by("sweep_member"))
        stop(actor=laboratory.owner, sweep=sweep)
        address = f"/workspaces/lab/sweeps/{sweep.public_id}/"
    assert "data-live" in client.get(address).content.decode()
    facts = client.get(f"/workspaces/lab/runs/{runs[1].public_id}/").content.decode()
    assert "Member 2 of the sweep" in facts
    assert address in facts
    with laboratory.opened():
        for run in runs:
            cancel(actor=laboratory.owner, run=run)
    assert "data-live" not in client.get(address).content.decode()


def test_a_draft_is_not_complained_about(laboratory: Laboratory) -> None:
    client = sign_in(laboratory)
    for given in ({"agent": "sweeper"}, {"agent": "sweeper", "benchmark": "accuracy"}):
        answer = client.post(NEW, given)
        page = answer.content.decode()
        assert answer.status_code == 200
        for complaint in ("This field is required", "varies something", 'aria-invalid="true"'):
            assert complaint not in page
    assert "varies something" in client.post(NEW, asked(act="check")).content.decode()


def test_of_many_members_the_best_are_shown_whichever_they_are(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = laboratory.owner
    with laboratory.opened():
        request = LaunchRequest(benchmark="accuracy", agent="sweeper", datasets=("table",), gpu_ms=HOUR // 2)
        sweep = create_sweep(actor=owner, name="wide", space={"kind": "grid", "axes": {"width": [*range(8)]}}, request=request)
        runs = copy_runs(actor=owner, pattern=launch(laboratory, agent="sweeper"), count=8)
        number_members(actor=owner, sweep=sweep, runs=runs)
        scores = {2: 0.3, 5: 0.4, 7: 0.9, 8: float("nan")}
        score_runs(actor=owner, scores={runs[number - 1]: (value, None) for number, value in scores.items()})
        for number, loss in ((3, 0.2), (4, float("inf")), (6, 0.1), (7, 0.5)):
            add_series(runs[number - 1], "loss", [loss])
        assert [row.number for row in table_of(sweep, most=3).rows] == [7, 5, 2]
        assert [row.number for row in table_of(sweep, most=4).rows] == [7, 5, 2, 1]  # a member without a score fills up, NaN is none
        assert [row.number for row in table_of(sweep, most=2, best="low").rows] == [2, 5]
        assert [row.number for row in table_of(sweep, most=3, by="loss").rows] == [6, 3, 7]
        assert [row.number for row in table_of(sweep, most=2, by="loss", best="high").rows] == [7, 3]
    monkeypatch.setattr(sweep_views, "MEMBERS_SHOWN", 3)
    page = sign_in(laboratory).get(f"/workspaces/lab/sweeps/{sweep.public_id}/").content.decode()
    assert "The best 3 of 8 members, by accuracy; the CSV has all" in page
