"""The laboratory's programs one by one: training, evaluation, what they refuse; run in a run folder, from their bundles, as a pool does."""

import ast
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from labsite.examples.w2s import plan
from labsite.examples.w2s.bundles import MAKE_TABLE, bundle_files
from tests.examples.w2s.bundle import ENVIRONMENT, Ended, lines, records
from tests.examples.w2s.conftest import Launch

# scikit-learn's own solution of the same problem on all features: the accuracy on the holdout that a model of this kind can reach.
LOGISTIC = """
import csv, json, sys
import numpy as np
from sklearn.linear_model import LogisticRegression

def read(name):
    rows = list(csv.reader(open(f"{sys.argv[1]}/{name}.csv")))[1:]
    return np.array([[float(value) for value in row[1:-1]] for row in rows]), [int(row[-1]) for row in rows]

(x, y), (u, v) = read("train"), read("holdout")
mean, scale = x.mean(0), x.std(0)
model = LogisticRegression(C=1 / (0.01 * len(y)), max_iter=5000).fit((x - mean) / scale, y)
print(json.dumps(model.score((u - mean) / scale, v)))
"""
RIDGE = """
import csv, json, sys
import numpy as np
from sklearn.linear_model import LogisticRegression

rows = list(csv.reader(open(sys.argv[1])))[1:]
x, y = np.array([[float(value) for value in row[1:-1]] for row in rows]), [int(row[-1]) for row in rows]
model = LogisticRegression(C=1 / (0.1 * len(y)), max_iter=50000, tol=1e-10).fit((x - x.mean(0)) / x.std(0), y)
print(json.dumps([model.coef_[0].tolist(), float(model.intercept_[0])]))
"""
QUADRATIC = """
import csv, json, sys
import numpy as np
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

def read(name):
    rows = list(csv.reader(open(f"{sys.argv[1]}/{name}.csv")))[1:]
    return np.array([[float(value) for value in row[1:-1]] for row in rows]), [int(row[-1]) for row in rows]

(x, y), (u, _) = read("student_train"), read("holdout")
mean, scale = x.mean(0), x.std(0)
axes = PCA(2).fit((x - mean) / scale)
model = QuadraticDiscriminantAnalysis().fit(axes.transform((x - mean) / scale), y)
print(json.dumps(model.predict(axes.transform((u - mean) / scale)).tolist()))
"""
SOURCE = """
import json
from sklearn.datasets import load_breast_cancer

bunch = load_breast_cancer()
print(json.dumps([bunch.data.tolist(), bunch.target.tolist()]))
"""


@pytest.fixture
def trained(launch: Launch, tables: Path) -> Ended:
    ended = launch(plan.WEAK_LABELER, {plan.TRAIN: tables / "train.csv", plan.VALIDATION: tables / "validation.csv"}, {"epochs": 12})
    assert ended.code == 0, ended.stderr
    return ended


def test_table_is_the_source_split_without_loss(tables: Path, pool_python: str) -> None:
    data, target = json.loads(subprocess.check_output([pool_python, "-c", SOURCE], timeout=120))
    found = {role: records(tables / f"{role}.csv") for role in ("train", "student_train", "validation", "holdout")}
    expected = {"train": 171, "student_train": plan.STUDENT_RECORDS, "validation": 57, "holdout": plan.HOLDOUT_RECORDS}
    assert {role: len(rows) for role, rows in found.items()} == expected
    everything = [row for rows in found.values() for row in rows.values()]
    assert sorted(row["record_id"] for row in everything) == [f"wdbc-{number:03d}" for number in range(569)]
    for row in everything:
        number = int(row["record_id"].removeprefix("wdbc-"))
        assert [float(value) for key, value in row.items() if key not in ("record_id", "malignant")] == data[number]
        assert int(row["malignant"]) == 1 - target[number]
    shares = [sum(row["malignant"] == "1" for row in rows.values()) / len(rows) for rows in found.values()]
    assert max(shares) - min(shares) < 0.02


def test_table_depends_on_the_seed_alone(tables: Path, pool_python: str, tmp_path: Path) -> None:
    for name, seed in (("same", "20260501"), ("other", "1")):
        (tmp_path / name).mkdir()
        subprocess.run([pool_python, str(MAKE_TABLE), str(tmp_path / name), "--seed", seed], check=True, timeout=120)
    assert (tmp_path / "same/train.csv").read_bytes() == (tables / "train.csv").read_bytes()
    assert (tmp_path / "other/train.csv").read_bytes() != (tables / "train.csv").read_bytes()


