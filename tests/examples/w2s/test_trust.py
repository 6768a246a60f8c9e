"""The rule for trusted examples and the rubric, case by case, and as a run of the judge applies them."""

import json
from pathlib import Path
from typing import Any

import pytest

from labsite.examples.w2s import plan
from tests.examples.w2s.bundle import ask, records, sha256
from tests.examples.w2s.conftest import STATED, Launch, Round

DECIDE = """
import numpy as np
from trust import decide

found = decide(["r"], np.array([question["label"]]), np.array([question["sure"]]), np.array([question["verdict"]]), at_least=0.7,
               held_out=question["held_out"], reviewed=question["reviewed"])
print(json.dumps(found[0]))
"""
VERDICTS = """
import numpy as np
from rubric import Rubric, Sign

rubric = Rubric(None, "what is asked", tuple(Sign(*sign) for sign in question["signs"]), question["ones"], question["zeros"])
print(json.dumps(rubric.verdicts_of(np.array(question["shown"])).tolist()))
"""
RUBRIC, RULE = (json.loads(STATED[entry.slug].read_text()) for entry in (plan.RUBRIC, plan.RULE))


@pytest.mark.parametrize(
    ("label", "sure", "verdict", "held_out", "reviewed", "decision"),
    [
        (1, 0.9, 1, [], [], "trusted"),
        (0, 0.7, 0, [], [], "trusted"),  # at least is enough
        (1, 0.6999, 1, [], [], "waits"),  # the teacher is not sure
        (1, 0.9, 0, [], [], "waits"),  # the judge disagrees
        (1, 0.9, -1, [], [], "waits"),  # the judge leaves it open
        (1, 0.9, 1, ["r"], [], "held_out"),
        (1, 0.5, 0, [], ["r"], "trusted"),  # a person has seen it
        (1, 0.9, 1, ["r"], ["r"], "held_out"),  # no person makes a holdout trainable
    ],
)
def test_an_example_is_trusted_if_teacher_and_judge_or_a_person_say_so_and_never_from_a_holdout(
    pool_python: str, label: int, sure: float, verdict: int, held_out: list[str], reviewed: list[str], decision: str
) -> None:
    question = {"label": label, "sure": sure, "verdict": verdict, "held_out": held_out, "reviewed": reviewed}
    found, reason = ask(pool_python, "rubric_judge", DECIDE, question)
    assert found == decision
    assert reason


@pytest.mark.parametrize(
    ("ones", "zeros", "found"), [(RUBRIC["judged_1_from"], RUBRIC["judged_0_up_to"], [0, -1, 1, 1]), (3, 1, [0, 0, -1, 1])]
)
def test_the_rubric_says_how_many_signs_say_what(pool_python: str, ones: int, zeros: int, found: list[int]) -> None:
    shown = [[False] * 3, [True, False, False], [False, True, True], [True] * 3]
    signs = [[sign["column"], sign["above"], sign["words"]] for sign in RUBRIC["signs"]]
    assert ask(pool_python, "rubric_judge", VERDICTS, {"shown": shown, "signs": signs, "ones": ones, "zeros": zeros}) == found


def test_the_judge_looks_where_the_teacher_does_not() -> None:
    columns = [sign["column"] for sign in RUBRIC["signs"]]
    assert not set(columns) & set(dict(plan.WEAK_LABELER.parameters)["properties"]["features"]["default"])


def test_what_the_judge_lets_pass_is_what_the_rule_says(first_round: Round) -> None:
    weak, verdicts = records(first_round.weak_labels), records(first_round.judge.output("verdicts.csv"))
    trusted, waiting = records(first_round.judge.output("trusted.csv")), records(first_round.judge.output("waiting.csv"))
    assert set(verdicts) == set(weak) == set(trusted) | set(waiting)
    assert not set(trusted) & set(waiting)
    wanted = {
        record
        for record, row in verdicts.items()
        if float(weak[record]["confidence"]) >= 0.7 and row["verdict"] == weak[record]["malignant"]
    }
    assert set(trusted) == wanted
    assert 20 < len(trusted) < len(weak)
    assert all(trusted[record] == weak[record] for record in trusted)
    assert not set(trusted) & set(records(first_round.tables[plan.HOLDOUT]))
    (piece,) = first_round.judge.events("dataset")
    assert (piece["name"], piece["path"], piece["records"]) == (plan.PROMOTIONS.slug, "outputs/trusted.csv", len(trusted))
    (memory,) = first_round.judge.events("memory_write")
    assert f"{len(trusted)} are trusted" in memory["body"]
    about = {event["name"]: event["metadata"] for event in first_round.judge.events("artifact")}
    assert (about["verdicts"]["trusted"], about["verdicts"]["waits"]) == (len(trusted), len(waiting))
    for entry, name in ((plan.RUBRIC, "rubric_sha256"), (plan.RULE, "rule_sha256")):
        assert about["verdicts"][name] == about["waiting-for-a-person"][name] == sha256(STATED[entry.slug]), (
            "which rule it followed stands beside"
        )


