"""Where there are two regions, a workspace chooses one as it is created; its files lie there, and it stays."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs.place import place_in
from tests.factories import make_user, make_workspace, scope
from tests.factories_people import signed_in
from workspaces.access import Actor, SiteRole
from workspaces.models import Blob, Engine, Pool, Workspace

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture
def regions(settings: Any, tmp_path: Path) -> dict[str, Path]:
    settings.LABSITE_REGIONS = {"local": tmp_path / "local", "eu": tmp_path / "eu"}
    return dict(settings.LABSITE_REGIONS)


@pytest.fixture
def creator(regions: dict[str, Path]) -> Client:
    client = signed_in(Actor.of(make_user("carla", SiteRole.CREATE_WORKSPACE)))
    client.post("/workspaces/new/", {"name": "Lab", "slug": "lab"})
    return client


def upload(client: Client) -> None:
    datasets = "/api/v1/workspaces/lab/datasets"
    assert client.post(datasets, json.dumps({"slug": "table"}), content_type=JSON).status_code == 201
    answer = client.post(f"{datasets}/table/versions?role=train&path=a.csv", b"a\n1\n", content_type="text/csv")
    assert answer.status_code == 201, answer.content


def test_the_region_is_chosen_among_all_and_every_file_lies_under_its_root(creator: Client, regions: dict[str, Path]) -> None:
    page = creator.get("/workspaces/lab/setup/").content.decode()
    assert '<option value="eu"' in page
    assert '<option value="local"' in page
    assert creator.post("/workspaces/lab/settings/region/", {"region": "eu"}).status_code == 303
    upload(creator)
    workspace = Workspace.objects.get()
    with scope.open_workspace(workspace.pk):
        (blob,) = Blob.objects.all()
    assert blob.region == "eu"
    found = [path.relative_to(regions["eu"]) for path in regions["eu"].rglob("*") if path.is_file()]
    assert found == [Path(workspace.pk.hex, "blobs", blob.sha256[:2], blob.sha256)]
    assert not list(regions["local"].rglob("*"))


@pytest.mark.parametrize("asking", ["settings", "setup"])
def test_another_region_is_refused_and_the_page_says_why(creator: Client, asking: str) -> None:
    creator.post("/workspaces/lab/settings/region/", {"region": "eu"})
    upload(creator)
    answer = creator.post("/workspaces/lab/settings/region/", {"region": "local", "from": asking})
    assert answer.status_code == 409
    assert "The region was chosen as eu when the workspace was created, and stays." in answer.content.decode()
    assert Workspace.objects.get().region == "eu"
    patched = creator.patch("/api/v1/workspaces/lab", json.dumps({"region": "local"}), content_type=JSON)
    assert (patched.status_code, Workspace.objects.get().region) == (409, "eu")
    same = creator.patch("/api/v1/workspaces/lab", json.dumps({"region": "eu"}), content_type=JSON)
    assert same.status_code == 200


def test_a_region_that_is_not_there_is_refused(creator: Client) -> None:
    patched = creator.patch("/api/v1/workspaces/lab", json.dumps({"region": "us"}), content_type=JSON)
    assert patched.status_code == 422
    assert "There is no region us; there are eu, local." in patched.content.decode()


def test_no_run_sees_a_region_outside_the_data_folder(settings: Any, regions: dict[str, Path]) -> None:
    workspace, _ = make_workspace("lab", region="eu")
    with scope.open_workspace(workspace.pk):
        pool = Pool(slug="here", engine=Engine(slug="local", kind=Engine.Kind.LOCAL))
        hidden = set(getattr(place_in(pool, "none"), "_hidden"))
    assert {regions["eu"], regions["local"], settings.LABSITE_HOME} <= hidden
