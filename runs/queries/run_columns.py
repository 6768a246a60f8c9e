"""Columns of the list of runs that a reader chose: what a name in the address stands for, and what each run has there.

A name is one of FIXED, or a family and a key: `params.optimizer.lr`, `metrics.loss` (its last value), `min.loss`, `max.loss`,
`scores.accuracy`. A name that stands for nothing is a column without values: it can be seen, and taken away.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.models import Evaluation, MetricSeries, Run
from runs.pools.sampling import PREFIX

MOST_COLUMNS = 12
LONGEST_NAME = 260
READ_FOR_OFFERS, OFFERED_PARAMETERS, OFFERED_METRICS, OFFERED_SCORES, DEEPEST = 50, 60, 60, 20, 3
PARAMETERS, SCORES = "params", "scores"
# Families of metrics, and what each shows of a series.
OF_SERIES = {"metrics": "last", "min": "minimum", "max": "maximum"}
FAMILY_WORDS = {"min": "lowest ", "max": "highest "}


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` says how a value is written; `source` is a field of runs, a metric's key or a parameter's path."""

    name: str
    label: str
    kind: str = "unknown"
    source: str = ""
    head: str = ""  # in a CSV file, where the unit stands in the head

    @property
    def family(self) -> str:
        return self.name.partition(".")[0] if self.name not in FIXED and self.kind != "unknown" else ""

    @property
    def is_figure(self) -> bool:
        return self.kind in ("number", "score", "gpu", "seconds", "moment", "parameter", "measure")


FIXED = {
    column.name: column
    for column in (
        Column("score", "Score", "score"),
        Column("benchmark", "Benchmark", "benchmark"),
        Column("contract", "Contract", "number", "contract__version"),
        Column("agent", "Agent", "agent"),
        Column("version", "Agent version", "number", "agent_version__number", "agent version"),
        Column("person", "Asked for by", "person", head="asked for by"),
        Column("spent", "GPU-h", "gpu", "spent_gpu_ms", "GPU ms spent"),
        Column("reserved", "GPU-h reserved", "gpu", "reserved_gpu_ms", "GPU ms reserved"),
        Column("ran", "Ran", "seconds", head="seconds run"),
        Column("asked", "Asked for", "moment", "created_at", "asked at"),
        Column("started", "Started", "moment", "started_at", "started at"),
        Column("ended", "Ended", "moment", "ended_at", "ended at"),
        Column("pool", "Pool", "text", "pool__slug"),
        Column("number", "No.", "number", "number"),
        Column("seed", "Seed", "number", "seed"),
        Column("sweep", "Sweep", "sweep", "sweep__name"),
        Column("member", "Member of its sweep", "number", "sweep_member", "sweep member"),
        Column("trigger", "Trigger", "text", "trigger"),
        Column("slots", "Slots", "number", "slots"),
        Column("reason", "Reason", "text", "reason"),
    )
}


def read_columns(names: Sequence[str]) -> tuple[tuple[Column, ...], int]:
    """The columns that are named, each once, in their order; and how many names were left out beyond MOST_COLUMNS."""
    wanted = list(dict.fromkeys(name for name in (text.replace("\x00", "").strip()[:LONGEST_NAME] for text in names) if name))
    return tuple(column_of(name) for name in wanted[:MOST_COLUMNS]), max(0, len(wanted) - MOST_COLUMNS)


def column_of(name: str) -> Column:
    if name in FIXED:
        return FIXED[name]
    family, _, key = name.partition(".")
    if not key:
        return Column(name, name)
    if family == PARAMETERS:
        return Column(name, key, "parameter", key, name)
    if family == SCORES:
        return Column(name, key, "score", key, name)
    if family in OF_SERIES:
        return Column(name, f"{FAMILY_WORDS.get(family, '')}{key}", "measure", key, name)
    return Column(name, name)


def fields_of(columns: Sequence[Column]) -> set[str]:
    """What must be read of the runs for the chosen columns, besides what every row has."""
    paths = {column.source for column in columns if column.name in FIXED and column.source}
    if any(column.family == PARAMETERS for column in columns):
        paths.add("parameters")
    return paths | ({"sweep_id"} if FIXED["sweep"] in columns else set())


Measured = Mapping[tuple[uuid.UUID, str], dict[str, float | None]]


def measured(columns: Sequence[Column], runs: Sequence[uuid.UUID]) -> Measured:
    """The summaries of the chosen metrics, in one look: (run, key) -> last, minimum, maximum."""
    keys = {column.source for column in columns if column.family in OF_SERIES}
    if not keys:
        return {}
    rows = MetricSeries.objects.filter(run__in=runs, key__in=keys).values("run_id", "key", *OF_SERIES.values())
    return {(row["run_id"], row["key"]): {name: row[name] for name in OF_SERIES.values()} for row in rows}


def parameter_at(parameters: Any, path: str) -> Any:
    """The parameter of that name, or what lies at the path; None where there is nothing."""
    found: Any = parameters
    for part in path.split("."):
        match found:
            case dict() if part in found:
                found = found[part]
            case list() if part.isascii() and part.isdigit() and len(part) < 6 and int(part) < len(found):
                found = found[int(part)]
            case _:
                return parameters.get(path) if isinstance(parameters, dict) else None
    return found


@dataclass(frozen=True, slots=True)
class Offers:
    """Names of columns that the runs in sight have values for."""

    parameters: list[str]
    metrics: list[str]
    scores: list[str]


def offers(runs: Sequence[uuid.UUID]) -> Offers:
    """From the first rows in sight, in three looks whatever their number; the machine's own metrics (`system/…`) are left out."""
    seen = runs[:READ_FOR_OFFERS]
    if not seen:
        return Offers([], [], [])
    names: dict[str, None] = {}
    for parameters in Run.objects.filter(pk__in=seen).values_list("parameters", flat=True):
        names |= dict.fromkeys(_paths(parameters))
    keys = MetricSeries.objects.filter(run__in=seen).exclude(key__startswith=PREFIX).order_by("key").values_list("key", flat=True)
    scored = Evaluation.objects.filter(run__in=seen).order_by("metric").values_list("metric", flat=True)
    return Offers(
        parameters=[f"{PARAMETERS}.{name}" for name in sorted(names)[:OFFERED_PARAMETERS]],
        metrics=[f"metrics.{key}" for key in keys.distinct()[:OFFERED_METRICS]],
        scores=[f"{SCORES}.{metric}" for metric in scored.distinct()[:OFFERED_SCORES]],
    )


def _paths(parameters: Any, depth: int = 1, before: str = "") -> Iterator[str]:
    """Names of parameters; those of an object's fields as paths."""
    if not isinstance(parameters, dict):
        return
    for name, value in parameters.items():
        path = f"{before}{name}"
        if isinstance(value, dict) and value and depth < DEEPEST:
            yield from _paths(value, depth + 1, f"{path}.")
        elif len(path) <= LONGEST_NAME - len(PARAMETERS) - 1:
            yield path
