"""Has a measurement moved? Pure."""

import math

ROUNDING = 1e-12  # of the expected value: a difference of decimal fractions that is exactly the tolerance is within it


def holds(expected: float, tolerance: float, observed: float) -> bool:
    """Is what was observed within the tolerance of what is expected? What is no number is not."""
    return math.isfinite(observed) and abs(observed - expected) <= tolerance + ROUNDING * max(1.0, abs(expected))


def in_words(expected: float, tolerance: float, observed: float) -> str:
    """With the arithmetic of it."""
    apart = f"{abs(observed - expected):.6g} apart" if math.isfinite(observed) else "no finite number"
    return f"Observed {observed:.6g}, expected {expected:.6g}: {apart}, {tolerance:.6g} allowed."
