"""What an evaluation left that had read a holdout trains nobody, however the evaluation ended and whether a score names the file or not."""

import json

import pytest

from runs.commands.artifact_dataset import import_artifact
from runs.commands.report import store_artifact
from runs.lifecycle import TERMINAL
from runs.models import Artifact, Run
from runs.queries.queue import waiting_of
from tests.factories_pages import add_artifact, copy_runs, score_runs
from tests.factories_promotions import add_input
from tests.factories_registry import TABLE, make_agent_version, make_dataset_version
from tests.factories_runs import HOUR, Laboratory, drive, launch, make_laboratory
from tests.runs.attempts import let_go, started
from workspaces.audit import Refusal
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.commands.live_dataset import make_live
from workspaces.models import Benchmark, DatasetVersion

pytestmark = pytest.mark.django_db(transaction=True)
READ = r"an evaluation that read unseen@1"

JUDGE = """
import json, os, sys, time
asked = json.load(open("../job.json"))["params"]
for name, content in asked["files"].items():
    open(f"../outputs/{name}", "w").write(content)
with open("../events.jsonl", "a") as lines:
    for line in asked.get("lines", ()):
        lines.write(json.dumps(line) + "\\n")
print("written", flush=True)
while asked.get("waits") and not os.path.exists("../go"):
    time.sleep(0.02)
sys.exit(asked.get("exit", 0))
"""


def truth(*values: int) -> str:
    return "".join(json.dumps({"id": f"s{number}", "truth": value}) + "\n" for number, value in enumerate(values))


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory()
    with made.opened():
        make_agent_version(made.owner, "judge", code=JUDGE.encode(), kind="evaluate", wall_seconds=60)
        frozen = make_dataset_version(made.owner, "unseen", role="holdout")
        publish_contract(
            actor=made.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", holdout=frozen,
            accepts_no_isolation_reason="a test",
        )  # fmt: skip
    return made


def judged(laboratory: Laboratory, files: dict[str, str], *, artifacts: tuple[str, ...] = (), **asked: object) -> dict[str, Artifact]:
    """What a judge that was given the holdout, or these artifacts instead, left."""
    with laboratory.opened():
        read: tuple[str, ...] = () if artifacts else ("unseen",)
        run = launch(
            laboratory, agent="judge", gpu_ms=HOUR, datasets=read, artifacts=artifacts, parameters={"files": files, **asked}
        )  # fmt: skip
    drive(laboratory, run, until=TERMINAL)
    with laboratory.opened():
        return {row.path: row for row in Artifact.objects.filter(run=run)}


