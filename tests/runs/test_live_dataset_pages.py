"""A live dataset in browser and API: how it grows, its windows, what a window was made by and looks like inside."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.commands.withdrawal import withdraw
from runs.models import Run
from runs.queries.home_growth import growing
from runs.queries.lineage import Node
from runs.queries.lineage_edges import NodeKind
from tests.factories import make_member
from tests.factories_people import make_token
from tests.factories_runs import HOUR, Laboratory, drive, launch, make_laboratory
from tests.runs.test_growth import CODE
from workspaces.commands.dataset import create_dataset
from workspaces.commands.live_dataset import cut_window, make_live
from workspaces.models import Dataset
from workspaces.queries.growth import growth_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def grown() -> tuple[Laboratory, Run]:
    laboratory = make_laboratory(code=CODE)
    with laboratory.opened():
        make_live(actor=laboratory.owner, dataset=create_dataset(actor=laboratory.owner, slug="self-play", name="Self-play <b>"))
        run = launch(laboratory, gpu_ms=HOUR, name="first games")
    return laboratory, drive(laboratory, run)


def sign_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_window_is_cut_by_form_and_leads_to_the_runs_that_made_it(grown: tuple[Laboratory, Run]) -> None:
    laboratory, run = grown
    client = sign_in(laboratory.owner.user)
    page = client.get("/workspaces/lab/datasets/self-play/").content.decode()
    assert "Self-play &lt;b&gt;" in page
    assert "3 pieces" in page
    assert "6 records wait in 3 pieces" in client.get("/workspaces/lab/datasets/self-play/windows/cut/").content.decode()
    refused = client.post("/workspaces/lab/datasets/self-play/windows/cut/", {"records": "7"})
    assert (refused.status_code, "6 records wait" in refused.content.decode()) == (409, True)
    made = client.post("/workspaces/lab/datasets/self-play/windows/cut/", {"reason": "enough"})
    assert (made.status_code, made["Location"]) == (303, "/workspaces/lab/datasets/self-play-window-1/")
    window = client.get(made["Location"]).content.decode()
    assert "first games" in window
    assert "GM[1]" in window  # the first file, as text
    assert "window 1 of" in window
    asked = client.get(made["Location"], {"version": "1", "file": "000002-game-1.sgf"}).content.decode()
    assert "C[1]" in asked
    assert client.get("/workspaces/lab/datasets/self-play/").content.decode().count("self-play-window-1") >= 1
    everything = client.get("/workspaces/lab/datasets/").content.decode()
    assert ("grows" in everything, "1 window<" in everything, "self-play-window-1" in everything) == (True, True, False)
    assert "self-play-window-1" in client.get("/workspaces/lab/datasets/", {"q": "window-1"}).content.decode()
    assert run.name == "first games"


def test_what_a_withdrawn_run_made_waits_for_no_window(grown: tuple[Laboratory, Run]) -> None:
    laboratory, run = grown
    client = sign_in(laboratory.owner.user)
    with laboratory.opened():
        withdraw(actor=laboratory.owner, subject=Node(NodeKind.RUN, run.pk), label=run.name, reason="Bad games.")
        (entry,) = growing(timezone.now() - timedelta(days=1), now=timezone.now(), zone="UTC")
        assert (entry.records, entry.waiting) == (6, 0)
        growth = growth_of(Dataset.objects.get(slug="self-play"), zone="UTC", today=timezone.now().date())
        assert (growth.total_records, growth.waiting_records, growth.waiting_pieces) == (6, 0, 0)
    assert "Nothing waits yet" in client.get("/workspaces/lab/datasets/self-play/windows/cut/").content.decode()
    refused = client.post("/workspaces/lab/datasets/self-play/windows/cut/", {"reason": "enough"})
    assert (refused.status_code, "Nothing has been added" in refused.content.decode()) == (409, True)


def test_the_newest_window_is_the_first_that_a_launch_offers_after_whole_datasets(grown: tuple[Laboratory, Run]) -> None:
    laboratory, _ = grown
    with laboratory.opened():
        for records in (1, 2, 3):
            cut_window(actor=laboratory.owner, dataset=Dataset.objects.get(slug="self-play"), records=records)
    page = sign_in(laboratory.owner.user).get("/workspaces/lab/runs/launch/").content.decode()
    offered = re.findall(r'name="datasets" value="([^"]+)"', page)
    assert offered == ["table", "self-play-window-3", "self-play-window-2", "self-play-window-1"]


def test_a_live_dataset_by_api(grown: tuple[Laboratory, Run]) -> None:
    laboratory, run = grown
    _, secret = make_token(laboratory.workspace, laboratory.owner, "dataset:write")
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    base = "/api/v1/workspaces/lab/datasets/ds_self_play"
    pieces = client.get(f"{base}/pieces").json()["items"]
    assert [(piece["number"], piece["records"], piece["made_by_run_id"], piece["window_id"]) for piece in pieces] == [
        (3, 3, run.public_id, None), (2, 2, run.public_id, None), (1, 1, run.public_id, None),
    ]  # fmt: skip
    made = client.post(f"{base}/windows", json.dumps({"records": 2}), content_type="application/json")
    assert (made.status_code, made.json()["id"], made.json()["version"]["records"]) == (201, "ds_self-play-window-1", 3)
    assert client.get(f"{base}/pieces").json()["items"][1]["window_id"] == "ds_self-play-window-1"
    changed = client.post(f"{base}/live", json.dumps({"window_records": 3}), content_type="application/json")
    assert changed.status_code == 200
    with laboratory.opened():
        assert Dataset.objects.get(slug="self-play").window_records == 3


def test_a_viewer_looks_and_cuts_nothing(grown: tuple[Laboratory, Run]) -> None:
    laboratory, _ = grown
    client = sign_in(make_member(laboratory.workspace, "viewer", "vera").user)
    assert client.get("/workspaces/lab/datasets/self-play/").status_code == 200
    assert client.post("/workspaces/lab/datasets/self-play/windows/cut/").status_code == 403
    assert client.post("/workspaces/lab/datasets/self-play/live/").status_code == 403
