"""`/lineage/{kind}/{id}`: where something came from, or what rests on it, as PROV-JSON. A route for each kind, so that each asks for the right to
see its own."""

from typing import Annotated, Any, Literal

from pydantic import Field

from runs.models import Artifact, Decision, Evaluation, MemoryEntry, Promotion, Run
from runs.queries.lineage import Node, Way, walk
from runs.queries.lineage_edges import NodeKind
from runs.queries.lineage_person import find_person
from runs.queries.prov import prov_document
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.models import AgentVersion, Contract, DatasetVersion

routes = Routes("lineage")

Asked = Annotated[Literal["up", "down"], Field(description="up to what it came from, or down to what rests on it")]
Document = dict[str, dict[str, Any]]


@routes.get("/lineage/run/{run}", needs=Permission.VIEW, kind=Kind.RUN, response=Document)
def get_lineage_of_run(request: ApiRequest, run: str, way: Asked = "up") -> Any:
    """PROV-JSON of at most 5,000 things, the nearest. Things of a kind that the caller may not see stand without their name."""
    return _document(request, Node(NodeKind.RUN, Run.objects.find(run).pk), way)


@routes.get("/lineage/evaluation/{evaluation}", needs=Permission.VIEW, kind=Kind.EVALUATION, response=Document)
def get_lineage_of_evaluation(request: ApiRequest, evaluation: str, way: Asked = "up") -> Any:
    """As of a run."""
    return _document(request, Node(NodeKind.EVALUATION, Evaluation.objects.find(evaluation).pk), way)


@routes.get("/lineage/artifact/{artifact}", needs=Permission.VIEW, kind=Kind.ARTIFACT, response=Document)
def get_lineage_of_artifact(request: ApiRequest, artifact: str, way: Asked = "up") -> Any:
    """As of a run."""
    return _document(request, Node(NodeKind.ARTIFACT, Artifact.objects.find(artifact).pk), way)


@routes.get("/lineage/dataset_version/{version}", needs=Permission.VIEW, kind=Kind.DATASET, response=Document)
def get_lineage_of_dataset_version(request: ApiRequest, version: str, way: Asked = "up") -> Any:
    """As of a run; `version` is a version's own id."""
    return _document(request, Node(NodeKind.DATASET_VERSION, DatasetVersion.objects.find(version).pk), way)


@routes.get("/lineage/agent_version/{agentversion}", needs=Permission.VIEW, kind=Kind.AGENT, response=Document)
def get_lineage_of_agent_version(request: ApiRequest, agentversion: str, way: Asked = "up") -> Any:
    """As of a run."""
    return _document(request, Node(NodeKind.AGENT_VERSION, AgentVersion.objects.find(agentversion).pk), way)


@routes.get("/lineage/contract/{contract}", needs=Permission.VIEW, kind=Kind.BENCHMARK, response=Document)
def get_lineage_of_contract(request: ApiRequest, contract: str, way: Asked = "up") -> Any:
    """As of a run."""
    return _document(request, Node(NodeKind.CONTRACT, Contract.objects.find(contract).pk), way)


@routes.get("/lineage/promotion/{promotion}", needs=Permission.VIEW, kind=Kind.ARTIFACT, response=Document)
def get_lineage_of_promotion(request: ApiRequest, promotion: str, way: Asked = "up") -> Any:
    """As of a run: what was put forward, who asked and who decided, and everything under it."""
    return _document(request, Node(NodeKind.PROMOTION, Promotion.objects.find(promotion).pk), way)


@routes.get("/lineage/memory_entry/{memoryentry}", needs=Permission.VIEW, kind=Kind.MEMORY, response=Document)
def get_lineage_of_memory_entry(request: ApiRequest, memoryentry: str, way: Asked = "up") -> Any:
    """As of a run: what one revision rests on and who vouches for it, or the runs and decisions that read it and what came of them."""
    return _document(request, Node(NodeKind.MEMORY, MemoryEntry.objects.find(memoryentry).pk), way)


@routes.get("/lineage/policy_decision/{decision}", needs=Permission.VIEW, kind=Kind.POLICY, response=Document)
def get_lineage_of_policy_decision(request: ApiRequest, decision: str, way: Asked = "up") -> Any:
    """As of a run: the rule, what it was asked about and the memory it read, or what it launched and asked."""
    return _document(request, Node(NodeKind.DECISION, Decision.objects.find(decision).pk), way)


@routes.get("/lineage/person/{username}", needs=Permission.VIEW, kind=Kind.MEMBER, response=Document)
def get_lineage_of_person(request: ApiRequest, username: str, way: Asked = "up") -> Any:
    """As of a run: down to what somebody asked for, decided, brought in and wrote, and what rests on that. A person rests on nothing."""
    return _document(request, find_person(username), way)


def _document(request: ApiRequest, start: Node, way: str) -> Document:
    found = walk([start], Way.DOWN if way == "down" else Way.UP)
    return prov_document(found, request.rights, request.workspace)
