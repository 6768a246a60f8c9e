"""Sweeps: asked for once, with the arithmetic of all members; launched member by member, each an ordinary launch with a certificate of its own."""

import uuid
from dataclasses import asdict, replace
from typing import Any

from django.db.models import Max
from django.utils import timezone

from runs import queue
from runs.commands.notification import tell_sweep_ended
from runs.commands.policy_bell import ring_policies
from runs.launch import LaunchRequest
from runs.lifecycle import TERMINAL
from runs.models import Decision, Run, Sweep
from runs.models.called import names_of
from runs.queries.frozen import Prepared
from runs.queries.sweep_plan import plan_sweep
from runs.search_space import arithmetic, read_space
from workspaces.access import Actor, Kind, Permission, Rights
from workspaces.accounts import lock_ledger
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.models import User
from workspaces.reasons import because
from workspaces.text import unreadable
from workspaces.verbs import Verb


def create_sweep(
    *,
    actor: Actor,
    name: str,
    space: Any,
    request: LaunchRequest,
    purpose: str = "",
    sweep_id: uuid.UUID | None = None,
    decision: Decision | None = None,
) -> Sweep:
    """Ask for every member of a search space. `request` is what they share; the space's parameters go over its own.

    Versions are fixed now, so that the last member rests on what the first rested on. Refused where the members together do not fit into a
    hard limit as it stands: members reserve one by one, and a sweep that is known to break off half-way is no answer to anything. The same
    `sweep_id` gives the same sweep. `decision` is that of the policy which asks, if one does.
    """
    known = _known(sweep_id)
    if known is not None:
        return known
    try:
        return _create(actor=actor, name=name, space=space, request=request, purpose=purpose, sweep_id=sweep_id, decision=decision)
    except _CreatedMeanwhile:
        known = _known(sweep_id)
        assert known is not None
        return known


class _CreatedMeanwhile(Exception):  # the answer to a request that is sent twice
    """Under the lock it shows that another request with the same id has made the sweep."""


def _known(sweep_id: uuid.UUID | None) -> Sweep | None:
    return Sweep.objects.filter(pk=sweep_id).first() if sweep_id is not None else None


