"""Pages of benchmarks, datasets and agents: they render empty, declared and filled, take hostile text as text, and save by form."""

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils.html import escape

from tests.factories import Role, make_member, make_workspace, scope
from tests.factories_registry import make_agent_version, make_benchmark, make_dataset_version
from workspaces.access import Actor
from workspaces.agent_inputs import Need, needs_from
from workspaces.commands.agent import create_agent
from workspaces.commands.benchmark import create_benchmark
from workspaces.commands.dataset import create_dataset
from workspaces.models import AgentVersion, Benchmark, Dataset, DatasetVersion, Workspace

pytestmark = pytest.mark.django_db
BASE = "/workspaces/lab/"
HOSTILE = "<script>alert(1)</script> \u202eשלום 漢字 " + "x" * 150


@pytest.fixture
def lab(settings: Any, tmp_path: Path, client: Client) -> tuple[Workspace, Actor, Client]:
    settings.LABSITE_REGIONS = {"local": tmp_path}
    workspace, actor = make_workspace("lab", region="local")
    assert actor.user is not None
    client.force_login(actor.user)
    return workspace, actor, client


@pytest.mark.parametrize("noun", ["benchmarks", "datasets", "agents"])
def test_empty_lists_say_the_next_step(lab: tuple[Workspace, Actor, Client], noun: str) -> None:
    workspace, _, client = lab
    page = client.get(f"{BASE}{noun}/").content.decode()
    assert f"{BASE}{noun}/new/" in page
    viewer = make_member(workspace, Role.VIEWER)
    assert viewer.user is not None
    client.force_login(viewer.user)
    answer = client.get(f"{BASE}{noun}/")
    assert answer.status_code == 200
    assert f"{BASE}{noun}/new/" not in answer.content.decode()
    assert client.get(f"{BASE}{noun}/new/").status_code == 403


