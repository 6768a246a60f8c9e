"""The rubric that a judge scores a label by: an input of the run, a versioned document that people write, not code.

Each sign is a column and what it must be above. A record with `judged_1_from` signs or more is judged 1, one with `judged_0_up_to` or fewer 0, and
what lies between is left open.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from run_folder import Input, Job, JobError
from stated import fields_of, number_of, only_document, words_of_field
from tables import Table

SCHEMA = "w2s.rubric.v1"
FIELDS = ("title", "signs", "judged_1_from", "judged_0_up_to", "otherwise")
OPEN = -1


@dataclass(frozen=True)
class Sign:
    column: str
    above: float
    words: str


@dataclass(frozen=True)
class Rubric:
    """`source` is the input that it stands in, `title` what it judges, in words."""

    source: Input
    title: str
    signs: tuple[Sign, ...]
    judged_1_from: int
    judged_0_up_to: int

    def signs_of(self, table: Table) -> np.ndarray:
        """Which signs each record shows, records by signs. Raises JobError where a column is missing."""
        return table.select([sign.column for sign in self.signs]) > np.array([sign.above for sign in self.signs])

    def verdicts_of(self, shown: np.ndarray) -> np.ndarray:
        """1, 0, or OPEN."""
        count = shown.sum(axis=1)
        return np.where(count >= self.judged_1_from, 1, np.where(count <= self.judged_0_up_to, 0, OPEN))

    def words_of(self, shown: np.ndarray) -> str:
        return ", ".join(sign.words for sign, is_shown in zip(self.signs, shown, strict=True) if is_shown) or "no sign"

    @property
    def said(self) -> list[str]:
        return [f"{sign.column} above {sign.above:g}: {sign.words}" for sign in self.signs]


def read_rubric(job: Job) -> Rubric:
    """The only rubric among the inputs. Raises JobError where there is none, several, or one that cannot be followed."""
    source, document = only_document(job, SCHEMA, "rubric")
    where = f"the rubric in {source.slug}"
    fields_of(document, (*FIELDS, "how_it_came"), FIELDS, where)
    listed = document["signs"]
    if not isinstance(listed, list) or not 1 <= len(listed) <= 100:
        raise JobError(f"{where}: signs must be a list of 1 to 100 signs")
    signs = tuple(_sign(entry, f"{where}, sign {number}") for number, entry in enumerate(listed, start=1))
    ones, zeros = (number_of(document, name, 0, len(signs), where) for name in ("judged_1_from", "judged_0_up_to"))
    if ones != int(ones) or zeros != int(zeros) or zeros >= ones:
        raise JobError(f"{where}: judged_0_up_to must be a whole number below judged_1_from")
    if document["otherwise"] != "open":
        raise JobError(f"{where}: otherwise is {document['otherwise']!r}; what lies between is left open")
    return Rubric(source, words_of_field(document, "title", where), signs, int(ones), int(zeros))


def _sign(entry: Any, where: str) -> Sign:
    fields_of(entry, ("column", "above", "words"), ("column", "above", "words"), where)
    above = number_of(entry, "above", -1e300, 1e300, where)
    return Sign(words_of_field(entry, "column", where), above, words_of_field(entry, "words", where))
