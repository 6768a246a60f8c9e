"""Records of holdouts in what is trained on: found by a job, shown with where they stand, overruled by people; whatever the files hold."""

import pytest

from runs.jobs.overlap import check_overlap
from runs.models import OverlapCheck
from runs.queries.overlap import has_work
from runs.queries.verdict import State, verdict_of
from tests.factories_runs import Laboratory, make_laboratory
from workspaces import scope
from workspaces.access import Actor
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.models import Dataset, DatasetVersion

pytestmark = pytest.mark.django_db(transaction=True)

HEADER = "id,mean_radius,mean_texture,malignant\n"
HELD_OUT = [f"wdbc-{number},{17.99 + number},{10.38 * number},{number % 2}\n" for number in range(1, 41)]
TRAINED = [f"wdbc-{number},{11.21 + number},{9.41 * number},{number % 2}\n" for number in range(41, 141)]


def keep(actor: Actor, slug: str, content: str | bytes, *, role: str = "train", path: str = "table.csv") -> DatasetVersion:
    dataset = Dataset.objects.filter(slug=slug).first() or create_dataset(actor=actor, slug=slug)
    files = [receive_file(path, [content.encode() if isinstance(content, str) else content])]
    return import_dataset_version(actor=actor, dataset=dataset, role=role, files=files)


def work(lab: Laboratory) -> None:
    """Ring until there is nothing left."""
    for _ in range(60):
        if not has_work():
            return
        check_overlap(workspace_id=lab.workspace.pk.hex, subject_id=lab.workspace.pk.hex)
    raise AssertionError("the job does not come to an end")


@pytest.fixture
def lab() -> "Laboratory":
    return make_laboratory()


def test_a_planted_record_is_found_and_a_control_set_has_none(lab: Laboratory) -> None:
    with scope.open_workspace(lab.workspace.pk):
        holdout = keep(lab.owner, "held-out", HEADER + "".join(HELD_OUT), role="holdout")
        planted = keep(lab.owner, "planted", HEADER + "".join([*TRAINED[:50], HELD_OUT[6], *TRAINED[50:]]))
        control = keep(lab.owner, "control", HEADER + "".join(TRAINED))
        assert verdict_of(planted).state == verdict_of(control).state == State.UNCHECKED
        assert not verdict_of(control).is_promotable
        work(lab)
        found, clean = verdict_of(planted), verdict_of(control)
        assert (found.state, found.reason) == (State.CONTAMINATED, "1 record of it stands in 1 version held out.")
        assert (clean.state, clean.reason) == (State.CLEAN, "None of its 100 records stands in 1 holdout version.")
        assert clean.is_promotable and not found.is_promotable
        assert verdict_of(holdout).state == State.CONTAMINATED
        check = OverlapCheck.objects.get(version=planted)
        (pair,) = check.pairs
        assert (pair["kind"], pair["record"]["number"], pair["holdout"]["number"]) == ("exact", 51, 7)
