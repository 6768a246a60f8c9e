"""Contract checks: set up from an evaluation, begun and concluded by labsite's own job, stopped by people.

What is launched is an ordinary run of whoever set the check up, launched by `runs.commands.launch`; these commands keep what came of it.
"""

import math
import uuid
from datetime import timedelta

from django.db.models import Max
from django.utils import timezone

from runs import queue
from runs.admission import EVALUATE
from runs.contract_check import holds, in_words
from runs.models import CheckResult, ContractCheck, Evaluation, Run
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.notification import notify
from workspaces.models import Notification
from workspaces.queries.registry import current_contract
from workspaces.verbs import Verb

MOST_DAYS = 366
REFUSED_DAYS = 1  # after which a launch that was refused is tried again
Status = CheckResult.Status


@command(Verb.CONTRACT_CHECK_SET, needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK)
def set_contract_check(event: Draft, *, actor: Actor, evaluation: Evaluation, tolerance: float, interval_days: int) -> ContractCheck:
    """Measure the evaluation's artifact again every so many days, the first time at once. One that stands for this contract version ends."""
    if actor.user is None:
        raise Refusal("A check is set up by a person or a service account, under whose rights it is launched.")
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise Refusal("The tolerance is a finite number, 0 or more.", field="tolerance")
    if not 1 <= interval_days <= MOST_DAYS:
        raise Refusal(f"{interval_days} days; choose 1 to {MOST_DAYS}.", field="interval_days")
    _refuse_unfit(evaluation)
    workspace = lock_ledger()  # one check at a time is set
    now = timezone.now()
    for standing in ContractCheck.objects.filter(contract=evaluation.contract_id, ended_at=None).select_for_update(no_key=True):
        event.change(standing, ended_at=now, end_reason="Another reference took its place.")
    check = ContractCheck.objects.create(
        contract_id=evaluation.contract_id,
        reference=evaluation,
        tolerance=tolerance,
        interval_days=interval_days,
        set_by=actor.user,
        token_id=actor.token_id,
        next_at=now,
    )
    event.created(check)
    event.about = check
    event.details |= {"expected": evaluation.value, "tolerance": tolerance, "interval_days": interval_days}
    queue.ring("check_contracts", subject=workspace.pk)
    return check


@command(Verb.CONTRACT_CHECK_ENDED, needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK)
def stop_contract_check(event: Draft, *, actor: Actor, check: ContractCheck, reason: str) -> ContractCheck:
    """Measure it no more. A run that is under way goes on; cancel it where it should not."""
    return _end(event, check, reason)


@command(Verb.CONTRACT_CHECK_ENDED, needs=None, by_system=True)
def retire_contract_check(event: Draft, *, actor: Actor, check: ContractCheck, reason: str) -> ContractCheck:
    """End a check whose contract version is no longer the one that holds, or whose asker is gone."""
    return _end(event, check, reason)


@command(Verb.CONTRACT_CHECK_BEGUN, needs=None, by_system=True)
def begin_check(event: Draft, *, actor: Actor, check: ContractCheck, run: Run | None, words: str = "") -> CheckResult:
    """Keep that a check was due: its run, or the words of the refusal. Raises Refusal where one is under way, or the check has ended."""
    check = (
        ContractCheck.objects.select_for_update(no_key=True, of=("self",)).select_related("contract__benchmark", "set_by").get(pk=check.pk)
    )
    if check.ended_at is not None or check.results.filter(status=Status.RUNNING).exists():
        raise Refusal("It has ended, or is being measured already.")
    now = timezone.now()
    days = check.interval_days if run is not None else min(check.interval_days, REFUSED_DAYS)
    event.change(check, next_at=now + timedelta(days=days))
    result = CheckResult.objects.create(
        contract_check=check,
        number=next_number(check),
        status=Status.RUNNING if run is not None else Status.REFUSED,
        run=run,
        words=words[:1000],
        ended_at=None if run is not None else now,
    )
    event.created(result)
    event.about = result
    event.reason = words
    if run is None:
        _tell(check, result)
    return result


@command(Verb.CONTRACT_CHECKED, needs=None, by_system=True, in_archive="running work comes to its end")
def conclude_check(event: Draft, *, actor: Actor, result: CheckResult) -> CheckResult:
    """Say what the run of a check has measured. Raises Refusal while it is under way, or where that is said already."""
    result = CheckResult.objects.select_for_update(no_key=True, of=("self",)).select_related("run").get(pk=result.pk)
    run: Run | None = result.run
    if result.status != Status.RUNNING or run is None or not run.is_terminal:
        raise Refusal("There is nothing to conclude yet.")
    check = ContractCheck.objects.select_related("contract__benchmark", "reference", "set_by").get(pk=result.contract_check_id)
    expected: Evaluation = check.reference
    found = Evaluation.objects.filter(run=run, contract=check.contract_id, metric=expected.metric).first()
    if found is None:
        status, words = Status.UNMEASURED, f"{run.name} {run.get_status_display()} without a score of {expected.metric}. {run.reason}"
    else:
        status = Status.HOLDS if holds(expected.value, check.tolerance, found.value) else Status.MOVED
        words = in_words(expected.value, check.tolerance, found.value)
    event.change(result, status=status, evaluation=found, words=words[:1000], ended_at=timezone.now())
    event.about = result
    event.reason = words
    if status != Status.HOLDS:
        _tell(check, result)
    return result


def next_number(check: ContractCheck) -> int:
    """Of the result that comes next."""
    return int(check.results.aggregate(last=Max("number"))["last"] or 0) + 1


def run_id_of(check: ContractCheck, number: int) -> uuid.UUID:
    """The run of a result is known before it is launched, so that a job that runs twice launches once."""
    return uuid.uuid5(check.pk, f"check-{number}")


def _refuse_unfit(evaluation: Evaluation) -> None:
    run: Run = evaluation.run
    contract = current_contract(evaluation.benchmark_id)
    if run.kind != EVALUATE or evaluation.subject_artifact is None:
        raise Refusal("Only an evaluation of one artifact, by a run that evaluates, can be measured again alike.")
    if evaluation.subject_artifact.going:
        raise Refusal(f"Its artifact {evaluation.subject_artifact.going}.")
    if not math.isfinite(evaluation.value):
        raise Refusal("Its value is no finite number, so nothing can be held against it.")
    if contract is None or contract.pk != evaluation.contract_id or run.contract_id != evaluation.contract_id:
        raise Refusal("It was not measured under the contract version that holds now; evaluate again first.")


def _end(event: Draft, check: ContractCheck, reason: str) -> ContractCheck:
    check = ContractCheck.objects.select_for_update(no_key=True, of=("self",)).select_related("contract__benchmark").get(pk=check.pk)
    if check.ended_at is not None:
        raise Refusal("This check has ended already.")
    event.change(check, ended_at=timezone.now(), end_reason=reason[:1000])
    event.about = check
    event.reason = reason
    return check


def _tell(check: ContractCheck, result: CheckResult) -> None:
    notify(
        [check.set_by],
        cause=Notification.Cause.CONTRACT_CHECKED,
        subject_type="check",
        subject_id=result.pk,
        label=check.contract.benchmark.name,
        outcome=result.status,
        words=result.words,
    )
