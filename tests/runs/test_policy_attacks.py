"""Attacks on policies and on those who decide for them: each was once let through, or would be by a careless change."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from runs.checks.candidate import candidate_of
from runs.checks.gate_chain import reviews_for
from runs.commands.approval import decide_approval, withdraw_approval
from runs.commands.decision import decide_now, record_decision
from runs.commands.memory import Said, review_memory, revise_memory, undo_memory_withdrawal, withdraw_memory, write_memory
from runs.commands.policy import create_policy, propose_version, retire_policy
from runs.expressions import worker
from runs.expressions.source import BadExpression, check_text
from runs.jobs.decide import decide_policies
from runs.models import Policy, Sweep
from runs.policy.decide import decide
from runs.policy.document import read_policy
from runs.policy.facts import Cause, Facts
from runs.queries import policy as policy_queries
from runs.queries.policy import preview
from runs.queries.policy_cause import acting_versions, causes_of
from tests.factories import make_member
from tests.factories_promotions import make_candidate, propose
from tests.factories_runs import Laboratory, make_laboratory
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.delegation import delegate, in_the_name_of
from workspaces.commands.member import change_member, create_service_account
from workspaces.commands.token import create_token
from workspaces.commands.workspace import configure_workspace
from workspaces.models import Agent, Approval, ApprovalVote, Benchmark, Membership, User
from workspaces.queries.chain import verify_chain

DOCUMENT: dict[str, Any] = {
    "trigger": {"on": "manual"},
    "action": {"do": "launch_run", "agent": "worker", "benchmark": "accuracy", "parameters": {"rate": 0.1}, "gpu_hours_each": 0.6},
    "limits": {"decisions": 100, "gpu_hours": 1},
}
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory(weekly_gpu_hours=1000, at_once=4)


def approver(laboratory: Laboratory) -> Actor:
    known = User.objects.filter(username="approver-lab").first()
    return Actor.of(known) if known else make_member(laboratory.workspace, "approver")


def approved(laboratory: Laboratory, document: dict[str, Any], slug: str = "attacked", policy: Policy | None = None) -> Policy:
    policy = policy or create_policy(actor=laboratory.owner, slug=slug, name=slug)
    version = propose_version(actor=laboratory.owner, policy=policy, document=document, reason="to see")
    request = Approval.objects.get(subject_id=version.pk)
    decide_approval(actor=approver(laboratory), approval=request, approves=True, seen_hash=request.content_hash)
    policy.refresh_from_db()
    return policy


@pytest.mark.parametrize("limits", [{"gpu_hours": 1}, {"gpu_hours_a_week": 1}, {"budget_share_percent": 0.1}])
def test_two_decisions_before_the_job_has_acted_on_either_stay_within_one_limit(laboratory: Laboratory, limits: dict[str, Any]) -> None:
    with laboratory.opened():
        policy = approved(laboratory, {**DOCUMENT, "limits": limits})
        first, second = decide_now(actor=laboratory.owner, policy=policy), decide_now(actor=laboratory.owner, policy=policy)
        assert (first.outcome, second.outcome) == ("acts", "limited"), second.words
        key = laboratory.workspace.pk.hex
    decide_policies(workspace_id=key, subject_id=key)
    with laboratory.opened():
        assert Sweep.objects.count() == 1


def test_what_a_superseded_version_decided_and_did_not_do_is_not_done(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = approved(laboratory, DOCUMENT)
        decision = decide_now(actor=laboratory.owner, policy=policy)
        approved(laboratory, {**DOCUMENT, "limits": {"gpu_hours": 0.1}}, policy=policy)
        key = laboratory.workspace.pk.hex
    decide_policies(workspace_id=key, subject_id=key)
    with laboratory.opened():
        decision.refresh_from_db()
        assert not Sweep.objects.exists()
        assert decision.status == "failed"
        assert decision.failure == "Version 1 was replaced before it acted."


def test_whoever_made_a_token_does_not_vouch_for_what_it_wrote(laboratory: Laboratory) -> None:
    with laboratory.opened():
        human = approver(laboratory)
        token, _ = create_token(actor=human, name="loop", scopes=["memory:write"], days=1)
        through = replace(laboratory.owner, token_id=token.pk)
        entry = write_memory(actor=through, said=Said(kind="finding", collection="openings", title="Believe me"))
        with pytest.raises(Refusal, match="token that you made"):
            review_memory(actor=human, entry=entry, trust="durable", seen_hash=entry.content_hash, comment="mine")
        second = revise_memory(actor=through, entry=entry, said=Said(kind="finding", collection="openings", title="Believe me now"))
        with pytest.raises(Refusal, match="token that you made"):
            review_memory(actor=human, entry=second, trust="durable", seen_hash=second.content_hash, comment="mine")


def test_an_expression_is_approved_only_while_its_proposer_may_still_write_one(laboratory: Laboratory) -> None:
    with laboratory.opened():
        admin = make_member(laboratory.workspace, "admin")
        policy = create_policy(actor=admin, slug="expressed", name="expressed")
        document = {**DOCUMENT, "gate": [{"check": "cel", "expression": "acted < 5"}]}
        version = propose_version(actor=admin, policy=policy, document=document, reason="to see")
        membership = Membership.objects.get(user=admin.user)
        change_member(actor=laboratory.owner, member=membership.public_id, role="researcher")
        request = Approval.objects.get(subject_id=version.pk)
        with pytest.raises(Refusal, match="may no longer"):
            decide_approval(actor=approver(laboratory), approval=request, approves=True, seen_hash=request.content_hash)
        version.refresh_from_db()
        assert version.status == "proposed"


def test_a_simulation_gives_up_on_expressions_that_are_slow_and_says_how_many_it_did_not_judge(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with laboratory.opened():
        policy = approved(laboratory, {**DOCUMENT, "limits": {"decisions": 100}})
        for _ in range(5):
            decide_now(actor=laboratory.owner, policy=policy)
        slow = {**DOCUMENT, "gate": [{"check": "cel", "expression": f"acted < {number + 2}"} for number in range(20)]}
        monkeypatch.setattr(worker, "TOGETHER", 0.001)
        seen = preview(policy, slow)
        assert seen.simulation is not None
        assert (seen.simulation["decisions"], seen.simulation["unread"]) == (5, 5)
        assert "5 were not judged" in seen.words
        monkeypatch.setattr(worker, "TOGETHER", 30.0)
        assert (preview(policy, slow).simulation or {})["unread"] == 0
        monkeypatch.setattr(policy_queries, "MOST_SECONDS", -1)
        assert (preview(policy, {**DOCUMENT, "limits": {"decisions": 7}}).simulation or {})["unread"] == 5, "of a rule that takes long too"


@pytest.mark.parametrize(
    "expression",
    [
        r"r'\' != '' && results.all(best, results.all(target, true)) && '' == ''",
        r"""r"\" != "" && results.all(best, results.all(target, true)) && "" == "" """,
        r"'''a\'''' != '' && results.all(best, results.all(target, true)) && ''''' == ''",
        r"br'\' != b'' && results.all(best, results.all(target, true)) && '' == ''",
    ],
)
def test_no_text_hides_a_loop_within_a_loop(expression: str) -> None:
    with pytest.raises(BadExpression, match="may not hold another"):
        check_text(expression)


