"""What a contract may say beside its metric, holdout and limits; each part that is left out leaves the contract's hash as it was before there were
such parts, so that old hashes and the certificates that name them hold."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from workspaces.audit import Refusal
from workspaces.contract_metrics import Metric, metric_fault
from workspaces.models import AgentVersion, Contract, DatasetVersion

MOST_MEMORY = 2**44  # bytes
EVALUATE = "evaluate"


@dataclass(frozen=True, slots=True)
class Parts:
    """`metrics` stand beside the one that ranks. `over_seeds`: mean or median, by which runs that are alike but for the seed are ranked; empty:
    each for itself. `tie_rule`: which ranks equal values have. Runs may be asked for from `opens_at` until before `closes_at`, aware instants.
    `memory_bytes`: most that an evaluation may take. `counts_all_samples`: those that erred or were abstained from stay in the denominator. Only
    runs of `evaluator` score."""

    metrics: tuple[Metric, ...] = ()
    over_seeds: str = ""
    tie_rule: str = Contract.TieRule.SHARED_RANK
    opens_at: datetime | None = None
    closes_at: datetime | None = None
    memory_bytes: int | None = None
    counts_all_samples: bool = False
    evaluator: AgentVersion | None = None
    train: DatasetVersion | None = None
    validation: DatasetVersion | None = None

    def columns(self) -> dict[str, Any]:
        """As the contract's row has them."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**given, "metrics": [metric.as_json() for metric in self.metrics]}

    def content(self) -> dict[str, Any]:
        """What the hash covers: those that are said, and no others. Rows are named by their own content's hash."""
        # That equal values share a rank held before a contract could say so.
        unsaid: tuple[Any, ...] = ("", None, False, [], Contract.TieRule.SHARED_RANK)
        return {name: getattr(value, "content_hash", value) for name, value in self.columns().items() if value not in unsaid}


NO_PARTS = Parts()


def parts_of(contract: Mapping[str, Any]) -> tuple[dict[str, Any], Parts]:
    """The arguments of `publish_contract`, taken apart: what is not a part, and the parts."""
    names = {each.name for each in fields(Parts)}
    given = {name: value for name, value in contract.items() if name in names}
    if "metrics" in given:
        given["metrics"] = tuple(given["metrics"])
    return {name: value for name, value in contract.items() if name not in names}, Parts(**given)


def check_parts(parts: Parts, *, metric: str, holdout: DatasetVersion | None) -> None:
    """Refuses what cannot be."""
    if fault := metric_fault(metric, parts.metrics):
        raise Refusal(fault, field="metrics")
    if parts.over_seeds and parts.over_seeds not in Contract.OverSeeds.values:
        raise Refusal(f"Over seeds there are {' and '.join(Contract.OverSeeds.values)}; or leave it empty.", field="over_seeds")
    if parts.tie_rule not in Contract.TieRule.values:
        raise Refusal(f"There are two tie rules: {' and '.join(Contract.TieRule.values)}.", field="tie_rule")
    for name in ("opens_at", "closes_at"):
        at = getattr(parts, name)
        if at is not None and at.tzinfo is None:
            raise Refusal("Say the instant with its zone.", field=name)
    if parts.opens_at is not None and parts.closes_at is not None and parts.opens_at >= parts.closes_at:
        raise Refusal("It closes before it opens; choose a later instant.", field="closes_at")
    if parts.memory_bytes is not None and not 1 <= parts.memory_bytes <= MOST_MEMORY:
        raise Refusal(f"From 1 to {MOST_MEMORY:,} bytes; without a ceiling leave it empty.", field="memory_bytes")
    if parts.evaluator is not None and parts.evaluator.kind != EVALUATE:
        raise Refusal(
            f"{parts.evaluator.label} is of kind {parts.evaluator.kind}; an evaluator is a version of kind {EVALUATE}.", field="evaluator"
        )
    for name, role in (("train", DatasetVersion.Role.TRAIN), ("validation", DatasetVersion.Role.VALIDATION)):
        version = getattr(parts, name)
        if version is not None and version.role not in (role, DatasetVersion.Role.ANY):
            raise Refusal(f"{version.label} has the role {version.get_role_display()}, not {role.label}.", field=name)
        if version is not None and holdout is not None and version.content_hash == holdout.content_hash:
            raise Refusal(f"{version.label} has the same content as the holdout.", field=name)
