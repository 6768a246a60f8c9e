"""Expressions in policies: what they may be, what they say, and that none of them holds anything up."""

import os
import time
from dataclasses import replace
from typing import Any

import pytest

from runs.commands.approval import decide_approval
from runs.commands.decision import decide_now
from runs.commands.policy import create_policy, propose_version
from runs.eligibility import Verdict
from runs.expressions.answered import answered
from runs.expressions.source import BadExpression
from runs.expressions.worker import STOPPED, Asking
from runs.models import Policy
from runs.policy.decide import decide
from runs.policy.document import read_policy
from runs.policy.facts import Facts, Result, facts_from
from runs.queries.policy import preview
from tests.factories import make_member
from tests.factories_runs import make_laboratory
from workspaces.audit import Denied, Refusal
from workspaces.ids import uuid7
from workspaces.models import Approval

RESULTS = tuple(Result(run=str(number), label=f"run {number}", parameters={"rate": number / 10}, value=number / 10) for number in range(10))
FACTS = Facts(at="2026-11-29T06:00:00+00:00", cause={"type": "person"}, best=0.9, target=0.95, results=RESULTS)
BOMB = "results.map(r, results).map(q, q + q + q + q + q + q).map(q, q + q + q + q + q).filter(z, z == z).size() > 1"


def policy_with(*expressions: str) -> Any:
    return read_policy(
        {
            "trigger": {"on": "manual"},
            "gate": [{"check": "cel", "expression": expression, "words": "Not yet."} for expression in expressions],
            "action": {"do": "notify", "words": "ready"},
        }
    )


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("best < target", True),
        ("best >= target || acted > 0", False),
        ("results.exists(r, r.parameters.rate > 0.85)", True),
        ("results.filter(r, r.value != null && r.value >= 0.5).size() >= 5", True),
        ("timestamp(at).getHours() < 5", False),
        ("left_gpu_ms == null", True),
        ("standing != null && standing.value < 0.5", False),
    ],
)
def test_an_expression_says_what_it_says_of_the_facts(expression: str, holds: bool) -> None:
    with Asking() as asking:
        said = asking.say([expression], FACTS.as_json())[expression]
    assert (said.holds, said.fault) == (holds, "")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("best <", "Syntax error"),
        ("", "An expression is needed"),
        ("best > 0.9 //" + "x" * 1100, "1,024 bytes"),
        ("'aaaa'.matches('(a+)+$')", "matches cannot be called"),
        ("results.map(r, results.map(s, s.value))", "map stands within another"),
        ("results.all(r, results . exists (s, s.value > r.value))", "exists stands within another"),
        ("password == 'x'", "password is not known here"),
        ("said.x", "said is not known here"),
        ("(" * 500 + "best" + ")" * 500 + " > 1.0", "parse"),
        ("__import__('os').system('true') == 0", "cannot be called here|not known here"),
    ],
)
def test_what_an_expression_may_not_be(expression: str, words: str) -> None:
    with Asking() as asking, pytest.raises(BadExpression, match=words):
        asking.check(expression)


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("best", "neither true nor false"),
        ("1 / acted > 0", "division by zero"),
        ("9223372036854775807 + acted + 1 > 0", "overflow"),
        ("cause.nothing == 1", "nothing"),
        ("target > '1'", "overload"),
    ],
)
def test_what_cannot_be_told_is_unknown_and_says_why(expression: str, fault: str) -> None:
    policy = policy_with(expression)
    with Asking() as asking:
        decided = decide(policy, answered(policy, FACTS, asking))
    check = decided.checks[0]
    assert (decided.outcome, check.verdict) == ("barred", Verdict.UNKNOWN)
    assert fault in check.words.lower()


def test_a_bomb_is_killed_and_what_comes_after_it_is_answered() -> None:
    many = replace(FACTS, results=RESULTS * 100)
    with Asking() as asking:
        begun = time.monotonic()
        said = asking.say([BOMB, "best > 0.5"], many.as_json())
        assert (said[BOMB].holds, said[BOMB].fault) == (None, STOPPED)
        assert said["best > 0.5"].holds is True
        pid = asking.pid
        asking.say([BOMB], many.as_json())
        assert pid is not None
        assert not os.path.exists(f"/proc/{pid}"), "what was stopped has ended"
        began_again = asking.pid
        for _ in range(100):
            assert asking.say([BOMB], many.as_json())[BOMB].holds is None
        assert asking.pid == began_again, "what had to be stopped twice is asked no more"
        assert time.monotonic() - begun < 60, "a hundred answers of 250 ms each would be 25 s, and a hundred starts more"
    assert began_again is None or not os.path.exists(f"/proc/{began_again}")


def test_what_was_said_is_kept_and_decides_again_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_with("best > 0.5", "results.size() == 10")
    with Asking() as asking:
        kept = answered(policy, FACTS, asking)
    monkeypatch.setattr(Asking, "say", None)  # nobody is asked again
    with Asking() as asking:
        again = answered(policy, facts_from(kept.as_json()), asking)
    assert decide(policy, again).as_json() == decide(policy, kept).as_json()
    assert decide(policy, kept).outcome == "acts"


def test_what_nobody_asked_never_passes() -> None:
    decided = decide(policy_with("best > 0.5"), FACTS)
    assert (decided.outcome, decided.checks[0].verdict) == ("barred", Verdict.UNKNOWN)


def document(expression: str) -> dict[str, Any]:
    return {
        "trigger": {"on": "manual"},
        "gate": [{"check": "cel", "expression": expression}],
        "action": {"do": "notify", "words": "look"},
    }


@pytest.mark.django_db(transaction=True)
def test_only_who_looks_after_the_workspace_proposes_one_and_a_decision_keeps_what_it_said() -> None:
    laboratory = make_laboratory()
    researcher = make_member(laboratory.workspace, "researcher")
    approver = make_member(laboratory.workspace, "approver")
    with laboratory.opened():
        policy = create_policy(actor=laboratory.owner, slug="long-tail", name="Long tail")
        with pytest.raises(Denied, match="manage workspace"):
            propose_version(actor=researcher, policy=policy, document=document("acted == 0"))
        with pytest.raises(Refusal, match="nobody is not known here"):
            propose_version(actor=laboratory.owner, policy=policy, document=document("nobody == 0"))
        version = propose_version(actor=laboratory.owner, policy=policy, document=document("acted == 0"))
        asked = Approval.objects.get(subject_id=version.pk)
        decide_approval(actor=approver, approval=asked, approves=True, seen_hash=asked.content_hash)
        first, second = (decide_now(actor=laboratory.owner, policy=Policy.objects.get(), cause_id=uuid7()) for _ in range(2))
        assert [first.outcome, second.outcome] == ["acts", "barred"]
        assert first.facts["said"] == {"acted == 0": {"holds": True, "fault": ""}}
        same = preview(policy, document("acted == 0"))
        assert same.simulation is not None
        assert same.simulation["different"] == 0
        other = preview(policy, document("acted < 5"))
        assert other.simulation is not None
        assert (other.simulation["different"], other.simulation["acted_now"]) == (1, 2), "it is asked of the facts that were kept"