SELF: dict[str, Any] = {"trigger": {"on": "run_ended", "agent": "worker"}, "action": DOCUMENT["action"]}
BOTH = {"on": "run_ended", "agent": "worker", "benchmark": "accuracy"}
PUT: dict[str, Any] = {"trigger": {"on": "evaluation_scored"}, "action": {"do": "promote", "name": "best-model"}}
ASKS: dict[str, Any] = {"trigger": {"on": "question_answered", "policy": "attacked"}, "action": {"do": "ask", "question": "Again?"}}


def spelled(laboratory: Laboratory, noun: str, how: str) -> str:
    found = {"agent": Agent, "benchmark": Benchmark}[noun].objects.get()
    return {"id": found.public_id, "uuid": str(found.pk), "hex": found.pk.hex}[how]


@pytest.mark.parametrize("how", ["id", "uuid", "hex"])
@pytest.mark.parametrize("noun", ["agent", "benchmark"])
def test_no_spelling_of_a_name_hides_that_a_policy_starts_itself(laboratory: Laboratory, noun: str, how: str) -> None:
    with laboratory.opened():
        name = spelled(laboratory, noun, how)
        policy = create_policy(actor=laboratory.owner, slug="attacked", name="attacked")
        for document in (
            {**SELF, "trigger": {"on": "run_ended", noun: name}},
            {**SELF, "trigger": BOTH, "action": {**SELF["action"], noun: name}},
        ):
            with pytest.raises(Refusal, match="may start it again"):
                propose_version(actor=laboratory.owner, policy=policy, document=document)
        assert not policy.versions.exists()


