"""What becomes of a run once its attempt has ended and what it left was collected: its terminal status, once, or the queue again."""

from django.utils import timezone

from runs import queue
from runs.commands.attempt import close, locked
from runs.commands.failure import Evidence
from runs.commands.growth import dataset_lines, grow_datasets
from runs.commands.harvest import LACKING, Harvest, evaluate, keep, read_samples_late
from runs.commands.harvest_memory import note_said_reads, remember
from runs.commands.launch import enqueue
from runs.commands.move import move
from runs.commands.policy_bell import policies_that_act, ring_policies
from runs.commands.run import asked_at_end, end
from runs.commands.undeclared import note_undeclared, what_lines_tell
from runs.commands.withdrawal import spread
from runs.lifecycle import OPEN_ATTEMPTS, AttemptStatus, RunStatus, end_of
from runs.models import Attempt, Evaluation, MemoryEntry, Run, Watch
from runs.pools.base import Exit
from runs.queries.order import seconds_left
from workspaces import kept_query, scope
from workspaces.access import Actor
from workspaces.audit import Draft, Refusal, command
from workspaces.queries.workspace import is_archived
from workspaces.verbs import Verb

MAX_LOST = 1  # so many lost attempts are tried once more (feature 52); an attempt that labsite interrupted is none of them


class NothingMore(Refusal):
    """A late try has brought nothing that was not there."""


class MovedOn(Refusal):
    """Another attempt counts by now, or the run has ended: there is nothing to do."""


@command(Verb.RUN_ENDED, needs=None, by_system=True, in_archive="running work comes to its end")
def finish_run(event: Draft, *, actor: Actor, attempt: Attempt, harvest: Harvest) -> Run:
    """The end of a run whose attempt has ended: what it left is kept, its money settled, its status moves once.

    An interrupted attempt, or a launcher that was lost with a try left, puts the run back in the queue, its reservation kept.
    """
    held = locked(event, attempt)
    run, attempt = held.run, held.attempt
    if attempt.status in OPEN_ATTEMPTS or not run.is_active or held.newest > attempt.number:
        raise MovedOn("This attempt is not the one that its run waits for.")
    event.changing(run, as_read=True)
    event.about = run
    kept_query.ask_together([], ahead=[what_lines_tell(run), dataset_lines(attempt), *asked_at_end(run), policies_that_act()])
    event.details |= {key: value for key, value in harvest.notes.items() if value}
    if attempt.status == AttemptStatus.INTERRUPTED:
        _after_interruption(event, run, attempt, harvest)
        return run
    is_lost = attempt.status == AttemptStatus.LOST
    if is_lost and run.status != RunStatus.CANCELLING and _has_try_left(run):
        event.verb = Verb.RUN_REQUEUED
        keep(event, run, harvest.records, attempt_number=attempt.number)
        _requeue(event, run)
        return run
    status, code = end_of(
        exit_code=attempt.exit_code,
        reason=attempt.exit_reason,
        said_done=harvest.said_done,
        wants_done=run.agent_version.completion == "done",
    )
    if run.status == RunStatus.CANCELLING and is_lost:
        status, code = RunStatus.CANCELLED, "cancelled"
    kept = keep(event, run, harvest.artifacts, attempt_number=attempt.number)
    note_said_reads(event, run, note_undeclared(event, run))
    if status == RunStatus.SUCCEEDED:
        evaluate(event, run, harvest.scores, harvest.samples_files)
        if not harvest.is_bare:
            grow_datasets(event, run, attempt)
    remember(event, run, harvest.memory)
    spread(event, run)
    event.details |= {
        "status": status,
        "artifacts": kept,
        "exit": {"code": attempt.exit_code, "signal": attempt.exit_signal, "reason": attempt.exit_reason},
    }
    words = _words(attempt, code, harvest.last_words) or (run.reason if harvest.lacking else "")
    evidence = Evidence(attempt.exit_code, attempt.exit_signal, harvest.error_lines)
    end(event, run=run, status=status, reason_code=code, reason=f"{words} {harvest.lacking}".strip(), evidence=evidence)
    ring_policies()
    queue.ring("dispatch_run", subject=scope.current_id())  # somebody may wait for its place among the runs at once
    return run


@command(Verb.RUN_REQUEUED, needs=None, by_system=True, in_archive="running work comes to its end")
def interrupt_attempt(event: Draft, *, actor: Actor, attempt: Attempt, ended: Exit, harvest: Harvest | None = None) -> Run:
    """Labsite, or its machine, was stopped and ended the attempt: back to the queue, reservation kept; the next start makes a new attempt
    (contracts.md E). A run that was being cancelled is cancelled; one that has used up its time has timed out."""
    held = locked(event, attempt)
    run, attempt = held.run, held.attempt
    if attempt.status not in OPEN_ATTEMPTS:
        raise Refusal("The end of this attempt is on record already.")
    event.about = run
    close(event, held, ended, AttemptStatus.INTERRUPTED).send()
    _after_interruption(event, run, attempt, harvest or Harvest())
    return run


