"""The launch that scores a run: an agent that evaluates reads what the run left, and the holdout of the benchmark's contract."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Count, Q

from runs.admission import EVALUATE
from runs.models import Artifact, Run
from runs.queries.artifact import RECORDS
from runs.queries.run_page import find_run
from workspaces.models import Agent, AgentVersion
from workspaces.queries.registry import current_contract

MODELS = ("model", "checkpoint")  # kinds of artifact that are scored before all others
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Scoring:
    """`query` fills the launch form; `gaps` are sentences about what a person has to choose."""

    run: Run
    query: str
    gaps: tuple[str, ...]


def score_launch(text: str) -> Scoring:
    """Raises NotFound for a run that is not here."""
    run = find_run(text)
    agents, result, contract = evaluators(run), _result(run), current_contract(run.benchmark_id)
    holdout = contract.holdout if contract else None
    evaluator = contract.evaluator if contract else None  # where the contract names one, no other scores
    agents = [evaluator.agent] if evaluator else agents
    gaps = []
    if not agents:
        gaps.append(f'No agent here declares that it evaluates. Publish a version of kind "{EVALUATE}", or choose an agent yourself.')
    elif len(agents) > 1:
        gaps.append(f"Agents that evaluate: {', '.join(agent.name for agent in agents[:SHOWN])}.")
    if result is None:
        gaps.append("The run left nothing that could be scored.")
    if holdout is None:
        is_away = contract is not None and contract.names_holdout
        words = "The contract's holdout is not in this workspace" if is_away else "The contract names no holdout"
        gaps.append(f"{words}; choose what it is measured on.")
    fields = [
        ("benchmark", run.benchmark.slug),
        ("agent", agents[0].slug if agents else ""),
        ("version", str(evaluator.number) if evaluator else ""),
        ("datasets", f"{holdout.dataset.slug}@{holdout.number}" if holdout else ""),
        ("artifacts", result.pk.hex if result else ""),
        ("reason", f"Score {run.name} on records that it has not seen."[:1000]),
    ]
    return Scoring(run, urlencode([(name, value) for name, value in fields if value]), tuple(gaps))


def evaluators(run: Run) -> list[Agent]:
    """Agents whose newest version declares that it evaluates; those that have scored this benchmark before come first."""
    newest = AgentVersion.objects.order_by("agent", "-number").distinct("agent").values_list("agent", "kind")
    evaluating = [agent for agent, kind in newest if kind == EVALUATE]
    scored = Count("runs", filter=Q(runs__benchmark=run.benchmark_id, runs__status=Run.Status.SUCCEEDED))
    return list(Agent.objects.filter(pk__in=evaluating).annotate(scored=scored).order_by("-scored", "name"))


def _result(run: Run) -> Artifact | None:
    """The newest model, else the newest result of any kind."""
    results = list(Artifact.objects.filter(run=run, deleted_at=None).exclude(kind__in=RECORDS).order_by("-created_at", "path"))
    return next((artifact for artifact in results if artifact.kind in MODELS), results[0] if results else None)
