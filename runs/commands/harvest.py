"""What an ended attempt leaves, as rows: artifacts of files that lie in the store already, scores on benchmarks. Parts of the commands that end.

Everything here was named by a run: a path may be taken, a benchmark unknown, a list long. Nothing of it may keep the run from ending.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from runs.commands.promotion import void_measured
from runs.models import Artifact, Evaluation, Run, RunLine
from runs.pools.events import Score
from runs.queries.contract_facts import not_kept
from workspaces import kept_query
from workspaces.audit import Draft
from workspaces.commands.blob import keep_blobs
from workspaces.models import Benchmark, Contract, NotFound, Pool
from workspaces.queries.registry import contracts_of, current_contract

OWN_PATHS = ".labsite/"  # paths of artifacts that labsite itself makes of an attempt: its log, its lines
LACKING = "Not all outputs could be collected"  # how the sentence begins that says so
NOT_KEPT = "scores_that_the_contract_does_not_keep"  # detail of an event: benchmark and sentence
MAX_PATH = 1024
MAX_SCORES = 1_000


@dataclass(frozen=True, slots=True)
class Collected:
    """An output that lies in the store already and now becomes an artifact."""

    path: str
    name: str
    kind: str
    metadata: dict[str, Any]
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class SamplesFile:
    """A file of per-sample results that a score names, as it was read in the store: its content, and `runs.sample_results.Reading.as_json`."""

    sha256: str
    read: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Harvest:
    """What an ended attempt leaves."""

    artifacts: tuple[Collected, ...] = ()
    scores: tuple[Score, ...] = ()
    samples_files: Mapping[str, SamplesFile] = field(default_factory=dict)  # by the path that a score names
    memory: tuple[RunLine, ...] = ()  # lines that propose an entry, in their order
    said_done: bool = False
    notes: dict[str, Any] = field(default_factory=dict)
    last_words: str = ""  # the last line that the program wrote to stderr
    error_lines: tuple[str, ...] = ()  # what it wrote to stderr about its failure
    lacking: str = ""  # a sentence for people, where not everything could be collected
    is_bare: bool = False  # something of it could not be recorded: the run ends without what it has made

    @property
    def records(self) -> tuple[Collected, ...]:
        """Log and lines of the attempt, which are kept even where the attempt did not count."""
        return tuple(entry for entry in self.artifacts if entry.path.startswith(OWN_PATHS))


def set_apart(path: str, attempt_number: int) -> str:
    """Where an output stands whose own path is taken already, or labsite's."""
    return f"{OWN_PATHS}attempt-{attempt_number}/outputs/{path}"


def keep(event: Draft, run: Run, entries: Iterable[Collected], *, attempt_number: int) -> int:
    """Make artifacts of what was collected; returns how many are new.

    A path that the run has used for other content before (through the API) is moved below the attempt's own folder, the same content is kept
    once. Counts against the storage limit without asking it: what was made already is not thrown away.
    """
    entries = list(entries)
    if not entries:
        return 0
    chosen: dict[str, Collected] = {}
    taken = {artifact.path: artifact.blob.sha256 for artifact in kept_query.rows(Artifact, run=run, related=("blob",))}
    for entry in entries:
        path = entry.path
        if taken.get(path, entry.sha256) != entry.sha256:
            path = set_apart(path, attempt_number)
        if path in taken or path in chosen or len(path) > MAX_PATH:
            continue
        chosen[path] = entry
    blobs = keep_blobs(event, chosen.values(), is_limited=False)
    rows = [
        Artifact(
            run=run, path=path, name=entry.name[:250], kind=entry.kind[:40] or "file", metadata=entry.metadata, blob=blobs[entry.sha256]
        )
        for path, entry in chosen.items()
    ]
    Artifact.objects.bulk_create(rows)
    event.created(*rows)
    return len(rows)


def evaluate(event: Draft, run: Run, scores: Iterable[Score], samples_files: Mapping[str, SamplesFile]) -> None:
    """Record the scores that a run reported on benchmarks of this workspace, under the contract version that it was launched with. The last
    word on a metric counts, however its benchmark was spelled. What waits for a decision upon an older measurement of the same artifact is void."""
    scores = list(scores)
    if not scores:
        return
    latest, unknown, replaced = _last_words(scores)
    left_out: dict[str, dict[str, str]] = {}
    read, measured = _measured_by(run), set[UUID]()
    contracts: dict[Any, Contract | None] = {run.benchmark_id: run.contract}
    for benchmark, score in latest.values():
        if benchmark.pk not in contracts:
            contracts[benchmark.pk] = _contract_at_end(run, benchmark)
        contract = contracts[benchmark.pk]
        if contract is None:
            unknown.append(score.benchmark[:80])
            continue
        if found := _left_out(run, benchmark, contract):
            kind, why = found
            left_out.setdefault(kind, {})[score.benchmark[:80]] = why
            continue
        evaluation = Evaluation.objects.create(
            run=run, benchmark=benchmark, contract=contract, metric=score.metric, value=score.value, standard_error=score.stderr,
            samples=score.samples, errored=score.errored, abstained=score.abstained, subject_artifact=_subject(read, score.subject),
            **_samples_of(run, score.samples_file, samples_files),
        )  # fmt: skip
        event.created(evaluation)
        if evaluation.subject_artifact_id is not None:
            measured.add(evaluation.subject_artifact_id)
    void_measured(event, measured)
    if replaced:
        event.details["scores_replaced_by_those_of_another_artifact"] = replaced[:20]
    if unknown:
        event.details["scores_on_unknown_benchmarks"] = sorted(set(unknown))[:20]
    for kind, named in left_out.items():
        event.details[kind] = dict(sorted(named.items())[:20]) if kind == NOT_KEPT else sorted(named)[:20]