def test_a_person_lets_pass_what_waited_and_a_stricter_rule_less(launch: Launch, first_round: Round, tmp_path: Path) -> None:
    given = {plan.WEAK_LABELS.first_window: first_round.weak_labels, **first_round.holdout, **STATED}
    waited = sorted(records(first_round.judge.output("waiting.csv")))[:3]
    before = set(records(first_round.judge.output("trusted.csv")))
    reviewed = launch(plan.JUDGE, given, {"reviewed": waited})
    assert set(records(reviewed.output("trusted.csv"))) == before | set(waited)
    stricter = launch(plan.JUDGE, {**given, plan.RULE.slug: stated(tmp_path, {**RULE, "min_confidence": 0.8})})
    assert set(records(stricter.output("trusted.csv"))) < before


def test_records_of_a_holdout_are_set_apart_however_sure_everybody_is(launch: Launch, first_round: Round, tmp_path: Path) -> None:
    trusted = first_round.judge.output("trusted.csv").read_text().splitlines()
    (tmp_path / "leaked.csv").write_text("\n".join(trusted[:4]) + "\n")
    given = {plan.WEAK_LABELS.first_window: first_round.weak_labels, "leaked_holdout": tmp_path / "leaked.csv", **STATED}
    ended = launch(plan.JUDGE, given)
    assert ended.metric("records_held_out") == [3]
    assert not set(records(ended.output("trusted.csv"))) & set(records(tmp_path / "leaked.csv"))


def test_without_a_holdout_the_judge_trusts_nothing(launch: Launch, first_round: Round) -> None:
    ended = launch(plan.JUDGE, {plan.WEAK_LABELS.first_window: first_round.weak_labels, **STATED})
    assert (ended.code, ended.events("dataset")) == (2, [])
    assert "no holdout among the inputs" in ended.stderr


@pytest.mark.parametrize(
    ("entry", "changed", "words"),
    [
        (plan.RULE, {"judge": "is not asked"}, "judge is 'is not asked'; this judge follows 'agrees' alone"),
        (plan.RULE, {"in_a_holdout": "sometimes"}, "in_a_holdout is 'sometimes'"),
        (plan.RULE, {"min_confidence": 0.2}, "min_confidence is 0.2; it must be a number from 0.5 to 1"),
        (plan.RULE, {"min_confidense": 0.9}, "'min_confidense' is not known here"),
        (plan.RULE, {"schema": "another"}, "no documents of schema w2s.trusted-example-rule.v1 among the inputs"),
        (plan.RUBRIC, {"signs": []}, "signs must be a list of 1 to 100 signs"),
        (plan.RUBRIC, {"signs": [{"column": "mean_hue", "above": 1, "words": "colour"}], "judged_1_from": 1}, "has no column mean_hue"),
        (plan.RUBRIC, {"judged_0_up_to": 2}, "judged_0_up_to must be a whole number below judged_1_from"),
    ],
)
def test_a_rule_that_the_judge_cannot_follow_is_refused_and_nothing_is_trusted(
    launch: Launch, first_round: Round, tmp_path: Path, entry: plan.StatedPlan, changed: dict[str, Any], words: str
) -> None:
    document = {**(RULE if entry is plan.RULE else RUBRIC), **changed}
    given = {plan.WEAK_LABELS.first_window: first_round.weak_labels, **first_round.holdout, **STATED}
    ended = launch(plan.JUDGE, {**given, entry.slug: stated(tmp_path, document)})
    assert (ended.code, ended.events("dataset")) == (2, [])
    assert words in ended.stderr


def stated(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "stated.json"
    path.write_text(json.dumps(document))
    return path
