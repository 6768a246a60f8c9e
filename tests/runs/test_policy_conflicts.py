"""Policies that would start themselves for ever, promote under one name, launch one sweep twice, or leave their benchmark: refused with the way out,
when they are proposed and again when they are approved, and nothing is launched. Those that get nowhere are on the home page."""

from typing import Any

import pytest

from runs.commands.approval import decide_approval
from runs.commands.policy import create_policy, propose_version
from runs.models import Decision, PolicyVersion, Run
from runs.policy.conflicts import STARTED_BY, conflicts, is_bounded
from runs.policy.document import read_policy
from runs.queries.policy import FLAPPING, trouble
from runs.queries.policy_cause import LOOKS
from tests.factories_registry import make_benchmark
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.test_policy import DOCUMENT, approved, approver
from workspaces.audit import Refusal
from workspaces.models import Approval

Document = dict[str, Any]
LAUNCH: Document = {"trigger": {"on": "run_ended"}, "action": {"do": "launch_run", "agent": "worker", "benchmark": "accuracy"}}
REMEMBERS: Document = {
    "trigger": {"on": "memory_written", "collection": "notes"},
    "action": {"do": "write_memory", "kind": "note", "collection": "notes", "title": "x"},
}
PROMOTES: Document = {"trigger": {"on": "evaluation_scored"}, "action": {"do": "promote", "name": "champion"}}


def said(document: Document, **others: Document) -> str:
    return " ".join(conflicts("mine", read_policy(document), {name: read_policy(other) for name, other in others.items()}))


@pytest.mark.parametrize(
    ("document", "others"),
    [
        (LAUNCH, {}),
        (LAUNCH | {"trigger": {"on": "run_ended", "agent": "worker", "benchmark": "accuracy"}}, {}),
        (LAUNCH | {"limits": {"cooldown_minutes": 1, "failures": 3}}, {}),
        (LAUNCH | {"trigger": {"on": "dataset_grew", "dataset": "games"}}, {}),
        (LAUNCH | {"trigger": {"on": "memory_written", "collection": "notes"}}, {}),
        (LAUNCH | {"trigger": {"on": "promotion_decided"}}, {"crowns": PROMOTES}),
    ],
)
def test_what_would_start_itself_for_ever_needs_a_limit(document: Document, others: dict[str, Document]) -> None:
    assert "nothing ends that" in said(document, **others)
    assert "nothing ends that" not in said(document | {"limits": {"decisions": 3}}, **others), "a limit ends it"


@pytest.mark.parametrize(
    "document",
    [
        LAUNCH | {"trigger": {"on": "run_ended", "agent": "another"}},
        LAUNCH | {"trigger": {"on": "schedule", "every": "day"}},
        LAUNCH | {"limits": {"gpu_hours_a_week": 2}},
        REMEMBERS,  # what policies write starts none
        LAUNCH | {"trigger": {"on": "memory_reviewed"}},  # which people do
        {"trigger": {"on": "run_ended"}, "action": {"do": "notify", "words": "x"}},
    ],
)
def test_what_does_not_come_back_to_itself_needs_none(document: Document) -> None:
    assert said(document) == ""


def test_of_everything_that_policies_are_asked_about_it_is_known_whether_they_may_cause_it() -> None:
    by_people_alone = {"memory_reviewed"}
    assert set().union(*STARTED_BY.values()) | by_people_alone == set(LOOKS)


def test_a_limit_anywhere_in_a_circle_ends_it() -> None:
    after = LAUNCH | {"trigger": {"on": "promotion_decided"}}
    assert "through crowns" in said(after, crowns=PROMOTES)
    assert said(after, crowns=PROMOTES | {"limits": {"decisions": 5}}) == ""
    assert not is_bounded(read_policy(PROMOTES | {"limits": {"gpu_hours": 1}})), "GPU time bounds nothing that uses none"


