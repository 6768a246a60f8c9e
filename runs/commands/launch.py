"""Asking for a run: one admission over every limit, under the locks that make it true; admitted, held for an approver, or refused."""

import math
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from runs import queue
from runs.admission import Answer, Verdict, decide
from runs.admission_facts import Facts
from runs.commands.move import move
from runs.launch import LaunchRequest
from runs.lifecycle import RunStatus
from runs.models import Certificate, QueueItem, Run, RunInput, Sweep
from runs.models.called import names_of
from runs.queries.admission import admission_facts
from runs.queries.frozen import Prepared
from runs.queries.launch_again import request_again
from runs.queries.launch_request import prepare
from runs.queries.replay import VERDICTS
from workspaces import kept_query, ledger, scope
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import ledger_lock
from workspaces.audit import Draft, Refusal, TooMany, command
from workspaces.canonical import digest, plain
from workspaces.commands import approval
from workspaces.ids import first_at
from workspaces.kept_write import Writes
from workspaces.models import Unit, User
from workspaces.verbs import Verb

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Launch:
    run: Run
    certificate: Certificate


class _LaunchedMeanwhile(Exception):  # the answer to a request that is sent twice
    """Under the lock it shows that another request with the same key has made the run."""


def launch_run(
    *,
    actor: Actor,
    request: LaunchRequest,
    run_id: uuid.UUID | None = None,
    retry_of: Run | None = None,
    sweep: Sweep | None = None,
    sweep_member: int | None = None,
) -> Launch:
    """Ask for a run. Raises Refusal with the certificate's id where a limit or rule says no; that outcome is on record all the same.

    `run_id` makes the launch idempotent: the same id gives the same run. A member of a sweep says which it is.
    """
    known = _known(run_id)
    if known is not None:
        return known
    try:
        outcome, certificate, verdict = _launch(
            actor=actor, request=request, run_id=run_id, retry_of=retry_of, sweep=sweep, sweep_member=sweep_member
        )
    except _LaunchedMeanwhile:
        known = _known(run_id)
        assert known is not None
        return known
    if outcome is None:
        raise Refusal(*verdict.reasons, certificate=certificate.public_id)
    return Launch(run=outcome, certificate=certificate)


def _known(run_id: uuid.UUID | None) -> Launch | None:
    run = Run.objects.filter(pk=run_id).select_related("certificate").first() if run_id is not None else None
    return Launch(run=run, certificate=run.certificate) if run is not None else None


def retry_run(*, actor: Actor, run: Run, run_id: uuid.UUID | None = None) -> Launch:
    """Ask for the same again: a new run under the same contract, of the same versions, inputs, parameters and seed. `run_id` as for a launch."""
    if not run.is_terminal:
        raise Refusal(f"{run.name} is still {run.get_status_display()}; retry it once it has ended.")
    reason = f"Retry of {run.name}, which ended as {run.get_status_display()}."
    request = replace(request_again(run), name=run.name, reason=reason, priority=run.priority)
    return launch_run(actor=actor, request=request, run_id=run_id, retry_of=run, sweep=run.sweep, sweep_member=run.sweep_member)


