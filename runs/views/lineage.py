"""Where something came from, and what rests on it: as graph and table, and as PROV-JSON."""

import json
from collections.abc import Callable

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render

from runs.models import Artifact, Decision, Evaluation, MemoryEntry, Promotion, Run
from runs.queries.lineage import Node, Way, walk
from runs.queries.lineage_edges import NodeKind
from runs.queries.lineage_graph import ASKED, MOST_BOXES, graph_of, groups_of
from runs.queries.lineage_nodes import Descriptions, words_of
from runs.queries.lineage_person import find_person
from runs.queries.lineage_rows import RECORD, ROWS, kinds_in, rows_of
from runs.queries.prov import prov_document
from workspaces.models import Agent, Benchmark, Contract, Dataset, NotFound
from workspaces.pages import PageRequest
from workspaces.queries.registry import find_agent_version, find_contract, find_version

SHOWN_AT_ONCE = MOST_BOXES + ROWS
Find = Callable[..., Node]
View = Callable[..., HttpResponseBase]


def _run(run: str) -> Node:
    return Node(NodeKind.RUN, Run.objects.find(run).pk)


def _evaluation(evaluation: str) -> Node:
    return Node(NodeKind.EVALUATION, Evaluation.objects.find(evaluation).pk)


def _artifact(artifact: str) -> Node:
    return Node(NodeKind.ARTIFACT, Artifact.objects.find(artifact).pk)


def _promotion(promotion: str) -> Node:
    return Node(NodeKind.PROMOTION, Promotion.objects.find(promotion).pk)


def _memory(memoryentry: str) -> Node:
    return Node(NodeKind.MEMORY, MemoryEntry.objects.find(memoryentry).pk)


def _decision(decision: str) -> Node:
    return Node(NodeKind.DECISION, Decision.objects.find(decision).pk)


def _dataset(dataset: str, version: str) -> Node:
    return Node(NodeKind.DATASET_VERSION, find_version(Dataset.objects.find(dataset), version).pk)


def _agent(agent: str, agentversion: str) -> Node:
    return Node(NodeKind.AGENT_VERSION, find_agent_version(Agent.objects.find(agent), agentversion).pk)


def _benchmark(benchmark: str, contract: str) -> Node:
    found = Benchmark.objects.find(benchmark)
    if contract.isdecimal() and len(contract) < 10:
        return Node(NodeKind.CONTRACT, find_contract(found, int(contract)).pk)
    named = Contract.objects.find(contract)
    if named.benchmark_id != found.pk:
        raise NotFound("contract")
    return Node(NodeKind.CONTRACT, named.pk)


def _lineage(request: PageRequest, start: Node) -> HttpResponseBase:
    """`way=down`: what rests on it; `group=<key>`, `kind=<kind>`: only these in the table; `from=<n>`: the page after so many."""
    way = _way(request)
    found = walk([start], way)
    groups = groups_of(found, request.rights)
    text = request.GET.get("from", "")
    begin = int(text) if text.isdecimal() and len(text) < 7 else 0
    group, kind = request.GET.get("group", "")[:120], request.GET.get("kind", "")[:40]
    told = Descriptions(request.rights, request.workspace.slug, ahead=found.nodes[:SHOWN_AT_ONCE])
    rows = rows_of(found, way, groups, told, group=group, kind=kind, start=begin)
    kinds = kinds_in(found, groups)
    context = {
        "start": told.of([start])[start],
        "start_kind": words_of(start.kind),
        "is_person": start.kind == NodeKind.PERSON,
        "is_decision": start.kind == NodeKind.DECISION,
        "way": ASKED[way],
        "found_count": sum(count for name, count, _ in kinds if name != RECORD),
        "walked_count": len(found.distance),
        "is_whole": found.is_whole,
        "graph": graph_of(found, way, groups, told),
        "rows": rows,
        "group": group,
        "kind": kind,
        "kinds": kinds,
        "first": begin + 1,
        "last": begin + len(rows.rows),
    }
    return render(request, "runs/lineage.html", context)


def _prov(request: PageRequest, start: Node) -> HttpResponseBase:
    way = _way(request)
    document = prov_document(walk([start], way), request.rights, request.workspace)
    response = HttpResponse(json.dumps(document, ensure_ascii=False, indent=1), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{start.kind}-{start.id.hex[-8:]}-{ASKED[way]}.prov.json"'
    return response


def _way(request: PageRequest) -> Way:
    return Way.DOWN if request.GET.get("way") == ASKED[Way.DOWN] else Way.UP


def _page(find: Find) -> View:
    def shown(request: PageRequest, **captured: str) -> HttpResponseBase:
        return _lineage(request, find(**captured))

    return shown


def _document(find: Find) -> View:
    def taken(request: PageRequest, **captured: str) -> HttpResponseBase:
        return _prov(request, find(**captured))

    return taken


FINDS: dict[str, Find] = {
    "run": _run,
    "evaluation": _evaluation,
    "artifact": _artifact,
    "dataset": _dataset,
    "agent": _agent,
    "benchmark": _benchmark,
    "promotion": _promotion,
    "memory": _memory,
    "decision": _decision,
    "person": find_person,
}
PAGES = {noun: _page(find) for noun, find in FINDS.items()}
DOCUMENTS = {noun: _document(find) for noun, find in FINDS.items()}
