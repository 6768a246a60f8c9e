"""What the contract of a launch demands, as an admission decides upon it; and why a run's score may not be kept under a contract."""

from datetime import datetime
from zoneinfo import ZoneInfo

from runs.admission_contract import EVALUATE, ContractFacts
from runs.models import Run
from runs.queries.frozen import Prepared
from workspaces.models import AgentVersion, Contract, Workspace
from workspaces.windows import on_clock


def moment_of(contract: Contract, at: datetime) -> str:
    """before, open or after: half-open, from `opens_at` until before `closes_at`."""
    if contract.opens_at is not None and at < contract.opens_at:
        return "before"
    return "after" if contract.closes_at is not None and at >= contract.closes_at else "open"


def evaluator_hash(contract: Contract) -> str:
    """By its content, so that a frozen copy of a contract names the same evaluator; empty where every run may score."""
    return str(contract.content.get("evaluator", ""))


def evaluator_words(contract: Contract) -> str:
    """Whom it names, as people read it; empty where it names none."""
    key = evaluator_hash(contract)
    if not key:
        return ""
    return (
        _label(contract.evaluator)
        if contract.evaluator is not None
        else f"the agent version with the content {key[:12]}, which is not here,"
    )


def contract_facts(prepared: Prepared, *, asked_at: datetime, workspace: Workspace) -> ContractFacts | None:
    """None where the contract demands nothing of the kind. `asked_at` is when the run was asked for: one that waits is not late."""
    contract, version = prepared.contract, prepared.version
    is_evaluation = version.kind == EVALUATE
    ceilings = is_evaluation and (contract.wall_seconds is not None or contract.memory_bytes is not None)
    if contract.opens_at is None and contract.closes_at is None and not ceilings and not evaluator_hash(contract):
        return None
    zone = workspace.zone or "UTC"
    return ContractFacts(
        benchmark=prepared.benchmark.name,
        version=contract.version,
        opens=_words(contract.opens_at, zone),
        closes=_words(contract.closes_at, zone),
        moment=moment_of(contract, asked_at),
        wall_seconds=contract.wall_seconds if is_evaluation else None,
        asked_wall_seconds=prepared.wall_seconds if is_evaluation else None,
        memory_bytes=contract.memory_bytes if is_evaluation else None,
        asked_memory_bytes=version.memory_bytes if is_evaluation else None,
        evaluator=evaluator_words(contract),
        is_evaluator=version.content_hash == evaluator_hash(contract),
    )


def not_kept(run: Run, contract: Contract) -> str:
    """Why what `run` reports is no score under `contract`, in a sentence; empty where it may be one. What was asked for in time stays in time."""
    key = evaluator_hash(contract)
    if key and run.agent_version.content_hash != key:
        return f"Only {evaluator_words(contract)} scores under contract version {contract.version}; what others report is not kept."
    if moment_of(contract, run.created_at) != "open":
        return f"It was asked for while contract version {contract.version} was not open."
    return ""


def _label(version: AgentVersion) -> str:
    return f"{version.agent.name} version {version.number}"


def _words(moment: datetime | None, zone: str) -> str:
    if moment is None:
        return ""
    local = on_clock(moment, ZoneInfo(zone))
    return f"{local.day} {local:%B %Y %H:%M} {zone}"
