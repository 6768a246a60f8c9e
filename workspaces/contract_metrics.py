"""The metrics of a contract: a name under which runs report it, its unit, and which way is better. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

MAXIMIZE, MINIMIZE = DIRECTIONS = ("maximize", "minimize")
MOST_METRICS = 20  # beside the one that ranks
MAX_NAME, MAX_UNIT = 250, 40


@dataclass(frozen=True, slots=True)
class Metric:
    metric: str
    unit: str = ""
    direction: str = MAXIMIZE

    @property
    def is_lower_better(self) -> bool:
        return self.direction == MINIMIZE

    def as_json(self) -> dict[str, str]:
        """As a contract keeps it, and as its hash covers it."""
        return asdict(self)


def metrics_from(kept: Iterable[Mapping[str, Any]]) -> tuple[Metric, ...]:
    """Metrics as a contract keeps them."""
    return tuple(Metric(str(entry["metric"]), str(entry["unit"]), str(entry["direction"])) for entry in kept)


def metric_lines(metrics: Iterable[Metric]) -> str:
    """As people write them: `name | unit | minimize`, one a line."""
    return "\n".join(f"{metric.metric} | {metric.unit} | {metric.direction}" for metric in metrics)


def metric_from_line(line: str) -> Metric:
    """One line of `metric_lines`; unit and direction may be left out. Raises ValueError with a sentence."""
    parts = [part.strip() for part in line.rsplit("|", 2)]  # a name may have one too
    if not parts[0]:
        raise ValueError(f"“{line[:80]}” is not of the form: name | unit | direction.")
    name, unit, direction = (*parts, "", "")[:3]
    if direction and direction not in DIRECTIONS:
        raise ValueError(f"{name[:80]}: the direction is {' or '.join(DIRECTIONS)}, not “{direction[:40]}”.")
    return Metric(name, unit, direction or MAXIMIZE)


def metric_fault(primary: str, metrics: Iterable[Metric]) -> str:
    """Why these may not stand beside the metric that ranks, in a sentence; empty where they may."""
    found = list(metrics)
    if len(found) > MOST_METRICS:
        return f"At most {MOST_METRICS} metrics beside the one that ranks; these are {len(found):,}."
    seen = {primary}
    for metric in found:
        if not 1 <= len(metric.metric) <= MAX_NAME or metric.metric != metric.metric.strip():
            return f"The name of a metric has 1 to {MAX_NAME} characters, and no blanks around them."
        if len(metric.unit) > MAX_UNIT:
            return f"The unit of {metric.metric[:80]} has at most {MAX_UNIT} characters."
        if metric.direction not in DIRECTIONS:
            return f"The direction of {metric.metric[:80]} is {' or '.join(DIRECTIONS)}."
        if metric.metric in seen:
            return f"{metric.metric[:80]} is named twice."
        seen.add(metric.metric)
    return ""
