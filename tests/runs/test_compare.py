"""Runs side by side: only what differs unless asked, values that nobody can mistake, and runs of others are missing."""

import pytest
from django.test import Client

from runs.models import Run
from tests.factories import make_workspace
from tests.factories_pages import add_series, score_runs
from tests.factories_registry import make_agent_version
from tests.factories_runs import HOUR, Laboratory, launch, make_laboratory

pytestmark = pytest.mark.django_db(transaction=True)

SCHEMA = {"type": "object", "properties": {"rate": {"type": "number"}, "note": {"type": "string"}, "width": {"type": "integer"}}}
COMPARE = "/workspaces/lab/runs/compare/"


@pytest.fixture
def pair() -> tuple[Laboratory, list[Run]]:
    laboratory = make_laboratory()
    with laboratory.opened():
        make_agent_version(laboratory.owner, slug="tuned", parameter_schema=SCHEMA, wall_seconds=60)
        runs = [
            launch(laboratory, agent="tuned", gpu_ms=HOUR, name=f"<i>{rate}</i>", parameters={"rate": rate, "width": 32, **more}, seed=7)
            for rate, more in ((0.1, {}), (0.01, {"note": "<script>alert(1)</script>"}))
        ]
        score_runs(actor=laboratory.owner, scores={runs[0]: (0.8, 0.01)})
        for run, values in zip(runs, ([1.0, 0.5], [1.0, 0.25]), strict=True):
            add_series(run, "loss", values)
    return laboratory, runs


def sign_in(laboratory: Laboratory) -> Client:
    client = Client()
    assert laboratory.owner.user
    client.force_login(laboratory.owner.user)
    return client


def test_only_what_differs_is_shown_unless_everything_is_asked_for(pair: tuple[Laboratory, list[Run]]) -> None:
    laboratory, runs = pair
    client, asked = sign_in(laboratory), {"run": [run.public_id for run in runs]}
    page = client.get(COMPARE, asked).content.decode()
    assert "2 runs side by side" in page
    for differs in ("rate", "note", "0.01", "&lt;script&gt;alert(1)"):
        assert differs in page
    for same in (">width<", "Isolation", ">Seed<"):
        assert same not in page
    assert "<script>alert" not in page
    assert "<i>0.1" not in page
    everything = client.get(COMPARE, asked | {"all": "1"}).content.decode()
    for same in (">width<", "Isolation", ">Seed<"):
        assert same in everything
    assert page.count("data-series") == 2  # the loss of both, in one chart


def test_the_file_holds_what_the_page_shows(pair: tuple[Laboratory, list[Run]]) -> None:
    laboratory, runs = pair
    text = b"".join(sign_in(laboratory).get(f"{COMPARE}csv/", {"run": [run.public_id for run in runs]})).decode()
    lines = text.splitlines()
    assert lines[0] == f"section,name,{runs[0].public_id},{runs[1].public_id}"
    assert lines[1] == "score,,0.8,"
    assert "Parameters,rate,0.1,0.01" in lines
    assert "Last value of each metric,loss,0.5,0.25" in lines
    assert not [line for line in lines if "width" in line]


def test_a_run_that_is_not_here_is_missing_and_none_is_an_invitation(pair: tuple[Laboratory, list[Run]]) -> None:
    laboratory, runs = pair
    _, stranger = make_workspace("other")
    client = Client()
    assert stranger.user
    client.force_login(stranger.user)
    assert client.get("/workspaces/other/runs/compare/", {"run": runs[0].public_id}).status_code == 404
    assert sign_in(laboratory).get(COMPARE, {"run": "run_" + "0" * 32}).status_code == 404
    assert "Choose runs" in sign_in(laboratory).get(COMPARE).content.decode()


def test_the_list_offers_to_compare(pair: tuple[Laboratory, list[Run]]) -> None:
    laboratory, runs = pair
    page = sign_in(laboratory).get("/workspaces/lab/runs/").content.decode()
    assert page.count('name="run"') == 2
    assert f'value="{runs[0].public_id}"' in page


def test_the_file_of_one_run_holds_everything_and_spells_what_is_no_number(pair: tuple[Laboratory, list[Run]]) -> None:
    laboratory, runs = pair
    with laboratory.opened():
        score_runs(actor=laboratory.owner, scores={runs[1]: (float("-inf"), None)})
    text = b"".join(sign_in(laboratory).get(f"{COMPARE}csv/", {"run": [runs[1].public_id]})).decode()
    lines = text.splitlines()
    assert lines[1] == "score,,'-Infinity"
    assert "Parameters,width,32" in lines
