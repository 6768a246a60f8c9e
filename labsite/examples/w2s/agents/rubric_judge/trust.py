"""The rule for trusted examples. A weak label is trusted if the record is in no holdout, and either the teacher is sure and the judge agrees,
or a person has reviewed it. What is left waits for a person, with the reason."""

from collections.abc import Collection, Sequence

import numpy as np
from rubric import OPEN

TRUSTED, WAITS, HELD_OUT = "trusted", "waits", "held_out"


def decide(
    record_ids: Sequence[str],
    labels: np.ndarray,
    confidence: np.ndarray,
    verdicts: np.ndarray,
    *,
    at_least: float,
    held_out: Collection[str],
    reviewed: Collection[str],
) -> list[tuple[str, str]]:
    """For each record what becomes of it, and why."""
    return [
        _decide(record in held_out, record in reviewed, float(sure), int(verdict), int(label), at_least)
        for record, label, sure, verdict in zip(record_ids, labels, confidence, verdicts, strict=True)
    ]


def _decide(is_held_out: bool, is_reviewed: bool, sure: float, verdict: int, label: int, at_least: float) -> tuple[str, str]:
    if is_held_out:
        return HELD_OUT, "it is in a holdout"
    if is_reviewed:
        return TRUSTED, "a person has reviewed it"
    doubts = []
    if sure < at_least:
        doubts.append(f"the teacher is sure to {sure:.3f}, {at_least:g} is wanted")
    if verdict == OPEN:
        doubts.append("the judge leaves it open")
    elif verdict != label:
        doubts.append(f"the judge says {verdict}")
    return (WAITS, " and ".join(doubts)) if doubts else (TRUSTED, "the teacher is sure and the judge agrees")
