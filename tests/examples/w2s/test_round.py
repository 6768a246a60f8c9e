"""One weak-to-strong round by the agents' own programs: what students may see, what is frozen, what is recovered, and that it repeats."""

import json
from pathlib import Path
from typing import Any

import pytest

from labsite.examples.ground import AgentPlan
from labsite.examples.w2s import plan, rounds
from runs.queries.home_scores import PROMOTABLE
from tests.examples.w2s.bundle import Ended, records, sha256
from tests.examples.w2s.conftest import STATED, Launch, Round

STUDENTS = {"a": plan.STRONG_A, "b": plan.STRONG_B}
OUTPUTS = ("model.json", "weak_labels.csv", "disagreement.csv", "verdicts.csv", "trusted.csv", "gap.json", "splits.csv")


@pytest.fixture(scope="module")
def students(launch: Launch, first_round: Round) -> dict[str, Ended]:
    params = {"frozen_set": sha256(first_round.frozen)}
    return {name: launch(agent, {plan.WEAK_LABELS.first_window: first_round.weak_labels}, params) for name, agent in STUDENTS.items()}


@pytest.fixture(scope="module")
def gaps(launch: Launch, first_round: Round, students: dict[str, Ended]) -> dict[tuple[str, bool], Ended]:
    return {
        (name, is_control): measure_gap(launch, first_round, student, {"shuffle_labels": is_control})
        for name, student in students.items()
        for is_control in (False, True)
    }


def measure_gap(launch: Launch, first_round: Round, student: Ended, params: dict[str, Any], *, seed: int = 1) -> Ended:
    tables = {slug: first_round.tables[slug] for slug in (plan.TRAIN, plan.STUDENT_TRAIN, plan.HOLDOUT)}
    models = {"strong": student.model, "weak-teacher": first_round.teacher.model}
    return launch(plan.GAP_EVALUATOR, {**tables, **models}, params, seed=seed)


def gap_of(ended: Ended) -> dict[str, Any]:
    assert ended.code == 0, ended.stderr
    return dict(json.loads(ended.output("gap.json").read_text()))


def right(launch: Launch, first_round: Round, model: Path) -> dict[str, bool]:
    """Which records of the holdout a model tells apart rightly."""
    ended = launch(plan.EVALUATOR, {**first_round.holdout, "model": model})
    assert ended.code == 0, ended.stderr
    return {record: row["correct"] == "1" for record, row in records(ended.output("predictions.csv")).items()}


def test_weak_labels_are_the_teachers_word_on_unseen_records_and_hold_no_truth(first_round: Round) -> None:
    weak, truth = records(first_round.weak_labels), records(first_round.tables[plan.STUDENT_TRAIN])
    assert list(weak) == list(truth)
    assert len(weak) == plan.STUDENT_RECORDS == plan.WEAK_LABELS.window_records
    features = set(next(iter(truth.values()))) - {"malignant"}
    assert all({name: weak[record][name] for name in features} == {name: truth[record][name] for name in features} for record in truth)
    assert all(0.5 <= float(row["confidence"]) <= 1 for row in weak.values())
    share = sum(weak[record]["malignant"] == truth[record]["malignant"] for record in truth) / len(truth)
    assert [share] == pytest.approx(first_round.labels.metric("label_accuracy"))
    assert 0.6 < share < 0.9
    assert not set(weak) & set(records(first_round.tables[plan.TRAIN]))
    (piece,) = first_round.labels.events("dataset")
    assert (piece["name"], piece["records"]) == (plan.WEAK_LABELS.slug, plan.STUDENT_RECORDS)


def test_a_teacher_labels_nothing_that_it_was_trained_on(launch: Launch, first_round: Round) -> None:
    ended = launch(plan.WEAK_LABELER, {plan.TRAIN: first_round.tables[plan.TRAIN], "weak-teacher": first_round.teacher.model})
    assert (ended.code, ended.events("dataset")) == (2, [])
    assert "171 records of medqa_table_train were trained on" in ended.stderr


def test_the_disagreement_set_is_where_teacher_and_ceiling_differ(launch: Launch, first_round: Round) -> None:
    teacher, ceiling = (right(launch, first_round, ended.model) for ended in (first_round.teacher, first_round.ceiling))
    # There are two classes: whoever is right where the other is wrong says something else.
    assert set(records(first_round.frozen)) == {record for record in teacher if teacher[record] != ceiling[record]}
    held_out = records(first_round.tables[plan.HOLDOUT])
    assert all(held_out[record] == row for record, row in records(first_round.frozen).items())
    assert len(records(first_round.frozen)) >= 20
    (artifact,) = first_round.disagreement.events("artifact")
    assert artifact["metadata"] == {"records": len(records(first_round.frozen)), "of": 171, "sha256": sha256(first_round.frozen)}