def test_table_says_where_it_cannot_write(pool_python: str, tmp_path: Path) -> None:
    done = subprocess.run([pool_python, str(MAKE_TABLE), str(tmp_path / "none")], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (2, "cannot write train.csv: No such file or directory\n")


def test_training_writes_curves_progress_model_and_ends_done(trained: Ended) -> None:
    points = lines(trained.folder / "metrics.jsonl")
    for key in ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy"):
        assert [point["step"] for point in points if point["key"] == key] == list(range(13))
    losses = [point["value"] for point in points if point["key"] == "train_loss"]
    assert losses[-1] < losses[0]
    assert [(event["done"], event["total"]) for event in trained.events("progress")] == [(epoch, 12) for epoch in range(1, 13)]
    assert [(event["path"], event["kind"]) for event in trained.events("artifact")] == [("outputs/model.json", "model")]
    assert trained.events("score") == []
    assert lines(trained.folder / "events.jsonl")[-1] == {"type": "done", "status": "succeeded", "reason": ""}
    model = json.loads((trained.model).read_text())
    assert (model["features"], model["seed"], model["trained_on"]["input"]) == (["mean_texture", "mean_smoothness"], 1, plan.TRAIN)


def test_same_seed_same_bytes_other_seed_other_model(launch: Launch, tables: Path, trained: Ended) -> None:
    inputs = {plan.TRAIN: tables / "train.csv", plan.VALIDATION: tables / "validation.csv"}
    again, other = (launch(plan.WEAK_LABELER, inputs, {"epochs": 12}, seed=seed) for seed in (1, 8))
    model, same, changed = ((ended.model).read_bytes() for ended in (trained, again, other))
    assert same == model
    assert json.loads(changed)["classifier"]["weights"] != json.loads(model)["classifier"]["weights"]


def test_training_converges_to_the_solution_of_scikit_learn(launch: Launch, tables: Path, pool_python: str) -> None:
    names = [name for name in next(iter(records(tables / "train.csv").values())) if name not in ("record_id", "malignant")]
    params = {"features": names, "epochs": 300, "l2": 0.01, "learning_rate": 0.02}
    inputs = {plan.TRAIN: tables / "train.csv", plan.HOLDOUT: tables / "holdout.csv"}
    (score,) = launch(plan.WEAK_LABELER, inputs, params).events("score")
    reference = json.loads(subprocess.check_output([pool_python, "-c", LOGISTIC, str(tables)], timeout=120))
    assert reference > 0.93
    assert score["value"] == pytest.approx(reference, abs=1.5 / 171)


def test_weak_teacher_leaves_ten_points_to_the_ceiling(launch: Launch, tables: Path, pool_python: str) -> None:
    ended = launch(plan.WEAK_LABELER, {plan.TRAIN: tables / "train.csv", plan.HOLDOUT: tables / "holdout.csv"})
    (score,) = ended.events("score")
    ceiling = json.loads(subprocess.check_output([pool_python, "-c", LOGISTIC, str(tables)], timeout=120))
    assert 0.65 < score["value"] <= ceiling - 0.10
    assert (score["benchmark"], score["metric"], score["samples"]) == (plan.ACCURACY.slug, plan.ACCURACY.metric, 171)


def test_evaluation_scores_what_its_predictions_show(launch: Launch, tables: Path, trained: Ended) -> None:
    inputs = {"weak-teacher": trained.model, plan.HOLDOUT: tables / "holdout.csv"}
    ended = launch(plan.EVALUATOR, inputs)
    assert ended.code == 0, ended.stderr
    rows, truth = records(ended.folder / "outputs/predictions.csv"), records(tables / "holdout.csv")
    assert [(record, row["malignant"]) for record, row in rows.items()] == [(record, row["malignant"]) for record, row in truth.items()]
    assert all(row["predicted"] == str(int(float(row["probability"]) >= 0.5)) for row in rows.values())
    share = sum(row["predicted"] == row["malignant"] for row in rows.values()) / len(rows)
    (score,) = ended.events("score")
    assert score["value"] == pytest.approx(share)
    assert score["stderr"] == pytest.approx((share * (1 - share) / 171) ** 0.5)
    assert score["samples"] == 171
    assert [event["kind"] for event in ended.events("artifact")] == ["predictions", "samples"]
    samples = [json.loads(line) for line in (ended.folder / score["samples_file"]).read_text().splitlines()]
    assert [sample["id"] for sample in samples] == list(rows)
    assert sum(sample["score"] for sample in samples) / 171 == pytest.approx(score["value"])
    assert [str(sample["truth"]) for sample in samples] == [row["malignant"] for row in rows.values()]


def test_evaluation_refuses_records_that_were_trained_on(launch: Launch, tables: Path, trained: Ended, tmp_path: Path) -> None:
    (tmp_path / "holdout.csv").write_bytes((tables / "train.csv").read_bytes())
    ended = launch(plan.EVALUATOR, {"model": trained.model, "mixed": tmp_path / "holdout.csv"})
    assert ended.code == 2
    assert ended.stderr.startswith("refused: 171 records of mixed were trained on")
    assert ended.events("score") == []


@pytest.mark.parametrize(
    ("params", "part"),
    [
        ({"epochs": 0}, "parameter epochs is 0"),
        ({"epochs": 2.5}, "must be a whole number"),
        ({"epochs": True}, "parameter epochs is True"),
        ({"learning_rate": "fast"}, "parameter learning_rate is 'fast'"),
        ({"learning_rate": float("nan")}, "parameter learning_rate is nan"),
        ({"features": []}, "at least one"),
        ({"features": ["mean_luck"]}, "has no column mean_luck"),
        ({"feature": ["mean_texture"]}, "unknown parameter feature"),
        ({"target": "cured"}, "the header must name record_id, cured"),
        ({"learning_rate": 10, "l2": 1, "epochs": 200}, "training diverged in epoch"),
    ],
)
def test_training_refuses_params_in_one_line(launch: Launch, tables: Path, params: dict[str, Any], part: str) -> None:
    ended = launch(plan.WEAK_LABELER, {plan.TRAIN: tables / "train.csv"}, params)
    assert ended.code == 2
    assert ended.stderr.startswith("refused: ")
    assert len(ended.stderr.splitlines()) == 1
    assert part in ended.stderr
    assert ended.events("done") == ended.events("artifact") == []


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "the header must name"),
        (b"record_id,malignant\na,1\n", "the header must name"),
        (b"record_id,x,malignant\n", "has no records"),
        (b"record_id,x,malignant\na,1.5\n", "record 1: 2 fields where the header has 3"),
        (b"record_id,x,malignant\na,1.5,yes\n", "malignant is 'yes'"),
        (b"record_id,x,malignant\na,high,1\n", "could not convert string to float"),
        (b"record_id,x,malignant\na,nan,1\nb,1,0\n", "not a finite number, first in record 1"),
        (b"record_id,x,malignant\na,1,1\na,2,0\n", "a record_id stands twice"),
        (b"record_id,x,malignant\na,1,1\nb,2,1\n", "nothing to tell apart"),
        (b"record_id,x,malignant\n\xff,1,1\n", "is not CSV in UTF-8"),
    ],
)
def test_training_refuses_broken_tables_in_one_line(launch: Launch, tmp_path: Path, content: bytes, part: str) -> None:
    (tmp_path / "train.csv").write_bytes(content)
    ended = launch(plan.WEAK_LABELER, {"broken": tmp_path / "train.csv"}, {"features": ["x"]})
    assert (ended.code, len(ended.stderr.splitlines())) == (2, 1)
    assert part in ended.stderr


