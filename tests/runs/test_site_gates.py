"""Gates of the site: expressions, reviewers, what is asked again when a person decides, what an owner alone can pass; on pages, by API."""

from typing import Any

import pytest
from django.test import Client

from runs.commands.approval import decide_approval
from runs.commands.decision import decide_now
from runs.commands.site_rules import decide_rules, propose_rules
from runs.models import Decision, Promotion
from runs.policy.decide import decide
from runs.policy.document import read_policy
from runs.policy.facts import facts_from
from tests.factories import make_member
from tests.factories_pages import client_of
from tests.factories_people import bearer, make_operator, make_token
from tests.factories_promotions import make_candidate
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.runs.test_gates import bell, judged, laboratory, promotes
from tests.runs.test_policy import approved, approver
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.models import Approval, AuditEvent, SiteRules

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["laboratory"]

HOSTILE = "<script>alert(1)</script>{{ 7|add:7 }}"
NOTIFIES: dict[str, Any] = {"trigger": {"on": "manual"}, "action": {"do": "notify", "words": "x"}}


def hold(document: dict[str, Any]) -> SiteRules:
    first, second = (make_operator(f"operator-{SiteRules.objects.count()}-{number}") for number in (1, 2))
    made = propose_rules(actor=first, document=document, reason="For all")
    return decide_rules(actor=second, number=made.number, approves=True, seen_hash=made.content_hash)


def put_forward(laboratory: Laboratory, *gate: dict[str, Any], author: Actor | None = None) -> Approval:
    with laboratory.opened():
        approved(laboratory, promotes(*gate), slug="put-forward")
        values: dict[str, Any] = {"requested_by_id": author.user.pk} if author is not None and author.user else {}
        candidate = make_candidate(laboratory, **values)
    judged(laboratory, candidate, rows=[(1.0, 0.5)])
    bell(laboratory)
    with laboratory.opened():
        return Approval.objects.get(subject_type="promotion")


def say_yes(actor: Actor, asked: Approval, **more: Any) -> str:
    decide_approval(actor=actor, approval=asked, approves=True, seen_hash=asked.content_hash, **more)
    return Promotion.objects.get(pk=asked.subject_id).status


def test_an_expression_of_the_site_is_asked_and_kept_with_the_decision() -> None:
    laboratory = make_laboratory()
    with pytest.raises(Refusal, match="bset"):
        propose_rules(actor=make_operator(), document={"gates": {"notify": [{"check": "cel", "expression": "bset > 1"}]}}, reason="x")
    rules = hold({"gates": {"notify": [{"check": "cel", "expression": "acted < 1", "words": "Once is enough"}]}})
    with laboratory.opened():
        policy = approved(laboratory, NOTIFIES, "tells")
        first, second = (decide_now(actor=laboratory.owner, policy=policy) for _ in range(2))
        assert (first.outcome, second.outcome) == ("acts", "barred")
        assert f"Site rules, version {rules.number}: Expression: false. Once is enough" in second.words
        for decision in (first, second):
            again = decide(read_policy(decision.version.document), facts_from(decision.facts))
            assert [fact.stored for fact in again.checks] == decision.checks, "a replay is exact and asks nobody"


