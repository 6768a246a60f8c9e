"""The loop of the Go laboratory, closed by its policies alone: games, a sweep, the arena, a champion that a person approves, its games, and again."""

import re
import time
from typing import Any

import pytest

from labsite.examples.autogo import make, plan, policies
from labsite.examples.ground import plain
from runs.commands.approval import decide_approval
from runs.commands.launch import launch_run
from runs.commands.memory import review_memory
from runs.commands.policy import propose_version
from runs.jobs.advance import advance_sweep
from runs.jobs.decide import decide_policies
from runs.jobs.overlap import check_overlap
from runs.launch import LaunchRequest
from runs.models import Decision, MemoryEntry, MemoryRead, Policy, Promotion, Run, Sweep
from tests.factories import make_user
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, dispatch, watch
from workspaces.access import Actor
from workspaces.models import Approval, Engine, Installation, User, Workspace

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("local_python"), pytest.mark.timeout(700)]
QUICK = {"games": 16, "games_per_piece": 8, "simulations": 8}
SMALL: dict[str, dict[str, Any]] = {
    policies.NEXT_SWEEP.slug: {"epochs": 3, "match_games": 8, "simulations": 8},
    policies.JUDGE.slug: {"games": 8, "simulations": 8},
    policies.NEXT_GAMES.slug: QUICK,
}


@pytest.fixture
def loop() -> tuple[Laboratory, Actor, Actor]:
    Installation.objects.get_or_create(is_current=True)
    Engine.objects.get_or_create(slug="local", defaults={"kind": Engine.Kind.LOCAL, "slots": 4})
    admin, researcher, approver = (
        Actor.of(make_user("admin", User.SiteRole.CREATE_WORKSPACE)),
        make_user("researcher"),
        make_user("approver"),
    )
    workspace: Workspace = make.set_up(
        slug="autogo-main", admin=admin, researcher=researcher, approver=approver, as_root=False, say=lambda line: None
    )
    return Laboratory(workspace, admin), Actor.of(researcher), Actor.of(approver)


def turn(laboratory: Laboratory, approver: Actor) -> None:
    """What labsite's own jobs do in a second, and the approver with whatever is put forward."""
    key = {"workspace_id": laboratory.workspace.pk.hex, "subject_id": laboratory.workspace.pk.hex}
    advance_sweep(**key)
    decide_policies(**key)
    advance_sweep(**key)
    check_overlap(**key)
    dispatch(laboratory)
    watch(laboratory)
    with laboratory.opened():
        for asked in Approval.objects.filter(status=Approval.Status.PENDING, subject_type="promotion"):
            decide_approval(actor=approver, approval=asked, approves=True, comment="It leads", seen_hash=asked.content_hash)
        for entry in MemoryEntry.objects.filter(collection=policies.OPENINGS, trust="unreviewed"):
            review_memory(actor=approver, entry=entry, trust="observed", seen_hash=entry.content_hash, comment="I saw its games")


def made_small(laboratory: Laboratory, researcher: Actor, approver: Actor) -> None:
    """The same policies with games that a test can wait for; whoever is not far weaker becomes champion, so that chance does not end the loop."""
    with laboratory.opened():
        for entry in policies.POLICIES:
            document = plain(entry.document)
            document["action"].get("parameters", {}).update(SMALL.get(entry.slug, {}))
            if entry is policies.PROMOTE:
                document["gate"] = [{"check": "elo_sequential", "elo0": -1000, "elo1": -500}]
            if document == plain(entry.document):
                continue
            version = propose_version(actor=researcher, policy=Policy.objects.get(slug=entry.slug), document=document, reason="Small")
            asked = Approval.objects.get(subject_id=version.pk)
            decide_approval(actor=approver, approval=asked, approves=True, comment="Small", seen_hash=asked.content_hash)


def test_two_generations_run_by_themselves_and_each_run_leads_back_to_what_it_rested_on(loop: tuple[Laboratory, Actor, Actor]) -> None:
    laboratory, researcher, approver = loop
    made_small(laboratory, researcher, approver)
    with laboratory.opened():
        launch_run(
            actor=researcher,
            request=LaunchRequest(
                benchmark=plan.FAST_LEARNING.slug, agent=plan.SELFPLAY_WORKER.slug, parameters=QUICK, seed=1, name="first games", reason="A start"
            ),
        )  # fmt: skip
    deadline = time.monotonic() + 600
    while True:
        turn(laboratory, approver)
        with laboratory.opened():
            champions = list(Promotion.objects.filter(decided_at__isnull=False).order_by("number"))
            if len(champions) >= policies.GENERATIONS:
                break
            assert time.monotonic() < deadline, told()
        time.sleep(0.2)
    with laboratory.opened():
        assert [row.status for row in champions[:2]] == ["superseded", "promoted"]
        champion = champions[1].artifact
        trained = champion.run
        assert trained.trigger == "policy"
        decision = trained.sweep.decision
        assert decision.policy.slug == policies.NEXT_SWEEP.slug
        assert [entry["label"] for entry in decision.facts["artifacts"]], "the second generation began with the first champion"
        first = champions[0].artifact.name or champions[0].artifact.path
        assert any(not entry["is_chosen"] for entry in decision.candidates), "and says which steps it did not choose"
        put_forward = Decision.objects.filter(policy__slug=policies.PROMOTE.slug)
        assert not put_forward.filter(status="failed").exists(), "the arena reports two metrics of one measurement"
        beaten = put_forward.filter(outcome="acts").order_by("number")[1]
        assert [(check["key"], check["verdict"]) for check in beaten.checks] == [("elo_sequential", "pass")]
        [batch] = beaten.facts["gates"]["elo_sequential"]["batches"]
        assert sum(batch["pairs"]) == SMALL[policies.JUDGE.slug]["games"] // 2, "it has played the champion, every game with both colours"
        assert (decision.facts["memory"]["collection"], decision.facts["memory"]["entries"]) == (policies.FAILED, [])
        [receipt] = MemoryRead.objects.filter(decision=decision).select_related("entry")
        assert (receipt.trust, receipt.entry.collection, receipt.entry.policy.slug) == (
            "observed", policies.OPENINGS, policies.REMEMBER_OPENINGS.slug
        ), "what the first champion opens with was remembered, vouched for, and read"  # fmt: skip
        assert receipt.entry.evidence.filter(artifact=champions[0].artifact).exists()
        configuration = receipt.entry.configuration
        assert re.fullmatch(r"([A-E][1-5] ){2}[A-E][1-5]", configuration["opening"])
        assert configuration["learning_rate"] == champions[0].artifact.run.parameters["learning_rate"]
        assert not Run.objects.exclude(status="succeeded").exclude(ended_at=None).exists(), told()
    page = client_of(approver).get(f"/workspaces/autogo-main/decisions/{decision.public_id}/").content.decode()
    assert "It acted:" in page
    assert first in page
    story = client_of(approver).get(f"/workspaces/autogo-main/runs/{trained.public_id}/").content.decode()
    assert f"/workspaces/autogo-main/decisions/{decision.pk.hex}/" in story


def told() -> str:
    runs = [(run.name, run.status, run.reason[:200]) for run in Run.objects.order_by("number")]
    decisions = [
        (str(row.policy), row.number, row.outcome, row.status, row.words[:200], row.failure)
        for row in Decision.objects.select_related("policy")
    ]
    return f"{runs}\n{decisions}\n{[(sweep.name, sweep.status) for sweep in Sweep.objects.all()]}"
