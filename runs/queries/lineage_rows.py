"""A walk as a table, a page of it at a time: each thing with what it is to one nearer by, in words and by its PROV relation."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runs.queries.lineage import Lineage, Link, Node, Way
from runs.queries.lineage_described import Described
from runs.queries.lineage_edges import DOUBTFUL, NodeKind
from runs.queries.lineage_graph import Group
from runs.queries.lineage_nodes import Descriptions, words_of
from runs.queries.lineage_words import words_of_link

ROWS = 50
RECORD, RECORD_WORDS = "record", "logs and records"


@dataclass(frozen=True, slots=True)
class Row:
    """`before` and `after` stand around the near thing's name: "read by" near. `more`: to so many others nearer by it is something too."""

    node: Node
    kind: str
    told: Described
    before: str
    near: Described
    after: str
    relation: str
    more: int
    steps: int
    is_doubtful: bool


@dataclass(frozen=True, slots=True)
class Rows:
    rows: tuple[Row, ...]
    count: int  # of all pages
    next_start: int | None


def rows_of(
    found: Lineage,
    way: Way,
    groups: Mapping[Node, Group],
    descriptions: Descriptions,
    *,
    group: str = "",
    kind: str = "",
    start: int = 0,
) -> Rows:
    """What was found but where the walk began, the nearest first; only of one group, or of one kind, where asked. Logs and records of runs are
    a kind of their own here, and shown only where they are asked for."""
    nodes = [
        node
        for node, distance in found.distance.items()
        if distance > 0
        and (not group or group in (groups[node].key, str(distance)))
        and (not kind or kind == kind_of(node, groups))
        and (group or kind or not groups[node].is_record)
    ]
    shown = nodes[start : start + ROWS]
    links = _nearer(found, way, shown)
    near = {_near(link, way) for found_links in links.values() for link in found_links[:1]}
    told = descriptions.of({*shown, *near})
    rows = tuple(_row(node, links[node], way, told, found.distance[node]) for node in shown)
    return Rows(rows, len(nodes), start + ROWS if len(nodes) > start + ROWS else None)


def kind_of(node: Node, groups: Mapping[Node, Group]) -> str:
    return RECORD if groups[node].is_record else node.kind.value


def kinds_in(found: Lineage, groups: Mapping[Node, Group]) -> list[tuple[str, int, str]]:
    """(kind, how many, what they are called) of what was found besides where the walk began."""
    counts = Counter(kind_of(node, groups) for node, distance in found.distance.items() if distance > 0)
    order = [*NodeKind, RECORD]
    return [
        (kind, counts[kind], RECORD_WORDS if kind == RECORD else words_of(NodeKind(kind), counts[kind])) for kind in order if counts[kind]
    ]


def _near(link: Link, way: Way) -> Node:
    return link.later if way == Way.UP else link.earlier


def _nearer(found: Lineage, way: Way, nodes: Sequence[Node]) -> dict[Node, list[Link]]:
    """The links by which each was reached on a shortest way."""
    wanted: dict[Node, list[Link]] = {node: [] for node in nodes}
    for link in found.links:
        far, near = (link.earlier, link.later) if way == Way.UP else (link.later, link.earlier)
        if far in wanted and found.distance[near] < found.distance[far]:
            wanted[far].append(link)
    return wanted


def _row(node: Node, links: list[Link], way: Way, told: Mapping[Node, Described], steps: int) -> Row:
    link = links[0]
    before, _, after = words_of_link(link, way).partition("{}")
    return Row(
        node=node,
        kind=words_of(node.kind),
        told=told[node],
        before=before.strip(),
        near=told[_near(link, way)],
        after=after.strip(),
        relation=link.relation.value,
        more=len({_near(other, way) for other in links}) - 1,
        steps=steps,
        is_doubtful=link.earlier.kind in DOUBTFUL,
    )
