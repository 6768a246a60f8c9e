"""A dataset that grows faster than a person expects, or than its own windows say, is flagged; one of which nothing is known is not."""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import make_workspace, scope
from tests.factories_registry import stored
from workspaces.access import Actor
from workspaces.audit import Draft, command
from workspaces.commands.blob import keep_blobs
from workspaces.commands.dataset import create_dataset
from workspaces.commands.live_dataset import Piece, cut_window, grow, make_live
from workspaces.models import Dataset, Workspace
from workspaces.queries.expected_growth import Expected, expected_of
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db


@command(Verb.DATASET_CHANGED, needs=None, by_system=True)
def add(event: Draft, /, *, actor: Actor, dataset: Dataset, records: int, by: Actor) -> None:
    """As the command that ends a run does."""
    assert by.user is not None
    run = uuid.uuid4()
    file = stored("games.sgf", run.bytes)
    blob = keep_blobs(event, [file])[file.sha256]
    grow(event, dataset=dataset, pieces=[Piece("games.sgf", blob, records)], run_id=run, by=by.user)


Lab = tuple[Workspace, Actor, Client, Callable[[int], None]]


@pytest.fixture
def lab(settings: Any, tmp_path: Path, client: Client) -> Lab:
    settings.LABSITE_REGIONS = {"local": tmp_path}
    workspace, actor = make_workspace("lab", region="local")
    assert actor.user is not None
    client.force_login(actor.user)
    with scope.open_workspace(workspace.pk):
        dataset = create_dataset(actor=actor, slug="games")
        make_live(actor=actor, dataset=dataset)

    def came(records: int) -> None:
        add(actor=Actor.system(job_id="test"), dataset=Dataset.objects.get(slug="games"), records=records, by=actor)

    return workspace, actor, client, came


def expected(now: datetime | None = None) -> Expected:
    dataset = Dataset.objects.get(slug="games")
    return expected_of([dataset], now=now or timezone.now() + timedelta(seconds=1))[dataset.pk]


def test_what_a_person_expects_is_held_against_the_last_day(lab: Lab) -> None:
    workspace, actor, client, came = lab
    with scope.open_workspace(workspace.pk):
        came(100)
        assert expected() == Expected(None, is_said=False, last_day=100)
        assert not expected().is_exceeded
        make_live(actor=actor, dataset=Dataset.objects.get(slug="games"), records_a_day=100)
        assert not expected().is_exceeded
        came(1)
        assert expected() == Expected(100, is_said=True, last_day=101)
        assert expected().is_exceeded
        assert not expected(timezone.now() + timedelta(days=1, seconds=1)).is_exceeded
    page = " ".join(client.get("/workspaces/lab/datasets/games/").content.decode().split())
    assert "too fast" in page and "above the 100 expected" in page
    assert "grows too fast" in client.get("/workspaces/lab/datasets/").content.decode()
    assert "too fast" in client.get("/workspaces/lab/").content.decode()
    address = "/workspaces/lab/datasets/games/live/"
    assert client.post(address, {"records_a_day": "0"}).status_code == 422
    assert client.post(address, {"records_a_day": "1000"}).status_code == 303
    assert "too fast" not in client.get("/workspaces/lab/").content.decode()


def test_the_api_says_how_it_grows_and_of_what_a_window_is(lab: Lab) -> None:
    workspace, actor, client, came = lab
    api = "/api/v1/workspaces/lab/datasets"
    with scope.open_workspace(workspace.pk):
        came(100)
        make_live(actor=actor, dataset=Dataset.objects.get(slug="games"), window_records=500, records_a_day=99)
        window = cut_window(actor=actor, dataset=Dataset.objects.get(slug="games"))
        create_dataset(actor=actor, slug="still")
    growth = {"last_day": 100, "records_a_day": 99, "is_said": True, "is_exceeded": True}
    listed = {item["slug"]: item for item in client.get(api).json()["items"]}
    for found in (client.get(f"{api}/games").json(), listed["games"]):
        assert (found["is_live"], found["window_records"], found["records_a_day"], found["growth"]) == (True, 500, 99, growth)
    for found in (client.get(f"{api}/{window.slug}").json(), listed[window.slug]):
        assert (found["is_live"], found["window_of"], found["window_number"], found["growth"]) == (False, listed["games"]["id"], 1, None)
    assert (listed["still"]["is_live"], listed["still"]["window_of"], listed["still"]["growth"]) == (False, None, None)


def test_else_three_times_the_median_of_the_last_four_windows(lab: Lab) -> None:
    workspace, actor, client, came = lab
    with scope.open_workspace(workspace.pk):
        for records in (9_000, 1, 2, 4):
            came(records)
            cut_window(actor=actor, dataset=Dataset.objects.get(slug="games"))
        # Each was cut within the hour that counts at least: 9,000, 1, 2 and 4 records an hour have the median 3.
        assert expected().records_a_day == 3 * 3 * 24
        came(6)
        cut_window(actor=actor, dataset=Dataset.objects.get(slug="games"))
        assert expected().records_a_day == 3 * 3 * 24
        assert expected() == Expected(216, is_said=False, last_day=9_013)
        assert expected().is_exceeded
    for address in ("/workspaces/lab/datasets/games/", "/workspaces/lab/"):
        page = " ".join(client.get(address).content.decode().split())
        assert "above 216, three times its last windows" in page and "216 expected" not in page, "a bound is no expectation"


def test_fewer_windows_say_nothing(lab: Lab) -> None:
    workspace, actor, _, came = lab
    with scope.open_workspace(workspace.pk):
        for records in (9_000, 1, 2):
            came(records)
            cut_window(actor=actor, dataset=Dataset.objects.get(slug="games"))
        assert expected().records_a_day is None
