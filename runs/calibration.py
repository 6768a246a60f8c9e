"""How well a model knows how sure it may be: the expected calibration error of its confidences. Pure.

Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks" (2017), equation 3 and what stands before it: answers fall by their
confidence into bins of equal width, the m-th of M from (m - 1) / M, not included, to m / M; the error is the mean of |share of right answers - mean
confidence| over the bins, weighted by how many answers each holds.
"""

import math
from collections.abc import Iterable

BORDER = 1e-9  # 0.7 * 10 is more than 7 in binary; a confidence on a border belongs to the bin below it


def expected_calibration_error(answers: Iterable[tuple[float, bool]], bins: int) -> float | None:
    """Of (confidence in [0, 1], was it right); between 0 and 1, None where there is no answer."""
    count = [0] * bins
    gap = [0.0] * bins
    for confidence, is_right in answers:
        place = min(bins - 1, max(0, math.ceil(confidence * bins - BORDER) - 1))
        count[place] += 1
        gap[place] += is_right - confidence
    total = sum(count)
    return sum(abs(each) for each in gap) / total if total else None