def test_expressions_of_a_gate_are_asked_again_when_a_person_decides(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the facts of that moment, but for what the policy has done itself by putting forward."""
    once = {"check": "cel", "expression": "acted < 1"}
    quiet = {"check": "cel", "expression": "waiting_runs < 1", "words": "Nothing is promoted while runs wait"}
    asked = put_forward(laboratory, once, quiet, {"check": "reviewer_approval", "people": 2})
    with laboratory.opened():
        with monkeypatch.context() as silent:
            silent.setattr("runs.checks.gate.answered", lambda policy, facts, asking: facts)
            with pytest.raises(Refusal, match="An expression of the gate gives no answer now, acted < 1"):
                say_yes(approver(laboratory), asked)
        assert say_yes(approver(laboratory), asked) == "proposed", "it acted once by then, and that was this"
        launch(laboratory)
        assert say_yes(make_member(laboratory.workspace, "approver", "second"), asked) == "refused"
        asked.refresh_from_db()
        assert asked.status == "void"
        assert "Nothing is promoted while runs wait" in Promotion.objects.get().end_reason


def test_an_expression_that_the_site_demands_meanwhile_binds_what_waits(laboratory: Laboratory) -> None:
    asked = put_forward(laboratory)
    hold({"gates": {"promote": [{"check": "cel", "expression": "waiting_runs > 1000", "words": "Not before the rush"}]}})
    with laboratory.opened():
        assert say_yes(approver(laboratory), asked) == "refused"
        assert "Not before the rush" in Promotion.objects.get().end_reason


def test_the_site_demands_reviewers_of_what_a_policy_puts_forward(laboratory: Laboratory) -> None:
    hold({"gates": {"promote": [{"check": "reviewer_approval", "people": 2}]}})
    asked = put_forward(laboratory)
    with laboratory.opened():
        assert asked.quorum == 2, "whatever the policy says of it"
        assert "2 reviewers other than its author decide" in Decision.objects.get().words
        assert [entry["key"] for entry in asked.content["gate"]] == ["site_reviewer_approval"]
        assert say_yes(approver(laboratory), asked) == "proposed"
        assert say_yes(make_member(laboratory.workspace, "approver", "second"), asked) == "promoted"


def test_what_the_site_demands_meanwhile_binds_what_waits(laboratory: Laboratory) -> None:
    asked = put_forward(laboratory)
    with laboratory.opened():
        assert (asked.quorum, asked.content["gate"]) == (1, [])
    hold({"gates": {"promote": [{"check": "reviewer_approval", "people": 2}]}})
    with laboratory.opened():
        assert say_yes(approver(laboratory), asked) == "proposed", "two are wanted by now"
    hold({"gates": {"promote": [{"check": "licence", "allowed": ["MIT"]}]}})
    with laboratory.opened():
        assert say_yes(make_member(laboratory.workspace, "approver", "second"), asked) == "refused"
        asked.refresh_from_db()
        assert asked.status == "void"
        assert "Licences allowed" in Promotion.objects.get().end_reason


def test_an_owner_alone_takes_the_place_of_reviewers_but_of_nothing_else(laboratory: Laboratory) -> None:
    """Breaking the glass stands for people who are missing (feature 76). It is never the author's own, and opens no other check of the gate."""
    with laboratory.opened():
        author = make_member(laboratory.workspace, "owner", "author")
    asked = put_forward(laboratory, {"check": "reviewer_approval", "people": 2}, author=author)
    with laboratory.opened():
        with pytest.raises(Refusal, match="You asked for the run that made it"):
            say_yes(author, asked, comment="Nobody is here", is_alone=True)
        assert say_yes(laboratory.owner, asked, comment="Nobody is here", is_alone=True) == "promoted"
        assert AuditEvent.objects.filter(verb="approval.forced").count() == 1


def test_the_glass_opens_no_other_check(laboratory: Laboratory) -> None:
    with laboratory.opened():
        author = make_member(laboratory.workspace, "admin", "author")
    asked = put_forward(laboratory, {"check": "reviewer_approval", "people": 2}, author=author)
    hold({"gates": {"promote": [{"check": "licence", "allowed": ["MIT"]}]}})
    with laboratory.opened():
        assert say_yes(laboratory.owner, asked, comment="Nobody is here", is_alone=True) == "refused"


def test_a_policys_page_says_which_rules_hold_over_it() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        approved(laboratory, NOTIFIES, "tells")
    client = client_of(laboratory.owner)
    assert "Rules of the site" not in client.get("/workspaces/lab/policies/tells/").content.decode()
    hold({"acts_a_day": 3, "gpu_hours_a_week": 5, "gates": {"notify": [{"check": "best_score", "at_least": 0.5}]}})
    page = client.get("/workspaces/lab/policies/tells/").content.decode()
    assert "It acts at most 3 times in 24 hours." in page
    assert "Its gate asks besides: Best score (at least 0.5)." in page
    assert "a week" not in page.partition("Rules of the site")[2].partition("</section>")[0], "it launches nothing"
    hold({"forbidden_actions": ["notify"], "paused": HOSTILE})
    page = client.get("/workspaces/lab/policies/tells/").content.decode()
    assert "No policy may notify, so it never acts." in page
    assert "Every policy is stopped: &lt;script&gt;" in page


def test_what_a_gate_asks_of_all_data_has_a_name_of_its_own(laboratory: Laboratory) -> None:
    """Every promotion is asked about what it was trained on; the gate about all that lies under it, the holdouts of what measured it too."""
    asked = put_forward(laboratory, {"check": "contamination"})
    for address in (f"approvals/{asked.public_id}/", f"promotions/{asked.subject_id.hex}/"):
        page = client_of(approver(laboratory)).get(f"/workspaces/lab/{address}").content.decode()
        assert [page.count(name) for name in ("Trained on no holdout", "All data under it clean")] == [1, 1]


def test_operators_propose_decide_and_stop_by_api_and_tokens_do_not() -> None:
    laboratory = make_laboratory()
    first, second = (signed(make_operator(name)) for name in ("one", "two"))
    base, document = "/api/v1/site-rules", {"acts_a_day": 3}

    def post(client: Client, path: str = "", **body: Any) -> Any:
        return client.post(f"{base}{path}", body, "application/json")

    assert post(first, "/forecast", document=document).json() == {"items": []}
    assert post(first, "/forecast", document={"acts_a_day": 0}).status_code == 422
    made = post(first, document=document, reason="Not too often")
    assert made.status_code == 201, made.content
    number, seen = made.json()["number"], made.json()["content_hash"]
    assert post(first, f"/{number}/approve", content_hash=seen).status_code == 409, "nobody decides on their own"
    assert post(second, f"/{number}/refuse", content_hash=seen).status_code == 422, "why not?"
    assert post(second, "/99/approve", content_hash=seen).status_code == 404
    assert post(second, "/x/approve", content_hash=seen).status_code == 404
    assert post(second, f"/{number}/approve", content_hash=seen).json()["status"] == "active"
    assert post(second, "/stop", reason="It burns").json()["document"]["paused"] == "It burns"
    listed = first.get(f"{base}?limit=1").json()
    assert [row["is_stop"] for row in listed["items"]] == [True]
    assert listed["next"]
    plain = signed(laboratory.owner)
    assert [plain.get(base).status_code, post(plain, "/stop", reason="x").status_code] == [403, 403]
    with laboratory.opened():
        _, secret = make_token(laboratory.workspace, laboratory.owner, "policy:write")
    assert bearer(secret).get(base).status_code == 403


def signed(actor: Actor) -> Client:
    client = Client()
    assert actor.user is not None
    client.force_login(actor.user)
    return client
