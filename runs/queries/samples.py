"""Per-sample results of an evaluation, read from the file that its run has left: a page of them, and two evaluations held against each other.

The file is the truth; the evaluation's row keeps what was counted in it when it was collected.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.db.models import QuerySet

from runs.models import Evaluation
from runs.paired import Difference, NotComparable, difference
from runs.sample_results import Fault, Line, Mean, Sample, Status, disagreements, mean_of, read_samples
from workspaces.models import Contract, NotFound
from workspaces.queries.paging import NOT_OURS, BadCursor
from workspaces.queries.registry import stored_content
from workspaces.units import plural

PAGE = 100
OFFERED = 20


@dataclass(frozen=True, slots=True)
class Summary:
    """What was counted in the file. `doubts` are sentences about what does not agree or could not be read."""

    path: str
    is_there: bool
    counts: list[tuple[str, int]]
    samples: int
    scored: int
    mean: Mean
    doubts: list[str]
    faults: list[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class SamplePage:
    """Samples and faults in the order of the file, from the line `start` on; `next_line` is where the next page begins, 0 after the last."""

    rows: list[Sample | Fault]
    next_line: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """`candidate` against `champion`; `found` is None where they cannot be compared, which `refusal` tells."""

    candidate: Evaluation
    champion: Evaluation
    found: Difference | None = None
    refusal: str = ""
    only_candidate: int = 0
    only_champion: int = 0
    unscored: int = 0  # samples without a score, which count 0

    @property
    def is_same_samples(self) -> bool:
        return not self.only_candidate and not self.only_champion

    @property
    def gain(self) -> float | None:
        """The mean difference, positive where the candidate is better."""
        return self._turned(self.found.mean, self.found.mean) if self.found else None

    @property
    def loss(self) -> float | None:
        return -self.gain if self.gain is not None else None

    @property
    def least_gain(self) -> float | None:
        """Of the gain 95 % of the bootstrap lie above this: what is held against an allowed loss (no_holdout_regression)."""
        return self._turned(self.found.lower_bound, self.found.upper_bound) if self.found else None

    @property
    def most_gain(self) -> float | None:
        """Of the gain 95 % of the bootstrap lie below this."""
        return self._turned(self.found.upper_bound, self.found.lower_bound) if self.found else None

    def _turned(self, up: float, down: float) -> float:
        return -down if _is_lower_better(self.candidate) else up


def find_with_samples(text: str) -> Evaluation:
    """With its contract, its run and the file. Raises NotFound, also where it has none."""
    found = Evaluation.objects.find(text, "benchmark", "contract", "run", "samples_artifact__blob", "contract__holdout")
    if found.samples_artifact is None or found.samples_artifact.removed_at is not None:
        raise NotFound("file")
    return found


def summary_of(evaluation: Evaluation) -> Summary | None:
    """None where the run named no such file."""
    read = evaluation.samples_read
    if not read:
        return None
    if "counts" not in read:
        return Summary(str(read["path"]), False, [], 0, 0, Mean(None), [f"The run left no file {read['path']}."], [])
    held, faults = sum(read["counts"].values()), int(read["fault_count"])
    doubts = doubts_of(evaluation)
    if faults:
        doubts.append(f"{plural(faults, 'thing', 'things')} in it could not be read as a sample.")
    counts = [(status.value, int(read["counts"].get(status.value, 0))) for status in Status]
    mean, told = mean_of(read, _line(evaluation)), [(int(line), str(why)) for line, why in read["faults"]]
    return Summary(str(read["path"]), True, counts, held, read["scored"], mean, doubts, told)


def doubts_of(evaluation: Evaluation) -> list[str]:
    """What a score says and its file does not, in sentences; asks nothing of the database where the contract is there."""
    read = evaluation.samples_read
    return disagreements(read, _line(evaluation)) if "counts" in read else []


def _line(row: Evaluation) -> Line:
    """The contract says how the metrics count that it names, and of others nothing."""
    is_named = any(metric.metric == row.metric for metric in row.contract.all_metrics)
    counts_all = row.contract.counts_all_samples and is_named
    return Line(row.value, row.samples, row.errored, row.abstained, counts_all=counts_all, is_lower_better=_is_lower_better(row))


def _is_lower_better(row: Evaluation) -> bool:
    """By the direction of its own metric; by that of the first where the contract does not name it."""
    contract: Contract = row.contract
    return next((metric for metric in contract.all_metrics if metric.metric == row.metric), contract.primary).is_lower_better


def line_of(cursor: str) -> int:
    """The line that a page begins at; the first without a cursor. Raises BadCursor."""
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 9) and cursor:
        raise BadCursor(NOT_OURS)
    return int(cursor or 1)


def page_of_samples(evaluation: Evaluation, *, status: str = "", start: int = 1, size: int = PAGE) -> SamplePage:
    """At most `size` rows; `status` of a sample, or `fault` for what could not be read. Raises NotFound where there is no file."""
    rows: list[Sample | Fault] = []
    for row in samples_of(evaluation):
        if (row.line and row.line < start) or not _is_asked(row, status):
            continue
        if len(rows) == size:
            return SamplePage(rows, row.line)
        rows.append(row)
    return SamplePage(rows, 0)


def _is_asked(row: Sample | Fault, status: str) -> bool:
    return not status or status == ("fault" if isinstance(row, Fault) else row.status)


def compare(candidate: Evaluation, champion: Evaluation) -> Comparison:
    """Paired, over the samples that both have by id. Raises NotFound where one of them has no file any more."""
    if candidate.pk == champion.pk:
        return Comparison(candidate, champion, refusal="It is the same evaluation.")
    if (candidate.contract_id, candidate.metric) != (champion.contract_id, champion.metric):
        return Comparison(candidate, champion, refusal="They were not measured by the same metric under the same contract version.")
    scores = [{row.id: row.score for row in samples_of(each) if isinstance(row, Sample)} for each in (candidate, champion)]
    shared = scores[0].keys() & scores[1].keys()
    unscored = sum(found[name] is None for found in scores for name in shared)
    only = [len(each) - len(shared) for each in scores]
    compared = Comparison(candidate, champion, only_candidate=only[0], only_champion=only[1], unscored=unscored)
    if unscored and _is_lower_better(candidate):
        words = f"{plural(unscored, 'sample has', 'samples have')} no score, and lower is better: nothing says what they count."
        return replace(compared, refusal=words)
    try:
        found = difference([(scores[0][name] or 0.0, scores[1][name] or 0.0) for name in sorted(shared)])
    except NotComparable as reason:
        return replace(compared, refusal=f"They cannot be held against each other: {reason}.")
    return replace(compared, found=found)


def comparable_with(evaluation: Evaluation) -> "QuerySet[Evaluation]":
    """Others that have per-sample results under the same contract version and metric, newest first."""
    rows = Evaluation.objects.filter(contract=evaluation.contract_id, metric=evaluation.metric, samples_artifact__isnull=False)
    return rows.exclude(pk=evaluation.pk).select_related("run").order_by("-created_at", "-pk")[:OFFERED]


def samples_of(evaluation: Evaluation) -> Iterator[Sample | Fault]:
    return read_samples(stored_content(evaluation.samples_artifact.blob))
