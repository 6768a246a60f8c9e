"""A policy waits a while for what is told by itself, and for nothing else."""

import pytest

from runs.models import Decision
from tests.factories_promotions import make_candidate
from tests.factories_registry import make_agent_version
from tests.factories_runs import launch, make_laboratory
from tests.factories_submissions import finish
from tests.runs.test_policy import approved, tick

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_gate_that_nobody_can_tell_without_more_being_done_is_shut_at_once() -> None:
    """Ten minutes of silence look like a loop that has ended."""
    laboratory = make_laboratory()
    document = {
        "trigger": {"on": "evaluation_scored", "benchmark": "accuracy"},
        "gate": [{"check": "contamination"}, {"check": "cause_ended", "as": ["succeeded"]}],
        "action": {"do": "promote", "name": "champion"},
    }
    with laboratory.opened():
        approved(laboratory, document, slug="put-forward")
        make_agent_version(laboratory.owner, "judge", code=b"print('judge')\n", kind="evaluate")
        model = make_candidate(laboratory)
        finish(launch(laboratory, agent="judge", artifacts=(model.pk.hex,), datasets=()), 0.8)
    tick(laboratory)
    with laboratory.opened():
        decision = Decision.objects.latest("number")
        assert (decision.outcome, [check["verdict"] for check in decision.checks]) == ("barred", ["pass", "unknown"])
