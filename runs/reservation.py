"""How long a run may take and what that costs at most: wall limits, reservations, prices. Pure; integers only.

GPU time is milliseconds, a slot counts in thousandths of a GPU, prices are micro-units of currency for a GPU-hour.
"""

from dataclasses import dataclass

from workspaces.units import MS_PER_HOUR

GRACE_SECONDS = 10  # between the polite and the hard end of a run
POLL_SECONDS = 2  # until labsite sees that it has ended
MARGIN_SECONDS = GRACE_SECONDS + POLL_SECONDS
MAX_WALL_SECONDS = 30 * 86_400


class TooLittle(ValueError):
    """The budget ends before the run could; the sentence says what it would need."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a launch asks of the budget, and the wall limit with which its charge stays within it."""

    wall_seconds: int
    gpu_ms: int


def reservation(*, budget_gpu_ms: int | None, wall_seconds: int, slots: int, milli_gpu_per_slot: int) -> Reservation:
    """Without a budget: what the agent's own wall limit needs, with the margin for its end. A budget sets the wall limit, and may lengthen it;
    raises TooLittle where it does not last for a second."""
    rate = slots * milli_gpu_per_slot
    if budget_gpu_ms is None or rate == 0:
        return Reservation(wall_seconds, (wall_seconds + MARGIN_SECONDS) * rate)
    affordable = min(budget_gpu_ms // rate - MARGIN_SECONDS, MAX_WALL_SECONDS)
    if affordable < 1:
        least = (MARGIN_SECONDS + 1) * rate / MS_PER_HOUR
        raise TooLittle(
            f"{budget_gpu_ms / MS_PER_HOUR:.4f} GPU-hours end before the run could: {slots} slots for one second and "
            f"{MARGIN_SECONDS} seconds to end need {least:.4f}. Ask for at least that."
        )
    return Reservation(affordable, min(budget_gpu_ms, (affordable + MARGIN_SECONDS) * rate))


def cost_micros(gpu_ms: int, price_micros_per_gpu_hour: int) -> int:
    """Price of GPU time, rounded up to the micro-unit."""
    return -(-gpu_ms * price_micros_per_gpu_hour // MS_PER_HOUR)
