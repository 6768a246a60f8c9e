"""Contract checks: conclude those whose run has ended, launch those that are due. PostgreSQL says which; a bell that is lost is rung again."""

import uuid
from contextlib import suppress
from dataclasses import replace

from django.utils import timezone

from runs.commands.contract_check import begin_check, conclude_check, next_number, retire_contract_check, run_id_of
from runs.commands.launch import launch_run
from runs.jobs.asker import asker_of
from runs.jobs.job import job
from runs.models import ContractCheck
from runs.queries.contract_check import due, to_conclude
from runs.queries.launch_again import request_again
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.models import NotFound
from workspaces.queries.registry import current_contract
from workspaces.queries.workspace import is_archived

AT_ONCE = 20  # checks of one look


@job
def check_contracts(actor: Actor, subject: uuid.UUID) -> None:
    for result in to_conclude()[:AT_ONCE]:
        with suppress(Refusal):  # concluded meanwhile
            conclude_check(actor=actor, result=result)
    if is_archived():
        return
    for check in due(timezone.now())[:AT_ONCE]:
        with suppress(Refusal):  # begun or ended meanwhile
            _begin(actor, check)


def _begin(actor: Actor, check: ContractCheck) -> None:
    current = current_contract(check.contract.benchmark_id)
    if current is None or current.pk != check.contract_id:
        retire_contract_check(actor=actor, check=check, reason="Its contract version has been followed by another.")
        return
    asker = asker_of(check.set_by, check.token_id, job_id=actor.job_id)
    if asker is None:
        retire_contract_check(actor=actor, check=check, reason="The token that set it up holds no longer.")
        return
    number = next_number(check)
    name = f"check-{number} of {check.contract.benchmark.slug}"
    reason = f"Contract check {number}: does {check.contract.label}, still measure what it did?"
    request = replace(request_again(check.reference.run), name=name[:200], reason=reason[:1000], priority=0)
    try:
        launched = launch_run(actor=asker, request=request, run_id=run_id_of(check, number))
    except (Refusal, Denied, NotFound) as fault:
        begin_check(actor=actor, check=check, run=None, words=f"It was not launched: {fault}")
    else:
        begin_check(actor=actor, check=check, run=launched.run)
