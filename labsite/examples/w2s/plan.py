"""What the laboratory w2s-medqa consists of, as plain values. The example command makes it real by calling commands with them."""

from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal

from labsite.examples.ground import AgentPlan, WorkspacePlan
from workspaces.units import MS_PER_HOUR


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """A table that make_table.py writes as `file`; `role` is what a run may use it for."""

    slug: str
    name: str
    role: Literal["train", "validation", "holdout"]
    file: str
    licence: str
    origin: str


@dataclass(frozen=True, slots=True)
class BenchmarkPlan:
    """The contract: `metric` on all `samples` records of `holdout`, an unanswered record counted as wrong."""

    slug: str
    name: str
    description: str
    metric: str
    direction: Literal["maximize", "minimize"]
    holdout: str
    samples: int


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run to start. `model_of` names the run whose artifact of kind model is an input; that run must have succeeded first."""

    key: str
    agent: str
    benchmark: str
    datasets: tuple[str, ...]
    seed: int
    reason: str
    params: MappingProxyType[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    model_of: str | None = None


WORKSPACE = WorkspacePlan(
    slug="w2s-medqa",
    name="Weak-to-strong on medical records",
    objective="Reach 95 % holdout accuracy with a strong model that learns only from a weak teacher's labels",
    objective_benchmark="medqa-holdout-accuracy",
    objective_target=Decimal("0.95"),
    zone="Europe/Berlin",
    week_start=1,
    billing_account="research",
    cost_centre="w2s",
    boundary_kind="project",
    boundary_reason="Holdout records of this project must stay unseen by every other one.",
    visibility="private",
    region="local",
    gpu_ms_per_week=40 * MS_PER_HOUR,
    gpu_ms_per_run=1 * MS_PER_HOUR,
    max_concurrent_runs=4,
)

_LICENCE = "CC BY 4.0"
_ORIGIN = "Breast Cancer Wisconsin (Diagnostic), UCI Machine Learning Repository, in the copy that scikit-learn carries"
TRAIN, VALIDATION, HOLDOUT = "medqa_table_train", "medqa_table_validation", "medqa_table_holdout"
# One dataset for each role, because a run finds an input under its slug and may be given the one without the other.
DATASETS = (
    DatasetPlan(TRAIN, "Biopsies to train on", "train", "train.csv", _LICENCE, _ORIGIN),
    DatasetPlan(VALIDATION, "Biopsies to choose settings by", "validation", "validation.csv", _LICENCE, _ORIGIN),
    DatasetPlan(HOLDOUT, "Biopsies held out for scores", "holdout", "holdout.csv", _LICENCE, _ORIGIN),
)

BENCHMARK = BenchmarkPlan(
    slug="medqa-holdout-accuracy",
    name="Holdout accuracy",
    description="Share of the held-out biopsies that are told apart rightly, malignant or not.",
    metric="accuracy",
    direction="maximize",
    holdout=HOLDOUT,
    samples=171,
)


def _schema(properties: dict[str, Any]) -> MappingProxyType[str, Any]:
    return MappingProxyType(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": False,
            "properties": properties,
        }
    )


_TARGET = {"type": "string", "minLength": 1, "default": "malignant", "description": "Column to predict, 0 or 1."}
_BENCHMARK = {"type": "string", "minLength": 1, "default": BENCHMARK.slug, "description": "Benchmark that the score is reported for."}

WEAK_LABELER = AgentPlan(
    slug="weak-labeler-v3",
    name="Weak labeler, version 3",
    role="teacher",
    kind="train",
    bundle="weak_labeler",
    argv=("python", "train.py"),
    parameters=_schema(
        {
            "features": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "minItems": 1,
                "uniqueItems": True,
                "default": ["mean_texture", "mean_smoothness"],
                "description": "Columns that the teacher may see; few of them keep it weak.",
            },
            "learning_rate": {
                "type": "number",
                "minimum": 1e-6,
                "maximum": 10,
                "default": 0.05,
                "description": "Step of gradient descent.",
            },
            "epochs": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 40, "description": "Passes over the training table."},
            "l2": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.001, "description": "Weight of the squared-weights penalty."},
            "batch_size": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 16, "description": "Records a step."},
            "seconds_per_epoch": {
                "type": "number",
                "minimum": 0,
                "maximum": 60,
                "default": 0,
                "description": "Shortest duration of an epoch in seconds, so that a run can be watched; 0 trains at full speed.",
            },
            "target": _TARGET,
            "benchmark": _BENCHMARK,
        }
    ),
)
EVALUATOR = AgentPlan(
    slug="holdout-evaluator",
    name="Holdout evaluator",
    role="evaluator",
    kind="evaluate",
    bundle="holdout_evaluator",
    argv=("python", "evaluate.py"),
    # The target is the model's own unless a run insists on one.
    parameters=_schema({"target": {key: value for key, value in _TARGET.items() if key != "default"}, "benchmark": _BENCHMARK}),
)
AGENTS = (WEAK_LABELER, EVALUATOR)


def _teacher(key: str, seed: int, reason: str, **params: object) -> RunPlan:
    return RunPlan(key, WEAK_LABELER.slug, BENCHMARK.slug, (TRAIN, VALIDATION), seed, reason, MappingProxyType(params))


def _evaluation(teacher: RunPlan) -> RunPlan:
    reason = f"Score {teacher.key} on records that it has not seen"
    return RunPlan(f"evaluate-{teacher.key}", EVALUATOR.slug, BENCHMARK.slug, (HOLDOUT,), 0, reason, model_of=teacher.key)


_TEACHERS = (
    _teacher(
        "teacher-two-features",
        1,
        "First teacher: two measurements",
        features=["mean_texture", "mean_smoothness"],
        epochs=30,
        seconds_per_epoch=0.5,
    ),
    _teacher("teacher-one-feature", 2, "How weak is one measurement", features=["mean_smoothness"], epochs=40, seconds_per_epoch=0.5),
    _teacher(
        "teacher-slow-steps",
        3,
        "Same two measurements, a tenth of the step",
        features=["mean_texture", "mean_smoothness"],
        learning_rate=0.005,
        epochs=40,
        seconds_per_epoch=0.5,
    ),
)
RUNS = (*_TEACHERS, *(_evaluation(teacher) for teacher in _TEACHERS))
"""In the order to start them: teachers first, each evaluation once its teacher has succeeded."""
