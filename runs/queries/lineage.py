"""Where something came from, and what rests on it: the edges of `lineage_edges` walked inside the open scope, by one statement however far."""

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache

from django.db import connection

from runs.queries.lineage_edges import EDGES, Edge, NodeKind, Relation
from workspaces import scope
from workspaces.models import DatasetVersion

MOST_NODES = 5_000  # of one walk


class Way(Enum):
    UP = "causes"
    DOWN = "dependents"


@dataclass(frozen=True, slots=True, order=True)
class Node:
    kind: NodeKind
    id: uuid.UUID


@dataclass(frozen=True, slots=True)
class Link:
    relation: Relation
    later: Node
    earlier: Node
    role: str = ""  # of the earlier end in it


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a walk found. `distance`: steps from where it began, 0 for that itself; nodes in the order of distance, kind and id. `is_whole` is
    False where there is more than was asked for."""

    distance: dict[Node, int]
    links: tuple[Link, ...]
    is_whole: bool = True

    @property
    def nodes(self) -> list[Node]:
        return list(self.distance)

    def of(self, kind: NodeKind) -> list[uuid.UUID]:
        return [node.id for node in self.distance if node.kind == kind]


def walk(starts: Iterable[Node], way: Way, *, along: Collection[Relation] = tuple(Relation), most: int = MOST_NODES) -> Lineage:
    """Everything that is reached from `starts` by edges of these relations, and the links between what was reached; at most `most` nodes, the
    nearest. Ends in a circle too."""
    begun = sorted(set(starts))
    if not begun:
        return Lineage({}, ())
    rows = ", ".join("(%s::text, %s::uuid)" for _ in begun)
    begin = [value for node in begun for value in (node.kind.value, node.id)]
    edges = _edges(frozenset(along), way)
    here = [str(scope.current_id())] * edges.count("%s")
    far = "earlier" if way == Way.UP else "later"
    statement = f"""
        WITH RECURSIVE reached (kind, id) AS (
            VALUES {rows}
            UNION
            SELECT edge.{far}_kind, edge.{far} FROM reached near, LATERAL ({edges}) edge
        ),
        within AS MATERIALIZED (SELECT kind, id FROM reached LIMIT %s)
        SELECT NULL, kind, id, NULL, NULL, NULL FROM within
        UNION ALL
        SELECT edge.relation, edge.later_kind, edge.later, edge.earlier_kind, edge.earlier, edge.role FROM within near, LATERAL ({edges}) edge
        WHERE EXISTS (SELECT 1 FROM within other WHERE other.kind = edge.{far}_kind AND other.id = edge.{far})"""  # noqa: S608 -- names of our own tables and columns alone; values are parameters
    with connection.cursor() as cursor:
        cursor.execute(statement, [*begin, *here, most + 1, *here])
        found = cursor.fetchall()
    nodes = [Node(NodeKind(kind), pk) for relation, kind, pk, *_ in found if relation is None]
    links = {
        Link(Relation(relation), Node(NodeKind(kind), pk), Node(NodeKind(other), other_pk), role)
        for relation, kind, pk, other, other_pk, role in found
        if relation is not None
    }
    is_whole = len(nodes) <= most
    kept = set(nodes[:most])
    inside = [link for link in links if link.later in kept and link.earlier in kept]
    distance = _distances(begun, inside, way)
    ordered = sorted(distance, key=lambda node: (distance[node], node))
    inside.sort(key=lambda link: (link.later, link.earlier, link.relation, link.role))
    return Lineage({node: distance[node] for node in ordered}, tuple(inside), is_whole)


def _distances(begun: Iterable[Node], links: Iterable[Link], way: Way) -> dict[Node, int]:
    """Steps to each node, breadth first."""
    next_of: dict[Node, list[Node]] = {}
    for link in links:
        near, far = (link.later, link.earlier) if way == Way.UP else (link.earlier, link.later)
        next_of.setdefault(near, []).append(far)
    found = dict.fromkeys(begun, 0)
    fresh = list(found)
    while fresh:
        step = found[fresh[0]] + 1
        fresh = [node for near in fresh for node in next_of.get(near, ()) if node not in found and found.setdefault(node, step) == step]
    return found


@cache
def _edges(along: frozenset[Relation], way: Way) -> str:
    """The union of the edges of these relations at the node `near`; its parameters are the open workspace, once an edge. Each looks its rows up by
    `near` itself: joined to their union, PostgreSQL would read all of them at each step."""
    return " UNION ALL ".join(_select(edge, way) for edge in EDGES if edge.relation in along)


def _select(edge: Edge, way: Way) -> str:
    said = said_by(edge)
    near_kind, near = (edge.later_kind, said.later) if way == Way.UP else (edge.earlier_kind, said.earlier)
    return (
        f"SELECT '{edge.relation}'::text AS relation, '{edge.later_kind}'::text AS later_kind, {said.later} AS later, "  # noqa: S608 -- as above
        f"'{edge.earlier_kind}'::text AS earlier_kind, {said.earlier} AS earlier, '{edge.role}'::text AS role FROM {said.source} "
        f"WHERE near.kind = '{near_kind}' AND {near} = near.id AND {said.condition}"
    )


@dataclass(frozen=True, slots=True)
class Said:
    """An edge in SQL: `condition` has one parameter, the open workspace."""

    source: str
    later: str
    earlier: str
    condition: str


def said_by(edge: Edge) -> Said:
    """Where the rows of an edge stand, and which of them say something."""
    quote = connection.ops.quote_name
    table, later = quote(edge.model._meta.db_table), f"fact.{quote(edge.later)}"
    source = f"{table} fact"
    if edge.of_windows:
        versions = quote(DatasetVersion._meta.db_table)
        source += f" JOIN {versions} version ON version.workspace_id = fact.workspace_id AND version.dataset_id = {later}"
        later = "version.id"
    named, _, column = edge.earlier.rpartition("__")
    earlier = f"{'named' if named else 'fact'}.{quote(column)}"
    if named:
        key = edge.model._meta.get_field(named)
        other = quote(key.related_model._meta.db_table)  # type: ignore[union-attr]  # a key names a model
        source += f" JOIN {other} named ON named.workspace_id = fact.workspace_id AND named.id = fact.{quote(f'{named}_id')}"
    return Said(source, later, earlier, f"fact.workspace_id = %s AND {later} IS NOT NULL AND {earlier} IS NOT NULL{_only(edge)}")


def _only(edge: Edge) -> str:
    if edge.only is None:
        return ""
    name, said = edge.only
    column = f"fact.{connection.ops.quote_name(name)}"
    if said is not None:
        return f" AND {column} = '{said}'"
    nullable = {field.name for field in edge.model._meta.concrete_fields if field.null}
    return f" AND {column} IS NOT NULL" if name in nullable else f" AND {column} <> ''"
