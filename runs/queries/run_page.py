"""One run with everything that its page says: what it is, why it runs, whether it is well, what it cost and what came of it."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Model, QuerySet

from runs.lifecycle import OPEN_ATTEMPTS, RunStatus
from runs.models import Artifact, Attempt, Evaluation, MetricSeries, Run, RunInput, RunLine, Watch
from runs.queries.recent import EventLine, lines_of_events
from runs.queries.run_input import inputs_of
from runs.reservation import cost_micros
from workspaces import ids, kept_query, scope
from workspaces.models import Approval, AuditEvent, EventSubject, LedgerEntry, NotFound
from workspaces.units import duration

LINES_SHOWN = 200
# What pages say of the things that a run points at. Certificate, sweep and the run that it tries again are read where they are shown: each table
# more in this join costs milliseconds of planning, twelve of them cost thirty.
RELATED = ("benchmark", "contract", "agent", "agent_version", "pool", "requested_by")
SHOWN_OF_RELATED = (
    *("benchmark__slug", "benchmark__name", "contract__benchmark_id", "contract__version", "contract__metric", "contract__unit"),
    *("contract__direction", "agent__slug", "agent__name", "agent_version__number", "agent_version__content_hash", "pool__slug"),
    *("requested_by__username", "requested_by__display_name"),
)
OWN_FIELDS = tuple(field.name for field in Run._meta.concrete_fields)
ATTEMPT_FIELDS = tuple(field.name for field in Attempt._meta.concrete_fields)
SCORE_FIELDS = tuple(field.name for field in Evaluation._meta.concrete_fields)
SUBJECT_FIELDS = ("subject_artifact__name", "subject_artifact__path")
SEEN = ("attempt_id", "observed", "observed_reason", "progress_done", "progress_total", "progress_text")


@dataclass(frozen=True, slots=True)
class RunState:
    """What may change while the page is open."""

    run: Run
    attempts: list[Attempt]
    watch: Watch | None  # what was last seen of the newest attempt, while it is under way
    score: Evaluation | None
    scores: list[Evaluation]
    approval: Approval | None  # what the run waits for

    @property
    def attempt(self) -> Attempt | None:
        """The newest."""
        return self.attempts[-1] if self.attempts else None

    @property
    def gpu_ms(self) -> int:
        """What was spent; before the end what is held for it, and before anything is held what was asked for."""
        if self.run.is_terminal:
            return self.run.spent_gpu_ms
        return self.run.reserved_gpu_ms or int(self.run.frozen["limits"]["gpu_ms"])

    @property
    def cost_micros(self) -> int:
        api_micros = self.run.spent_api_micros if self.run.is_terminal else max(self.run.reserved_api_micros, self.run.spent_api_micros)
        return cost_micros(self.gpu_ms, self.run.frozen["pool"]["price_micros_per_gpu_hour"]) + api_micros

    @property
    def is_settled(self) -> bool:
        return self.run.is_terminal

    @property
    def share_done(self) -> float | None:
        """0..1, where the run says how far it is."""
        watch = self.watch
        if watch is None or watch.progress_done is None or not watch.progress_total or not watch.progress_total > 0:
            return None
        return min(max(watch.progress_done / watch.progress_total, 0.0), 1.0)

    @property
    def is_unanswered(self) -> bool:
        """The pool does not say how it is; the status stays what it was (decision 9)."""
        return (
            self.attempt is not None
            and self.attempt.status in OPEN_ATTEMPTS
            and self.watch is not None
            and self.watch.observed == "unknown"
        )

    def seconds(self, now: datetime) -> float | None:
        return None if self.run.started_at is None else ((self.run.ended_at or now) - self.run.started_at).total_seconds()


def find_run(text: str) -> Run:
    """The run with what pages show of everything that it points at. Raises NotFound."""
    pk, _ = ids.spellings(Run.prefix, text)
    found: list[Run] = kept_query.ask(_shown, pk=pk) if pk is not None else []
    if not found:
        raise NotFound("run")
    return found[0]


def _shown(pk: Any) -> "QuerySet[Run]":
    return Run.objects.select_related(*RELATED).only(*OWN_FIELDS, *SHOWN_OF_RELATED).filter(pk=pk)


def state_questions(run: Run) -> list[kept_query.Question]:
    """What `state_of` asks first, for one who asks for more in the same round trip."""
    return [kept_query.Question(_attempts, (), {"run": run.pk}), kept_query.Question(_scores, (), {"run": run.pk})]


def state_of(run: Run, found: Sequence[list[Any]] | None = None) -> RunState:
    """`found` is what `state_questions` has found."""
    attempts, scores = (_with_run(run, rows) for rows in found or kept_query.ask_together(state_questions(run)))
    primary = next((score for score in scores if score.metric == run.contract.metric and score.contract_id == run.contract_id), None)
    waits = run.status == RunStatus.AWAITING_APPROVAL
    return RunState(
        run=run,
        attempts=attempts,
        watch=Watch.objects.filter(attempt=attempts[-1]).only(*SEEN).first() if attempts and not run.is_terminal else None,
        score=primary,
        scores=scores,
        approval=Approval.objects.filter(subject_id=run.pk, status=Approval.Status.PENDING).first() if waits else None,
    )


def _with_run(run: Run, rows: list[Any]) -> list[Any]:
    """Rows that are the run's, which so have it at hand."""
    for row in rows:
        row.run = run
    return rows


