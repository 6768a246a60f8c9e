"""What of a holdout came into a model without a dataset version between blocks its promotion, and shuts the gate of a policy."""

from typing import Any

import pytest

from runs.checks.candidate import candidate_of
from runs.checks.data import nothing_held_out
from runs.checks.gate_chain import chain_for
from runs.commands.artifact_dataset import import_artifact
from runs.eligibility import Fact, Verdict
from runs.models import Artifact, Run
from runs.policy.checks import look
from runs.policy.facts import Facts
from runs.queries.lineage import Node
from runs.queries.lineage_edges import NodeKind
from tests.factories_pages import add_artifact, copy_runs
from tests.factories_promotions import add_input, check_overlaps, make_candidate
from tests.factories_registry import HELD_OUT, make_dataset_version
from tests.factories_runs import Laboratory, make_laboratory
from workspaces.commands.dataset import create_dataset
from workspaces.models import DatasetVersion

pytestmark = pytest.mark.django_db
LABELS = b"a,b\n50,60\n70,80\n"  # nothing of the holdout stands in them
PLANTED = LABELS + HELD_OUT.splitlines()[1] + b"\n"
GATE = {"check": "contamination"}


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory()
    with made.opened():
        make_dataset_version(made.owner, "unseen", role="holdout")
    return made


def left(
    laboratory: Laboratory, content: bytes, *, reads: Artifact | None = None, path: str = "labels.csv", kind: str = "table"
) -> Artifact:
    """What an evaluation left that read the holdout, or this artifact instead."""
    pattern = make_candidate(laboratory, content=path.encode() + content).run
    (run,) = copy_runs(actor=laboratory.owner, pattern=pattern, count=1, kind="evaluate", name="judge-1")
    if reads is not None:
        add_input(actor=laboratory.owner, run=run, artifact=reads)
    else:
        add_input(actor=laboratory.owner, run=run, version=DatasetVersion.objects.get(dataset__slug="unseen"))
    return add_artifact(actor=laboratory.owner, run=run, path=path, content=content, kind=kind)


def trained_on(laboratory: Laboratory, artifact: Artifact) -> Artifact:
    model = make_candidate(laboratory, content=b"trained on it")
    add_input(actor=laboratory.owner, run=model.run, artifact=artifact)
    return model


def freeze(laboratory: Laboratory, artifact: Artifact) -> DatasetVersion:
    dataset = create_dataset(actor=laboratory.owner, slug="labels", licence="CC-BY-4.0")
    version = import_artifact(actor=laboratory.owner, dataset=dataset, artifact=artifact, role="train")
    check_overlaps()
    return version


def told(artifact: Artifact) -> Fact:
    """What a promotion says of it; the gate of a policy says the same."""
    found = Artifact.objects.select_related("blob", "run__contract").get(pk=artifact.pk)
    fact = nothing_held_out(candidate_of(found, "champion"))
    gates: dict[str, Any] = chain_for([GATE], [Node(NodeKind.ARTIFACT, artifact.pk)])
    gate = look(GATE, Facts(at="2026-11-29T12:00:00+00:00", cause={"on": "", "type": "", "id": "0", "label": ""}, gates=gates))
    assert (gate.verdict, gate.words) == (fact.verdict, fact.words)
    return fact


def test_a_copy_of_the_holdout_that_a_run_read_is_found(laboratory: Laboratory) -> None:
    with laboratory.opened():
        fact = told(trained_on(laboratory, left(laboratory, HELD_OUT)))
        assert fact.verdict == Verdict.FAIL
        assert "labels.csv of judge-1 is contaminated: it is table.csv of the holdout unseen@1." in fact.words


def test_what_an_evaluation_left_of_the_holdout_is_unknown_until_it_is_frozen_and_compared(laboratory: Laboratory) -> None:
    with laboratory.opened():
        labels = left(laboratory, LABELS)
        model = trained_on(laboratory, labels)
        fact = told(model)
        assert fact.verdict == Verdict.UNKNOWN
        assert "labels.csv of judge-1 is unknown: it was made by a run that read the holdout unseen@1" in fact.words
        assert [(link.page, link.argument) for link in fact.evidence] == [("artifact", labels.public_id)]
        freeze(laboratory, labels)
        assert told(model).verdict == Verdict.PASS, "the version's verdict speaks for the file"


def test_one_record_of_the_holdout_in_an_artifact_is_found_once_it_is_frozen(laboratory: Laboratory) -> None:
    with laboratory.opened():
        labels = left(laboratory, PLANTED)
        model = trained_on(laboratory, labels)
        assert told(model).verdict == Verdict.UNKNOWN
        freeze(laboratory, labels)
        fact = told(model)
        assert (fact.verdict, "it is a file of labels@1. 1 record of it stands in 1 version held out." in fact.words) == (
            Verdict.FAIL,
            True,
        )


def test_what_evaluations_hand_on_to_each_other_is_followed(laboratory: Laboratory) -> None:
    with laboratory.opened():
        second = left(laboratory, b"a,b\n1,0\n", reads=left(laboratory, LABELS), path="again.csv")
        assert "again.csv of judge-1 is unknown" in told(trained_on(laboratory, second)).words


@pytest.mark.parametrize(
    ("path", "kind", "verdict"),
    [("teacher.npz", "model", Verdict.PASS), ("teacher.csv", "model", Verdict.UNKNOWN), ("a.zip", "file", Verdict.UNKNOWN)],
)
def test_a_model_is_no_list_of_records_unless_its_file_is(laboratory: Laboratory, path: str, kind: str, verdict: Verdict) -> None:
    with laboratory.opened():
        assert told(trained_on(laboratory, left(laboratory, LABELS, path=path, kind=kind))).verdict == verdict


def test_who_evaluates_may_read_a_copy(laboratory: Laboratory) -> None:
    with laboratory.opened():
        labels = left(laboratory, LABELS, reads=left(laboratory, HELD_OUT))
        version = freeze(laboratory, labels)
        model = make_candidate(laboratory, content=b"learnt from labels")
        add_input(actor=laboratory.owner, run=model.run, version=version)
        assert told(model).verdict == Verdict.PASS
        assert Run.objects.filter(kind="evaluate").count() == 2
