"""A storage limit and what a run has made: collected up to the limit, said, and the rest once there is room."""

import pytest

from runs.commands.withdrawal import withdraw
from runs.models import Artifact, Attempt, Run, Watch
from runs.queries.withdrawal import find_subject
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from tests.runs.ended import collect_late
from workspaces.commands.blob import stored_bytes
from workspaces.commands.dataset import create_dataset
from workspaces.commands.limit import set_limit
from workspaces.commands.live_dataset import make_live
from workspaces.models import Dataset, DatasetPiece, Limit, Unit, WithdrawnObject
from workspaces.queries.growth import waiting

CODE = b"for name in ('a', 'b'):\n    open(f'../outputs/{name}.bin', 'wb').write(b'x' * 600_000 + name.encode())\n"


def limit_storage(laboratory: Laboratory, amount: int) -> None:
    set_limit(
        actor=laboratory.owner, unit=Unit.STORAGE_BYTES, window=Limit.Window.NOW, mode=Limit.Mode.STOP, amount=amount, reason="as agreed"
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.pool
def test_outputs_are_collected_up_to_the_storage_limit_and_the_rest_once_there_is_room() -> None:
    laboratory = make_laboratory(code=CODE)
    with laboratory.opened():
        run, used = launch(laboratory), stored_bytes()
        limit_storage(laboratory, used + 1_000_000)
    drive(laboratory, run)
    with laboratory.opened():
        run.refresh_from_db()
        assert run.status == "succeeded"
        assert "no room for 1 file of 600 kB" in run.reason
        assert Artifact.objects.filter(run=run, path__endswith=".bin").count() == 1
        limit_storage(laboratory, used + 10**9)
        attempt = Attempt.objects.get(run=run)
        Watch.objects.update(lease_until=None)  # it is tried again after a while: now
    collect_late(laboratory, attempt)
    with laboratory.opened():
        run.refresh_from_db()
        assert Artifact.objects.filter(run=run, path__endswith=".bin").count() == 2
        assert "Some of its outputs were collected later" in run.reason


GAMES = (
    CODE
    + b"""
import json
with open('../events.jsonl', 'a') as lines:
    for name in ('a', 'b'):
        lines.write(json.dumps({'type': 'dataset', 'path': f'outputs/{name}.bin', 'name': 'games', 'records': 4}) + chr(10))
"""
)


def played(laboratory: Laboratory) -> Run:
    """A run whose second file for a live dataset has no room as it ends; then there is room again."""
    with laboratory.opened():
        make_live(actor=laboratory.owner, dataset=create_dataset(actor=laboratory.owner, slug="games"))
        run, used = launch(laboratory), stored_bytes()
        limit_storage(laboratory, used + 1_000_000)
    drive(laboratory, run)
    with laboratory.opened():
        assert [piece.path for piece in DatasetPiece.objects.all()] == ["a.bin"]
        limit_storage(laboratory, used + 10**9)
        Watch.objects.update(lease_until=None)
        return Run.objects.get(pk=run.pk)


@pytest.mark.django_db(transaction=True)
@pytest.mark.pool
def test_what_a_run_made_for_a_live_dataset_is_added_once_there_is_room() -> None:
    laboratory = make_laboratory(code=GAMES)
    run = played(laboratory)
    with laboratory.opened():
        attempt = Attempt.objects.get(run=run)
    for _ in range(2):
        collect_late(laboratory, attempt)
        with laboratory.opened():
            Watch.objects.update(lease_until=None, observed=Watch.FOLDER_KEPT)  # once more adds nothing twice
            pieces = DatasetPiece.objects.order_by("number")
            made = {row.path: row.pk for row in Artifact.objects.filter(run=run)}
            assert [(piece.path, piece.records, piece.source_artifact_id) for piece in pieces] == [
                ("a.bin", 4, made["a.bin"]), ("b.bin", 4, made["b.bin"]),
            ]  # fmt: skip


@pytest.mark.django_db(transaction=True)
@pytest.mark.pool
def test_what_comes_later_of_a_withdrawn_run_is_withdrawn_and_waits_for_no_window() -> None:
    laboratory = make_laboratory(code=GAMES)
    run = played(laboratory)
    with laboratory.opened():
        node, label = find_subject("run", run.pk.hex)
        withdraw(actor=laboratory.owner, subject=node, label=label, reason="A broken engine.")
        attempt = Attempt.objects.get(run=run)
    collect_late(laboratory, attempt)
    with laboratory.opened():
        late = DatasetPiece.objects.get(path="b.bin")
        assert late.source_artifact_id is not None
        assert WithdrawnObject.objects.filter(object_id=late.source_artifact_id).count() == 1
        assert not waiting(Dataset.objects.get(slug="games")).exists()
