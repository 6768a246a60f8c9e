"""When policies do nothing: they wait a while for what is told by itself, and for nothing else; home says so where all is quiet."""

import pytest

from runs.commands.decision import decide_now
from runs.models import Decision
from tests.factories_pages import client_of
from tests.factories_promotions import check_overlaps, make_candidate
from tests.factories_registry import make_agent_version, make_dataset_version
from tests.factories_runs import launch, make_laboratory
from tests.factories_submissions import finish
from tests.runs.test_policy import DOCUMENT, approved, tick

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


def test_data_that_is_being_read_is_waited_for_also_where_reviewers_are_asked_afterwards() -> None:
    laboratory = make_laboratory()
    document = {
        "trigger": {"on": "evaluation_scored", "benchmark": "accuracy", "agent": "judge"},
        "gate": [{"check": "contamination"}, {"check": "reviewer_approval"}],
        "action": {"do": "promote", "name": "champion"},
    }
    with laboratory.opened():
        make_agent_version(laboratory.owner, "judge", code=b"print('judge')\n", kind="evaluate")
        approved(laboratory, document, slug="put-forward")
        model = make_candidate(laboratory)
        make_dataset_version(laboratory.owner, "later", role="holdout")
        finish(launch(laboratory, agent="judge", artifacts=(model.pk.hex,), datasets=()), 0.8)
    tick(laboratory)
    with laboratory.opened():
        assert not Decision.objects.exists(), "nobody can tell yet"
        check_overlaps()
    tick(laboratory)
    with laboratory.opened():
        assert Decision.objects.get().outcome == "acts", "its reviewers are asked"


def test_a_quiet_home_says_how_many_policies_act_and_how_many_have_done_all_they_may() -> None:
    laboratory = make_laboratory()
    client = client_of(laboratory.owner)
    assert "act here" not in client.get("/workspaces/lab/").content.decode()
    with laboratory.opened():
        once = approved(laboratory, DOCUMENT | {"limits": {"decisions": 1}}, slug="once")
        approved(laboratory, {"trigger": {"on": "run_ended"}, "action": {"do": "notify", "words": "Look"}}, slug="another")
    page = " ".join(client.get("/workspaces/lab/").content.decode().split())
    assert '<a href="/workspaces/lab/policies/">2 policies act here</a>. The list says what each waits for.' in page
    with laboratory.opened():
        assert decide_now(actor=laboratory.owner, policy=once).outcome == "acts"
    page = " ".join(client.get("/workspaces/lab/").content.decode().split())
    assert "2 policies act here</a>, 1 of them has used up what it may do." in page
