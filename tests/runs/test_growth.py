"""A run adds to a live dataset by saying so; what it lies about is named and breaks nothing."""

import pytest

from runs.models import Run
from tests.factories_people import signed_in
from tests.factories_runs import HOUR, drive, launch, make_laboratory
from workspaces.commands.dataset import create_dataset
from workspaces.commands.live_dataset import make_live
from workspaces.models import AuditEvent, Dataset, DatasetPiece, DatasetVersion, EventPayload

pytestmark = pytest.mark.django_db(transaction=True)

CODE = b"""
import json
def tell(**body):
    with open("../events.jsonl", "a") as lines:
        lines.write(json.dumps(body) + "\\n")
for game in range(3):
    with open(f"../outputs/game-{game}.sgf", "w") as file:
        file.write(f"(;GM[1]C[{game}])")
    tell(type="dataset", path=f"outputs/game-{game}.sgf", name="ds_self_play", records=game + 1)
tell(type="dataset", path="never-written.sgf", name="self-play", records=5)
tell(type="dataset", path="game-0.sgf", name="table", records=5)
tell(type="dataset", path="game-0.sgf", name="elsewhere", records=5)
tell(type="done", status="ok")
"""


def test_what_a_run_makes_for_a_live_dataset_waits_for_its_next_window() -> None:
    laboratory = make_laboratory(code=CODE)
    with laboratory.opened():
        dataset = create_dataset(actor=laboratory.owner, slug="self-play", name="Self-play", origin=Dataset.Origin.SELF_PLAY)
        make_live(actor=laboratory.owner, dataset=dataset, window_records=5)
        first = launch(laboratory, gpu_ms=HOUR)
    drive(laboratory, first)
    with laboratory.opened():
        run = Run.objects.get(pk=first.pk)
        assert run.status == "succeeded"
        pieces = list(DatasetPiece.objects.select_related("window").order_by("number"))
        assert [(piece.path, piece.records, piece.made_by_run_id) for piece in pieces] == [
            ("game-0.sgf", 1, run.pk), ("game-1.sgf", 2, run.pk), ("game-2.sgf", 3, run.pk),
        ]  # fmt: skip
        assert {piece.window.slug for piece in pieces if piece.window} == {"self-play-window-1"}
        assert DatasetVersion.objects.get(dataset__slug="self-play-window-1").records == 6
        event = AuditEvent.objects.get(verb="run.ended")
        said = EventPayload.objects.get(event=event).body["details"]
        assert said["grown"] == [{"dataset": "self-play", "pieces": 3, "records": 6}]
        assert sorted(line.split(":")[0] for line in said["not_added_to_datasets"]) == ["elsewhere", "never-written.sgf", "table"]


LIAR = b"""
import json
def tell(name, content, **said):
    with open(f"../outputs/{name}", "w") as file:
        file.write(content)
    with open("../events.jsonl", "a") as lines:
        lines.write(json.dumps({"type": "dataset", "path": f"outputs/{name}", "name": "grown", **said}) + "\\n")
tell("many.jsonl", "{}\\n" * 40, records=1)
tell("header.csv", "a,b\\n1,2\\n3,4\\n", records=900)
tell("bare.csv", "1,2\\n3,4\\n", records=2)
tell("silent.csv", "a,b\\n1,2\\n")
tell("game.sgf", "(;GM[1])", records=7)
"""


def test_records_are_counted_where_the_file_tells_them_and_else_are_said_to_be_the_runs_word() -> None:
    laboratory = make_laboratory(code=LIAR)
    with laboratory.opened():
        dataset = create_dataset(actor=laboratory.owner, slug="grown", name="Grown", origin=Dataset.Origin.SELF_PLAY)
        make_live(actor=laboratory.owner, dataset=dataset, window_records=50, records_a_day=45)
        first = launch(laboratory, gpu_ms=HOUR)
    drive(laboratory, first)
    with laboratory.opened():
        assert Run.objects.get(pk=first.pk).status == "succeeded"
        pieces = list(DatasetPiece.objects.order_by("number").values_list("path", "records", "is_counted"))
        assert pieces == [
            ("many.jsonl", 40, True), ("header.csv", 2, True), ("bare.csv", 2, True), ("silent.csv", 1, True), ("game.sgf", 7, False),
        ]  # fmt: skip
        assert DatasetVersion.objects.get(dataset__slug="grown-window-1").records == 52, "cut by what was counted"
        said = EventPayload.objects.get(event=AuditEvent.objects.get(verb="run.ended")).body["details"]
        assert said["records_said_and_counted"] == {"many.jsonl": [1, 40], "header.csv": [900, 2]}
    client = signed_in(laboratory.owner)
    page = client.get("/workspaces/lab/datasets/grown/").content.decode()
    assert "5 pieces; 7 as runs said" in page and "too fast" in page
    assert "7 as runs said" in client.get("/workspaces/lab/datasets/grown-window-1/").content.decode()
    items = client.get("/api/v1/workspaces/lab/datasets/grown/pieces").json()["items"]
    assert [(item["path"], item["is_counted"]) for item in items if not item["is_counted"]] == [("game.sgf", False)]
