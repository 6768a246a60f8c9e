"""What is held out reaches evaluators alone, under whatever name it comes: by the content of its files."""

import pytest

from runs.commands.artifact_dataset import import_artifact
from runs.models import Artifact, Run
from runs.overlap.kinds import is_paper
from runs.queries.home_waiting import queued
from runs.queries.queue import waiting_of
from tests.factories_pages import add_artifact, copy_runs
from tests.factories_registry import HELD_OUT, TABLE, make_agent_version
from tests.factories_runs import Laboratory, dispatch, launch, make_laboratory
from workspaces.audit import Refusal
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.models import DatasetVersion, Pool

pytestmark = pytest.mark.django_db(transaction=True)
LICENCE = b"CC-BY-4.0\n"


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory(isolation=Pool.Isolation.USER)
    with made.opened():
        make_agent_version(made.owner, "judge", kind="evaluate", wall_seconds=60)
    return made


def frozen(laboratory: Laboratory, slug: str, *, role: str = "train", **files: bytes) -> DatasetVersion:
    """A version with these files, by their names; what stands for a point is `__`."""
    dataset = create_dataset(actor=laboratory.owner, slug=slug)
    received = [receive_file(path.replace("__", "."), [content]) for path, content in files.items()]
    return import_dataset_version(actor=laboratory.owner, dataset=dataset, role=role, files=received)


def output(laboratory: Laboratory, content: bytes, *, kind: str = "train") -> Artifact:
    """What a run has left."""
    pattern = Run.objects.order_by("number").first() or launch(laboratory)
    (run,) = copy_runs(actor=laboratory.owner, pattern=pattern, count=1, kind=kind)
    return add_artifact(actor=laboratory.owner, run=run, path="made.csv", content=content, kind="table")


def test_a_file_of_a_holdout_trains_nobody_under_another_name_nor_beside_others(laboratory: Laboratory) -> None:
    with laboratory.opened():
        frozen(laboratory, "exam", role="holdout", questions__csv=HELD_OUT)
        frozen(laboratory, "renamed", games__csv=HELD_OUT)
        frozen(laboratory, "among-others", a__csv=TABLE, b__csv=HELD_OUT)
        with pytest.raises(Refusal, match=r"kind train reads renamed@1, whose games\.csv is questions\.csv of the holdout exam@1\."):
            launch(laboratory, datasets=("table", "renamed"))
        with pytest.raises(Refusal, match=r"reads among-others@1, whose b\.csv is questions\.csv of the holdout exam@1\."):
            launch(laboratory, datasets=("among-others",))
        assert not Run.objects.exists()
        assert launch(laboratory, agent="judge", datasets=("renamed", "among-others"))


@pytest.mark.parametrize("maker", ["train", "evaluate"])
def test_an_artifact_that_is_a_file_of_a_holdout_trains_nobody(laboratory: Laboratory, maker: str) -> None:
    """The one that it was frozen from, and a copy that whoever may read it has left."""
    with laboratory.opened():
        made = output(laboratory, HELD_OUT, kind=maker)
        dataset = create_dataset(actor=laboratory.owner, slug="exam")
        import_artifact(actor=laboratory.owner, dataset=dataset, artifact=made, role="holdout")
        with pytest.raises(Refusal, match=r"reads made\.csv of \S+, which is made\.csv of the holdout exam@1\."):
            launch(laboratory, artifacts=(made.public_id,))
        with pytest.raises(Refusal, match=r"It is made\.csv of the holdout exam@1: freeze it as a holdout"):
            import_artifact(actor=laboratory.owner, dataset=dataset, artifact=made, role="train")
        assert launch(laboratory, agent="judge", artifacts=(made.public_id,))


def test_a_licence_beside_both_is_no_holdout(laboratory: Laboratory) -> None:
    with laboratory.opened():
        frozen(laboratory, "exam", role="holdout", questions__csv=HELD_OUT, LICENSE=LICENCE, README__md=b"An exam.\n")
        frozen(laboratory, "lessons", lessons__csv=TABLE, LICENSE__txt=LICENCE, READ__md=b"An exam.\n")
        assert launch(laboratory, datasets=("lessons",))


@pytest.mark.parametrize("path", ["LICENSE", "data/Licence.txt", "README_de.md", "CITATION.cff", ".gitattributes"])
def test_papers_go_by_their_names(path: str) -> None:
    assert is_paper(path)


@pytest.mark.parametrize(
    "path", ["README.csv", "t10k-images-idx3-ubyte", "classes.txt", "readme/a.csv", "notices.jsonl", "license.parquet"]
)
def test_everything_else_may_hold_records(path: str) -> None:
    assert not is_paper(path)


def test_what_was_held_out_after_a_run_was_asked_for_does_not_start_it(laboratory: Laboratory) -> None:
    with laboratory.opened():
        made = output(laboratory, b"a,b\n9,9\n")
        reads_file, reads_artifact = launch(laboratory), launch(laboratory, artifacts=(made.public_id,), datasets=())
        measures, others = (
            launch(laboratory, agent="judge"),
            launch(laboratory, datasets=(frozen(laboratory, "more", c__csv=b"a\n1\n").public_id,)),
        )
        frozen(laboratory, "exam", role="holdout", questions__csv=TABLE, LICENSE=LICENCE)
        assert (waiting := waiting_of(reads_file, laboratory.workspace)) is not None
        assert waiting.reason == "It reads questions.csv of the holdout exam@1, which was held out after it was asked for."
        assert waiting.needs_somebody
        assert [(waits.reason, count) for waits, _, count in queued([], 0).stuck()] == [(waiting.reason, 2)], (
            "and home, of the artifact's maker too"
        )
        dataset = create_dataset(actor=laboratory.owner, slug="exam-2")
        import_artifact(actor=laboratory.owner, dataset=dataset, artifact=made, role="holdout")
    dispatch(laboratory)
    with laboratory.opened():
        status = {run.pk: run.status for run in Run.objects.all()}
        assert [status[run.pk] for run in (reads_file, reads_artifact)] == ["queued", "queued"]
        assert "queued" not in [status[run.pk] for run in (measures, others)]