@command(Verb.RUN_OUTPUTS_COLLECTED, needs=None, by_system=True, in_archive="running work comes to its end")
def add_outputs(event: Draft, *, actor: Actor, attempt: Attempt, harvest: Harvest) -> Run:
    """What an ended attempt has left and could not be collected by the end of its run. The run's status and its money stay as they are. What the
    last attempt made is what it would have been at the end: pieces for live datasets, scores and memory of a run that ended without any."""
    held = locked(event, attempt)
    run, attempt = held.run, held.attempt
    if not run.is_terminal:
        raise Refusal(f"{run.name} has not ended; its outputs are collected at its end.")
    event.changing(run, as_read=True)
    event.about = run
    event.details |= {key: value for key, value in harvest.notes.items() if value}
    kept = keep(event, run, harvest.artifacts, attempt_number=attempt.number)
    before = run.reason.partition(LACKING)[0].strip()
    reason = f"{before} {harvest.lacking or 'Some of its outputs were collected later.'}".strip()[:1000]
    if harvest.lacking and not kept and reason == run.reason:
        raise NothingMore("Nothing more could be collected.")
    read_samples_late(event, run, harvest.samples_files)
    if held.newest == attempt.number:
        _make_good(event, run, attempt, harvest)
    spread(event, run)
    event.details["artifacts"] = kept
    event.change(run, reason=reason)
    ring_policies()
    return run


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def _make_good(event: Draft, run: Run, attempt: Attempt, harvest: Harvest) -> None:
    """Its files came later, or it ended bare; its lines were taken in before, and what became of them is not repeated."""
    if run.status == RunStatus.SUCCEEDED:
        if not Evaluation.objects.filter(run=run).exists():
            evaluate(event, run, harvest.scores, harvest.samples_files)
        grow_datasets(event, run, attempt)
    if not MemoryEntry.objects.filter(run=run).exists():
        remember(event, run, harvest.memory)


def _has_try_left(run: Run) -> bool:
    lost = Attempt.objects.filter(run=run, status=AttemptStatus.LOST).count()
    return lost <= MAX_LOST and seconds_left(run) > 0 and not is_archived()


def _after_interruption(event: Draft, run: Run, attempt: Attempt, harvest: Harvest) -> None:
    keep(event, run, harvest.records, attempt_number=attempt.number)
    if run.status == RunStatus.CANCELLING:
        event.verb = Verb.RUN_CANCELLED
        end(event, run=run, status=RunStatus.CANCELLED, reason_code="cancelled")
    elif seconds_left(run) <= 0:
        event.verb = Verb.RUN_ENDED
        words = "It was interrupted when its time was used up."
        end(event, run=run, status=RunStatus.TIMED_OUT, reason_code="wall_limit", reason=words)
    elif is_archived():
        event.verb = Verb.RUN_ENDED
        words = "It was interrupted, and in an archived workspace nothing is started again."
        end(event, run=run, status=RunStatus.FAILED, reason_code="workspace_archived", reason=words)
    else:
        event.verb = Verb.RUN_REQUEUED
        _requeue(event, run)


def _requeue(event: Draft, run: Run) -> None:
    move(event, run, RunStatus.QUEUED, queued_at=timezone.now())
    enqueue(event, run=run)


def _words(attempt: Attempt, code: str, last_words: str) -> str:
    said = f" It said: {last_words}" if last_words else ""
    words = {
        "exit_code": f"The program ended with exit code {attempt.exit_code}.{said}",
        "signal": f"The program was ended by signal {attempt.exit_signal}.",
        "wall_limit": "The wall limit was reached.",
        "ended_without_done": "The program ended without saying that it was done.",
        "budget_exceeded": f"The run's {attempt.exit_reason.replace('_', ' ')} was reached.",
        "foreign_spend": "It reported spend in another currency than its limits have, which none of them can count.",
        "launcher_lost": f"The process that watched over the run was lost, and no try is left.{_of_engine(attempt, code)}",
        "engine_failed": f"Its engine could not start it.{_of_engine(attempt, code)}",
        "engine_cancelled": f"It was ended at its engine, and nobody had asked for that here.{_of_engine(attempt, code)}",
    }
    return words.get("foreign_spend" if attempt.exit_reason == "foreign_spend" else code, "")


def _of_engine(attempt: Attempt, code: str) -> str:
    """What the engine said of an end that its launcher could not explain; empty where it said nothing, or was not asked."""
    if code not in ("launcher_lost", "engine_failed", "engine_cancelled"):
        return ""
    said = Watch.objects.filter(attempt=attempt).values_list("observed_reason", flat=True).first()
    return f" {said[:1].upper()}{said[1:]}." if said else ""