@command(Verb.LAUNCH_ADMITTED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN, in_archive="admission refuses it, with a certificate")
def _launch(
    event: Draft,
    *,
    actor: Actor,
    request: LaunchRequest,
    run_id: uuid.UUID | None,
    retry_of: Run | None,
    sweep: Sweep | None,
    sweep_member: int | None,
) -> tuple[Run | None, Certificate, Verdict]:
    prepared = prepare(request)  # before the lock, for which launches wait in a row: nothing but the artifacts stands under it
    # One admission at a time in a workspace: counts and balances that were read hold until the commit.
    person = _person(actor)
    [event.ledger], numbers, asked_before, *made = kept_query.ask_together(
        [
            ledger_lock(),
            kept_query.Question(_last_number, (), {}),
            _asked_since(person, timezone.now()),
            *([kept_query.question(Run, pk=run_id)] if run_id is not None else []),
        ]
    )
    workspace = event.ledger
    if any(made):
        raise _LaunchedMeanwhile
    if sweep is not None and retry_of is None:
        _refuse_stopped(sweep)
    now = timezone.now()
    if sweep is None:  # a sweep launches its members at its own pace
        _not_too_fast(person, now, asked_before)
    if request.artifacts:  # they may have been deleted meanwhile
        prepared = prepare(request)
    facts = admission_facts(prepared, now=now, person=person, priority=request.priority, workspace=workspace)
    verdict = decide(facts)
    writes = Writes()  # the certificate, and what becomes of it
    certificate = certify(event, facts, verdict, prepared, asked_by=person, beside=writes)
    event.reason = request.reason
    event.details |= {"verdict": verdict.answer, "limits": plain(verdict.as_json()), "asks": plain(prepared.frozen["limits"])}
    if verdict.answer == Answer.REFUSE:
        event.verb = Verb.LAUNCH_REFUSED
        event.details["refused"] = {"benchmark": prepared.benchmark.slug, "agent": prepared.agent.slug, "pool": prepared.pool.slug}
        writes.send()
        return None, certificate, verdict
    number = 1 + max((last for (last,) in numbers), default=0)
    run = Run(
        **({"id": run_id} if run_id else {}),
        name=(request.name.strip() or f"{prepared.agent.slug}-{number:04d}")[:200],
        number=number,
        status=RunStatus.QUEUED,
        kind=prepared.version.kind,
        benchmark=prepared.benchmark,
        contract=prepared.contract,
        agent=prepared.agent,
        agent_version=prepared.version,
        pool=prepared.pool,
        certificate=certificate,
        parameters=prepared.parameters,
        seed=prepared.seed,
        trigger="retry"
        if retry_of
        else "policy"
        if sweep and sweep.decision_id
        else "sweep"
        if sweep
        else "token"
        if actor.token_id
        else "person",
        trigger_reason=request.reason[:1000],
        requested_by=person,
        retry_of=retry_of,
        sweep=sweep,
        sweep_member=sweep_member,
        priority=request.priority,
        frozen=prepared.frozen,
        content_hash=prepared.content_hash,
        names=names_of(benchmark=prepared.benchmark, agent=prepared.agent),
        slots=prepared.version.slots,
        wall_seconds=prepared.wall_seconds,
        created_at=now,  # the instant that was decided upon: it counts in that period, not in one that begins meanwhile
    )
    held = verdict.answer == Answer.APPROVAL
    if held:
        run.status = RunStatus.AWAITING_APPROVAL
        event.verb = Verb.LAUNCH_HELD
    writes.insert([run])
    event.created(run)
    event.about = run
    for place, entry in enumerate(prepared.inputs):  # each is sent by itself but the first: each has its instant, which is their order
        if place:
            writes.send()
        writes.insert(
            [
                RunInput(
                    run=run,
                    slug=entry.slug,
                    kind=entry.kind,
                    dataset_version=entry.dataset_version,
                    artifact=entry.artifact,
                    sha256=entry.sha256,
                )
            ]
        )
    if held:
        writes.send()
        approval.ask(
            event,
            subject_type="run",
            subject_id=run.pk,
            subject_label=run.name,
            content={"asks": f"Launch {run.name}", "certificate": verdict.as_json(), **prepared.frozen},
            content_hash=run.content_hash,
            reason=request.reason,
            requested_by=person,
            token_id=actor.token_id,
        )
    else:
        admit(event, run=run, gpu_ms=prepared.gpu_ms, api_micros=prepared.api_micros, beside=writes)
        writes.send()
    return run, certificate, verdict


