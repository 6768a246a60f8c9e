"""The rubric, version 2: three signs that a pathologist looks for, in columns that the weak teacher does not see.

The thresholds are round numbers that were written down once; nothing fits them to data. A record with two signs or more is judged 1, one
with none 0, and one with a single sign is left open.
"""

from dataclasses import dataclass

import numpy as np
from tables import Table


@dataclass(frozen=True)
class Sign:
    column: str
    above: float
    words: str


SIGNS = (
    Sign("mean_radius", 15.0, "large nuclei"),
    Sign("mean_concavity", 0.10, "dented outlines"),
    Sign("area_error", 40.0, "nuclei of very different size"),
)
JUDGED_1_FROM = 2
OPEN = -1


def signs_of(table: Table) -> np.ndarray:
    """Which signs each record shows, records by signs. Raises JobError where a column is missing."""
    return table.select([sign.column for sign in SIGNS]) > np.array([sign.above for sign in SIGNS])


def verdicts_of(shown: np.ndarray) -> np.ndarray:
    """1, 0, or OPEN."""
    count = shown.sum(axis=1)
    return np.where(count >= JUDGED_1_FROM, 1, np.where(count == 0, 0, OPEN))


def words_of(shown: np.ndarray) -> str:
    return ", ".join(sign.words for sign, is_shown in zip(SIGNS, shown, strict=True) if is_shown) or "no sign"