def score(file: str) -> dict[str, object]:
    return {"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.5, "samples_file": file}


def test_what_a_failed_evaluation_left_reaches_evaluators_alone(laboratory: Laboratory) -> None:
    made = judged(laboratory, {"samples.jsonl": truth(7, 8)}, exit=1, lines=[score("outputs/samples.jsonl")])["samples.jsonl"]
    with laboratory.opened():
        assert made.run.status == "failed"
        with pytest.raises(Refusal, match=rf"kind train reads samples\.jsonl of (\S+), which was left by \1, {READ}\."):
            launch(laboratory, artifacts=(made.public_id,))
        assert launch(laboratory, agent="judge", artifacts=(made.public_id,), parameters={"files": {}}).kind == "evaluate"
        answers = create_dataset(actor=laboratory.owner, slug="answers")
        with pytest.raises(Refusal, match=rf"It was left by \S+, {READ}: freeze it as a holdout"):
            import_artifact(actor=laboratory.owner, dataset=answers, artifact=made, role="train")
        copy = receive_file("answers.jsonl", [truth(7, 8).encode()])
        import_dataset_version(actor=laboratory.owner, dataset=answers, role="train", files=[copy])
        with pytest.raises(Refusal, match=rf"reads answers@1, whose answers\.jsonl was left by \S+, {READ}\."):
            launch(laboratory, datasets=("answers",))


def test_a_file_whose_score_was_replaced_and_one_that_no_score_names_train_nobody(laboratory: Laboratory) -> None:
    lines = [score("outputs/first.jsonl"), score("outputs/second.jsonl")]
    files = {"first.jsonl": truth(1), "second.jsonl": truth(2), "predictions.csv": "id,label\ns0,1\n"}
    made = judged(laboratory, files, lines=lines)
    with laboratory.opened():
        for path in (*files, ".labsite/attempt-1/stdout.log"):
            with pytest.raises(Refusal, match=rf"(was left by \S+, {READ}|tells the truth of unseen@1)\."):
                launch(laboratory, artifacts=(made[path].public_id,))


def test_what_is_sent_while_the_evaluation_runs_trains_nobody(laboratory: Laboratory) -> None:
    run, _ = started(laboratory, agent="judge", datasets=("unseen",), parameters={"files": {}, "waits": True})
    with laboratory.opened():
        file = receive_file("answers.jsonl", [truth(7).encode()])
        sent = store_artifact(actor=laboratory.owner, run=run, file=file, name="answers", kind="file")
        with pytest.raises(Refusal, match=READ):
            launch(laboratory, artifacts=(sent.public_id,))
    let_go(laboratory, run)
    drive(laboratory, run)


def test_what_evaluations_hand_on_to_each_other_trains_nobody(laboratory: Laboratory) -> None:
    made = judged(laboratory, {"a.jsonl": truth(1)})["a.jsonl"]
    for path in ("b.jsonl", "c.jsonl"):
        made = judged(laboratory, {path: truth(1) + path}, artifacts=(made.public_id,))[path]
    with (
        laboratory.opened(),
        pytest.raises(Refusal, match=r"reads c\.jsonl of \S+, which was left by \S+, an evaluation that read b\.jsonl of"),
    ):
        launch(laboratory, artifacts=(made.public_id,))


def test_models_trusted_pieces_and_copies_of_what_was_here_are_handed_on(laboratory: Laboratory) -> None:
    with laboratory.opened():
        make_live(actor=laboratory.owner, dataset=create_dataset(actor=laboratory.owner, slug="trusted"), window_records=1)
        (trainer,) = copy_runs(actor=laboratory.owner, pattern=launch(laboratory), count=1)
        before = add_artifact(actor=laboratory.owner, run=trainer, path="net.json", content=b'{"weights": [1]}')
    lines = [
        {"type": "dataset", "path": "outputs/trusted.csv", "name": "trusted", "records": 1},
        {"type": "artifact", "path": "outputs/best.json", "name": "best", "kind": "model", "metadata": {}},
    ]
    files = {"trusted.csv": "id,label\nt1,1\n", "best.json": '{"weights": [2]}', "copy.json": '{"weights": [1]}'}
    made = judged(laboratory, files, lines=lines)
    with laboratory.opened():
        assert made["copy.json"].blob_id == before.blob_id
        assert launch(laboratory, datasets=("trusted-window-1",))
        for artifact in (made["best.json"], made["copy.json"], before):
            assert launch(laboratory, artifacts=(artifact.public_id,))


def test_what_is_frozen_to_be_compared_trains_unless_it_tells_the_truth(laboratory: Laboratory) -> None:
    made = judged(laboratory, {"labels.csv": "id,label\ns0,1\n"})["labels.csv"]
    with laboratory.opened():
        labels = create_dataset(actor=laboratory.owner, slug="labels")
        import_artifact(actor=laboratory.owner, dataset=labels, artifact=made, role="train")
        assert launch(laboratory, datasets=("labels",))


def left(laboratory: Laboratory, version: DatasetVersion | None = None) -> Artifact:
    """What an evaluation left that read this version, if any."""
    pattern = Run.objects.order_by("number").first() or launch(laboratory)
    (run,) = copy_runs(actor=laboratory.owner, pattern=pattern, count=1, kind="evaluate", name="judge-1")
    if version is not None:
        add_input(actor=laboratory.owner, run=run, version=version)
    return add_artifact(actor=laboratory.owner, run=run, path="samples.jsonl", content=truth(9).encode())


def test_what_an_evaluation_left_of_what_is_held_out_since_starts_nobody(laboratory: Laboratory) -> None:
    with laboratory.opened():
        made = left(laboratory, DatasetVersion.objects.get(dataset__slug="table"))
        waits = launch(laboratory, datasets=(), artifacts=(made.public_id,))
        file = receive_file("questions.csv", [TABLE])
        exam = create_dataset(actor=laboratory.owner, slug="exam")
        import_dataset_version(actor=laboratory.owner, dataset=exam, role="holdout", files=[file])
        assert (found := waiting_of(waits, laboratory.workspace)) is not None
        assert found.reason == "It reads samples.jsonl that judge-1 left of exam@1, which was held out after it was asked for."


def test_results_that_a_score_has_named_since_start_nobody(laboratory: Laboratory) -> None:
    with laboratory.opened():
        made = left(laboratory)
        waits = launch(laboratory, datasets=(), artifacts=(made.public_id,))
        before = waiting_of(waits, laboratory.workspace)
        assert before is None or "held out" not in before.reason
        score_runs(actor=laboratory.owner, scores={made.run: (0.5, None)}, samples_artifact=made)
        assert (found := waiting_of(waits, laboratory.workspace)) is not None
        assert found.reason == "It reads samples.jsonl that judge-1 left of unseen@1, which was held out after it was asked for."
