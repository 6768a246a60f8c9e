"""The rule for trusted examples, as its document states it: an input of the run. A weak label is trusted if the record is in no holdout, and either
the teacher is sure to at least the rule's `min_confidence` and the judge agrees, or a person has reviewed it. What is left waits for a person, with
the reason."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from rubric import OPEN
from run_folder import Input, Job, JobError
from stated import fields_of, number_of, only_document

SCHEMA = "w2s.trusted-example-rule.v1"
# What a rule has to say, word for word: a judge that knows no other way follows no rule that asks for one.
SAID = {"judge": "agrees", "in_a_holdout": "never", "otherwise": "a person"}
TRUSTED, WAITS, HELD_OUT = "trusted", "waits", "held_out"


@dataclass(frozen=True)
class Rule:
    """`min_confidence`: how sure the teacher must be, from 0.5 to 1."""

    source: Input
    min_confidence: float


def read_rule(job: Job) -> Rule:
    """The only rule among the inputs. Raises JobError where there is none, several, or one that cannot be followed."""
    source, document = only_document(job, SCHEMA, "rule for trusted examples")
    where = f"the rule in {source.slug}"
    fields_of(document, ("title", "min_confidence", *SAID), ("min_confidence", *SAID), where)
    for name, said in SAID.items():
        if document[name] != said:
            raise JobError(f"{where}: {name} is {document[name]!r}; this judge follows {said!r} alone")
    return Rule(source, number_of(document, "min_confidence", 0.5, 1, where))


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