def test_teacher_and_ceiling_that_agree_leave_nothing_to_freeze(launch: Launch, first_round: Round, tmp_path: Path) -> None:
    model = json.loads(first_round.teacher.model.read_text())
    (tmp_path / "model.json").write_text(json.dumps({**model, "family": "logistic"}))
    ended = launch(plan.FINDER, {**first_round.holdout, "strong": tmp_path / "model.json", "weak-teacher": first_round.teacher.model})
    assert (ended.code, ended.events("artifact")) == (2, [])
    assert "there is no disagreement to freeze" in ended.stderr


def test_only_a_model_that_names_the_frozen_set_is_measured_on_it(launch: Launch, first_round: Round, students: dict[str, Ended]) -> None:
    params = {"frozen": True, "benchmark": plan.ON_DISAGREEMENT.slug}
    frozen = {plan.DISAGREEMENT.slug: first_round.frozen}
    ended = launch(plan.EVALUATOR, {**frozen, "strong": students["b"].model}, params)
    (score,) = ended.events("score")
    assert (score["benchmark"], score["samples"]) == (plan.ON_DISAGREEMENT.slug, len(records(first_round.frozen)))
    later = launch(plan.EVALUATOR, {**frozen, "strong": first_round.ceiling.model}, params)
    assert (later.code, later.events("score")) == (2, [])
    assert "names nothing as frozen before its training" in later.stderr


@pytest.mark.parametrize("name", list(STUDENTS))
def test_the_ceiling_is_at_least_ten_points_above_the_teacher(gaps: dict[tuple[str, bool], Ended], name: str) -> None:
    found = gap_of(gaps[name, False])
    means = found["mean_accuracy"]
    assert found["splits"] >= 20
    assert means["ceiling"] - means["weak"] == pytest.approx(found["ceiling_minus_teacher"])
    assert found["ceiling_minus_teacher"] >= 0.10


def test_a_gap_below_what_is_wanted_is_refused(launch: Launch, first_round: Round, students: dict[str, Ended]) -> None:
    ended = measure_gap(launch, first_round, students["a"], {"min_gap": 0.5})
    assert (ended.code, ended.events("score")) == (2, [])
    assert "points above the teacher; 50 are wanted" in ended.stderr


def test_candidate_b_recovers_more_than_nothing_from_weak_labels(gaps: dict[tuple[str, bool], Ended]) -> None:
    found = gap_of(gaps["b", False])
    means, estimate = found["mean_accuracy"], found["gap_recovered"]
    assert estimate["value"] == pytest.approx((means["student"] - means["weak"]) / (means["ceiling"] - means["weak"]))
    assert 0 < estimate["low"] < estimate["value"] < estimate["high"]
    assert found["above_chance"]["low"] > 0.2


@pytest.mark.parametrize("name", list(STUDENTS))
def test_the_control_recovers_nothing_and_knows_nothing(gaps: dict[tuple[str, bool], Ended], name: str) -> None:
    """Shuffled labels: the interval of the gap recovered lies at 0 or below, and that of what is above chance covers 0."""
    found = gap_of(gaps[name, True])
    assert found["shuffled_labels"] is True
    assert found["gap_recovered"]["low"] < 0
    assert found["gap_recovered"]["high"] <= 0
    assert found["above_chance"]["low"] <= 0 <= found["above_chance"]["high"]


@pytest.mark.parametrize("name", list(STUDENTS))
def test_a_control_is_scored_by_what_it_knows_and_never_among_the_candidates(gaps: dict[tuple[str, bool], Ended], name: str) -> None:
    ended = gaps[name, True]
    (score,), found = ended.events("score"), gap_of(ended)["above_chance"]
    assert (score["metric"], score["value"], score["stderr"]) == (plan.CONTROL.metric, found["value"], found["error"])
    assert abs(score["value"]) < 0.15
    (memory,) = ended.events("memory_write")
    assert (memory["collection"], memory["kind"]) == ("gap-findings", "finding")
    assert memory["body"].startswith("Control: ")
    assert f"{found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}] above chance" in memory["body"]
    assert [(one["metric"], one["value"]) for one in memory["evidence"]] == [("above_chance", score["value"])]


def test_a_model_of_shuffled_labels_is_scored_as_a_control(launch: Launch, first_round: Round) -> None:
    control = launch(plan.STRONG_A, {plan.WEAK_LABELS.first_window: first_round.weak_labels}, {"shuffle_labels": True})
    ended = launch(plan.EVALUATOR, {**first_round.holdout, "control": control.model}, {"benchmark": plan.CONTROL.slug})
    (score,) = ended.events("score")
    assert (score["benchmark"], score["metric"], score["samples"]) == (plan.CONTROL.slug, "above_chance", plan.HOLDOUT_RECORDS)
    assert abs(score["value"]) <= 1.96 * score["stderr"] + 1e-9


