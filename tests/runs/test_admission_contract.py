"""What a contract demands of a launch: open or closed, ceilings of an evaluation, the evaluator. Pure."""

from dataclasses import replace
from typing import Any

import pytest

from runs.admission import Answer, decide
from runs.admission_contract import ContractFacts
from runs.admission_facts import Facts, facts_from
from tests.runs.test_admission import GOOD

OPEN = ContractFacts(
    benchmark="Accuracy", version=3, opens="1 January 2027 09:00 Europe/Berlin", closes="1 February 2027 09:00 Europe/Berlin"
)


def facts(contract: ContractFacts, *, kind: str = "train") -> Facts:
    return replace(GOOD, agent=replace(GOOD.agent, kind=kind), contract=contract)


def line(contract: ContractFacts, name: str, *, kind: str = "train") -> Any:
    return next((found for found in decide(facts(contract, kind=kind)).lines if found.name == name), None)


@pytest.mark.parametrize(
    ("moment", "answer", "way_out"),
    [("open", "pass", ""), ("before", "refuse", "Ask again from 1 January 2027"), ("after", "refuse", "It is closed")],
)
def test_a_contract_takes_runs_between_its_instants(moment: str, answer: str, way_out: str) -> None:
    found = line(replace(OPEN, moment=moment), "Contract is open")
    assert (found.answer, found.way_out[: len(way_out)]) == (answer, way_out)
    assert found.words == (
        "Accuracy takes runs from 1 January 2027 09:00 Europe/Berlin until 1 February 2027 09:00 Europe/Berlin, as contract version 3 says."
    )


@pytest.mark.parametrize(("asked", "answer"), [(2**30, "pass"), (2**30 + 1, "refuse"), (None, "refuse")])
def test_an_evaluation_stays_under_the_memory_that_the_contract_allows(asked: int | None, answer: str) -> None:
    contract = replace(OPEN, memory_bytes=2**30, asked_memory_bytes=asked)
    assert line(contract, "Memory, contract", kind="evaluate").answer == answer
    assert line(contract, "Memory, contract", kind="train") is None


def test_an_evaluation_stays_under_the_time_that_the_contract_allows() -> None:
    found = line(replace(OPEN, wall_seconds=60, asked_wall_seconds=90), "Wall time, contract", kind="evaluate")
    assert (found.answer, found.way_out) == ("refuse", "Ask for 30 seconds less.")
    assert line(replace(OPEN, wall_seconds=60, asked_wall_seconds=60), "Wall time, contract", kind="evaluate").answer == "pass"


def test_only_the_evaluator_evaluates_and_others_may_make_what_it_scores() -> None:
    contract = replace(OPEN, evaluator="Judge version 2")
    other = line(contract, "Evaluator", kind="evaluate")
    assert (other.answer, other.words) == (
        "refuse",
        "Only Judge version 2 scores on Accuracy, as contract version 3 says; this is Worker version 3.",
    )
    assert line(replace(contract, is_evaluator=True), "Evaluator", kind="evaluate").answer == "pass"
    assert line(contract, "Evaluator", kind="train").answer == "warn"
    assert decide(facts(contract)).answer == Answer.PASS


def test_kept_facts_give_the_same_verdict_again() -> None:
    asked = facts(replace(OPEN, moment="after", evaluator="Judge version 2", memory_bytes=1, asked_memory_bytes=None), kind="evaluate")
    assert decide(facts_from(asked.as_json())) == decide(asked)
    assert decide(facts_from({**GOOD.as_json(), "contract": None})) == decide(GOOD)
