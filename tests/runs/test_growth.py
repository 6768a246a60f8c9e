"""A run adds to a live dataset by saying so; what it lies about is named and breaks nothing."""

import pytest

from runs.models import Run
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
