"""Moving a queued run to another pool: admission is decided anew for the run as it would be there, and its reservation is corrected."""

from dataclasses import replace

from django.db import transaction
from django.utils import timezone

from runs import queue
from runs.admission import Answer, Verdict, decide
from runs.commands.launch import certify
from runs.commands.queue import queued
from runs.models import Attempt, Certificate, Run
from runs.queries.admission import admission_facts
from runs.queries.frozen import thaw
from runs.reservation import reservation
from workspaces import ledger, scope
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.canonical import plain
from workspaces.models import Pool, Unit, User
from workspaces.reasons import because
from workspaces.verbs import Verb


def move_run(*, actor: Actor, run: Run, pool: Pool, reason: str) -> Run:
    """Let a queued run wait for another pool. It keeps its priority, its place and its wall limit; what it reserves is what the new pool counts.

    What an approver has agreed to holds there too, while it reserves no more than was agreed to. Raises Refusal with the certificate's id where the
    limits or rules would not admit it there; that outcome is on record, and the run stays where it is.
    """
    moved, refused = _move(actor=actor, run=run, pool=pool, reason=reason)
    if refused is not None:
        certificate, verdict = refused
        way_out = ["To ask an approver, cancel it and launch it there."] if verdict.answer == Answer.APPROVAL else []
        raise Refusal(f"It would not be admitted on {pool.slug}.", *verdict.reasons, *way_out, certificate=certificate.public_id)
    return moved


@command(Verb.RUN_MOVED, needs=Permission.MANAGE_QUEUE, kind=Kind.RUN)
def _move(event: Draft, *, actor: Actor, run: Run, pool: Pool, reason: str) -> tuple[Run, tuple[Certificate, Verdict] | None]:
    lock_ledger()
    event.reason = because(reason, "Say why; whoever asked for this run will read it.")
    run, item = queued(run)
    event.about = run
    target = Pool.objects.select_related("engine").get(pk=pool.pk)
    before = Pool.objects.get(pk=run.pool_id)
    if target == before:
        raise Refusal(f"{run.name} waits for {target.slug} already.", field="pool")
    if Attempt.objects.filter(run=run).exists():
        raise Refusal(f"{run.name} has begun on {before.slug}, at its rate. Cancel it, and launch it again on {target.slug}.", field="pool")
    now = timezone.now()
    requested_by = User.objects.get(pk=run.requested_by_id)
    wanted = reservation(
        budget_gpu_ms=None, wall_seconds=run.wall_seconds, slots=run.slots, milli_gpu_per_slot=target.milli_gpu_per_slot
    )  # fmt: skip
    prepared = replace(thaw(run), pool=target, gpu_ms=wanted.gpu_ms)
    event.details |= {"run": run.name, "from": before.slug, "to": target.slug}
    as_it_was, named, details = transaction.savepoint(), list(event.subjects), dict(event.details)
    for unit, reserved in ((Unit.GPU_MS, run.reserved_gpu_ms), (Unit.API_MICROS, run.reserved_api_micros)):
        if reserved:  # given back first, so that it does not stand in its own way
            ledger.settle(
                event, unit=unit, reserved=reserved, spent=0, run_id=run.pk, run_label=run.name, window_start=run.budget_window_at,
                reason=f"moved to {target.slug}",
            )  # fmt: skip
    is_agreed_to = (
        prepared.gpu_ms <= run.reserved_gpu_ms and Certificate.objects.filter(pk=run.certificate_id, facts__is_approved=True).exists()
    )
    facts = admission_facts(prepared, now=now, person=requested_by, held=run, is_approved=is_agreed_to)
    verdict = decide(facts)
    if verdict.answer != Answer.PASS:
        transaction.savepoint_rollback(as_it_was)
        event.subjects[:], event.details, event.verb = named, details, Verb.RUN_MOVE_REFUSED
        event.details["limits"] = plain(verdict.as_json())
        return run, (certify(event, facts, verdict, prepared, asked_by=requested_by), verdict)
    certificate = certify(event, facts, verdict, prepared, asked_by=requested_by)
    window = ledger.reserve(event, unit=Unit.GPU_MS, amount=prepared.gpu_ms, run_id=run.pk, run_label=run.name, now=now)
    if prepared.api_micros:
        ledger.reserve(event, unit=Unit.API_MICROS, amount=prepared.api_micros, run_id=run.pk, run_label=run.name, now=now)
    event.changing(run)
    event.note(run, {"pool": (before.slug, target.slug), "reserved_gpu_ms": (run.reserved_gpu_ms, prepared.gpu_ms)})
    values = {
        "pool": target, "certificate": certificate, "frozen": prepared.frozen, "content_hash": prepared.content_hash,
        "reserved_gpu_ms": prepared.gpu_ms, "reserved_api_micros": prepared.api_micros, "budget_window_at": window,
    }  # fmt: skip
    for name, value in values.items():
        setattr(run, name, value)
    run.save(update_fields=list(values))
    event.change(item, pool=target)
    queue.ring("dispatch_run", subject=scope.current_id())
    return run, None
