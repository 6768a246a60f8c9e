"""Secrets on their way to a run: opened just before its pool is called, and on record as used."""

from runs.admission import secret_fault
from runs.models import Attempt
from runs.queries.secret import as_facts
from workspaces.audit import Refusal
from workspaces.commands.secret import record_use
from workspaces.queries.sealed import handed_values, value_of
from workspaces.queries.secret import standings


def hand_out(attempt: Attempt) -> dict[str, str]:
    """Values of the secrets that the attempt's agent names, each use on record before anybody has it. Telemetry: no event of audit.

    Raises Refusal where one was revoked, or is allowed to fewer than when the run was admitted. Asked again for the same attempt, it gives the
    same values, whatever became of the secrets: its folder may hold them already. Raises BrokenSeal where a value cannot be opened.
    """
    run = attempt.run
    names = run.agent_version.secrets
    if not names:
        return {}
    handed = handed_values(attempt.key)
    for standing in standings(names, agent=run.agent, pool=run.pool, benchmark=run.benchmark):
        if standing.name in handed:
            continue
        fault = secret_fault(as_facts(standing, agent=run.agent, pool=run.pool, benchmark=run.benchmark))
        if fault is not None:
            raise Refusal(*fault)
        if standing.secret is not None:
            value = value_of(standing.secret)
            record_use(standing.secret, value, version=run.agent_version, run_id=run.pk, run_label=run.name, attempt_key=attempt.key)
    # Read back: of two that hand out at once, while a value is replaced, both give what is on record, which is what will be looked for.
    return handed_values(attempt.key)
