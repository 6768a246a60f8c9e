"""What the laboratory w2s-medqa consists of, as plain values. The example command makes it real by calling commands with them."""

from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal

from labsite.examples.ground import AgentPlan, WorkspacePlan
from labsite.examples.w2s import schemas
from workspaces.agent_inputs import Need
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
class StatedPlan:
    """What people state and runs follow, such as a rubric: a dataset of one document, `file` in the folder `objects`, so that it has versions, a hash
    and a lineage like all that a run rests on."""

    slug: str
    name: str
    description: str
    file: str


@dataclass(frozen=True, slots=True)
class GrownDatasetPlan:
    """A live dataset that runs add to. A window is cut once `window_records` wait, or by whoever asks for one where it is None."""

    slug: str
    name: str
    description: str
    window_records: int | None

    @property
    def first_window(self) -> str:
        return f"{self.slug}-window-1"


@dataclass(frozen=True, slots=True)
class FrozenSetPlan:
    """A holdout that the run `made_by` finds and a person freezes, as it was found, before anything is trained that is measured on it."""

    slug: str
    name: str
    description: str
    made_by: str
    artifact_kind: str
    file: str


@dataclass(frozen=True, slots=True)
class BenchmarkPlan:
    """The contract: `metric`, measured on the dataset `holdout`, in the way that `terms` say."""

    slug: str
    name: str
    description: str
    metric: str
    direction: Literal["maximize", "minimize"]
    holdout: str
    terms: str


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run to start. `models_of` names the runs whose artifacts of kind model are inputs, in their order; those must have succeeded first, as
    must the runs `after`; both name a run of the plan, or a policy, of which the first run is meant. With `names_frozen_set` the hash of the frozen
    set goes along as a parameter."""

    key: str
    agent: str
    benchmark: str
    datasets: tuple[str, ...]
    seed: int
    reason: str
    params: MappingProxyType[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    models_of: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    names_frozen_set: bool = False


WORKSPACE = WorkspacePlan(
    slug="w2s-medqa",
    name="Weak-to-strong on medical records",
    objective="Recover 80 % of the gap between a weak teacher and the ceiling with a student that learns from the teacher's labels alone",
    objective_benchmark="gap-recovered",
    objective_target=Decimal("0.8"),
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

_LICENCE = "CC-BY-4.0"
_ORIGIN = "Breast Cancer Wisconsin (Diagnostic), UCI Machine Learning Repository, in the copy that scikit-learn carries"
TRAIN, STUDENT_TRAIN, VALIDATION, HOLDOUT = (
    f"medqa_table_{role}" for role in ("train", "student_train", "validation", "holdout")
)  # fmt: skip
# One dataset for each role, because a run finds an input under its slug and may be given the one without the other.
DATASETS = (
    DatasetPlan(TRAIN, "Biopsies to train the teacher on", "train", "train.csv", _LICENCE, _ORIGIN),
    DatasetPlan(STUDENT_TRAIN, "Biopsies that the teacher labels", "train", "student_train.csv", _LICENCE, _ORIGIN),
    DatasetPlan(VALIDATION, "Biopsies to choose settings by", "validation", "validation.csv", _LICENCE, _ORIGIN),
    DatasetPlan(HOLDOUT, "Biopsies held out for scores", "holdout", "holdout.csv", _LICENCE, _ORIGIN),
)
STUDENT_RECORDS, HOLDOUT_RECORDS = 170, 171

RUBRIC = StatedPlan(
    "medqa_rubric",
    "Rubric of the judge",
    "Three signs that a pathologist looks for, in columns that the weak teacher does not see, and how many of them say what.",
    "rubric.json",
)
RULE = StatedPlan(
    "trusted_example_rule",
    "Rule for trusted examples",
    "A weak label is learnt from if the teacher is sure enough, the judge agrees and the record is in no holdout; else a person looks at it.",
    "trusted_example_rule.json",
)
STATED = (RUBRIC, RULE)
STATED_LICENCE = "CC0-1.0"

WEAK_LABELS = GrownDatasetPlan(
    "weak_labels_2026_05",
    "Weak labels, May 2026",
    "What a weak teacher says of records that it has not seen, and how sure it is. The true labels are not in it.",
    STUDENT_RECORDS,
)
TRUSTED_WINDOW = 40  # records of one run of the judge that students may learn from; a handful waits for the next
PROMOTIONS = GrownDatasetPlan(
    "reviewed_promotions",
    "Trusted examples",
    "Weak labels of which the teacher is sure and with which the rubric judge agrees, or that a person has reviewed; none is in a holdout.",
    TRUSTED_WINDOW,
)
GROWN = (WEAK_LABELS, PROMOTIONS)
DISAGREEMENT = FrozenSetPlan(
    "disagreement_holdout",
    "Where teacher and ceiling differ",
    "Held-out records of which the weak teacher and the ceiling say different things, frozen before any student was trained.",
    "disagreement-set",
    "disagreement",
    "disagreement.csv",
)

ACCURACY = BenchmarkPlan(
    slug="medqa-holdout-accuracy",
    name="Holdout accuracy",
    description="Share of the held-out biopsies that are told apart rightly, malignant or not.",
    metric="accuracy",
    direction="maximize",
    holdout=HOLDOUT,
    terms="Share of right answers on all records of the holdout; a record without an answer counts as wrong.",
)
# Apart from the others, so that what has seen true labels leads no board of what has not.
CEILING = BenchmarkPlan(
    slug="medqa-ceiling-accuracy",
    name="Ceiling accuracy",
    description="Holdout accuracy of strong models that were given true labels: what students of weak labels are held against.",
    metric="accuracy",
    direction="maximize",
    holdout=HOLDOUT,
    terms="Share of right answers on all records of the holdout, by a model that was trained on true labels.",
)
GAP = BenchmarkPlan(
    slug="gap-recovered",
    name="Gap recovered",
    description="How much of the way from its weak teacher to the ceiling a student goes: 0 is the teacher, 1 the same student on true labels.",
    metric="gap_recovered",
    direction="maximize",
    holdout=HOLDOUT,
    terms="Performance gap recovered (Burns et al. 2023): (student - weak) / (ceiling - weak) of mean accuracies over at least 20 splits of the"
    " training records, all measured on the whole holdout; the ceiling at least 10 points above the teacher. The error is the bootstrap's, over"
    " splits and held-out records. Its null control, the same with shuffled labels, stands on a board of its own and must recover nothing.",
)
ON_DISAGREEMENT = BenchmarkPlan(
    slug="disagreement-accuracy",
    name="Accuracy where teacher and ceiling differ",
    description="Share of right answers on the records where copying the teacher does not help.",
    metric="accuracy",
    direction="maximize",
    holdout=DISAGREEMENT.slug,
    terms="Share of right answers on all records of the frozen set. The model must name that set's hash as frozen before its training.",
)
# Apart from the candidates' boards: a control is no candidate, and what it should show is 0.
CONTROL = BenchmarkPlan(
    slug="label-shuffle-control",
    name="Control: shuffled labels",
    description="Accuracy above chance of students that were given their labels in another order. Target 0: there is nothing to learn from them.",
    metric="above_chance",
    direction="minimize",
    holdout=HOLDOUT,
    terms="Mean of the shares of right answers in both classes of the holdout, less one half: 0 for whoever knows nothing. The control holds"
    " where the 95 % interval covers 0; above it, something other than the labels has told the student.",
)
BENCHMARKS = (GAP, ACCURACY, ON_DISAGREEMENT, CEILING, CONTROL)

WEAK_LABELER = AgentPlan(
    slug="weak-labeler-v3",
    name="Weak labeler, version 3",
    role="teacher",
    kind="train",
    bundle="weak_labeler",
    argv=("python", "train.py"),
    parameters=schemas.weak_labeler(accuracy=ACCURACY.slug, weak_labels=WEAK_LABELS.slug),
    inputs=(
        Need("dataset", "train"),
        Need("dataset", "validation", required=False),
        Need("artifact", "model", required=False),
    ),
)
STRONG_A = AgentPlan(
    slug="strong-candidate-a",
    name="Strong candidate A",
    role="student",
    kind="train",
    bundle="strong_candidate_a",
    argv=("python", "train.py"),
    parameters=schemas.STRONG_A,
    inputs=(Need("dataset", "train"),),
)
STRONG_B = AgentPlan(
    slug="strong-candidate-b",
    name="Strong candidate B",
    role="student",
    kind="train",
    bundle="strong_candidate_b",
    argv=("python", "train.py"),
    parameters=schemas.STRONG_B,
    inputs=(Need("dataset", "train"),),
)
JUDGE = AgentPlan(
    slug="rubric-judge-v2",
    name="Rubric judge, version 2",
    role="teacher",
    kind="evaluate",
    bundle="rubric_judge",
    argv=("python", "judge.py"),
    parameters=schemas.judge(trusted=PROMOTIONS.slug),
    inputs=(
        Need("dataset", "train"),
        Need("dataset", "holdout"),
        Need("dataset", name=RUBRIC.slug),
        Need("dataset", name=RULE.slug),
    ),
)
FINDER = AgentPlan(
    slug="disagreement-finder",
    name="Disagreement finder",
    role="evaluator",
    kind="evaluate",
    bundle="disagreement_finder",
    argv=("python", "find.py"),
    parameters=schemas.DISAGREEMENT,
    inputs=(
        Need("dataset", "holdout"),
        Need("artifact", "model"),
        Need("artifact", "model"),
    ),
)
EVALUATOR = AgentPlan(
    slug="holdout-evaluator",
    name="Holdout evaluator",
    role="evaluator",
    kind="evaluate",
    bundle="holdout_evaluator",
    argv=("python", "evaluate.py"),
    parameters=schemas.evaluator(accuracy=ACCURACY.slug),
    inputs=(
        Need("dataset", "holdout"),
        Need("artifact"),
    ),
)
GAP_EVALUATOR = AgentPlan(
    slug="gap-evaluator",
    name="Gap evaluator",
    role="evaluator",
    kind="evaluate",
    bundle="gap_evaluator",
    argv=("python", "evaluate.py"),
    parameters=schemas.gap(benchmark=GAP.slug),
    inputs=(
        Need("dataset", "train"),
        Need("dataset", "train"),
        Need("dataset", "holdout"),
        Need("artifact", "model"),
        Need("artifact", "model"),
    ),
)
AGENTS = (WEAK_LABELER, STRONG_A, STRONG_B, JUDGE, FINDER, EVALUATOR, GAP_EVALUATOR)
