"""One run with everything that its page says: what it is, why it runs, whether it is well, what it cost and what came of it."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Sum

from runs.lifecycle import OPEN_ATTEMPTS, RunStatus
from runs.models import Artifact, Attempt, Evaluation, QueueItem, Run, RunInput, RunLine, Watch
from runs.queries.estimate import cost_micros
from runs.queries.recent import EventLine, lines_of_events
from workspaces.models import Approval, AuditEvent, Contract, EventSubject, LedgerEntry

LINES_SHOWN = 200


@dataclass(frozen=True, slots=True)
class RunState:
    """What may change while the page is open."""

    run: Run
    attempt: Attempt | None  # the newest
    watch: Watch | None  # what was last seen of it
    score: Evaluation | None
    scores: list[Evaluation]
    queue_item: QueueItem | None
    approval: Approval | None  # what the run waits for

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
    """The run with everything it points at. Raises NotFound."""
    return Run.objects.find(
        text, "benchmark", "contract", "agent", "agent_version", "pool__engine", "certificate", "requested_by", "retry_of"
    )


def state_of(run: Run) -> RunState:
    attempt = run.attempts.order_by("-number").first()
    scores = list(run.evaluations.select_related("contract").order_by("metric"))
    primary = next((score for score in scores if score.metric == run.contract.metric and score.contract_id == run.contract_id), None)
    waits = run.status == RunStatus.AWAITING_APPROVAL
    return RunState(
        run=run,
        attempt=attempt,
        watch=Watch.objects.filter(attempt=attempt).first() if attempt else None,
        score=primary,
        scores=scores,
        queue_item=QueueItem.objects.filter(run=run).first() if run.status == RunStatus.QUEUED else None,
        approval=Approval.objects.filter(subject_id=run.pk, status=Approval.Status.PENDING).first() if waits else None,
    )


def inputs_of(run: Run) -> list[RunInput]:
    return list(run.inputs.select_related("dataset_version__dataset", "artifact__run").order_by("slug"))


def attempts_of(run: Run) -> list[Attempt]:
    return list(run.attempts.select_related("pool").order_by("number"))


@dataclass(frozen=True, slots=True)
class Outputs:
    count: int
    bytes: int


def outputs_of(run: Run) -> Outputs:
    figures = Artifact.objects.filter(run=run).aggregate(count=Count("pk"), bytes=Sum("blob__bytes"))
    return Outputs(count=figures["count"], bytes=figures["bytes"] or 0)


def artifacts_of(run: Run) -> list[Artifact]:
    return list(run.artifacts.select_related("blob").order_by("path")[:1000])


def newest_contract(run: Run) -> int:
    """Version of the benchmark's newest contract: a score under an older one does not compare."""
    return Contract.objects.filter(benchmark=run.benchmark_id).order_by("-version").values_list("version", flat=True).first() or 0


def lines_of(run: Run) -> list[RunLine]:
    """What the run has said in events.jsonl, newest first, scores and progress left out: they stand elsewhere."""
    return list(RunLine.objects.filter(attempt__run=run).exclude(type="progress").select_related("attempt").order_by("-pk")[:LINES_SHOWN])


def entries_of(run: Run) -> list[LedgerEntry]:
    return list(LedgerEntry.objects.filter(run_id=run.pk).select_related("debit", "credit").order_by("created_at", "pk"))


def events_of(run: Run) -> list[EventLine]:
    """The record's events that changed this run, its attempts or what hangs on them, oldest first."""
    about = EventSubject.objects.filter(object_id__in=_objects(run)).values("event")
    return lines_of_events(list(AuditEvent.objects.filter(pk__in=about).order_by("sequence")))


def count_events(run: Run) -> int:
    return EventSubject.objects.filter(object_id__in=_objects(run)).values("event").distinct().count()


def _objects(run: Run) -> list[uuid.UUID]:
    return [run.pk, run.certificate_id, *Attempt.objects.filter(run=run).values_list("pk", flat=True)]