def test_two_that_promote_under_one_name_or_launch_one_sweep_contradict_each_other() -> None:
    assert "crowns puts artifacts forward as champion too" in said(PROMOTES | {"gate": [{"check": "undeclared_input"}]}, crowns=PROMOTES)
    assert said(PROMOTES, crowns=PROMOTES | {"action": {"do": "promote", "name": "other"}}) == ""
    assert "twin launches the same sweep" in said(DOCUMENT, twin=DOCUMENT | {"trigger": {"on": "manual"}})
    other = DOCUMENT | {"action": DOCUMENT["action"] | {"parameters": {"depth": 2}}}
    assert said(DOCUMENT, twin=other) == ""
    assert said(DOCUMENT, mine=DOCUMENT) == "", "a policy is not held against its own version of before"


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory(weekly_gpu_hours=1000, at_once=4)


@pytest.mark.django_db(transaction=True)
def test_a_contradiction_is_refused_when_it_is_proposed_and_again_when_it_is_approved(laboratory: Laboratory) -> None:
    with laboratory.opened():
        early = create_policy(actor=laboratory.owner, slug="early", name="early")
        waiting = propose_version(actor=laboratory.owner, policy=early, document=DOCUMENT, reason="First asked")
        approved(laboratory)
        late = create_policy(actor=laboratory.owner, slug="late", name="late")
        with pytest.raises(Refusal, match="next-sweep launches the same sweep already"):
            propose_version(actor=laboratory.owner, policy=late, document=DOCUMENT, reason="Again")
        with pytest.raises(Refusal, match="nothing ends that"):
            propose_version(actor=laboratory.owner, policy=late, document=LAUNCH, reason="For ever")
        request = Approval.objects.get(subject_id=waiting.pk)
        with pytest.raises(Refusal, match="launches the same sweep already"):
            decide_approval(actor=approver(laboratory), approval=request, approves=True, seen_hash=request.content_hash)
        waiting.refresh_from_db()
        assert waiting.status == PolicyVersion.Status.PROPOSED
        assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_policy_that_is_narrowed_to_a_benchmark_looks_at_no_other_and_acts_on_no_other(laboratory: Laboratory) -> None:
    with laboratory.opened():
        make_benchmark(laboratory.owner, slug="speed")
        narrow = create_policy(actor=laboratory.owner, slug="narrow", name="narrow", benchmark="speed")
        for part in ({"trigger": {"on": "run_ended", "benchmark": "accuracy"}}, {"action": {"benchmark": "accuracy"}}):
            document = {"trigger": {"on": "manual"}, "action": {"do": "notify", "words": "x"}}
            document |= {"action": DOCUMENT["action"] | part["action"]} if "action" in part else part
            with pytest.raises(Refusal, match="this policy is narrowed to speed"):
                propose_version(actor=laboratory.owner, policy=narrow, document=document, reason="Elsewhere")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        (["limited"] * FLAPPING, "Its limits held it back"),
        (["acts", "holds"] * (FLAPPING // 2), "acted every other time"),
        (["failed"], "Its last decision failed"),
    ],
)
def test_a_policy_that_gets_nowhere_says_why_with_the_way_out(laboratory: Laboratory, outcomes: list[str], words: str) -> None:
    """Each reason; that home shows what `failing` finds is told elsewhere (test_policy.py)."""
    with laboratory.opened():
        policy = approved(laboratory)
        version = policy.versions.get()
        newest = [
            Decision(policy=policy, version=version, outcome=outcome, status="failed" if outcome == "failed" else "done", words="Said.")
            for outcome in outcomes
        ]
        told = trouble(policy, version, newest)
        assert words in told
        assert "Propose a version" in told
        mixed = [
            Decision(policy=policy, version=version, outcome=outcome, status="done") for outcome in ("limited", "acts", "holds", "holds")
        ]
        assert trouble(policy, version, mixed) == "", "and of one that does its work there is nothing to tell"