def test_training_needs_one_training_table(launch: Launch, tables: Path) -> None:
    assert "no train table among the inputs (given: none)" in launch(plan.WEAK_LABELER, {}).stderr
    two = {"first": tables / "train.csv", "second": tables / "train.csv"}
    assert "2 train tables among the inputs (first, second)" in launch(plan.WEAK_LABELER, two).stderr


@pytest.mark.parametrize(
    "content",
    [
        b"{}",
        b"[" * 5000,
        b'{"schema": "w2s.model.v1"}',
        b'{"schema": "w2s.model.v1", "family": "teacher", "classifier": {"weights": [1]}}',
        b'{"schema": "w2s.model.v1", "family": "teacher", "classifier": 3}',
        b"\x80\x04pickle",
    ],
)
def test_evaluation_refuses_what_is_no_model(launch: Launch, tables: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.json").write_bytes(content)
    ended = launch(plan.EVALUATOR, {"odd": tmp_path / "model.json", plan.HOLDOUT: tables / "holdout.csv"})
    assert (ended.code, len(ended.stderr.splitlines())) == (2, 1)
    assert ended.stderr.startswith("refused: odd/model.json")


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"schema": "other"}, "not of schema labsite.job.v1"),
        ({"params": []}, "params in the job file is not a mapping"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": "7"}, "seed is '7'"),
        ({"inputs": [{"slug": "x"}]}, "lacks slug, kind, version or sha256"),
        ({"inputs": None}, "lacks slug, kind, version or sha256"),
    ],
)
def test_a_job_file_that_is_none_is_refused(launch: Launch, changed: dict[str, Any], part: str) -> None:
    ended = launch(plan.WEAK_LABELER, {}, changed=changed)
    assert (ended.code, len(ended.stderr.splitlines())) == (2, 1)
    assert part in ended.stderr


