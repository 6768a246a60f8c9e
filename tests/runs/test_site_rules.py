"""Rules of the site win over every workspace's policies, make only narrower, take two operators, and stand in the decision that they barred."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from django.test import Client

from runs.commands.decision import decide_now
from runs.commands.site_rules import decide_rules, propose_rules, stop_policies
from runs.jobs.decide import carry_out
from runs.models import Decision, Sweep
from runs.policy.decide import Outcome, decide
from runs.policy.document import BadPolicy, read_policy
from runs.policy.facts import Facts, facts_from
from runs.policy.site import read_rules
from runs.policy.starters import STARTERS
from runs.queries.policy import preview
from tests.factories_pages import HOSTILE, client_of
from tests.factories_people import make_operator
from tests.factories_runs import make_laboratory
from tests.runs.test_policy import DOCUMENT, approved
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.user import set_site_roles
from workspaces.models import SiteEvent, SiteRules
from workspaces.models.event import ActorKind

FACTS = Facts(
    at="2026-11-29T10:00:00+00:00", cause={"on": "x", "type": "person", "id": "0", "label": "somebody"},
    of={"agent": "worker", "benchmark": "accuracy"}, left_gpu_ms=10**9, gpu_ms_each=1000, target=0.9, best=0.95, waiting_runs=0,
)  # fmt: skip
ALWAYS = DOCUMENT | {"conditions": []}
RULES: list[dict[str, Any]] = [
    {},
    {"paused": "look"},
    {"forbidden_actions": ["notify"]},
    {"forbidden_triggers": ["schedule"]},
    {"acts_a_day": 2},
    {"gpu_hours_a_week": 0.001},
    {"gates": {"notify": [{"check": "best_score", "at_least": 2}], "launch_run": [{"check": "queue_short", "at_most": 5}]}},
]


def test_rules_only_ever_make_narrower_and_say_so_by_their_version() -> None:
    barred = 0
    for document, rules, acted, best in product((*STARTERS.values(), DOCUMENT), RULES, (0, 2), (None, 0.5, 0.95)):
        policy, facts = read_policy(document), replace(FACTS, best=best)
        own = decide(policy, facts)
        under = decide(policy, replace(facts, site={"version": 7, "document": read_rules(rules), "acted_lately": acted}))
        assert under.outcome == own.outcome or (own.outcome == Outcome.ACTS and under.outcome == Outcome.BARRED)
        assert under.checks[: len(own.checks)] == own.checks, "the policy's own checks stay as they are"
        assert all(fact.name.startswith("Site rules, version 7: ") for fact in under.checks[len(own.checks) :])
        barred += under.outcome != own.outcome
        kept = json.loads(json.dumps(replace(facts, site={"version": 7, "document": rules, "acted_lately": acted}).as_json()))
        assert decide(policy, facts_from(kept)) == under, "a replay is exact, whatever holds by then"
    assert barred > 5, "and some of it is barred"


@pytest.mark.parametrize(
    "rules",
    [[], "x", {"allows": 1}, {"acts_a_day": 0}, {"paused": ""}, {"gates": {"notify": [{"check": "cel"}]}},
     {"gates": {"notify": [{"check": "reviewer_approval"}]}}, {"gates": {"notify": [{"check": "budget_left"}]}}, {"forbidden_actions": [HOSTILE]}],
)  # fmt: skip
def test_rules_that_are_none_are_refused(rules: Any) -> None:
    with pytest.raises(BadPolicy):
        read_rules(rules)


@pytest.mark.django_db(transaction=True)
def test_two_operators_bar_a_launch_in_a_workspace_and_one_stops_them_all() -> None:
    laboratory = make_laboratory(weekly_gpu_hours=1000, at_once=4)
    first, second = make_operator(), make_operator("second-operator")
    with laboratory.opened():
        policy = approved(laboratory, ALWAYS)
        before = decide_now(actor=laboratory.owner, policy=policy)
        assert before.outcome == Outcome.ACTS
        meant = decide_now(actor=laboratory.owner, policy=policy)
    rules = {"forbidden_actions": ["launch_sweep"]}
    made = propose_rules(actor=first, document=rules, reason="No sweeps this week")
    assert made.forecast == [{"workspace": "lab", "policies": 1, "decisions": 2, "different": 2}]
    with laboratory.opened():
        preview_before = preview(policy, ALWAYS).simulation
        assert preview_before is not None
        assert preview_before["different"] == 0, "what only waits holds nobody"
    with pytest.raises(Refusal, match="another operator has to"):
        decide_rules(actor=first, number=made.number, approves=True, seen_hash=made.content_hash)
    with pytest.raises(Refusal, match="has changed since you looked"):
        decide_rules(actor=second, number=made.number, approves=True, seen_hash="0" * 64)
    decide_rules(actor=second, number=made.number, approves=True, seen_hash=made.content_hash)
    with laboratory.opened():
        barred = decide_now(actor=laboratory.owner, policy=policy)
        assert barred.outcome == Outcome.BARRED
        assert f"Site rules, version {made.number}: Action allowed" in barred.words
        assert barred.facts["site"]["document"] == rules
        carry_out(Actor(ActorKind.SYSTEM, None, "system"), Decision.objects.get(pk=meant.pk))
        meant.refresh_from_db()
        assert meant.failure == f"No policy may launch sweep (site rules, version {made.number}).", "decided before, and not done since"
    page = client_of(laboratory.owner).get(f"/workspaces/lab/decisions/{barred.pk.hex}/").content.decode()
    assert f"Site rules, version {made.number}: Action allowed" in page
    lifted = propose_rules(actor=second, document={}, reason="Over")
    decide_rules(actor=first, number=lifted.number, approves=True, seen_hash=lifted.content_hash)
    with laboratory.opened():
        simulated = preview(policy, ALWAYS).simulation
        assert simulated is not None
        assert simulated["different"] == 0, "decisions are held against the rules of their time"
    propose_rules(actor=first, document={"acts_a_day": 9}, reason="More")
    stop = stop_policies(actor=first, reason="Something burns")
    assert SiteRules.objects.get(document={"acts_a_day": 9}).status == "withdrawn", "what was proposed before a stop lifts none"
    with laboratory.opened():
        carry_out(Actor(ActorKind.SYSTEM, None, "system"), Decision.objects.get(pk=before.pk))
        before.refresh_from_db()
        assert before.status == "failed"
        assert "Something burns" in before.failure
        assert not Sweep.objects.exists(), "what was decided before the stop launches nothing after it"
    with pytest.raises(Refusal, match="stopped already"):
        stop_policies(actor=second, reason="Again")
    assert stop.is_stop
    assert [event.verb for event in SiteEvent.objects.filter(verb__startswith="site_rules").order_by("sequence")] == [
        "site_rules.proposed", "site_rules.decided", "site_rules.proposed", "site_rules.decided", "site_rules.proposed", "site_rules.stopped",
    ]  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_the_console_proposes_decides_and_stops_for_operators_alone() -> None:
    laboratory = make_laboratory()
    first, second = make_operator(), make_operator("second-operator")
    assert first.user is not None
    asking, deciding = client_of(first), client_of(second)
    assert client_of(laboratory.owner).get("/console/rules/").status_code in (403, 404)
    for text in ("{", "[]", json.dumps({"paused": HOSTILE * 99}), json.dumps({HOSTILE: 1}), '{"acts_a_day": 1e999}', "[" * 5000):
        for extra in ({}, {"check": "1"}):
            answer = asking.post("/console/rules/", {"document": text, "reason": HOSTILE, **extra})
            assert answer.status_code in (409, 422), text[:40]
            assert HOSTILE not in answer.content.decode()
    assert not SiteRules.objects.exists()
    document = json.dumps({"paused": HOSTILE[:200]})
    assert "no policy that acts" in asking.post("/console/rules/", {"document": document, "check": "1"}).content.decode()
    assert asking.post("/console/rules/", {"document": document, "reason": HOSTILE}).status_code == 303
    shown = deciding.get("/console/rules/").content.decode()
    assert HOSTILE not in shown
    made = SiteRules.objects.get()
    place = f"/console/rules/{made.number}/decide/"
    assert asking.post(place, {"approve": "yes", "seen": made.content_hash}).status_code == 409
    assert deciding.post(place, {"approve": "no", "seen": made.content_hash}).status_code == 409, "a refusal says why"
    set_site_roles(actor=second, username=first.user.username, roles=[])
    assert deciding.post(place, {"approve": "yes", "seen": made.content_hash}).status_code == 409, (
        "an operator of the past proposes nothing"
    )
    assert deciding.post(place, {"approve": "no", "seen": made.content_hash, "comment": HOSTILE}).status_code == 303
    assert deciding.post("/console/rules/stop/", {"reason": "now"}).status_code == 303
    assert deciding.get("/console/rules/").status_code == 200
    assert Client().post("/console/rules/stop/", {"reason": "now"}).status_code in (302, 303, 403)
