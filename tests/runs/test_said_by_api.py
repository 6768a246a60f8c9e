"""What pages say of scores, artifacts and runs, the API says too, at the same cost however long its lists are."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.commands.withdrawal import withdraw
from runs.models import Artifact, Attempt, Evaluation, Run
from runs.queries.lineage import Node
from runs.queries.lineage_edges import NodeKind
from runs.queries.order import token_id, token_secret
from tests.factories_pages import add_artifact, client_of, copy_runs, score_runs
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from tests.factories_seed import Caller
from tests.runs.attempts import WAITS, let_go, settled, started
from tests.runs.test_memory import vouched
from workspaces import scope, store
from workspaces.access import Actor
from workspaces.commands.reconcile import reconcile_files
from workspaces.queries import token

API = "/api/v1/workspaces/lab"


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


def asked(laboratory: Laboratory, path: str) -> tuple[Any, int]:
    """The answer, and the statements that it took once it was asked before."""
    client = client_of(laboratory.owner)
    client.get(f"{API}/{path}")
    with CaptureQueriesContext(connection) as statements:
        answer = client.get(f"{API}/{path}")
    assert answer.status_code == 200
    return answer.json(), len(statements)


def make(laboratory: Laboratory, count: int) -> list[Artifact]:
    with laboratory.opened():
        pattern = Run.objects.order_by("number").first() or launch(laboratory)
        made = copy_runs(actor=laboratory.owner, pattern=pattern, count=count)
        kept = [add_artifact(actor=laboratory.owner, run=run, path="out.bin", content=run.name.encode()) for run in made]
        score_runs(actor=laboratory.owner, scores=dict.fromkeys(made, (0.5, None)), samples=100, errored=3, abstained=2)
    return kept


def gone(laboratory: Laboratory, artifact: Artifact) -> str:
    with laboratory.opened():
        subject = Node(NodeKind.ARTIFACT, artifact.pk)
        return str(withdraw(actor=laboratory.owner, subject=subject, label="out.bin", reason="A bug.").public_id)


def test_artifacts_say_that_they_are_withdrawn_or_that_their_file_is_missing(laboratory: Laboratory) -> None:
    withdrawn, lost, kept = make(laboratory, 3)
    withdrawal = gone(laboratory, withdrawn)
    with laboratory.opened():
        place = store.local_path("local", scope.current_id(), lost.blob.sha256)
        assert place
        place.unlink()
        reconcile_files(Actor.system(job_id="test"))
    listed, few = asked(laboratory, "artifacts")
    said = {item["id"]: (item["withdrawn_by"], item["is_missing"]) for item in listed["items"]}
    assert said == {withdrawn.public_id: ([withdrawal], False), lost.public_id: ([], True), kept.public_id: ([], False)}
    assert asked(laboratory, f"artifacts/{withdrawn.public_id}")[0]["withdrawn_by"] == [withdrawal]
    make(laboratory, 10)
    assert asked(laboratory, "artifacts")[1] == few


def test_scores_say_what_they_are_of_and_that_they_are_withdrawn(laboratory: Laboratory) -> None:
    withdrawn, *_ = make(laboratory, 3)
    with laboratory.opened():
        score = Evaluation.objects.get(run=withdrawn.run)
        subject = Node(NodeKind.RUN, withdrawn.run_id)
        withdrawal = withdraw(actor=laboratory.owner, subject=subject, label="a run", reason="A bug.").public_id
    listed, few = asked(laboratory, "evaluations")
    said = {item["id"]: item["withdrawn_by"] for item in listed["items"]}
    assert (said.pop(score.public_id), list(said.values())) == ([withdrawal], [[], []])
    assert {(item["samples"], item["errored"], item["abstained"]) for item in listed["items"]} == {(100, 3, 2)}
    one = asked(laboratory, f"evaluations/{score.public_id}")[0]
    assert (one["errored"], one["abstained"], one["withdrawn_by"]) == (3, 2, [withdrawal])
    assert asked(laboratory, f"evaluations/{score.public_id}/history")[0]["items"][0]["withdrawn_by"] == [withdrawal]
    make(laboratory, 10)
    assert asked(laboratory, "evaluations")[1] == few


def test_a_run_says_that_it_is_withdrawn(laboratory: Laboratory) -> None:
    artifact, *_ = make(laboratory, 1)
    address = f"runs/{artifact.run.public_id}"
    assert asked(laboratory, address)[0]["withdrawn_by"] == []
    with laboratory.opened():
        read = launch(laboratory, artifacts=(artifact.public_id,))
    withdrawal = gone(laboratory, artifact)
    assert asked(laboratory, f"runs/{read.public_id}")[0]["withdrawn_by"] == [withdrawal]


@pytest.mark.pool
@pytest.mark.django_db(transaction=True)
def test_a_run_reads_much_memory_in_as_many_statements_as_little() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    with laboratory.opened():
        vouched(laboratory, "one")
        attempt = Attempt.objects.get(run=run)
    caller = Caller(token.spell("run", laboratory.workspace.pk, token_id(attempt), token_secret(attempt)))

    def read() -> tuple[int, int]:
        with CaptureQueriesContext(connection) as statements:
            answer = caller.post(f"{API}/runs/{run.public_id}/memory/read", json.dumps({"collection": "openings"})).json()
        return len(answer["items"]), len(statements)

    read()
    before = read()
    with laboratory.opened():
        for number in range(5):
            vouched(laboratory, f"more {number}")
    read()
    assert read() == (6, before[1])
    let_go(laboratory, run)
    drive(laboratory, run)
    settled(laboratory)
