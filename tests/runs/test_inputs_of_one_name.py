"""Inputs of one file name each have a place of their own, and where only one has a name it stands where it always stood."""

import json

import pytest

from runs.launch import LaunchRequest
from runs.models import Run, RunInput
from runs.queries.launch_request import prepare
from tests.factories_pages import add_artifact
from tests.factories_registry import make_dataset_version
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from tests.runs.attempts import content
from workspaces.audit import Refusal

LISTS = b"""
import json, pathlib
found = {str(path.relative_to("../inputs")): path.read_text() for path in sorted(pathlib.Path("../inputs").rglob("*")) if path.is_file()}
told = [one["slug"] for one in json.load(open("../job.json"))["inputs"]]
pathlib.Path("../outputs/found.json").write_text(json.dumps([found, told]))
"""
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory(code=LISTS)


def made_by(laboratory: Laboratory, run: Run, path: str, text: str) -> str:
    return add_artifact(actor=laboratory.owner, run=run, path=path, content=text.encode()).public_id


def slugs(*artifacts: str, datasets: tuple[str, ...] = ()) -> list[str]:
    request = LaunchRequest(benchmark="accuracy", agent="worker", datasets=datasets, artifacts=artifacts)
    return [entry.slug for entry in prepare(request).inputs]


def test_two_artifacts_of_one_name_are_both_read(laboratory: Laboratory) -> None:
    with laboratory.opened():
        first, second = launch(laboratory), launch(laboratory)
        pair = (made_by(laboratory, first, "model.bin", "one"), made_by(laboratory, second, "model.bin", "two"))
        run = launch(laboratory, artifacts=pair)
        assert list(RunInput.objects.filter(run=run).order_by("created_at").values_list("slug", flat=True)) == [
            "table", "model-bin", "model-bin-2",
        ]  # fmt: skip
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        found, told = json.loads(content(laboratory, run, "found.json"))
    assert (found["model-bin/model.bin"], found["model-bin-2/model.bin"]) == ("one", "two")
    assert told == ["table", "model-bin", "model-bin-2"]


def test_who_has_a_name_alone_keeps_its_place(laboratory: Laboratory) -> None:
    with laboratory.opened():
        runs = [launch(laboratory) for _ in range(3)]
        model, other, third = (made_by(laboratory, run, "model.bin", str(place)) for place, run in enumerate(runs))
        numbered = made_by(laboratory, runs[0], "model.bin.2", "2")
        long = [made_by(laboratory, run, "x" * 80, str(place)) for place, run in enumerate(runs[:2])]
        make_dataset_version(laboratory.owner, "model-bin")
        assert slugs(model, numbered) == ["model-bin", "model-bin-2"]
        assert slugs(model, other, numbered) == ["model-bin", "model-bin-3", "model-bin-2"]
        assert slugs(model, other, third) == ["model-bin", "model-bin-2", "model-bin-3"]
        assert slugs(model, datasets=("model-bin",)) == ["model-bin", "model-bin-2"], "agents know a dataset by its name"
        assert slugs(*long) == ["x" * 64, "x" * 62 + "-2"]
        with pytest.raises(Refusal, match="named twice"):
            slugs(model, other, model)
        with pytest.raises(Refusal, match="table is named twice"):
            slugs(datasets=("table", "table@1"))
