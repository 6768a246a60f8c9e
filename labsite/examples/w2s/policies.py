"""What the laboratory w2s-medqa does by itself: a loop of policies over weak labels, a filter, students, their measurement and who is rested on.

Weak labels that are there are judged by the rubric; what the rule trusts trains both candidates; each is measured on the holdout and where teacher
and ceiling differ; one that passes the gate is put forward, and another person decides; the one that was promoted labels the table that its teacher
learnt from, and the loop begins again. Each policy has limits of its own, so that the loop stops by itself: at the latest once there is nothing left
that no model has learnt from.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from labsite.examples.ground import AgentPlan
from labsite.examples.w2s.plan import (
    ACCURACY,
    DISAGREEMENT,
    EVALUATOR,
    HOLDOUT,
    JUDGE,
    ON_DISAGREEMENT,
    PROMOTIONS,
    RUBRIC,
    RULE,
    STRONG_A,
    STRONG_B,
    TRAIN,
    WEAK_LABELER,
    WEAK_LABELS,
    BenchmarkPlan,
)

PROMOTED = PROMOTIONS.slug  # the name under which a student stands whose result a person has reviewed
ROUNDS = 2  # of weak labels: the teacher's, and those of the first student that is promoted
MOST = 12  # times a policy of one candidate may act: a person's reviews make further windows of trusted examples
_LIMITS = {"decisions": MOST, "gpu_hours_a_week": 4, "failures": 2}
MOST_MISCALIBRATED = 0.15  # expected calibration error on the disagreement set; there the teacher's own is about four times that
# What a student has to pass before anybody is asked about it, and how many people then are: no step back from whoever stands, a gain over its own
# teacher where teacher and ceiling differ, nothing of a holdout in what it learnt from.
GATE: tuple[dict[str, Any], ...] = (
    {"check": "no_holdout_regression", "benchmark": ACCURACY.slug, "epsilon": 0.02},
    {
        "check": "calibrated_disagreement_gain",
        "benchmark": ON_DISAGREEMENT.slug,
        "over": WEAK_LABELER.slug,
        "ece_at_most": MOST_MISCALIBRATED,
    },
    {"check": "contamination"},
    {"check": "score_gain", "at_least": 0.001},
    {"check": "reviewer_approval", "people": 1},
)


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """`document` is what its first version says; with `names_frozen_set` the hash of the frozen set joins the parameters of its launches, so the
    version cannot be proposed before the set is frozen."""

    slug: str
    name: str
    reason: str
    document: MappingProxyType[str, Any]
    names_frozen_set: bool = False


def _train(letter: str, agent: AgentPlan) -> PolicyPlan:
    return PolicyPlan(
        slug=f"train-candidate-{letter}",
        name=f"Train candidate {letter.upper()} on trusted labels",
        reason="What the rule trusts is learnt from as soon as there is a window of it",
        document=MappingProxyType({
            "trigger": {"on": "dataset_grew", "dataset": PROMOTIONS.slug},
            "conditions": [{"check": "budget_left", "gpu_hours": 1}],
            "action": {
                "do": "launch_run",
                "agent": agent.slug,
                "benchmark": ACCURACY.slug,
                "inputs": [{"windows_of": PROMOTIONS.slug}],
                "parameters": {},
                "seeds": [1],
            },
            "limits": _LIMITS,
        }),
        names_frozen_set=True,
    )  # fmt: skip


def _measure(
    what: str, where: str, letter: str, agent: AgentPlan, benchmark: BenchmarkPlan, holdout: str, *, is_frozen: bool
) -> PolicyPlan:
    return PolicyPlan(
        slug=f"{what}-candidate-{letter}",
        name=f"Measure candidate {letter.upper()} {where}",
        reason="Every student is measured, whether it looks good or not",
        document=MappingProxyType({
            "trigger": {"on": "run_ended", "agent": agent.slug, "benchmark": ACCURACY.slug},
            "action": {
                "do": "launch_run",
                "agent": EVALUATOR.slug,
                "benchmark": benchmark.slug,
                "inputs": [{"dataset": holdout}, {"made_by_cause": "model"}],
                "parameters": {"benchmark": benchmark.slug, "frozen": is_frozen},
            },
            "limits": _LIMITS,
        }),
    )  # fmt: skip


JUDGE_LABELS = PolicyPlan(
    slug="judge-weak-labels",
    name="Judge the weak labels",
    reason="No student learns from a label that the rule for trusted examples has not let pass",
    document=MappingProxyType({
        "trigger": {"on": "dataset_grew", "dataset": WEAK_LABELS.slug},
        "action": {
            "do": "launch_run",
            "agent": JUDGE.slug,
            "benchmark": ACCURACY.slug,
            "inputs": [
                {"windows_of": WEAK_LABELS.slug},
                {"dataset": RUBRIC.slug},
                {"dataset": RULE.slug},
                {"dataset": HOLDOUT},
                {"dataset": DISAGREEMENT.slug},
            ],
        },
        "limits": {"decisions": 2 * ROUNDS, "gpu_hours_a_week": 4, "failures": 2},
    }),
)  # fmt: skip
TELL_WHAT_WAITS = PolicyPlan(
    slug="tell-what-waits",
    name="Say which labels wait for a person",
    reason="What teacher and judge do not agree on is for a person, who has to hear of it",
    document=MappingProxyType({
        "trigger": {"on": "run_ended", "agent": JUDGE.slug},
        "action": {
            "do": "notify",
            "words": "The judge has sorted the weak labels. Those that wait for a person are in its run's artifact waiting-for-a-person.",
        },
        "limits": {"decisions": MOST},
    }),
)  # fmt: skip
TRAIN_A, TRAIN_B = _train("a", STRONG_A), _train("b", STRONG_B)
MEASURES = (
    _measure("evaluate", "on the holdout", "a", STRONG_A, ACCURACY, HOLDOUT, is_frozen=False),
    _measure("evaluate", "on the holdout", "b", STRONG_B, ACCURACY, HOLDOUT, is_frozen=False),
    _measure("disagreement", "on disagreements", "a", STRONG_A, ON_DISAGREEMENT, DISAGREEMENT.slug, is_frozen=True),
    _measure("disagreement", "on disagreements", "b", STRONG_B, ON_DISAGREEMENT, DISAGREEMENT.slug, is_frozen=True),
)
PROMOTE = PolicyPlan(
    slug="promote-student",
    name="Put a student forward",
    reason="A student that passes the gate may be rested on once a person has reviewed it",
    document=MappingProxyType({
        # Whatever is measured of it: it passes once all that the gate looks at has come.
        "trigger": {"on": "evaluation_scored"},
        "gate": [*GATE],
        "action": {"do": "promote", "name": PROMOTED},
        "limits": {"decisions": 2 * ROUNDS},
    }),
)  # fmt: skip
NEXT_LABELS = PolicyPlan(
    slug="label-with-the-promoted",
    name="Let the promoted student label",
    reason="The student that a person has reviewed is the teacher of the next round, on records that it has not seen",
    document=MappingProxyType({
        "trigger": {"on": "promotion_decided", "name": PROMOTED},
        "action": {
            "do": "launch_run",
            "agent": WEAK_LABELER.slug,
            "benchmark": ACCURACY.slug,
            "inputs": [{"dataset": TRAIN}, {"promoted": PROMOTED, "required": True}],
        },
        "limits": {"decisions": ROUNDS - 1, "gpu_hours_a_week": 4, "failures": 1},
    }),
)  # fmt: skip
POLICIES = (JUDGE_LABELS, TELL_WHAT_WAITS, TRAIN_A, TRAIN_B, *MEASURES, PROMOTE, NEXT_LABELS)
