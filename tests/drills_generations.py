"""The people of the drill `tests/drills/generations.py`: who proposes longer versions of the policies, lets them act, and approves champions."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labsite.examples.autogo import plan, policies
from labsite.examples.ground import plain
from runs.commands.approval import decide_approval
from runs.commands.launch import launch_run
from runs.commands.policy import create_policy, propose_version
from runs.launch import LaunchRequest
from runs.lifecycle import RunStatus
from runs.models import Decision, Policy, Promotion, Run
from workspaces import scope
from workspaces.access import Actor
from workspaces.models import Approval, User, Workspace
from workspaces.queries.chain import verify_chain
from workspaces.queries.ledger import recount
from workspaces.queries.registry import stored_content

GAMES, PIECE, WINDOWS, ARENA_GAMES = 64, plan.SELF_PLAY.window_records, 32, 16
STUCK_SECONDS = 600
LONGER: dict[str, dict[str, Any]] = {
    policies.NEXT_SWEEP.slug: {"epochs": 10, "match_games": 8},
    policies.JUDGE.slug: {"games": ARENA_GAMES},
    policies.NEXT_GAMES.slug: {"games": GAMES, "games_per_piece": PIECE},
}
# Who became champion had luck in its arena, and a rating far above random weights tells little apart: held against that one rating for good, the best
# of the next generations are turned away. So the champion is rated anew beside each of them; the newest score is the one that counts.
MEASURE: dict[str, Any] = {
    "trigger": {"on": "sweep_ended", "agent": plan.POLICY_RUNNER.slug},
    "action": {
        "do": "launch_run",
        "agent": plan.ARENA_JUDGE.slug,
        "benchmark": plan.ARENA.slug,
        "inputs": [{"promoted": policies.CHAMPION, "required": True}, {"made_by_cause": "checkpoint", "best": 1}],
        "parameters": {"games": ARENA_GAMES},
    },
}


class Loop:
    def __init__(self, generations: int) -> None:
        self._generations = generations
        self._workspace = Workspace.objects.get(slug=plan.WORKSPACE.slug)
        self._researcher = Actor.of(User.objects.get(username="researcher"))
        self._approver = Actor.of(User.objects.get(username="approver"))

    def begin(self) -> None:
        with scope.open_workspace(self._workspace.pk):
            for entry in policies.POLICIES:
                self._lengthen(entry)
            again = create_policy(actor=self._researcher, slug="measure-champion", name="Rate the champion anew")
            self._let_act(again, MEASURE | {"limits": self._limits})
            launch_run(
                actor=self._researcher,
                request=LaunchRequest(
                    benchmark=plan.FAST_LEARNING.slug, agent=plan.SELFPLAY_WORKER.slug, seed=1, name="first games",
                    parameters=LONGER[policies.NEXT_GAMES.slug], reason="Games of random weights: all else is the policies'",
                ),
            )  # fmt: skip

    def _lengthen(self, entry: policies.PolicyPlan) -> None:
        document = plain(entry.document)
        if entry.slug in LONGER:
            document["action"].setdefault("parameters", {}).update(LONGER[entry.slug])
        document["limits"] = self._limits
        if entry is policies.NEXT_SWEEP:
            document["action"]["inputs"] = [{"windows_of": plan.SELF_PLAY.slug, "newest": WINDOWS}, {"promoted": policies.CHAMPION}]
            document["action"]["choose"] = {"rule": "ucb1", "axes": {"learning_rate": [0.002, 0.004]}, "arms": 1}
        if entry is policies.PROMOTE:
            document["gate"] = [{"check": "score_gain", "at_least": 0}]
        if entry is policies.NEXT_GAMES:  # while the arena plays, whoever is promoted then
            document["trigger"] = {"on": "sweep_ended", "agent": plan.POLICY_RUNNER.slug}
            document["action"]["inputs"] = [{"promoted": policies.CHAMPION}]
        self._let_act(Policy.objects.get(slug=entry.slug), document)

    @property
    def _limits(self) -> dict[str, int]:
        return {"decisions": 10 * self._generations, "failures": 2}

    def _let_act(self, policy: Policy, document: dict[str, Any]) -> None:
        version = propose_version(actor=self._researcher, policy=policy, document=document, reason=f"{self._generations} generations")
        asked = Approval.objects.get(subject_id=version.pk)
        decide_approval(actor=self._approver, approval=asked, approves=True, comment="A drill", seen_hash=asked.content_hash)

    def generations(self) -> Iterator[dict[str, Any]]:
        """Each round of games, sweep and arena once its arena has ended, approvals given here; ends with the last. Raises AssertionError where
        nothing happens for too long."""
        told, since = 0, time.monotonic()
        while told < self._generations:
            with scope.open_workspace(self._workspace.pk):
                for asked in Approval.objects.filter(status=Approval.Status.PENDING, subject_type="promotion"):
                    decide_approval(actor=self._approver, approval=asked, approves=True, comment="It leads", seen_hash=asked.content_hash)
                ended = Run.objects.filter(sweep__decision__policy__slug=policies.JUDGE.slug, status=RunStatus.SUCCEEDED).count()
                champions, runs = Promotion.objects.filter(decided_at__isnull=False).count(), Run.objects.count()
                assert time.monotonic() - since < STUCK_SECONDS, self._words()
            if ended > told:
                told, since = told + 1, time.monotonic()
                yield {"generation": told, "champions": champions, "runs": runs}
            time.sleep(0.5)

    def checkpoints(self, place: Path) -> tuple[Path, Path]:
        """The first champion and the last, as files."""
        with scope.open_workspace(self._workspace.pk):
            rows = list(Promotion.objects.filter(decided_at__isnull=False).select_related("artifact__blob").order_by("number"))
            found = []
            for name, row in (("first", rows[0]), ("last", rows[-1])):
                path = place / f"{name}.npz"
                path.write_bytes(b"".join(stored_content(row.artifact.blob)))
                found.append(path)
        return found[0], found[1]

    def verify(self) -> None:
        """Every run but the first was a policy's, the ledger recounts, the record is whole."""
        with scope.open_workspace(self._workspace.pk):
            others = Run.objects.exclude(name="first games").exclude(trigger="policy")
            assert not others.exists(), list(others.values_list("name", "trigger"))
            assert not recount(), "the ledger does not recount"
            assert verify_chain().is_whole

    def _words(self) -> str:
        decisions = Decision.objects.select_related("policy").order_by("-created_at")[:12]
        said = [(str(row.policy), row.number, row.outcome, row.status, row.words[:200], row.failure[:200]) for row in decisions]
        ended = list(Run.objects.order_by("-number").values_list("name", "status", "reason")[:12])
        return f"{said}\n{ended}"