def _refuse_stopped(sweep: Sweep) -> None:
    """A sweep that is stopped this moment waits for the member that is being launched, and the next one sees it stopped."""
    if not Sweep.objects.select_for_update(no_key=True).filter(pk=sweep.pk, status=Sweep.Status.RUNNING).exists():
        raise Refusal(f"{sweep.name} launches no more members.")


def admit(event: Draft, *, run: Run, gpu_ms: int, api_micros: int, beside: Writes | None = None) -> None:
    """Reserve and queue, in the transaction that admits: part of a launch, and of the approval of one that was held. `beside` as in
    `Draft.change_together`."""
    now = timezone.now()
    window = ledger.reserve(event, unit=Unit.GPU_MS, amount=gpu_ms, run_id=run.pk, run_label=run.name, now=now, beside=beside)
    if api_micros:
        ledger.reserve(event, unit=Unit.API_MICROS, amount=api_micros, run_id=run.pk, run_label=run.name, now=now, beside=beside)
    values = {"reserved_gpu_ms": gpu_ms, "reserved_api_micros": api_micros, "budget_window_at": window, "queued_at": now}
    move(event, run, RunStatus.QUEUED, beside=beside, **values)
    enqueue(event, run=run, beside=beside)


def enqueue(event: Draft, *, run: Run, beside: Writes | None = None) -> None:
    """Put a run at the end of its priority and ring; the table is the queue. `beside` as in `Draft.change_together`."""
    now = timezone.now()
    item = QueueItem(run=run, pool_id=run.pool_id, priority=run.priority, position_key=int(now.timestamp() * 1_000_000))
    writes = Writes() if beside is None else beside
    writes.insert([item])
    if beside is None:
        writes.send()
    event.created(item)
    queue.ring("dispatch_run", subject=scope.current_id())


def certify(
    event: Draft, facts: Facts, verdict: Verdict, prepared: Prepared, *, asked_by: User, beside: Writes | None = None
) -> Certificate:
    """Keep a decision with every limit and its arithmetic, whatever it says, and the facts that give it again. `beside` as in
    `Draft.change_together`."""
    certificate = Certificate(
        verdict=VERDICTS[verdict.answer],
        lines=verdict.as_json(),
        facts=facts.as_json(),
        request=prepared.frozen,
        request_hash=digest(prepared.frozen),
        asked_by=asked_by,
    )
    writes = Writes() if beside is None else beside
    writes.insert([certificate])
    if beside is None:
        writes.send()
    event.created(certificate)
    return certificate


def _asked_since(person: User, now: datetime) -> kept_query.Question:
    """What `_not_too_fast` goes by. A key holds its time, so no more than a minute is read, and as long as the lock was waited for."""
    return kept_query.Question(_asked_before, (settings.LAUNCHES_A_MINUTE,), {"since": first_at(now - MINUTE), "person": person.pk})


def _not_too_fast(person: User, now: datetime, found: list[tuple[datetime]]) -> None:
    """Launches of one account in a minute, through whichever token, refused ones too."""
    most = settings.LAUNCHES_A_MINUTE
    # The one with which there are as many as may be: once it is a minute old, there is room.
    for (last,) in found:
        if last + MINUTE <= now:  # it has become so while the lock was waited for
            continue
        wait = max(1, math.ceil((last + MINUTE - now).total_seconds()))
        raise TooMany(
            f"{person.label} has asked for {most:,} runs within a minute, and may ask for {most:,}. Wait {wait} s; a sweep asks for many at once.",
            retry_seconds=wait,
        )


def _last_number() -> "QuerySet[Any, Any]":
    return Run.objects.order_by("-number").values_list("number")[:1]


def _asked_before(most: int, since: Any, person: Any) -> "QuerySet[Any, Any]":
    recent = Certificate.objects.filter(pk__gte=since, asked_by=person).order_by("-pk")
    return recent.values_list("created_at")[most - 1 : most]


def _person(actor: Actor) -> User:
    if actor.user is None:
        raise Refusal("A run is launched by a person, a service account or an agent, who answers for it.")
    return actor.user