@command(Verb.SWEEP_CREATED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def _create(
    event: Draft,
    *,
    actor: Actor,
    name: str,
    space: Any,
    request: LaunchRequest,
    purpose: str,
    sweep_id: uuid.UUID | None,
    decision: Decision | None,
) -> Sweep:
    person = _person(actor)
    plan = plan_sweep(request, space, person=person)
    found, prepared = plan.space, plan.prepared
    if fault := unreadable(name):
        raise Refusal(fault, field="name")
    if plan.misfit:
        raise Refusal(plan.misfit, field="space")
    lock_ledger()  # one number at a time
    if _known(sweep_id) is not None:
        raise _CreatedMeanwhile
    number = (Sweep.objects.aggregate(last=Max("number"))["last"] or 0) + 1
    sweep = Sweep(
        **({"id": sweep_id} if sweep_id else {}),
        name=(name.strip() or f"{prepared.agent.slug}-sweep-{number}")[:200],
        number=number,
        purpose=purpose[:1000],
        benchmark=prepared.benchmark,
        agent=prepared.agent,
        agent_version=prepared.version,
        pool=prepared.pool,
        space=space,
        request=asdict(_fixed(request, prepared)),
        names=names_of(benchmark=prepared.benchmark, agent=prepared.agent),
        members=found.count,
        gpu_ms_each=prepared.gpu_ms,
        requested_by=person,
        token_id=actor.token_id,
        decision=decision,
    )
    sweep.save(force_insert=True)
    event.created(sweep)
    event.reason = purpose
    event.details |= {"members": arithmetic(found), "count": found.count, "gpu_ms_each": prepared.gpu_ms}
    queue.ring("advance_sweep", subject=sweep.pk)
    return sweep


def stop(*, actor: Actor, sweep: Sweep, reason: str = "") -> Sweep:
    """Launch no more of a sweep, by the right that it takes: that to one's own, or that to the queue."""
    return (stop_sweep if actor.is_user(sweep.requested_by_id) else stop_any_sweep)(actor=actor, sweep=sweep, reason=reason)


def may_stop(actor: Actor, rights: Rights, sweep: Sweep) -> bool:
    """Would `stop` be carried out now?"""
    right = Permission.CANCEL_RUN if actor.is_user(sweep.requested_by_id) else Permission.MANAGE_QUEUE
    return sweep.status == Sweep.Status.RUNNING and rights.allows(right, Kind.RUN)


@command(Verb.SWEEP_STOPPED, needs=Permission.CANCEL_RUN, kind=Kind.RUN)
def stop_sweep(event: Draft, *, actor: Actor, sweep: Sweep, reason: str = "") -> Sweep:
    """Launch no more of one's own sweep. Members under way go on; cancel them where they should not."""
    if not actor.is_user(sweep.requested_by_id):
        raise Denied(Permission.MANAGE_QUEUE, "sweeps of others")
    return _stop(event, sweep, reason)


@command(Verb.SWEEP_STOPPED, needs=Permission.MANAGE_QUEUE, kind=Kind.RUN)
def stop_any_sweep(event: Draft, *, actor: Actor, sweep: Sweep, reason: str = "") -> Sweep:
    """Launch no more of a sweep of whomever, with a reason that they will read."""
    if not actor.is_user(sweep.requested_by_id):
        reason = because(reason, f"Say why; whoever asked for {sweep.name} will read it.")
    return _stop(event, sweep, reason)


@command(Verb.SWEEP_STOPPED, needs=None, by_system=True)
def break_off_sweep(event: Draft, *, actor: Actor, sweep: Sweep, reason: str) -> Sweep:
    """Launch no more: a member was refused, or whoever asked may launch no longer."""
    return _stop(event, sweep, reason)


@command(Verb.SWEEP_ENDED, needs=None, by_system=True)
def end_sweep(event: Draft, *, actor: Actor, sweep: Sweep) -> Sweep:
    """Every member has ended."""
    sweep = Sweep.objects.select_for_update(no_key=True).get(pk=sweep.pk)
    under_way = Run.objects.filter(sweep=sweep).exclude(status__in=sorted(TERMINAL)).count()
    if under_way or launched(sweep) < sweep.members:
        raise Refusal(f"{sweep.name} has members to launch, or under way.")
    if sweep.status != Sweep.Status.RUNNING:
        raise Refusal(f"{sweep.name} is {sweep.get_status_display().lower()} already.")
    event.change(sweep, status=Sweep.Status.ENDED, ended_at=timezone.now())
    tell_sweep_ended(sweep)
    ring_policies()
    return sweep


def member_request(sweep: Sweep, number: int) -> LaunchRequest:
    """What member `number` asks for."""
    member = read_space(sweep.space).member(number)
    shared = {**sweep.request, "datasets": tuple(sweep.request["datasets"]), "artifacts": tuple(sweep.request["artifacts"])}
    request = LaunchRequest(**shared)
    return replace(
        request,
        parameters={**request.parameters, **member.parameters},
        seed=member.seed if member.seed is not None else request.seed,
        name=f"{sweep.name[:180]} #{number}",
        reason=f"Member {number} of {sweep.members} of the sweep {sweep.name}" + (f": {sweep.purpose}" if sweep.purpose else ""),
    )


def member_id(sweep: Sweep, number: int) -> uuid.UUID:
    """The run's id, known before it is launched: a repeated bell launches nothing twice."""
    return uuid.uuid5(sweep.pk, str(number))


def launched(sweep: Sweep) -> int:
    """How many members have been launched; they are launched in their order."""
    return Run.objects.filter(sweep=sweep, retry_of=None).count()


def _stop(event: Draft, sweep: Sweep, reason: str) -> Sweep:
    sweep = Sweep.objects.select_for_update(no_key=True).get(pk=sweep.pk)
    if sweep.status != Sweep.Status.RUNNING:
        raise Refusal(f"{sweep.name} is {sweep.get_status_display().lower()} already.")
    event.reason = reason[:1000]
    event.change(sweep, status=Sweep.Status.STOPPED, reason=reason[:1000], ended_at=timezone.now())
    event.details["launched"] = f"{launched(sweep)} of {sweep.members}"
    tell_sweep_ended(sweep)
    ring_policies()
    return sweep


def _fixed(request: LaunchRequest, prepared: Prepared) -> LaunchRequest:
    """The request with every name as the key of the version it means now. Parameters stay as given: the space goes over them."""
    return replace(
        request,
        benchmark=prepared.benchmark.pk.hex,
        contract=prepared.contract.version,
        agent=prepared.agent.pk.hex,
        agent_version=prepared.version.number,
        pool=prepared.pool.pk.hex,
        datasets=tuple(entry.dataset_version.pk.hex for entry in prepared.inputs if entry.dataset_version),
        artifacts=tuple(entry.artifact.pk.hex for entry in prepared.inputs if entry.artifact),
        name="",
        reason="",
    )


def _person(actor: Actor) -> User:
    if actor.user is None:
        raise Refusal("A sweep is asked for by a person, a service account or an agent, who answers for it.")
    return actor.user
