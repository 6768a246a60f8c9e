"""Runs side by side: what they rest on, what was asked, what came of them; and where they differ."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runs.models import MetricSeries, Run
from runs.pools.sampling import PREFIX
from runs.queries.metric import curves
from runs.queries.score import RunScore, scores_of
from workspaces import ids
from workspaces.models import NotFound

MOST_RUNS = 20
CURVED_RUNS, CURVED_KEYS, COLUMNS = 6, 6, 500
METRICS = 40


@dataclass(frozen=True, slots=True)
class Row:
    """One thing of every run; `values` in the order of the runs, None where a run has none."""

    section: str
    name: str
    values: tuple[Any, ...]
    is_measured: bool = False  # numbers that a run wrote, of which a page shows the leading digits

    @property
    def differs(self) -> bool:
        return len({json.dumps(value, sort_keys=True, default=str) for value in self.values}) > 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """`charts` are (metric, its curves by run), of the first `CURVED_RUNS` runs and the metrics that most of them have."""

    runs: tuple[Run, ...]
    scores: tuple[RunScore | None, ...]
    rows: tuple[Row, ...]
    charts: tuple[tuple[str, list[tuple[str, list[tuple[float, float]]]]], ...]
    charts_left_out: int

    @property
    def same(self) -> int:
        """How many rows are the same for all."""
        return sum(1 for row in self.rows if not row.differs)


def find_runs(texts: Sequence[str]) -> list[Run]:
    """The runs that are named, each once, in the order named; NotFound where one is not here."""
    keys = list(dict.fromkeys(ids.spellings(Run.prefix, text)[0] for text in texts))[:MOST_RUNS]
    rows = Run.objects.select_related("benchmark", "contract", "agent", "agent_version", "pool", "requested_by")
    found = rows.in_bulk([key for key in keys if key is not None])
    if not keys or any(key not in found for key in keys):
        raise NotFound("run")
    return [found[key] for key in keys if key is not None]


def compare(runs: Sequence[Run]) -> Comparison:
    """Everything that was frozen with each run, its parameters one a row, its score and the last value of each metric."""
    scores = scores_of(runs)
    series = _series(runs)
    charts, left_out = _charts(runs, series)
    rows = [*_frozen(runs), *_parameters(runs), *_results(runs, series)]
    return Comparison(tuple(runs), tuple(scores.get(run.pk) for run in runs), tuple(rows), charts, left_out)


def _frozen(runs: Sequence[Run]) -> list[Row]:
    facts = [
        ("Benchmark", [run.benchmark.slug for run in runs]),
        ("Contract", [f"version {run.contract.version}" for run in runs]),
        ("Agent", [f"{run.agent.slug}, version {run.agent_version.number}" for run in runs]),
        ("Code", [run.agent_version.bundle_hash[:12] for run in runs]),
        ("Pool", [run.pool.slug for run in runs]),
        ("Isolation", [run.get_isolation_display() for run in runs]),
        ("Seed", [run.seed for run in runs]),
        ("Asked for by", [run.requested_by.label for run in runs]),
    ]
    rows = [Row("What it rests on", name, tuple(values)) for name, values in facts]
    inputs = [{entry["slug"]: f"{entry['label']}, {str(entry['sha256'])[:12]}" for entry in run.frozen.get("inputs", [])} for run in runs]
    slugs = dict.fromkeys(slug for found in inputs for slug in found)
    return rows + [Row("What it rests on", f"Input {slug}", tuple(found.get(slug) for found in inputs)) for slug in slugs]


def _parameters(runs: Sequence[Run]) -> list[Row]:
    names = sorted({name for run in runs for name in run.parameters})
    return [Row("Parameters", name, tuple(run.parameters.get(name) for run in runs)) for name in names]


def _results(runs: Sequence[Run], series: dict[Any, dict[str, MetricSeries]]) -> list[Row]:
    rows = [
        Row("What came of it", "State", tuple(run.status for run in runs)),
        Row("What came of it", "GPU ms spent", tuple(run.spent_gpu_ms for run in runs)),
    ]
    keys = sorted({key for found in series.values() for key in found})[:METRICS]
    for key in keys:
        last = [series[run.pk][key].last if key in series[run.pk] else None for run in runs]
        rows.append(Row("Last value of each metric", key, tuple(last), is_measured=True))
    return rows


def _series(runs: Sequence[Run]) -> dict[Any, dict[str, MetricSeries]]:
    found: dict[Any, dict[str, MetricSeries]] = {run.pk: {} for run in runs}
    for row in MetricSeries.objects.filter(run__in=found).exclude(key__startswith=PREFIX):
        found[row.run_id][row.key] = row
    return found


def _charts(
    runs: Sequence[Run], series: dict[Any, dict[str, MetricSeries]]
) -> tuple[tuple[tuple[str, list[tuple[str, list[tuple[float, float]]]]], ...], int]:
    shown = list(runs)[:CURVED_RUNS]
    counted = Counter(key for run in shown for key, row in series[run.pk].items() if row.count > 1)
    keys = [key for key, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))]
    drawn = {run.pk: curves([series[run.pk][key] for key in keys[:CURVED_KEYS] if key in series[run.pk]], columns=COLUMNS) for run in shown}
    charts = tuple((key, [(f"#{run.number}", drawn[run.pk].get(key, [])) for run in shown]) for key in keys[:CURVED_KEYS])
    return charts, max(0, len(keys) - CURVED_KEYS)