def _scores(run: Any) -> "QuerySet[Evaluation]":
    rows = Evaluation.objects.filter(run=run).select_related("contract", "subject_artifact")
    return rows.only(*SCORE_FIELDS, "contract__version", *SUBJECT_FIELDS).order_by("metric")


def stamp_of(state: RunState, now: datetime, series: list[MetricSeries], lines: list[RunLine]) -> str:
    """Says the same while the live part says the same; made of small rows only, so that nothing is drawn in order to be found unchanged.

    Relative times ("3 min ago") may stand still for up to a minute.
    """
    rows = [state.run, state.approval, *state.attempts, state.watch, *state.scores, *series, *lines]
    return repr((stamp_of_rows(rows), duration(state.seconds(now)), int(now.timestamp() // 60)))


def stamp_of_rows(rows: Iterable[Model | None]) -> str:
    """Every value that was read of the rows."""
    return repr([{name: value for name, value in vars(row).items() if name != "_state"} for row in rows if row is not None])


def inputs_shown(run: Run) -> list[RunInput]:
    return _with_run(run, kept_query.ask(_inputs, run=run.pk))


def _inputs(run: Any) -> "QuerySet[RunInput]":
    rows = inputs_of(run, "dataset_version__dataset", "artifact__run")
    own = ("run_id", "slug", "kind", "dataset_version_id", "artifact_id", "sha256")
    shown = ("dataset_version__number", "dataset_version__dataset__slug", "artifact__name", "artifact__path", "artifact__run__name")
    return rows.only(*own, *shown)


def attempts_of(run: Run) -> list[Attempt]:
    """Its attempts, the oldest first."""
    return _with_run(run, kept_query.ask(_attempts, run=run.pk))


def _attempts(run: Any) -> "QuerySet[Attempt]":
    return Attempt.objects.filter(run=run).select_related("pool").only(*ATTEMPT_FIELDS, "pool__slug").order_by("number")


@dataclass(frozen=True, slots=True)
class Outputs:
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What stands beside a run as a number."""

    outputs: Outputs
    events: int
    newest_contract: int  # version of the benchmark's newest contract: a score under an older one does not compare


_FIGURES = """
SELECT count(*), coalesce(sum(blob.bytes), 0)::bigint,
       (SELECT count(DISTINCT event_id) FROM workspaces_eventsubject WHERE workspace_id = %(workspace)s AND object_id = ANY(%(objects)s)),
       (SELECT coalesce(max(version), 0) FROM workspaces_contract WHERE workspace_id = %(workspace)s AND benchmark_id = %(benchmark)s)
  FROM runs_artifact AS artifact JOIN workspaces_blob AS blob ON blob.workspace_id = artifact.workspace_id AND blob.id = artifact.blob_id
 WHERE artifact.workspace_id = %(workspace)s AND artifact.run_id = %(run)s AND artifact.deleted_at IS NULL
"""


def figures_of(run: Run, attempts: list[Attempt]) -> Figures:
    """By one statement, since every tab has them."""
    asked: dict[str, Any] = {
        "workspace": scope.current_id(),
        "run": run.pk,
        "benchmark": run.benchmark_id,
        "objects": _objects(run, attempts),
    }
    with connection.cursor() as cursor:
        cursor.execute(_FIGURES, asked)
        ((count, size, events, contract),) = cursor.fetchall()
    return Figures(Outputs(count, size), events, contract)


def artifacts_of(run: Run) -> list[Artifact]:
    return list(run.artifacts.filter(deleted_at=None).select_related("blob").order_by("path")[:1000])


def lines_of(attempts: list[Attempt], limit: int = LINES_SHOWN) -> list[RunLine]:
    """What the run has said in events.jsonl, newest first, scores and progress left out: they stand elsewhere."""
    if not attempts:
        return []
    return list(RunLine.objects.filter(attempt__in=attempts).exclude(type="progress").order_by("-pk")[:limit])


def entries_of(run: Run) -> list[LedgerEntry]:
    return list(LedgerEntry.objects.filter(run_id=run.pk).select_related("debit", "credit").order_by("created_at", "pk"))


def events_of(run: Run, attempts: list[Attempt]) -> list[tuple[AuditEvent, EventLine]]:
    """The record's events that changed this run, its attempts or what hangs on them, oldest first."""
    about = EventSubject.objects.filter(object_id__in=_objects(run, attempts)).values("event")
    events = list(AuditEvent.objects.filter(pk__in=about).order_by("sequence"))
    return list(zip(events, lines_of_events(events), strict=True))


def _objects(run: Run, attempts: list[Attempt]) -> list[uuid.UUID]:
    return [run.pk, run.certificate_id, *(attempt.pk for attempt in attempts)]
