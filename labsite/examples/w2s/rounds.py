"""The runs of the laboratory's first round that people start, in their order. The others follow from them by policies (policies.py)."""

from types import MappingProxyType

from labsite.examples.ground import AgentPlan
from labsite.examples.w2s import policies
from labsite.examples.w2s.plan import (
    ACCURACY,
    CEILING,
    CONTROL,
    DISAGREEMENT,
    EVALUATOR,
    FINDER,
    GAP,
    GAP_EVALUATOR,
    HOLDOUT,
    ON_DISAGREEMENT,
    STRONG_A,
    STRONG_B,
    STUDENT_TRAIN,
    TRAIN,
    VALIDATION,
    WEAK_LABELER,
    WEAK_LABELS,
    RunPlan,
)
from labsite.examples.w2s.policies import PolicyPlan


def _teacher(key: str, seed: int, reason: str, **params: object) -> RunPlan:
    return RunPlan(key, WEAK_LABELER.slug, ACCURACY.slug, (TRAIN, VALIDATION), seed, reason, MappingProxyType(params))


def _evaluation(of: RunPlan) -> RunPlan:
    reason, params = f"Score {of.key} on records that it has not seen", MappingProxyType({"benchmark": of.benchmark})
    return RunPlan(f"evaluate-{of.key}", EVALUATOR.slug, of.benchmark, (HOLDOUT,), 0, reason, params, models_of=(of.key,))


def _student(key: str, agent: AgentPlan, dataset: str, reason: str, *after: str, **params: object) -> RunPlan:
    benchmark = CONTROL if params.get("shuffle_labels") else ACCURACY
    return RunPlan(key, agent.slug, benchmark.slug, (dataset,), 1, reason, MappingProxyType(params), after=after, names_frozen_set=True)


def _gap(key: str, student: PolicyPlan, reason: str, *, control: bool = False) -> RunPlan:
    benchmark = CONTROL if control else GAP
    params = MappingProxyType({"shuffle_labels": control, "benchmark": benchmark.slug})
    datasets, models = (TRAIN, STUDENT_TRAIN, HOLDOUT), (student.slug, TEACHERS[0].key)
    return RunPlan(key, GAP_EVALUATOR.slug, benchmark.slug, datasets, 1, reason, params, models_of=models)


TEACHERS = (
    _teacher(
        "teacher-two-features",
        1,
        "First teacher: two measurements",
        features=["mean_texture", "mean_smoothness"],
        epochs=30,
        seconds_per_epoch=0.3,
    ),
    _teacher("teacher-one-feature", 2, "How weak is one measurement", features=["mean_smoothness"], epochs=40, seconds_per_epoch=0.25),
    _teacher(
        "teacher-slow-steps",
        3,
        "Same two measurements, a tenth of the step",
        features=["mean_texture", "mean_smoothness"],
        learning_rate=0.005,
        epochs=40,
        seconds_per_epoch=0.25,
    ),
)
CEILINGS = tuple(
    RunPlan(
        f"ceiling-{letter}", agent.slug, CEILING.slug, (STUDENT_TRAIN,), 1, f"The best that candidate {letter.upper()} can do: true labels"
    )
    for letter, agent in (("a", STRONG_A), ("b", STRONG_B))
)
LABELLING = RunPlan(
    "label-with-two-features",
    WEAK_LABELER.slug,
    ACCURACY.slug,
    (STUDENT_TRAIN,),
    1,
    "Let the two-measurement teacher label what students will learn from",
    models_of=(TEACHERS[0].key,),
)
FINDING = RunPlan(
    DISAGREEMENT.made_by,
    FINDER.slug,
    ACCURACY.slug,
    (HOLDOUT,),
    0,
    "Find where teacher and ceiling differ, before a student is trained",
    models_of=(CEILINGS[0].key, TEACHERS[0].key),
)
SHUFFLED = _student(
    "control-student-a", STRONG_A, WEAK_LABELS.first_window, "Control: labels in another order teach nothing", LABELLING.key,
    shuffle_labels=True,
)  # fmt: skip
GAPS = (
    _gap("gap-a", policies.TRAIN_A, "How much of the gap candidate A recovers, over 24 splits"),
    _gap("gap-b", policies.TRAIN_B, "How much of the gap candidate B recovers, over 24 splits"),
    _gap("control-a", policies.TRAIN_A, "Control: does candidate A know anything from shuffled labels, over 24 splits", control=True),
    _gap("control-b", policies.TRAIN_B, "Control: does candidate B know anything from shuffled labels, over 24 splits", control=True),
)
# What the teacher says where it is wrong: students are held against it, record by record.
TEACHER_ON_DISAGREEMENT = RunPlan(
    "disagreement-teacher-two-features",
    EVALUATOR.slug,
    ON_DISAGREEMENT.slug,
    (DISAGREEMENT.slug,),
    0,
    "What the teacher says where it and the ceiling differ",
    MappingProxyType({"benchmark": ON_DISAGREEMENT.slug}),
    models_of=(TEACHERS[0].key,),
)
UNTIL_FROZEN = (*TEACHERS[:1], *CEILINGS, *TEACHERS[1:], *map(_evaluation, (*CEILINGS, *TEACHERS)), FINDING)
"""All that may run before the disagreement set is frozen: no student is among them."""
ONCE_FROZEN = (TEACHER_ON_DISAGREEMENT, LABELLING, SHUFFLED, _evaluation(SHUFFLED))
"""What people start once the policies act: of weak labels, judge, students and their measurement follow by themselves."""
AT_LAST = GAPS
"""What rests on students that policies have trained."""
RUNS = (*UNTIL_FROZEN, *ONCE_FROZEN, *AT_LAST)
