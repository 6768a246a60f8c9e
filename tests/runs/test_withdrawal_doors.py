"""What was withdrawn comes back by no other door: nothing new is made of it, and nothing measures on it."""

from typing import Any

import pytest

from runs.commands.artifact_dataset import import_artifact
from runs.commands.report import store_artifact
from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.models import Artifact, Run
from runs.queries.withdrawal import find_subject
from tests.factories_pages import add_artifact
from tests.factories_registry import make_dataset_version
from tests.factories_runs import HOUR, Laboratory, dispatch, drive, launch, make_laboratory
from tests.runs.attempts import WAITS, let_go
from tests.runs.story import make_story_laboratory
from workspaces.audit import Refusal
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import create_dataset
from workspaces.commands.live_dataset import cut_window, make_live
from workspaces.models import Benchmark, Contract, Dataset, DatasetVersion, Withdrawal
from workspaces.queries.chain import verify_chain
from workspaces.queries.growth import waiting_of
from workspaces.queries.registry import current_contract

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory()


def gone(laboratory: Laboratory, kind: str, text: str) -> Withdrawal:
    node, label = find_subject(kind, text)
    return withdraw(actor=laboratory.owner, subject=node, label=label, reason="Bad games.")


def test_no_version_is_made_of_an_artifact_that_rests_on_it(laboratory: Laboratory) -> None:
    with laboratory.opened():
        artifact = add_artifact(actor=laboratory.owner, run=launch(laboratory), path="games.csv", content=b"g\n1\n")
        games = create_dataset(actor=laboratory.owner, slug="games")
        withdrawal = gone(laboratory, "dataset_version", DatasetVersion.objects.get(dataset__slug="table").public_id)
        with pytest.raises(Refusal, match="rests on table@1, which was withdrawn: Bad games"):
            import_artifact(actor=laboratory.owner, dataset=games, artifact=artifact, role="train")
        assert not games.versions.exists()
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="Good.")
        assert (
            import_artifact(actor=laboratory.owner, dataset=games, artifact=Artifact.objects.get(pk=artifact.pk), role="train").number == 1
        )


def test_no_window_is_cut_of_a_file_that_is_withdrawn() -> None:
    laboratory = make_story_laboratory()
    with laboratory.opened():
        make_live(actor=laboratory.owner, dataset=Dataset.objects.get(slug="self-play"), window_records=None)
        run = launch(laboratory, gpu_ms=HOUR)
    drive(laboratory, run)
    with laboratory.opened():
        dataset = Dataset.objects.get(slug="self-play")
        withdrawal = gone(laboratory, "artifact", Artifact.objects.get(run=run, path="game-0.sgf").public_id)
        assert waiting_of(dataset) == (2, 1)
        first = cut_window(actor=laboratory.owner, dataset=dataset)
        assert [file.path for file in first.versions.get().files.all()] == ["000002-game-1.sgf"]
        with pytest.raises(Refusal, match="Nothing has been added"):
            cut_window(actor=laboratory.owner, dataset=dataset)
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="Good.")
        second = cut_window(actor=laboratory.owner, dataset=dataset)
        assert [file.path for file in second.versions.get().files.all()] == ["000001-game-0.sgf"]


def test_no_contract_measures_on_it(laboratory: Laboratory) -> None:
    with laboratory.opened():
        unseen = make_dataset_version(laboratory.owner, "unseen", role="holdout")
        withdrawal = gone(laboratory, "dataset_version", unseen.public_id)
        benchmark = Benchmark.objects.get()
        said: dict[str, Any] = {"metric": "accuracy", "direction": "maximize", "holdout": unseen, "accepts_no_isolation_reason": "A test."}
        before = Contract.objects.count()
        with pytest.raises(Refusal, match="unseen@1, which the holdout rests on, was withdrawn: Bad games"):
            publish_contract(actor=laboratory.owner, benchmark=benchmark, **said)
        assert Contract.objects.count() == before
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="Good.")
        publish_contract(actor=laboratory.owner, benchmark=benchmark, **said)
        contract = current_contract(benchmark.pk)
        assert contract is not None
        assert contract.holdout == unseen
        gone(laboratory, "dataset_version", unseen.public_id)
        with pytest.raises(Refusal, match="withdrawn"):
            launch(laboratory)


def test_what_a_run_sends_while_it_runs_is_marked_as_it_comes() -> None:
    laboratory = make_laboratory(code=WAITS)
    with laboratory.opened():
        run = launch(laboratory)
    dispatch(laboratory)
    with laboratory.opened():
        before = send(laboratory, run, "before.bin")
        withdrawal = gone(laboratory, "dataset_version", DatasetVersion.objects.get(dataset__slug="table").public_id)
        after = send(laboratory, run, "after.bin")
        make_dataset_version(laboratory.owner, "other")
        for artifact in (before, after):
            with pytest.raises(Refusal, match="was withdrawn"):
                launch(laboratory, datasets=("other",), artifacts=(artifact.public_id,))
    let_go(laboratory, run)
    drive(laboratory, run)
    with laboratory.opened():
        assert withdrawal.objects_marked.filter(object_id=after.pk).count() == 1
        assert verify_chain().is_whole


def send(laboratory: Laboratory, run: Run, path: str) -> Artifact:
    return store_artifact(actor=laboratory.owner, run=run, file=receive_file(path, [path.encode()]), name=path, kind="file")
