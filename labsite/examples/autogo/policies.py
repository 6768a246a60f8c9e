"""What the laboratory autogo-main does by itself: a loop of policies over games, training, arena and champion.

Games are cut into windows; once a run of games has ended, the next sweep learns from the newest windows, but for configurations that memory speaks
against; the best of a sweep that has ended is rated in the arena, where it plays the champion too; whoever a sequential test accepts as the stronger
is put forward, and another person decides; a new champion plays the next games. Each has limits of its own, so that the loop stops by itself.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from labsite.examples.autogo.plan import ARENA, ARENA_JUDGE, FAST_LEARNING, POLICY_RUNNER, SELF_PLAY, SELFPLAY_WORKER

CHAMPION = "champion"
OPENINGS = "promoted-openings"  # memory: what each champion was trained with, and how it opens
FAILED = "failed-search-configs"  # memory: configurations that somebody saw fail, and another person vouched for
GENERATIONS = (
    2  # of champions; the first start plays and learns more than once for the first. A version that allows more is proposed like any other
)


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """`document` is what its first version says."""

    slug: str
    name: str
    reason: str
    document: MappingProxyType[str, Any]


NEXT_SWEEP = PolicyPlan(
    slug="launch-next-sweep",
    name="Launch the next sweep",
    reason="Learn from the newest games with the step that has promised most so far and that nobody knows to fail, within a budget",
    document=MappingProxyType({
        "trigger": {"on": "run_ended", "agent": SELFPLAY_WORKER.slug},
        "conditions": [{"check": "nothing_under_way"}, {"check": "budget_left", "gpu_hours": 1}],
        "action": {
            "do": "launch_sweep",
            "agent": POLICY_RUNNER.slug,
            "benchmark": FAST_LEARNING.slug,
            "inputs": [{"windows_of": SELF_PLAY.slug, "newest": 4}, {"promoted": CHAMPION}],
            "parameters": {"epochs": 10, "match_games": 24},
            "choose": {"rule": "ucb1", "axes": {"learning_rate": [0.0003, 0.001, 0.004]}, "arms": 2},
            "memory": {"avoid": FAILED, "failed_attempts": True, "prefer": OPENINGS},
            "purpose": "Which step learns most from the newest games",
        },
        "limits": {"decisions": 3 * GENERATIONS, "gpu_hours_a_week": 20, "failures": 2},
    }),
)  # fmt: skip
JUDGE = PolicyPlan(
    slug="judge-checkpoints",
    name="Rate the best of a sweep",
    reason="What a sweep has made is rated in the arena, and plays whoever is champion, before anybody thinks of promoting it",
    document=MappingProxyType({
        "trigger": {"on": "sweep_ended", "agent": POLICY_RUNNER.slug},
        "action": {
            "do": "launch_run",
            "agent": ARENA_JUDGE.slug,
            "benchmark": ARENA.slug,
            "inputs": [{"made_by_cause": "checkpoint", "best": 1}, {"promoted": CHAMPION}],
            "parameters": {"games": 48},
        },
        "limits": {"decisions": 4 * GENERATIONS, "gpu_hours_a_week": 20, "failures": 2},
    }),
)  # fmt: skip
PROMOTE = PolicyPlan(
    slug="promote-checkpoint",
    name="Put the strongest checkpoint forward",
    reason="The champion is whoever beats the champion before it in a sequential test over the games of the two; a person decides",
    document=MappingProxyType({
        "trigger": {"on": "evaluation_scored", "benchmark": ARENA.slug, "agent": ARENA_JUDGE.slug},
        # Not by the ratings themselves: a champion that was lucky in its arena would be held against all that come after it.
        "gate": [{"check": "elo_sequential", "elo0": 0, "elo1": 100, "alpha": 0.05, "beta": 0.05}],
        "action": {"do": "promote", "name": CHAMPION},
        "limits": {"decisions": 4 * GENERATIONS},
    }),
)  # fmt: skip
NEXT_GAMES = PolicyPlan(
    slug="play-next-games",
    name="Play the champion's games",
    reason="The next generation learns from games of the strongest",
    document=MappingProxyType({
        "trigger": {"on": "promotion_decided", "name": CHAMPION},
        "action": {
            "do": "launch_run",
            "agent": SELFPLAY_WORKER.slug,
            "benchmark": FAST_LEARNING.slug,
            "inputs": [{"promoted": CHAMPION, "required": True}],
            "parameters": {"games": 4 * SELF_PLAY.window_records, "games_per_piece": SELF_PLAY.window_records},
        },
        "limits": {"decisions": GENERATIONS, "gpu_hours_a_week": 20, "failures": 2},
    }),
)  # fmt: skip
REMEMBER = PolicyPlan(
    slug="remember-failures",
    name="Remember what failed",
    reason="What failed is written down; once a person vouches for it, the next sweep leaves it out",
    document=MappingProxyType({
        "trigger": {"on": "run_ended", "agent": POLICY_RUNNER.slug},
        "conditions": [{"check": "cause_ended", "as": ["failed", "timed_out"]}],
        "action": {
            "do": "write_memory",
            "kind": "failed_attempt",
            "collection": FAILED,
            "title": "A training run came to nothing",
            "agent": POLICY_RUNNER.slug,
            "with_configuration": True,
        },
        "limits": {"decisions": 20 * GENERATIONS},
    }),
)  # fmt: skip
REMEMBER_OPENINGS = PolicyPlan(
    slug="remember-openings",
    name="Remember how champions open",
    reason="What became champion is written down with its configuration and its first moves; once a person vouches for it, its step is tried first",
    document=MappingProxyType({
        "trigger": {"on": "promotion_decided", "name": CHAMPION},
        "conditions": [{"check": "cause_ended", "as": ["promoted"]}],
        "action": {
            "do": "write_memory",
            "kind": "finding",
            "collection": OPENINGS,
            "title": "A champion, how it opens and what it was trained with",
            "agent": POLICY_RUNNER.slug,
            "with_configuration": True,
        },
        "limits": {"decisions": 20 * GENERATIONS},
    }),
)  # fmt: skip
POLICIES = (NEXT_SWEEP, JUDGE, PROMOTE, NEXT_GAMES, REMEMBER, REMEMBER_OPENINGS)
