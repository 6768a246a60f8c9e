"""The lineage of the whole workspace, row by row from server-side cursors: what an export takes along as PROV-JSON.

Nothing is named in it but by kind and key. What there is to say of a thing stands in its row of the export's tables, where it is decided what of
it may leave; so this document says of what is closed no more than that it is there.
"""

import json
import uuid
from collections.abc import Iterator

from django.db import connection

from runs.models import Artifact, DatasetImport, Decision, Evaluation, MemoryEntry, PolicyVersion, Promotion, Run, Sweep, UndeclaredInput
from runs.queries.export_tables import AT_ONCE, name_of
from runs.queries.lineage import Link, Node, said_by
from runs.queries.lineage_edges import EDGES, NodeKind, Relation
from runs.queries.prov import ENDS, part_of, types_of
from workspaces import scope
from workspaces.models import AgentVersion, Approval, Benchmark, Contract, DatasetVersion

K = NodeKind
# In which file of the export a node's row stands; a source has none of its own, but the row that names it.
MODELS = {
    K.RUN: Run,
    K.EVALUATION: Evaluation,
    K.ARTIFACT: Artifact,
    K.DATASET_VERSION: DatasetVersion,
    K.AGENT_VERSION: AgentVersion,
    K.CONTRACT: Contract,
    K.APPROVAL: Approval,
    K.UNDECLARED: UndeclaredInput,
    K.PROMOTION: Promotion,
    K.SWEEP: Sweep,
    K.DECISION: Decision,
    K.POLICY_VERSION: PolicyVersion,
    K.MEMORY: MemoryEntry,
    K.IMPORT: DatasetImport,
    K.DATASET_SOURCE: DatasetVersion,
    K.BENCHMARK_SOURCE: Benchmark,
}
PREFIXES = {"lab": "urn:labsite:ns#", "item": "urn:labsite:item:"}


def whole_document() -> Iterator[bytes]:
    """PROV-JSON of every edge of the open workspace and of the two ends of each, in pieces; the same rows give the same bytes."""
    yield b'{"prefix":' + _spelled(PREFIXES)
    for part in ("entity", "activity", "agent"):
        kinds = [kind for kind in K if part_of(kind) == part]
        yield from _part(part, ((_name(node), _attributes(node)) for kind in kinds for node in _nodes(kind)))
    number = 0

    def numbered(relation: Relation) -> Iterator[tuple[str, dict[str, object]]]:
        nonlocal number
        for link in _links(relation):
            number += 1
            yield f"_:r{number}", _ends(link)

    for relation in Relation:
        yield from _part(relation.value, numbered(relation))
    yield b"}\n"


def _part(name: str, held: Iterator[tuple[str, dict[str, object]]]) -> Iterator[bytes]:
    """One member of the document; nothing where it holds nothing."""
    mark = b",\n" + _spelled(name) + b":{\n"
    for key, value in held:
        yield mark + _spelled(key) + b":" + _spelled(value)
        mark = b",\n"
    if mark == b",\n":
        yield b"}"


def _nodes(kind: NodeKind) -> Iterator[Node]:
    """Each thing of the kind that some edge names, once."""
    ends = []
    for edge in EDGES:
        said = said_by(edge)
        ends += [
            f"SELECT {end} AS id FROM {said.source} WHERE {said.condition}"  # noqa: S608 -- names of our own tables and columns alone
            for end, its_kind in ((said.later, edge.later_kind), (said.earlier, edge.earlier_kind))
            if its_kind == kind
        ]
    for (pk,) in _rows(" UNION ".join(ends) + " ORDER BY id", len(ends)):
        yield Node(kind, pk)


def _links(relation: Relation) -> Iterator[Link]:
    for edge in EDGES:
        if edge.relation == relation:
            said = said_by(edge)
            statement = f"SELECT DISTINCT {said.later}, {said.earlier} FROM {said.source} WHERE {said.condition} ORDER BY 1, 2"  # noqa: S608 -- as above
            for later, earlier in _rows(statement, 1):
                yield Link(relation, Node(edge.later_kind, later), Node(edge.earlier_kind, earlier), edge.role)


def _rows(statement: str, parameters: int) -> Iterator[tuple[uuid.UUID, ...]]:
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, [str(scope.current_id())] * parameters)
        while rows := cursor.fetchmany(AT_ONCE):
            yield from rows


def _name(node: Node) -> str:
    return f"item:{node.kind}_{node.id.hex}"


def _attributes(node: Node) -> dict[str, object]:
    table = "people" if node.kind == K.PERSON else name_of(MODELS[node.kind])
    return {"prov:type": types_of(node.kind), "lab:table": table, "lab:id": node.id.hex}


def _ends(link: Link) -> dict[str, object]:
    later, earlier = ENDS[link.relation]
    values: dict[str, object] = {later: _name(link.later), earlier: _name(link.earlier)}
    return values | {"prov:role": link.role} if link.role else values


def _spelled(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
