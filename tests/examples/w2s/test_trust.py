"""The rule for trusted examples and the rubric, case by case, and as a run of the judge applies them."""

from pathlib import Path

import pytest

from labsite.examples.w2s import plan
from tests.examples.w2s.bundle import ask, records
from tests.examples.w2s.conftest import Launch, Round

DECIDE = """
import numpy as np
from trust import decide

found = decide(["r"], np.array([question["label"]]), np.array([question["sure"]]), np.array([question["verdict"]]), at_least=0.7,
               held_out=question["held_out"], reviewed=question["reviewed"])
print(json.dumps(found[0]))
"""
VERDICTS = "import numpy as np\nfrom rubric import verdicts_of\nprint(json.dumps(verdicts_of(np.array(question)).tolist()))"


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


def test_the_rubric_wants_two_signs_and_leaves_one_open(pool_python: str) -> None:
    asked = [[False] * 3, [True, False, False], [False, True, True], [True] * 3]
    assert ask(pool_python, "rubric_judge", VERDICTS, asked) == [0, -1, 1, 1]


def test_the_judge_looks_where_the_teacher_does_not(pool_python: str) -> None:
    columns = ask(pool_python, "rubric_judge", "from rubric import SIGNS\nprint(json.dumps([sign.column for sign in SIGNS]))")
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


def test_a_person_lets_pass_what_waited_and_a_stricter_judge_less(launch: Launch, first_round: Round) -> None:
    given = {plan.WEAK_LABELS.first_window: first_round.weak_labels, **first_round.holdout}
    waited = sorted(records(first_round.judge.output("waiting.csv")))[:3]
    before = set(records(first_round.judge.output("trusted.csv")))
    reviewed = launch(plan.JUDGE, given, {"reviewed": waited})
    assert set(records(reviewed.output("trusted.csv"))) == before | set(waited)
    stricter = launch(plan.JUDGE, given, {"min_confidence": 0.8})
    assert set(records(stricter.output("trusted.csv"))) < before


def test_records_of_a_holdout_are_set_apart_however_sure_everybody_is(launch: Launch, first_round: Round, tmp_path: Path) -> None:
    trusted = first_round.judge.output("trusted.csv").read_text().splitlines()
    (tmp_path / "leaked.csv").write_text("\n".join(trusted[:4]) + "\n")
    given = {plan.WEAK_LABELS.first_window: first_round.weak_labels, "leaked_holdout": tmp_path / "leaked.csv"}
    ended = launch(plan.JUDGE, given)
    assert ended.metric("records_held_out") == [3]
    assert not set(records(ended.output("trusted.csv"))) & set(records(tmp_path / "leaked.csv"))


def test_without_a_holdout_the_judge_trusts_nothing(launch: Launch, first_round: Round) -> None:
    ended = launch(plan.JUDGE, {plan.WEAK_LABELS.first_window: first_round.weak_labels})
    assert (ended.code, ended.events("dataset")) == (2, [])
    assert "no holdout among the inputs" in ended.stderr
