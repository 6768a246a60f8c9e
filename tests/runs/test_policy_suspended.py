"""A policy reads no champion that is suspended: nobody looks before it launches."""

from typing import Any

import pytest

from runs.commands.approval import decide_approval
from runs.commands.decision import decide_now
from runs.models import Decision, Sweep
from tests.factories_promotions import check_overlaps, make_candidate, propose
from tests.factories_registry import make_dataset_version
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.test_policy import DOCUMENT, approved, approver

pytestmark = pytest.mark.django_db(transaction=True)


def reading_champion(*, required: bool) -> dict[str, Any]:
    inputs = [{"dataset": "fresh"}, {"promoted": "champion", "required": required}]
    return DOCUMENT | {"conditions": [], "action": DOCUMENT["action"] | {"inputs": inputs}}


def read(decision: Decision) -> list[str]:
    return [entry["label"] for entry in decision.facts["artifacts"]]


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory(weekly_gpu_hours=1000)
    with made.opened():
        make_dataset_version(made.owner, "fresh", content=b"a,b\n70,80\n")
        _, asked = propose(made.owner, make_candidate(made))
        decide_approval(actor=approver(made), approval=asked, approves=True, seen_hash=asked.content_hash)
    return made


def contaminate(laboratory: Laboratory) -> None:
    """What the champion was trained on is found in a holdout that comes later."""
    make_dataset_version(laboratory.owner, "unseen", role="holdout", content=b"a,b\n9,9\n3,4\n")
    check_overlaps()


def test_one_that_has_to_read_it_launches_nothing_and_says_why(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = approved(laboratory, reading_champion(required=True))
        assert read(decide_now(actor=laboratory.owner, policy=policy)) == ["model.pt"]
        launched = Sweep.objects.count()
        contaminate(laboratory)
        decision = decide_now(actor=laboratory.owner, policy=policy)
        assert (decision.outcome, read(decision), Sweep.objects.count()) == ("holds", [], launched)
        assert decision.words.startswith("champion is suspended: table@1, which it was made of, is contaminated: 1 record of it")


def test_one_that_may_read_it_goes_without(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = approved(laboratory, reading_champion(required=False))
        assert read(decide_now(actor=laboratory.owner, policy=policy)) == ["model.pt"]
        contaminate(laboratory)
        decision = decide_now(actor=laboratory.owner, policy=policy)
        assert (decision.outcome, read(decision)) == ("acts", [])
