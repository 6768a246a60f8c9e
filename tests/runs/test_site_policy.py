"""What the installation demands of every run stands in each certificate, and no approver of a workspace lifts it."""

from dataclasses import replace

import pytest
from django.test import Client

from runs.admission import Answer, decide
from runs.admission_facts import SiteFacts, facts_from
from runs.models import Certificate
from runs.queries.replay import unlike_their_facts
from tests.factories_people import make_operator
from tests.factories_runs import launch, make_laboratory
from tests.runs.test_admission import GOOD
from workspaces.audit import Refusal
from workspaces.commands.limit import set_limit
from workspaces.commands.site_policy import set_site_policy
from workspaces.models import Limit, SitePolicy, Unit


def test_it_refuses_with_the_arithmetic_and_replays() -> None:
    facts = replace(GOOD, site=SiteFacts(max_wall_seconds=60, forbids_no_isolation=True, asked_wall_seconds=90), is_approved=True)
    verdict = decide(facts)
    assert verdict.answer == Answer.REFUSE
    assert "90 of at most 60 seconds that this installation allows a run. Ask for 30 seconds less" in verdict.reasons[0]
    assert decide(facts_from(facts.as_json())) == verdict


@pytest.mark.parametrize("form", [2, 3])
def test_facts_of_older_forms_are_decided_as_they_were(form: int) -> None:
    kept = {name: value for name, value in GOOD.as_json().items() if name != "site"} | {"form": form}
    assert decide(facts_from(kept)) == decide(GOOD)


@pytest.mark.django_db(transaction=True)
def test_a_launch_beyond_it_is_refused_in_every_workspace_and_is_on_record() -> None:
    laboratory = make_laboratory()
    client = Client()
    operator = make_operator()
    assert operator.user is not None
    client.force_login(operator.user)
    assert client.post("/console/policy/", {"max_wall_seconds": "0"}).status_code == 422
    assert client.post("/console/policy/", {"max_wall_seconds": "30", "forbids_no_isolation": "on"}).status_code == 303
    assert SitePolicy.objects.get().max_wall_seconds == 30
    with laboratory.opened():
        with pytest.raises(Refusal, match="of at most 30 seconds") as refused:
            launch(laboratory)
        assert "this installation wants isolation" in str(refused.value)
        assert Certificate.objects.get().verdict == Certificate.Verdict.REFUSED
        set_site_policy(actor=operator, max_wall_seconds=None, forbids_no_isolation=False)
        launch(laboratory)
        assert list(unlike_their_facts()) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("unit", "amount", "words"), [(Unit.WALL_SECONDS, 30, "Wall time"), (Unit.SLOTS, 0, "1 slot of at most 0 slots a run")]
)
def test_a_workspace_limits_wall_time_and_slots_of_one_run(unit: str, amount: int, words: str) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        set_limit(actor=laboratory.owner, unit=unit, window=Limit.Window.RUN, amount=amount, mode=Limit.Mode.STOP, reason="as agreed")
        with pytest.raises(Refusal) as refused:
            launch(laboratory)
        lines = Certificate.objects.get().lines
        assert [line["answer"] for line in lines if line["unit"] == unit] == ["refuse"]
        assert words in str(refused.value) or words in str(lines)
