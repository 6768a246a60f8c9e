"""`/lineage/{kind}/{id}`: where something came from, or what rests on it, as PROV-JSON."""

import uuid
from collections.abc import Callable
from typing import Any, Literal

from runs.models import Artifact, Evaluation, Run
from runs.queries.lineage import Node, Way, walk
from runs.queries.lineage_edges import NodeKind
from runs.queries.prov import prov_document
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.models import AgentVersion, Contract, DatasetVersion

routes = Routes("lineage")

FINDS: dict[NodeKind, tuple[Kind, Callable[[str], uuid.UUID]]] = {
    NodeKind.RUN: (Kind.RUN, lambda text: Run.objects.find(text).pk),
    NodeKind.EVALUATION: (Kind.EVALUATION, lambda text: Evaluation.objects.find(text).pk),
    NodeKind.ARTIFACT: (Kind.ARTIFACT, lambda text: Artifact.objects.find(text).pk),
    NodeKind.DATASET_VERSION: (Kind.DATASET, lambda text: DatasetVersion.objects.find(text).pk),
    NodeKind.AGENT_VERSION: (Kind.AGENT, lambda text: AgentVersion.objects.find(text).pk),
    NodeKind.CONTRACT: (Kind.BENCHMARK, lambda text: Contract.objects.find(text).pk),
}


def _declare(node_kind: NodeKind, kind: Kind, find: Callable[[str], uuid.UUID]) -> None:
    """A route for each kind, so that each asks for the right to see its own."""

    def get_lineage(request: ApiRequest, id: str, way: Literal["up", "down"] = "up") -> Any:  # noqa: A002  # the word of the address
        """The walk as PROV-JSON: up to what it came from, or down to what rests on it; at most 5,000 things, the nearest. Things of a kind that
        the caller may not see stand without their name."""
        found = walk([Node(node_kind, find(id))], Way.DOWN if way == "down" else Way.UP)
        return prov_document(found, request.rights, request.workspace)

    get_lineage.__name__ = f"get_lineage_of_{node_kind}"
    routes.get(f"/lineage/{node_kind}/{{id}}", needs=Permission.VIEW, kind=kind, response=dict[str, dict[str, Any]])(get_lineage)


for node_kind, (kind, find) in FINDS.items():
    _declare(node_kind, kind, find)
