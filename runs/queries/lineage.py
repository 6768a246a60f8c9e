"""Where something came from, and what rests on it: the edges of `lineage_edges` walked inside the open scope, by one statement however far."""

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

from django.db import connection

from runs.queries.lineage_edges import CONTENT, EDGES, Edge, NodeKind, Relation
from workspaces import scope
from workspaces.models import DatasetVersion

MOST_NODES = 5_000  # of one walk
MOST_WALKED = 1_000_000  # of a walk that decides and shows nothing


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
    found = _asked(starts, way, along, most)
    nodes = {end: Node(NodeKind(end[0]), uuid.UUID(hex=end[1])) for end in found.distance}
    inside = [Link(Relation(relation), nodes[later], nodes[earlier], role) for relation, role, later, earlier in found.links]
    inside.sort(key=lambda link: (link.later, link.earlier, link.relation, link.role))
    return Lineage({nodes[end]: steps for end, steps in found.distance.items()}, tuple(inside), found.is_whole)


def reach(starts: Iterable[Node], way: Way, *, along: Collection[Relation] = tuple(Relation), most: int = MOST_NODES) -> Lineage:
    """As `walk`, without the links: a tenth of its time where there are thousands of them."""
    found = _asked(starts, way, along, most)
    return Lineage({Node(NodeKind(kind), uuid.UUID(hex=pk)): steps for (kind, pk), steps in found.distance.items()}, (), found.is_whole)


End = tuple[str, str]  # kind and key in hex: thousands of them are read faster so than as nodes
_HEX = "string_agg(translate({}::text, '-', ''), '')"


def reached_ends(starts: Iterable[Node], way: Way, *, along: Collection[Relation] = tuple(Relation), most: int = MOST_NODES) -> list[End]:
    """What `walk` finds, with neither distance nor links; up to `most` and one, which tells that there are more."""
    begun = sorted(set(starts))
    if not begun:
        return []
    closure, values = _closure(begun, way, along, most)
    with connection.cursor() as cursor:
        cursor.execute(f"{closure} SELECT kind, {_HEX.format('id')} FROM within GROUP BY kind", values)  # noqa: S608 -- as below
        return [(kind, key) for kind, keys in cursor.fetchall() for key in _cut(keys)]


@dataclass(frozen=True, slots=True)
class _Asked:
    distance: dict[End, int]  # in the order of distance, kind and key
    links: set[tuple[str, str, End, End]]  # relation, role, later, earlier
    is_whole: bool


def _asked(starts: Iterable[Node], way: Way, along: Collection[Relation], most: int) -> _Asked:
    begun = sorted(set(starts))
    if not begun:
        return _Asked({}, set(), True)
    edges = _edges(frozenset(along), way)
    here = [str(scope.current_id())] * edges.count("%s")
    closure, values = _closure(begun, way, along, most)
    # Keys come as one text a group: a row of its own for each costs more to read than to find.
    statement = f"""{closure}
        SELECT NULL, NULL, kind, {_HEX.format("id")}, max(nth)::text, NULL FROM (SELECT * FROM within ORDER BY nth) one GROUP BY kind
        UNION ALL
        SELECT edge.relation, edge.role, edge.later_kind, {_HEX.format("edge.later")}, edge.earlier_kind, {_HEX.format("edge.earlier")}
        FROM within near, LATERAL ({edges}) edge GROUP BY edge.relation, edge.role, edge.later_kind, edge.earlier_kind"""  # noqa: S608 -- names of our own tables and columns alone; values are parameters
    with connection.cursor() as cursor:
        cursor.execute(statement, [*values, *here])
        found = cursor.fetchall()
    kept: set[End] = set()
    is_whole = True
    for relation, _, kind, keys, last, _ in found:
        if relation is None:
            ends = [(kind, key) for key in _cut(keys)]
            if int(last) > most:  # the one beyond stands last
                ends.pop()
                is_whole = False
            kept.update(ends)
    links = {
        (relation, role, later, earlier)
        for relation, role, kind, keys, other, others in found
        if relation is not None
        for later, earlier in zip(((kind, key) for key in _cut(keys)), ((other, key) for key in _cut(others)), strict=True)
        if later in kept and earlier in kept
    }
    distance = _distances([(node.kind.value, node.id.hex) for node in begun], links, way)
    return _Asked({end: distance[end] for end in sorted(distance, key=lambda end: (distance[end], end))}, links, is_whole)


def _cut(keys: str) -> Iterable[str]:
    return (keys[place : place + 32] for place in range(0, len(keys), 32))


def _closure(begun: Collection[Node], way: Way, along: Collection[Relation], most: int) -> tuple[str, list[Any]]:
    """The beginning of a statement that reads `within` (kind, id, nth from 1): what is reached, up to `most` and one; and its parameters."""
    rows = ", ".join("(%s::text, %s::uuid)" for _ in begun)
    edges = _edges(frozenset(along), way)
    far = "earlier" if way == Way.UP else "later"
    statement = f"""
        WITH RECURSIVE reached (kind, id) AS (
            VALUES {rows}
            UNION
            SELECT edge.{far}_kind, edge.{far} FROM reached near, LATERAL ({edges}) edge
        ),
        within AS MATERIALIZED (SELECT kind, id, row_number() OVER () AS nth FROM reached LIMIT %s)"""  # noqa: S608 -- as above
    here = [str(scope.current_id())] * edges.count("%s")
    return statement, [*(value for node in begun for value in (node.kind.value, node.id)), *here, most + 1]


def _distances(begun: Iterable[End], links: Iterable[tuple[str, str, End, End]], way: Way) -> dict[End, int]:
    """Steps to each node, breadth first."""
    next_of: dict[End, list[End]] = {}
    for _, _, later, earlier in links:
        near, far = (later, earlier) if way == Way.UP else (earlier, later)
        next_of.setdefault(near, []).append(far)
    found = dict.fromkeys(begun, 0)
    fresh = list(found)
    while fresh:
        step = found[fresh[0]] + 1
        fresh = [end for near in fresh for end in next_of.get(near, ()) if end not in found and found.setdefault(end, step) == step]
    return found


@cache
def _edges(along: frozenset[Relation], way: Way) -> str:
    """The union of the edges of these relations at the node `near`; its parameters are the open workspace, once an edge. Each looks its rows up by
    `near` itself: joined to their union, PostgreSQL would read all of them at each step."""
    content_alone = along <= CONTENT
    by_kind: dict[NodeKind, list[str]] = {}
    for edge in EDGES:
        if edge.relation in along and not (edge.is_told and content_alone) and not (edge.is_only_down and way == Way.UP):
            by_kind.setdefault(edge.later_kind if way == Way.UP else edge.earlier_kind, []).append(_select(edge, way))
    # OFFSET keeps the edges of a kind together: of a node of another kind PostgreSQL goes by all of them at once.
    return " UNION ALL ".join(
        f"(SELECT * FROM ({' UNION ALL '.join(edges)}) of_kind WHERE near.kind = '{kind}' OFFSET 0)"  # noqa: S608 -- as above
        for kind, edges in by_kind.items()
    )


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