def test_curves_can_be_read_while_the_run_goes_on(launch: Launch, tables: Path, tmp_path: Path, pool_python: str) -> None:
    folder = launch(plan.WEAK_LABELER, {plan.TRAIN: tables / "train.csv"}, {"seconds_per_epoch": 60}, changed={"schema": "not yet"}).folder
    job = json.loads((folder / "job.json").read_text())
    (folder / "job.json").write_text(json.dumps({**job, "schema": "labsite.job.v1"}))
    argv = [pool_python, *plan.WEAK_LABELER.argv[1:]]
    process = subprocess.Popen(argv, cwd=folder / "code", env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not (found := lines(folder / "events.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert process.poll() is None
        assert [event["done"] for event in found] == [1]
        assert {point["step"] for point in lines(folder / "metrics.jsonl")} == {0, 1}
    finally:
        process.terminate()
        process.wait(60)


def test_bundles_import_only_themselves_numpy_and_the_standard_library() -> None:
    for name in (agent.bundle for agent in plan.AGENTS):
        files = bundle_files(name)
        allowed = {"numpy", *sys.stdlib_module_names, *(file.removesuffix(".py") for file in files)}
        for content in files.values():
            for node in ast.walk(ast.parse(content)):
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                modules += [node.module or "."] if isinstance(node, ast.ImportFrom) else []
                assert {module.partition(".")[0] for module in modules} <= allowed
    for wrong in ("common", "../w2s", "none"):
        with pytest.raises(ValueError, match="no bundle"):
            bundle_files(wrong)


def test_a_run_that_says_nothing_takes_the_defaults_of_its_schema(launch: Launch, tables: Path) -> None:
    """Giving them all changes nothing but the parameters noted in the model."""
    for agent, table in ((plan.WEAK_LABELER, "train"), (plan.STRONG_A, "student_train"), (plan.STRONG_B, "student_train")):
        properties = dict(agent.parameters)["properties"]
        defaults = {name: prop["default"] for name, prop in properties.items()}
        spoken, silent = (launch(agent, {f"medqa_table_{table}": tables / f"{table}.csv"}, params) for params in (defaults, {}))
        models = [json.loads((ended.model).read_text()) for ended in (spoken, silent)]
        assert [model.pop("params") for model in models] == [defaults, {}]
        assert models[0] == models[1]


def test_candidate_a_on_true_labels_is_the_solution_of_scikit_learn(launch: Launch, tables: Path, pool_python: str) -> None:
    ended = launch(plan.STRONG_A, {plan.STUDENT_TRAIN: tables / "student_train.csv"}, {"l2": 0.1})
    found = json.loads(ended.model.read_text())["classifier"]
    weights, bias = json.loads(subprocess.check_output([pool_python, "-c", RIDGE, str(tables / "student_train.csv")], timeout=110))
    assert found["weights"] == pytest.approx(weights, abs=1e-4)
    assert found["bias"] == pytest.approx(bias, abs=1e-4)


def test_candidate_b_on_true_labels_classifies_as_scikit_learn_does(launch: Launch, tables: Path, pool_python: str) -> None:
    """Two Gaussians of known classes are quadratic discriminant analysis; without the floor they are the same."""
    trained = launch(plan.STRONG_B, {plan.STUDENT_TRAIN: tables / "student_train.csv"}, {"floor": 0.001})
    ended = launch(plan.EVALUATOR, {plan.HOLDOUT: tables / "holdout.csv", "strong-b": trained.model})
    found = [int(row["predicted"]) for row in records(ended.folder / "outputs/predictions.csv").values()]
    wanted = json.loads(subprocess.check_output([pool_python, "-c", QUADRATIC, str(tables)], timeout=110))
    assert sum(one != other for one, other in zip(found, wanted, strict=True)) <= 1