def test_no_spelling_of_a_name_hides_that_two_policies_contradict_each_other(laboratory: Laboratory) -> None:
    with laboratory.opened():
        approved(laboratory, PUT, slug="one-gate")
        other = create_policy(actor=laboratory.owner, slug="attacked", name="attacked")
        with pytest.raises(Refusal, match="one-gate puts artifacts forward"):
            propose_version(actor=laboratory.owner, policy=other, document={**PUT, "action": {"do": "promote", "name": "best_model"}})
        for name in ("attacked", other.public_id, other.pk.hex):
            with pytest.raises(Refusal, match="may start it again"):
                propose_version(actor=laboratory.owner, policy=other, document={**ASKS, "trigger": {**ASKS["trigger"], "policy": name}})
        sweep = {"do": "launch_sweep", "agent": "worker", "benchmark": "accuracy", "choose": {"rule": "ucb1", "axes": {"rate": [0.1, 0.2]}}}
        approved(laboratory, {"trigger": {"on": "manual"}, "action": sweep}, slug="one-sweep")
        same = {**sweep, "agent": spelled(laboratory, "agent", "id"), "benchmark": spelled(laboratory, "benchmark", "hex")}
        with pytest.raises(Refusal, match="one-sweep launches the same sweep already"):
            propose_version(actor=laboratory.owner, policy=other, document={"trigger": {"on": "manual"}, "action": same})
        assert not other.versions.exists()


def test_a_clock_that_is_put_back_or_moved_to_another_zone_asks_no_schedule_twice(laboratory: Laboratory) -> None:
    now = timezone.now()
    with laboratory.opened():
        configure_workspace(actor=laboratory.owner, zone="UTC")
        schedule = {"on": "schedule", "every": "day", "at": f"{now - timedelta(minutes=10):%H:%M}"}
        policy = approved(laboratory, {"trigger": schedule, "action": {"do": "notify", "words": "Look"}})
        version = policy.versions.select_related("policy").get()
        version.decided_at = now - timedelta(days=3)

        def asked(at: datetime) -> list[Cause]:
            return causes_of(version, schedule, at, limit=5)

        [first] = asked(now)
        facts = Facts(at=now.isoformat(), cause={"on": "schedule", "type": first.type, "id": first.id.hex, "label": first.label})
        decided = decide(read_policy(version.document), facts)
        record_decision(actor=Actor.system(job_id="t"), version=version, cause=first, facts=facts, decided=decided)
        assert asked(now + timedelta(minutes=5)) == []
        assert asked(now - timedelta(hours=2)) == [], "the clock was put back"
        configure_workspace(actor=laboratory.owner, zone="Asia/Tokyo")
        assert asked(now + timedelta(minutes=10)) == [], "that hour of Tokyo had passed before it was asked"
        assert len(asked(now + timedelta(hours=15))) == 1, "its next comes"


@pytest.mark.parametrize("how", ["another", "token", "lent"])
def test_an_author_is_no_reviewer_through_a_token_or_a_lent_voice(laboratory: Laboratory, how: str) -> None:
    with laboratory.opened():
        author, decides = make_member(laboratory.workspace, "admin", "author"), approver(laboratory)
        made_by: dict[str, Any] = {"requested_by_id": author.user.pk if author.user else None}
        if how == "token":
            token, _ = create_token(actor=decides, name="loop", scopes=["run:write"], days=1)
            artifact = make_candidate(replace(laboratory, owner=replace(laboratory.owner, token_id=token.pk)), **made_by)
        else:
            artifact = make_candidate(laboratory, **made_by)
        if how == "lent":
            now, friend = timezone.now(), make_member(laboratory.workspace, "approver", "friend")
            lent = delegate(actor=author, username="friend", starts_at=now - timedelta(hours=1), ends_at=now + timedelta(hours=1))
            decides = in_the_name_of(friend, lent)
        promotion, asked = propose(laboratory.owner, artifact)
        decide_approval(actor=decides, approval=asked, approves=True, seen_hash=asked.content_hash)
        promotion.refresh_from_db()
        assert promotion.status == "promoted", "no policy asks for reviewers here"
        assert laboratory.owner.user is not None
        found = reviews_for([{"check": "reviewer_approval"}], candidate_of(artifact, "champion"), "champion", laboratory.owner.user)
        said = [entry["person"] for entry in found["reviewer_approval"]["approved"]]
        assert len(said) == (1 if how == "another" else 0), said