def _last_words(scores: Iterable[Score]) -> tuple[dict[tuple[UUID, str], tuple[Benchmark, Score]], list[str], list[str]]:
    """The last score of each metric by benchmark; names of benchmarks that there are not; and what made way for a score of another artifact: a run
    has one score of a metric."""
    spelled: dict[str, Benchmark | None] = {}
    latest: dict[tuple[UUID, str], tuple[Benchmark, Score]] = {}
    replaced: list[str] = []
    for score in scores:
        if score.benchmark not in spelled and len(spelled) < MAX_SCORES:
            spelled[score.benchmark] = _benchmark(score.benchmark)
        benchmark = spelled.get(score.benchmark)
        if benchmark is not None and len(latest) < MAX_SCORES:
            before = latest.get((benchmark.pk, score.metric))
            if before is not None and before[1].subject != score.subject:
                replaced.append(f"{score.metric[:80]} of {before[1].subject[:80] or 'none in particular'}")
            latest[benchmark.pk, score.metric] = (benchmark, score)
    return latest, [name[:80] for name, benchmark in spelled.items() if benchmark is None], replaced


def _left_out(run: Run, benchmark: Benchmark, contract: Contract) -> tuple[str, str] | None:
    """Under which detail of the event it is said that a score is not kept, and why; None where it is kept."""
    is_own = benchmark.pk == run.benchmark_id
    if not is_own and not _was_kept_apart(run, contract):
        return "scores_without_isolation_from_the_holdout", ""
    if not is_own and contract.runs_per_person is not None:
        return "scores_on_benchmarks_that_count_runs", ""  # it takes scores of those runs alone that were asked for on it
    why = not_kept(run, contract)
    return (NOT_KEPT, why) if why else None


def read_samples_late(event: Draft, run: Run, samples_files: Mapping[str, SamplesFile]) -> None:
    """Files of per-sample results that were not there when their scores were recorded."""
    for evaluation in Evaluation.objects.filter(run=run, samples_artifact=None).exclude(samples_read={}):
        found = _samples_of(run, str(evaluation.samples_read["path"]), samples_files)
        if found.get("samples_artifact") is not None:
            event.change(evaluation, **found)


def _samples_of(run: Run, path: str, samples_files: Mapping[str, SamplesFile]) -> dict[str, Any]:
    """What an evaluation keeps of the file that its score names: nothing where it names none, the path alone where there is no such file."""
    if not path:
        return {}
    file = samples_files.get(path)
    kept = Artifact.objects.filter(run=run, blob__sha256=file.sha256).order_by("path") if file else Artifact.objects.none()
    name = path.removeprefix("outputs/")
    artifact = next(
        (row for row in kept if row.path in (path, name) or row.path.endswith(f"/{name}")), None
    )  # the last: one that was set apart
    return {"samples_artifact": artifact, "samples_read": {"path": path, **(file.read if file and artifact else {})}}


def _measured_by(run: Run) -> dict[str, Artifact]:
    """The artifacts that an evaluating run has read, by the names of its inputs; a run that trains is measured itself."""
    return (
        {entry.slug: entry.artifact for entry in run.inputs.filter(kind="artifact").select_related("artifact")}
        if run.kind == "evaluate"
        else {}
    )


def _subject(read: Mapping[str, Artifact], named: str) -> Artifact | None:
    """What a score is a score of: the one artifact that the run read. One that read several says which of them it has measured, or none in
    particular; a name that no input bears measures none."""
    if named:
        return read.get(named)
    return next(iter(read.values())) if len(read) == 1 else None


def _contract_at_end(run: Run, benchmark: Benchmark) -> Contract | None:
    """The version that held as the run ended, also for what is told later."""
    if run.ended_at is None:
        return current_contract(benchmark.pk)
    return next((contract for contract in contracts_of(benchmark) if contract.created_at <= run.ended_at), None)


def _was_kept_apart(run: Run, contract: Contract) -> bool:
    """Admission asked for isolation on the run's own benchmark only; a score on another one with a holdout wants the same."""
    bare = run.frozen["pool"]["isolation"] == Pool.Isolation.NONE
    return contract.holdout_id is None or not bare or bool(contract.accepts_no_isolation_reason)


def _benchmark(name: str) -> Benchmark | None:
    try:
        return Benchmark.objects.find(name)
    except NotFound:
        return None
