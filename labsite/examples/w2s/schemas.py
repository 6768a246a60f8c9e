"""Parameter schemas of the laboratory's agents: what each parameter means, what it is by default, how far it may go."""

from types import MappingProxyType
from typing import Any

Schema = MappingProxyType[str, Any]


def _schema(**properties: dict[str, Any]) -> Schema:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": False}
    return MappingProxyType({**head, "properties": properties})


def _whole(low: int, high: int, default: int, description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high, "default": default, "description": description}


def _number(low: float, high: float, default: float, description: str) -> dict[str, Any]:
    return {"type": "number", "minimum": low, "maximum": high, "default": default, "description": description}


def _yes(description: str) -> dict[str, Any]:
    return {"type": "boolean", "default": False, "description": description}


def _text(default: str, description: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "default": default, "description": description}


def _texts(default: list[str], at_least: int, description: str) -> dict[str, Any]:
    items = {"type": "string", "minLength": 1}
    return {"type": "array", "items": items, "minItems": at_least, "uniqueItems": True, "default": default, "description": description}


_TARGET = _text("malignant", "Column to predict, 0 or 1.")
_STUDENT = {
    "shuffle_labels": _yes("Give the student its labels in another order: a control that has nothing to learn from."),
    "frozen_set": _text("none", "SHA-256 of the disagreement set that was frozen before this training; it is kept in the model."),
    "target": _TARGET,
}


def _benchmark(slug: str) -> dict[str, Any]:
    return _text(slug, "Benchmark that the score is reported for.")


def weak_labeler(*, accuracy: str, weak_labels: str) -> Schema:
    return _schema(
        features=_texts(["mean_texture", "mean_smoothness"], 1, "Columns that the teacher may see; few of them keep it weak."),
        learning_rate=_number(1e-6, 10, 0.05, "Step of gradient descent."),
        epochs=_whole(1, 10_000, 40, "Passes over the training table."),
        l2=_number(0, 1, 0.001, "Weight of the squared-weights penalty."),
        batch_size=_whole(1, 100_000, 16, "Records a step."),
        seconds_per_epoch=_number(0, 60, 0, "Shortest duration of an epoch in seconds, so that a run can be watched; 0 for full speed."),
        target=_TARGET,
        benchmark=_benchmark(accuracy),
        dataset=_text(weak_labels, "Live dataset that weak labels are added to, where a teacher's model labels a table."),
    )


STRONG_A = _schema(
    l2=_number(0.001, 100, 0.1, "Weight of the squared-weights penalty."),
    rounds=_whole(0, 200, 5, "Rounds of self-training on weak labels; none where labels are true."),
    own_share=_number(0, 1, 0.5, "How much of a label is the student's own prediction of the round before."),
    **_STUDENT,
)
STRONG_B = _schema(
    components=_whole(1, 30, 2, "Principal axes of the table that are kept."),
    rounds=_whole(0, 500, 30, "Rounds of expectation and maximisation on weak labels; none where labels are true."),
    own_share=_number(0, 1, 0.9, "How much of a label is the student's own probability of the round before."),
    floor=_number(0.001, 100, 0.1, "Variance that is added along each axis, so that no class shrinks to a point."),
    **_STUDENT,
)
DISAGREEMENT = _schema()


def evaluator(*, accuracy: str) -> Schema:
    return _schema(
        # The target is the model's own unless a run insists on one.
        target={key: value for key, value in _TARGET.items() if key != "default"},
        benchmark=_benchmark(accuracy),
        frozen=_yes("Refuse a model that does not name this very table as frozen before its training."),
    )


def judge(*, trusted: str) -> Schema:
    return _schema(
        reviewed=_texts([], 0, "Ids of records whose weak label a person has reviewed and accepts."),
        dataset=_text(trusted, "Live dataset that trusted examples are added to."),
        target=_TARGET,
    )


def gap(*, benchmark: str) -> Schema:
    return _schema(
        splits=_whole(20, 1000, 24, "Split seeds: how often the training records are halved anew between teacher and student."),
        resamples=_whole(100, 100_000, 2000, "Resamples of the bootstrap, over splits and held-out records."),
        shuffle_labels=_yes("Give the student its weak labels in another order: the control."),
        min_gap=_number(0, 1, 0.1, "How far the ceiling must be above the teacher, as a share of right answers."),
        benchmark=_benchmark(benchmark),
    )