def test_the_score_is_the_gap_with_its_error_and_its_splits(gaps: dict[tuple[str, bool], Ended]) -> None:
    ended = gaps["a", False]
    (score,), found = ended.events("score"), gap_of(ended)
    assert (score["benchmark"], score["metric"], score["samples"]) == (plan.GAP.slug, plan.GAP.metric, 24)
    assert (score["value"], score["stderr"]) == (found["gap_recovered"]["value"], found["gap_recovered"]["error"])
    assert len(ended.metric("split_gap_recovered")) == 24
    rows = ended.output("splits.csv").read_text().splitlines()
    students = [float(row.split(",")[2]) for row in rows[1:]]
    assert sum(students) / 24 == pytest.approx(found["mean_accuracy"]["student"])
    assert len(set(students)) > 5
    samples = [json.loads(line) for line in ended.output("samples.jsonl").read_text().splitlines()]
    assert [sample["output"] for sample in samples] == pytest.approx(students)
    assert [sample["score"] for sample in samples] == pytest.approx([float(row.split(",")[4]) for row in rows[1:]])
    (memory,) = ended.events("memory_write")
    assert memory["evidence"][0]["value"] == score["value"]


def test_fewer_than_twenty_splits_are_refused(launch: Launch, first_round: Round, students: dict[str, Ended]) -> None:
    ended = measure_gap(launch, first_round, students["a"], {"splits": 19})
    assert (ended.code, ended.events("score")) == (2, [])


def test_a_student_of_trusted_labels_is_better_than_one_of_all(launch: Launch, first_round: Round, students: dict[str, Ended]) -> None:
    trusting = launch(plan.STRONG_A, {plan.PROMOTIONS.first_window: first_round.judge.output("trusted.csv")})
    few, everything = (right(launch, first_round, ended.model) for ended in (trusting, students["a"]))
    assert sum(few.values()) > sum(everything.values())


def test_shuffled_labels_are_another_order_of_the_same(launch: Launch, first_round: Round, students: dict[str, Ended]) -> None:
    control = launch(plan.STRONG_A, {plan.WEAK_LABELS.first_window: first_round.weak_labels}, {"shuffle_labels": True})
    (artifact,) = control.events("artifact")
    assert artifact["metadata"] == {"labels": "weak, shuffled", "records": plan.STUDENT_RECORDS}
    assert artifact["kind"] not in PROMOTABLE, "home names no control as worth promoting"
    lost, kept = (right(launch, first_round, ended.model) for ended in (control, students["a"]))
    assert sum(lost.values()) < sum(kept.values()) - 10


@pytest.mark.parametrize(("agent", "table"), [(plan.STRONG_A, plan.STUDENT_TRAIN), (plan.STRONG_B, plan.STUDENT_TRAIN)])
def test_students_of_the_true_labels_take_no_rounds_of_their_own(launch: Launch, first_round: Round, agent: AgentPlan, table: str) -> None:
    ended = launch(agent, {table: first_round.tables[table]})
    assert len(ended.metric("train_loss")) == 1
    assert ended.events("artifact")[0]["metadata"]["labels"] == "true"


def test_run_again_with_the_same_seeds_everything_is_the_same(
    launch: Launch, first_round: Round, students: dict[str, Ended], gaps: dict[tuple[str, bool], Ended]
) -> None:
    known = [first_round.teacher, first_round.labels, first_round.disagreement, first_round.judge, *students.values(), gaps["b", False]]
    again = [
        launch(plan.WEAK_LABELER, {plan.TRAIN: first_round.tables[plan.TRAIN]}, {**rounds.TEACHERS[0].params, "seconds_per_epoch": 0}),
        launch(plan.WEAK_LABELER, {plan.STUDENT_TRAIN: first_round.tables[plan.STUDENT_TRAIN], "weak-teacher": first_round.teacher.model}),
        launch(plan.FINDER, {**first_round.holdout, "strong-a": first_round.ceiling.model, "weak-teacher": first_round.teacher.model}),
        launch(
            plan.JUDGE,
            {
                plan.WEAK_LABELS.first_window: first_round.weak_labels,
                plan.DISAGREEMENT.slug: first_round.frozen,
                **first_round.holdout,
                **STATED,
            },
        ),
        *(
            launch(agent, {plan.WEAK_LABELS.first_window: first_round.weak_labels}, {"frozen_set": sha256(first_round.frozen)})
            for agent in STUDENTS.values()
        ),
        measure_gap(launch, first_round, students["b"], {"shuffle_labels": False}),
    ]
    compared = 0
    for first, second in zip(known, again, strict=True):
        for name in OUTPUTS:
            if first.output(name).exists():
                assert first.output(name).read_bytes() == second.output(name).read_bytes(), name
                compared += 1
    assert compared == 9
    other = gap_of(measure_gap(launch, first_round, students["b"], {}, seed=2))
    assert other["gap_recovered"] != gap_of(gaps["b", False])["gap_recovered"]