def test_declared_things_say_so(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, actor, client = lab
    with scope.open_workspace(workspace.pk):
        create_benchmark(actor=actor, slug="one")
        create_dataset(actor=actor, slug="one")
        create_agent(actor=actor, slug="one")
    for noun in ("benchmarks", "datasets", "agents"):
        assert "not yet defined" in client.get(f"{BASE}{noun}/").content.decode()
        assert "Declared, not yet defined" in client.get(f"{BASE}{noun}/one/").content.decode()
        assert client.get(f"{BASE}{noun}/two/").status_code == 404


def test_hostile_text_stays_text(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, actor, client = lab
    with scope.open_workspace(workspace.pk):
        held = make_dataset_version(actor, "one", role="holdout")
        create_benchmark(
            actor=actor,
            slug="one",
            name=HOSTILE,
            description=HOSTILE,
            contract={"metric": HOSTILE, "direction": "minimize", "terms": HOSTILE, "holdout": held},
        )
        create_dataset(actor=actor, slug="two", name=HOSTILE, description=HOSTILE, evidence=HOSTILE)
        make_agent_version(actor, "one", environment={"NOTE": HOSTILE})
        create_agent(actor=actor, slug="two", name=HOSTILE, description=HOSTILE, part="<b>")
    paths = [f"{noun}/{tail}" for noun in ("benchmarks", "datasets", "agents") for tail in ("", "one/", "one/edit/")]
    paths += ["datasets/two/", "agents/two/", "benchmarks/one/contracts/new/", "datasets/one/upload/", "agents/one/versions/new/"]
    for path in paths:
        answer = client.get(f"{BASE}{path}")
        assert answer.status_code == 200, path
        page = answer.content.decode()
        assert "<script>alert" not in page
        assert "<b>" not in page
    assert escape(HOSTILE) in client.get(f"{BASE}benchmarks/one/").content.decode()


def test_filter_and_pages(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, actor, client = lab
    with scope.open_workspace(workspace.pk):
        for number in range(55):
            create_dataset(actor=actor, slug=f"set-{number:02}")
    first = client.get(f"{BASE}datasets/")
    assert first.content.decode().count("datasets/set-") == 50
    second = client.get(f"{BASE}datasets/", {"after": first.context["next_cursor"]}).content.decode()
    assert second.count("datasets/set-") == 5
    found = client.get(f"{BASE}datasets/", {"q": "T-07"}).content.decode()
    assert found.count("datasets/set-") == 1
    assert "No dataset here has this text" in client.get(f"{BASE}datasets/", {"q": "nothing"}).content.decode()


def test_benchmark_by_form(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, actor, client = lab
    with scope.open_workspace(workspace.pk):
        held = make_dataset_version(actor, "held", role="holdout")
    form = {"slug": "speed", "name": "Speed", "metric": "seconds", "direction": "minimize", "holdout": str(held.pk), "is_public": "on"}
    wrong = client.post(f"{BASE}benchmarks/new/", {**form, "metric": ""})
    assert wrong.status_code == 422
    assert 'value="Speed"' in wrong.content.decode()
    made = client.post(f"{BASE}benchmarks/new/", form)
    assert (made.status_code, made["Location"]) == (303, f"{BASE}benchmarks/speed/")
    taken = client.post(f"{BASE}benchmarks/new/", form)
    assert taken.status_code == 409
    assert "already" in taken.content.decode()
    again = client.post(f"{BASE}benchmarks/speed/contracts/new/", {"metric": "seconds", "direction": "minimize", "holdout": str(held.pk)})
    assert again.status_code == 409
    assert "version 1" in again.content.decode()
    assert client.post(f"{BASE}benchmarks/speed/edit/", {"name": "Faster"}).status_code == 303
    with scope.open_workspace(workspace.pk):
        benchmark = Benchmark.objects.get()
        assert (benchmark.name, benchmark.is_public, benchmark.contracts.count()) == ("Faster", False, 1)


def test_dataset_by_form_and_upload(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, _, client = lab
    assert client.post(f"{BASE}datasets/new/", {"slug": "table", "name": "Table", "origin": "external", "licence": "unknown"})[
        "Location"
    ].endswith("/table/upload/")
    address = f"{BASE}datasets/table/upload/"

    def form(*files: tuple[str, bytes], **more: str) -> dict[str, Any]:
        return {"role": "train", "has_header": "on", "file": [SimpleUploadedFile(name, content) for name, content in files], **more}

    answers = [
        client.post(address, form(("a.csv", b"h\n1\n"))),
        client.post(address, form(complete="1")),
        client.post(address, form(("a.csv", b""), complete="1")),
        client.post(address, form(("a.csv", b"1"), ("A.csv", b"2"), complete="1")),
    ]
    assert [answer.status_code for answer in answers] == [409, 422, 409, 409]
    assert "cut before its end" in answers[0].content.decode()
    assert "empty" in answers[2].content.decode()
    with scope.open_workspace(workspace.pk):
        assert not DatasetVersion.objects.exists()
    silent = client.post(address, form(("a.csv", b"h\n1\n"), complete="1"))
    assert silent.status_code == 409
    assert "names its source" in silent.content.decode()
    assert client.post(address, form(("a.csv", b"h\n1\n"), ("b.csv", b"h\n1\n2\n"), complete="1", source="UCI")).status_code == 303
    page = client.get(f"{BASE}datasets/table/").content.decode()
    assert "a.csv" in page
    assert "No run has read it yet" in page
    with scope.open_workspace(workspace.pk):
        assert Dataset.objects.get().versions.get().records == 3
    assert client.get(f"{BASE}datasets/table/?version=9").status_code == 404


def test_agent_version_by_form(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, _, client = lab
    assert client.post(f"{BASE}agents/new/", {"slug": "worker", "name": "Worker"})["Location"].endswith("/worker/versions/new/")
    address = f"{BASE}agents/worker/versions/new/"
    form = {
        "argv": "python\nmain.py\n",
        "bundle": [SimpleUploadedFile("main.py", b"print(1)")],
        "kind": "train",
        "parameter_schema": '{"type": "object", "properties": {"epochs": {"type": "integer"}}}',
        "inputs": "dataset train\nartifact model optional",
        "outputs": "model/*.json model",
        "environment": "MODE=fast",
        "slots": "1",
        "wall_seconds": "60",
        "memory_mebibytes": "512",
        "completion": "done",
        "complete": "1",
    }
    for changed in (
        {"parameter_schema": "{"},
        {"parameter_schema": "[" * 100_000},
        {"environment": "nothing"},
        {"slots": "NaN"},
        {"pools": "x"},
    ):
        assert client.post(address, {**form, **changed, "bundle": [SimpleUploadedFile("main.py", b"print(1)")]}).status_code == 422
    assert client.post(address, {**form, "bundle": [SimpleUploadedFile("main.py", b"print(1)")]}).status_code == 303
    with scope.open_workspace(workspace.pk):
        version = AgentVersion.objects.get()
        assert (version.argv, version.environment, version.memory_bytes) == (["python", "main.py"], {"MODE": "fast"}, 512 * 2**20)
        assert version.outputs == [{"glob": "model/*.json", "kind": "model"}]
        assert needs_from(version.inputs) == (Need("dataset", "train"), Need("artifact", "model", required=False))
    page = client.get(f"{BASE}agents/worker/").content.decode()
    assert "model/*.json" in page
    assert "epochs" in page


def test_foreign_ids_are_not_here(lab: tuple[Workspace, Actor, Client]) -> None:
    client = lab[2]
    other, stranger = make_workspace("other", region="local")
    with scope.open_workspace(other.pk):
        benchmark = make_benchmark(stranger, "theirs")
        version = make_dataset_version(stranger, "theirs")
        agent = make_agent_version(stranger, "theirs").agent
    missing = client.get(f"{BASE}benchmarks/nothing/").content
    for path in (
        f"benchmarks/{benchmark.pk}/",
        f"datasets/{version.dataset_id}/",
        f"datasets/{version.dataset_id}/versions/1/files/table.csv",
        f"agents/{agent.pk}/",
    ):
        answer = client.get(f"{BASE}{path}")
        assert (answer.status_code, len(answer.content)) == (404, len(missing))
