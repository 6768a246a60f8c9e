"""What the laboratory autogo-main consists of, as plain values. The example command makes it real by calling commands with them."""

from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal

from labsite.examples.ground import AgentPlan, WorkspacePlan
from workspaces.agent_inputs import Need
from workspaces.units import MS_PER_HOUR

Parameters = MappingProxyType[str, Any]


@dataclass(frozen=True, slots=True)
class BenchmarkPlan:
    """The contract: `metric`, measured by playing, so that there is no holdout to keep."""

    slug: str
    name: str
    description: str
    metric: str
    direction: Literal["maximize", "minimize"]
    unit: str
    terms: str


@dataclass(frozen=True, slots=True)
class LiveDatasetPlan:
    """A dataset that self-play grows; a window is cut once `window_records` games wait."""

    slug: str
    name: str
    description: str
    origin: str
    licence: str
    window_records: int

    def window(self, number: int) -> str:
        return f"{self.slug}-window-{number}"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run to start. It reads the self-play windows of the numbers in `windows`, and the newest checkpoint of each member of the sweeps in
    `checkpoints_of`; it waits for them."""

    key: str
    agent: str
    benchmark: str
    seed: int
    reason: str
    params: Parameters = field(default_factory=lambda: MappingProxyType({}))
    windows: tuple[int, ...] = ()
    checkpoints_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """A search space over one agent's parameters; what its members share is in `shared`."""

    name: str
    purpose: str
    space: Parameters
    shared: RunPlan


WORKSPACE = WorkspacePlan(
    slug="autogo-main",
    name="Go from self-play",
    objective="Beat the network of random weights by 800 Elo on 5x5 with what is learned from self-play alone",
    objective_benchmark="arena-elo-regression",
    objective_target=Decimal(800),
    zone="America/Los_Angeles",
    week_start=1,
    billing_account="research",
    cost_centre="autogo",
    boundary_kind="team",
    boundary_reason="One group shares engines, games, checkpoints and the budget for them.",
    visibility="private",
    region="local",
    gpu_ms_per_week=1200 * MS_PER_HOUR,
    gpu_ms_per_run=24 * MS_PER_HOUR,
    max_concurrent_runs=48,
)

FAST_LEARNING = BenchmarkPlan(
    slug="go-fast-learning",
    name="Fast learning of Go",
    description="How much stronger a network becomes by one training run: its share of points against the network that it started from.",
    metric="win_rate",
    direction="maximize",
    unit="",
    terms="Points per game on 5x5 with alternating colours and the same search for both; a draw is half a point, a capped game is scored.",
)
ARENA = BenchmarkPlan(
    slug="arena-elo-regression",
    name="Arena, Elo",
    description="Strength of a checkpoint against the network of random weights, from an arena of all players against each other.",
    metric="elo",
    direction="maximize",
    unit="Elo",
    terms="Bradley and Terry's model over all games of the arena, the reference at 0, one drawn game with the reference added for each player.",
)
BENCHMARKS = (FAST_LEARNING, ARENA)

SELF_PLAY = LiveDatasetPlan(
    slug="self-play",
    name="Self-play",
    description="Games of our own networks: what they saw, what their search preferred, how the games ended.",
    origin="self_play",
    licence="CC0-1.0",
    window_records=8,
)


def _schema(*properties: dict[str, Any]) -> Parameters:
    joined = {name: entry for part in properties for name, entry in part.items()}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": False}
    return MappingProxyType({**head, "properties": joined})


def _whole(low: int, high: int, default: int, description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high, "default": default, "description": description}


def _number(low: float, high: float, default: float, description: str) -> dict[str, Any]:
    return {"type": "number", "minimum": low, "maximum": high, "default": default, "description": description}


def _yes(default: bool, description: str) -> dict[str, Any]:
    return {"type": "boolean", "default": default, "description": description}


def _text(default: str, description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "default": default, "description": description, **more}


_SIZE = {"size": _whole(2, 9, 5, "Points along a side of the board.")}
_MATCH = {
    "komi": _number(-81, 81, 0.5, "Points that White gets for moving second."),
    "simulations": _whole(1, 10_000, 32, "Simulations of the search before each move."),
    "exploration": _number(0, 100, 1.5, "How much the search trusts the prior: the constant of PUCT."),
    "random_moves": _whole(0, 1000, 6, "Moves at the start that are drawn by their share of visits, so that games differ."),
    "move_cap": _whole(0, 1000, 0, "Moves after which a game is scored as it stands; 0 for six times the points of the board."),
    "play_on": _yes(True, "Pass only where every other move would fill an own eye; otherwise a pass is a move like others."),
}
_CHANNELS = {"channels": _whole(1, 64, 16, "Width of the network where its weights are random.")}