def test_of_approve_and_withdraw_and_pause_at_once_one_holds_and_the_other_is_told(laboratory: Laboratory) -> None:
    with laboratory.opened():
        decides = approver(laboratory)
    for number, act in enumerate(("withdraw", "propose", "retire"), start=1):
        with laboratory.opened():
            policy = create_policy(actor=laboratory.owner, slug=f"raced-{number}", name="raced")
            document = {"trigger": {"on": "manual"}, "action": {"do": "notify", "words": "x"}}
            version = propose_version(actor=laboratory.owner, policy=policy, document=document, reason="to see")
            request = Approval.objects.get(subject_id=version.pk)
        ready = Barrier(2, timeout=60)

        def approve(request: Approval = request, ready: Barrier = ready) -> None:
            ready.wait()
            decide_approval(actor=decides, approval=request, approves=True, seen_hash=request.content_hash)

        def against(policy: Policy = policy, act: str = act, request: Approval = request, ready: Barrier = ready) -> None:
            ready.wait()
            if act == "withdraw":
                withdraw_approval(actor=laboratory.owner, approval=request, reason="no more")
            elif act == "propose":
                edited = {"trigger": {"on": "manual"}, "action": {"do": "notify", "words": "y"}}
                propose_version(actor=laboratory.owner, policy=policy, document=edited, reason="better")
            else:
                retire_policy(actor=laboratory.owner, policy=policy, reason="no more")

        def told(work: Callable[[], None]) -> str:
            try:
                with laboratory.opened():
                    work()
            except Refusal as refusal:
                return str(refusal)
            finally:
                connection.close()
            return ""

        with ThreadPoolExecutor(2) as pool:
            said = list(pool.map(told, (approve, against)))
        with laboratory.opened():
            version.refresh_from_db()
            request.refresh_from_db()
            policy.refresh_from_db()
            if request.status == "approved":
                assert not said[0]
                assert version.status == "active"
                assert said[1] or act != "withdraw"
            else:
                assert said[0], "whoever approves is told that it was too late"
                assert version.status == "withdrawn"
                assert not ApprovalVote.objects.filter(approval=request).exists()
            if act == "retire":
                assert policy.status == "retired"
                assert not causes_allowed(policy)
            assert verify_chain().is_whole


def causes_allowed(policy: Policy) -> bool:
    return acting_versions().filter(policy=policy).exists()


def test_no_service_takes_away_what_a_person_vouched_for(laboratory: Laboratory) -> None:
    with laboratory.opened():
        robot = create_service_account(actor=laboratory.owner, username="robot", display_name="Robot").user
        assert robot is not None
        said = Said(kind="failed_attempt", collection="failed-search-configs", title="Diverges", configuration={"rate": 0.4})
        entry = write_memory(actor=laboratory.owner, said=said)
        own = write_memory(actor=Actor.of(robot), said=said)
        assert revise_memory(actor=Actor.of(robot), entry=own, said=replace(said, title="Diverges often")).revision == 2
        entry = review_memory(actor=approver(laboratory), entry=entry, trust="durable", seen_hash=entry.content_hash, comment="seen")
        acts: tuple[Callable[[], Any], ...] = (
            lambda: withdraw_memory(actor=Actor.of(robot), entry=entry, reason="It is in my way."),
            lambda: revise_memory(actor=Actor.of(robot), entry=entry, said=replace(said, configuration={"rate": 9.9})),
        )
        for act in acts:
            with pytest.raises(Refusal, match="A person has vouched for this"):
                act()
        withdraw_memory(actor=laboratory.owner, entry=entry, reason="Measured wrongly.")
        with pytest.raises(Refusal, match="person"):
            undo_memory_withdrawal(actor=Actor.of(robot), entry=entry, reason="I like it.")
        entry.refresh_from_db()
        assert entry.trust == "withdrawn"
