"""Benchmarks and the versions of their contracts. A contract is never changed, only followed by the next one."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from workspaces import scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.canonical import digest, plain
from workspaces.commands.contract_parts import NO_PARTS, Parts, check_parts, parts_of
from workspaces.commands.registry import change_fields, create_named, insert
from workspaces.contract_metrics import Metric
from workspaces.models import AgentVersion, Benchmark, Contract, DatasetVersion
from workspaces.queries.registry import current_contract
from workspaces.queries.withdrawal import withdrawals_on
from workspaces.units import plural
from workspaces.verbs import Verb

CHANGEABLE = frozenset({"name", "description", "is_public"})
MOST_RUNS = 1_000_000  # that a contract may allow one person in a period


@command(Verb.BENCHMARK_CREATED, needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK)
def create_benchmark(
    event: Draft,
    *,
    actor: Actor,
    slug: str,
    name: str = "",
    description: str = "",
    is_public: bool = False,
    contract: dict[str, Any] | None = None,
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Benchmark:
    """Create a benchmark, with the first version of its contract where `contract` holds the fields of `publish_contract`."""
    benchmark = create_named(event, Benchmark, actor=actor, slug=slug, name=name, id=id, description=description, is_public=is_public)
    if contract is not None:
        own, parts = parts_of(contract)
        _publish(event, benchmark, actor=actor, parts=parts, **own)
    return benchmark


@command(Verb.BENCHMARK_CHANGED, needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK)
def change_benchmark(event: Draft, /, *, actor: Actor, benchmark: Benchmark, reason: str = "", **changed: Any) -> Benchmark:
    """Change name, description or the public flag; what is measured changes only by a new contract version."""
    event.reason = reason
    return change_fields(event, benchmark, CHANGEABLE, changed)


@command(Verb.CONTRACT_PUBLISHED, needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK)
def publish_contract(
    event: Draft,
    *,
    actor: Actor,
    benchmark: Benchmark,
    metric: str,
    direction: str,
    unit: str = "",
    holdout: DatasetVersion | None = None,
    wall_seconds: int | None = None,
    terms: str = "",
    accepts_no_isolation_reason: str = "",
    runs_per_person: int | None = None,
    period: str = "",
    metrics: Sequence[Metric] = (),
    over_seeds: str = "",
    tie_rule: str = Contract.TieRule.SHARED_RANK,
    opens_at: datetime | None = None,
    closes_at: datetime | None = None,
    memory_bytes: int | None = None,
    counts_all_samples: bool = False,
    evaluator: AgentVersion | None = None,
    train: DatasetVersion | None = None,
    validation: DatasetVersion | None = None,
    reason: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Contract:
    """Publish the next version of a benchmark's contract. From then on only scores under it compare. Times in seconds, memory in bytes.

    `accepts_no_isolation_reason`: why runs without isolation may be measured although there is a holdout; only an owner says so.
    `runs_per_person` is how many runs that were or may still be scored one person may ask for in each `period`: day, week or month.
    The other parts: `contract_parts.Parts`.
    """
    event.reason = reason
    parts = Parts(
        metrics=tuple(metrics), over_seeds=over_seeds, tie_rule=tie_rule, opens_at=opens_at, closes_at=closes_at, memory_bytes=memory_bytes,
        counts_all_samples=counts_all_samples, evaluator=evaluator, train=train, validation=validation,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "metric": metric,
        "direction": direction,
        "unit": unit,
        "holdout": holdout,
        "wall_seconds": wall_seconds,
        "terms": terms,
        "accepts_no_isolation_reason": accepts_no_isolation_reason,
        "runs_per_person": runs_per_person,
        "period": period,
    }
    return _publish(event, benchmark, actor=actor, id=id, parts=parts, **fields)


def refuse_withdrawn(holdout: DatasetVersion | None) -> None:
    """Part of what makes a contract: none measures on what is withdrawn. The ledger is locked before, so that a withdrawal that is under way
    comes first, or finds the contract."""
    gone = withdrawals_on("dataset_version", holdout.pk) if holdout is not None else []
    if gone:
        raise Refusal(f"{gone[0].subject_label}, which the holdout rests on, was withdrawn: {gone[0].reason}", field="holdout")


def refuse_looser(newest: Contract | None, runs_per_person: int | None, period: str, *, actor: Actor) -> None:
    """Part of what makes a contract: only an admin lets a person ask for more than the version before does."""
    if newest is None or not _is_looser(newest, runs_per_person, period):
        return
    if not rights_of(actor, scope.current_id()).allows(Permission.MANAGE_WORKSPACE, Kind.WORKSPACE):
        raise Refusal(
            f"Version {newest.version} lets each person ask for {newest.runs_per_person} runs a {newest.period}; only an admin loosens that.",
            field="runs_per_person",
        )


def _is_looser(newest: Contract, runs_per_person: int | None, period: str) -> bool:
    """Would the next version let a person ask for more? Another period may, whatever its number."""
    if newest.runs_per_person is None:
        return False
    return runs_per_person is None or period != newest.period or runs_per_person > newest.runs_per_person


def _publish(
    event: Draft,
    benchmark: Benchmark,
    *,
    actor: Actor,
    metric: str,
    direction: str,
    unit: str = "",
    holdout: DatasetVersion | None = None,
    wall_seconds: int | None = None,
    terms: str = "",
    accepts_no_isolation_reason: str = "",
    runs_per_person: int | None = None,
    period: str = "",
    parts: Parts = NO_PARTS,
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Contract:
    if holdout is not None:
        lock_ledger(event)  # as `refuse_withdrawn` wants it
    benchmark = Benchmark.objects.select_for_update(no_key=True).get(pk=benchmark.pk)  # one next version at a time
    if benchmark.source:
        raise Refusal(
            f"{benchmark.name} is a frozen copy of {benchmark.source['benchmark']} of {benchmark.source['workspace']}; take over what that says, or"
            " create a benchmark of your own."
        )
    newest = current_contract(benchmark.pk)
    if holdout is not None and holdout.role != DatasetVersion.Role.HOLDOUT:
        raise Refusal(
            f"Version {holdout.number} of {holdout.dataset.name} has the role {holdout.get_role_display()}; a contract measures on a version"
            " whose role is holdout.",
            field="holdout",
        )
    refuse_withdrawn(holdout)
    if accepts_no_isolation_reason and not rights_of(actor, scope.current_id()).allows(Permission.TRANSFER, Kind.WORKSPACE):
        raise Refusal(
            "Only an owner accepts runs without isolation; leave the reason empty or ask one.", field="accepts_no_isolation_reason"
        )
    limit = _limit(runs_per_person, period)
    refuse_looser(newest, runs_per_person, period, actor=actor)
    check_parts(parts, metric=metric, holdout=holdout)
    content = plain(
        {
            "metric": metric,
            "unit": unit,
            "direction": direction,
            "holdout": holdout.content_hash if holdout else None,
            "wall_seconds": wall_seconds,
            "terms": terms,
            "accepts_no_isolation_reason": accepts_no_isolation_reason,
            **limit,
            **parts.content(),
        }
    )
    content_hash = digest(content)
    if newest is not None and newest.content_hash == content_hash:
        raise Refusal(f"This is what version {newest.version} of the contract says already; nothing was published.")
    contract = Contract(
        benchmark=benchmark,
        version=newest.version + 1 if newest else 1,
        metric=metric,
        unit=unit,
        direction=direction,
        holdout=holdout,
        wall_seconds=wall_seconds,
        terms=terms,
        accepts_no_isolation_reason=accepts_no_isolation_reason,
        content=content,
        content_hash=content_hash,
        **limit,
        **parts.columns(),
    )
    if id is not None:
        contract.pk = id
    insert(event, contract)
    event.details["contract"] = {"version": contract.version, **content}
    return contract


def _limit(runs_per_person: int | None, period: str) -> dict[str, Any]:
    """Both parts of the limit, or nothing: a contract without one has the content, and so the hash, that it had before there were such limits."""
    if runs_per_person is None and not period:
        return {}
    if runs_per_person is None:
        raise Refusal(f"Say how many runs one person may ask for a {period}, or leave the period empty as well.", field="runs_per_person")
    if not period:
        raise Refusal(
            f"Say in which period one person may ask for {plural(runs_per_person, 'run', 'runs')}: a day, a week or a month.",
            field="period",
        )
    if not 1 <= runs_per_person <= MOST_RUNS:
        raise Refusal(f"From 1 to {MOST_RUNS:,} runs; without a limit leave both fields empty.", field="runs_per_person")
    if period not in Contract.Period.values:
        raise Refusal("There are three periods: day, week and month.", field="period")
    return {"runs_per_person": runs_per_person, "period": period}