SELFPLAY_WORKER = AgentPlan(
    wall_seconds=300,
    slug="selfplay-worker",
    name="Self-play worker",
    role="selfplay",
    kind="selfplay",
    bundle="selfplay_worker",
    argv=("python", "play_games.py"),
    parameters=_schema(
        _SIZE,
        _MATCH,
        _CHANNELS,
        {
            "games": _whole(1, 10_000, 24, "Games to play."),
            "noise": _number(0, 1, 0.25, "Share of the prior at the root that is drawn anew for each move."),
            "noise_alpha": _number(0.01, 100, 0.3, "Concentration of that noise, Dirichlet's alpha."),
            "games_per_piece": _whole(0, 10_000, 0, "Games in one piece of the dataset; 0 for all in one, 50 pieces at most."),
            "dataset": _text(SELF_PLAY.slug, "Live dataset that the games are added to."),
            "replay": _text(
                "where_installed", "Whether GNU Go replays each game and must agree.", enum=["where_installed", "required", "never"]
            ),
        },
    ),
    inputs=(Need("artifact", "checkpoint", required=False),),
)
POLICY_RUNNER = AgentPlan(
    wall_seconds=300,
    slug="policy-runner",
    name="Policy runner",
    role="trainer",
    kind="train",
    bundle="policy_runner",
    argv=("python", "train.py"),
    parameters=_schema(
        _MATCH,
        _CHANNELS,
        {
            "learning_rate": _number(1e-6, 10, 0.004, "Step of Adam."),
            "epochs": _whole(1, 10_000, 20, "Passes over the positions."),
            "batch_size": _whole(1, 100_000, 64, "Positions a step."),
            "l2": _number(0, 10, 0.001, "How fast weights decay to 0."),
            "value_weight": _number(0, 100, 1, "Weight of the loss of who wins."),
            "owner_weight": _number(0, 100, 1, "Weight of the loss of who owns each point."),
            "validation_share": _number(0, 0.9, 0.1, "Share of the games that is kept apart to validate on."),
            "seconds_per_epoch": _number(
                0, 60, 0, "Shortest duration of an epoch in seconds, so that a run can be watched; 0 for full speed."
            ),
            "match_games": _whole(0, 10_000, 24, "Games against the network that training started from; 0 for none."),
            "benchmark": _text(FAST_LEARNING.slug, "Benchmark that the share of points is reported for."),
        },
    ),
    inputs=(
        Need("dataset", "train"),
        Need("artifact", "checkpoint", required=False),
    ),
)
ARENA_JUDGE = AgentPlan(
    wall_seconds=300,
    slug="arena-judge",
    name="Arena judge",
    role="evaluator",
    kind="evaluate",
    bundle="arena_judge",
    argv=("python", "judge.py"),
    parameters=_schema(
        _SIZE,
        _MATCH,
        {
            "games": _whole(2, 10_000, 24, "Games of every two players."),
            "random_weights": _yes(True, "Let the network of random weights play; it is the reference then."),
            "random_mover": _yes(False, "Let a player take part that moves at random."),
            "gnugo_levels": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0, "maximum": 10},
                "uniqueItems": True,
                "default": [],
                "description": "Levels of GNU Go that take part, where the pool has it.",
            },
            "seconds_per_answer": _number(0.1, 600, 20, "How long a GTP player may take for one answer."),
            "prior_draws": _number(
                0.01, 100, 1, "Drawn games with the reference that are added for each player, so that ratings are finite."
            ),
            "sequential": _yes(False, "End the match with the reference once elo0 or elo1 is accepted; games are the most then."),
            "elo0": _number(-1000, 1000, 0, "Elo above the reference under H0."),
            "elo1": _number(-1000, 1000, 50, "Elo above the reference under H1; larger than elo0."),
            "alpha": _number(0.0001, 0.4, 0.05, "How often H1 may be accepted where H0 is true."),
            "beta": _number(0.0001, 0.4, 0.05, "How often H0 may be accepted where H1 is true."),
            "benchmark": _text(ARENA.slug, "Benchmark that the rating is reported for."),
        },
    ),
    inputs=(Need("artifact", "checkpoint"),),
)
AGENTS = (SELFPLAY_WORKER, POLICY_RUNNER, ARENA_JUDGE)


def _self_play(number: int) -> RunPlan:
    params = MappingProxyType({"games": 72, "games_per_piece": SELF_PLAY.window_records})
    return RunPlan(f"self-play-{number}", SELFPLAY_WORKER.slug, FAST_LEARNING.slug, number, "First games, of random weights", params)


SELF_PLAY_RUNS = tuple(_self_play(number) for number in range(1, 6))
SWEEP = SweepPlan(
    name="learning-rate",
    purpose="Which step learns most from the same games",
    space=MappingProxyType({"kind": "grid", "axes": {"learning_rate": [0.0003, 0.001, 0.004]}, "seeds": [1]}),
    shared=RunPlan(
        "learning-rate",
        POLICY_RUNNER.slug,
        FAST_LEARNING.slug,
        1,
        "Which step learns most from the same games",
        MappingProxyType({"epochs": 10, "match_games": 40, "seconds_per_epoch": 0.5}),
        windows=(1, 2),  # few games, so that the step matters
    ),
)
ARENA_RUN = RunPlan(
    "arena-of-the-sweep",
    ARENA_JUDGE.slug,
    ARENA.slug,
    1,
    "Rate what the sweep has made",
    MappingProxyType({"random_mover": True}),
    checkpoints_of=(SWEEP.name,),
)
