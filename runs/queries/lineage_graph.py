"""A walk as a graph that a person can read: what stands alike is folded into one box, and what is too far is said with a number."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.http import urlencode

from runs.graph import Drawing, Placed, Tie, draw
from runs.models import Artifact, Evaluation, Run
from runs.queries.artifact import RECORDS
from runs.queries.lineage import Lineage, Node, Way
from runs.queries.lineage_described import Described
from runs.queries.lineage_edges import DOUBTFUL, NodeKind
from runs.queries.lineage_nodes import NOT_DECLARED, Descriptions, may_see, words_of
from runs.queries.lineage_words import words_of_link
from workspaces.access import Rights
from workspaces.models import DatasetVersion
from workspaces.units import plural

MOST_BOXES = 60
MOST_COLUMNS = 8
MOST_ROWS = 12  # boxes in a column
ALIKE = 4  # so many that stand alike are one box
RECORDS_END = "-records"  # of the key of a group of these
ASKED = {Way.UP: "up", Way.DOWN: "down"}  # how an address says which way


@dataclass(frozen=True, slots=True)
class Box:
    """`url`: the thing's page, or the table of what is folded in it. `goes_on`: where more lies behind it than is drawn."""

    kind: NodeKind | None
    title: str
    label: str
    url: str
    doubt: str
    is_start: bool
    is_fold: bool
    goes_on: str
    place: Placed


@dataclass(frozen=True, slots=True)
class Graph:
    boxes: tuple[Box, ...]
    drawing: Drawing
    drawn: int  # things that stand in a box: neither where the walk began nor logs and records, which the page does not count either
    steps: int  # how far the drawing goes


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that stand alike: of one kind, at one distance, of one agent or one dataset."""

    key: str
    words: tuple[str, str]  # what one is called, and many
    is_record: bool = False  # log and lines, which every run leaves of itself


def groups_of(found: Lineage, rights: Rights) -> dict[Node, Group]:
    """To which group each node belongs. Of kinds that the reader may not see only the kind counts."""
    named = _names({kind: found.of(kind) for kind in NodeKind if may_see(rights, kind)})
    groups: dict[Node, Group] = {}
    for node, distance in found.distance.items():
        name, words = named.get(node, ("", (words_of(node.kind), words_of(node.kind, 2))))
        groups[node] = Group(f"{distance}-{node.kind}-{name}".rstrip("-"), words, name.endswith(RECORDS_END))
    return groups


def graph_of(found: Lineage, way: Way, groups: Mapping[Node, Group], told: Descriptions) -> Graph:
    """At most `MOST_BOXES` boxes in at most `MOST_COLUMNS` columns, the nearest."""
    sizes: dict[str, int] = {}
    for group in groups.values():
        sizes[group.key] = sizes.get(group.key, 0) + 1
    columns: list[list[str]] = []
    box_of: dict[Node, str] = {}
    inside: dict[str, list[Node]] = {}
    for column in _columns(found):
        keys: dict[str, list[Node]] = {}
        for node in column:
            folds = sizes[groups[node].key] >= (2 if groups[node].is_record else ALIKE) and found.distance[node] > 0
            keys.setdefault(groups[node].key if folds else _key(node), []).append(node)
        names = list(keys)
        if len(names) > MOST_ROWS:
            rest = f"{found.distance[column[0]]}"
            keys[rest] = [node for name in names[MOST_ROWS - 1 :] for node in keys.pop(name)]
        if columns and (len(columns) == MOST_COLUMNS or sum(map(len, columns)) + len(keys) > MOST_BOXES):
            break
        columns.append(list(keys))
        inside |= keys
        box_of |= {node: key for key, nodes in keys.items() for node in nodes}
    singles = [nodes[0] for nodes in inside.values() if len(nodes) == 1]
    described = told.of(singles)
    drawing = draw(columns, _ties(found, way, box_of))
    beyond = _going_on(found, way, box_of)
    boxes = tuple(
        _box(
            key,
            nodes,
            drawing.places[key],
            way,
            groups,
            described[nodes[0]] if len(nodes) == 1 else None,
            is_start=found.distance[nodes[0]] == 0,
            goes_on=key in beyond,
        )
        for key, nodes in inside.items()
    )
    drawn = sum(found.distance[node] > 0 and not groups[node].is_record for node in box_of)
    return Graph(boxes, drawing, drawn, len(columns) - 1)


def _columns(found: Lineage) -> Iterable[list[Node]]:
    by_distance: dict[int, list[Node]] = {}
    for node, distance in found.distance.items():
        by_distance.setdefault(distance, []).append(node)
    return by_distance.values()


def _key(node: Node) -> str:
    return f"{node.kind}-{node.id.hex}"


def _box(
    key: str,
    nodes: list[Node],
    place: Placed,
    way: Way,
    groups: Mapping[Node, Group],
    told: Described | None,
    *,
    is_start: bool,
    goes_on: bool,
) -> Box:
    kind, asked = nodes[0].kind, ASKED[way]
    if told is not None:
        further = f"{told.lineage_url}?way={asked}" if goes_on and not is_start and told.lineage_url else ""
        url = "" if is_start else told.url
        return Box(kind, words_of(kind), told.label, url, told.doubt, is_start, is_fold=False, goes_on=further, place=place)
    is_one_kind = groups[nodes[0]].key == key
    title = words_of(kind, 2) if is_one_kind else "further"
    label = plural(len(nodes), *groups[nodes[0]].words) if is_one_kind else f"{len(nodes):,} more at this distance"
    url = f"?{urlencode({'way': asked, 'group': key})}#table"
    return Box(kind if is_one_kind else None, title, label, url, "", is_start, is_fold=True, goes_on="", place=place)


def _ties(found: Lineage, way: Way, box_of: Mapping[Node, str]) -> list[Tie]:
    ties: dict[tuple[str, str, str], Tie] = {}
    for link in found.links:
        later, earlier = box_of.get(link.later), box_of.get(link.earlier)
        if later is None or earlier is None or later == earlier:
            continue
        words = words_of_link(link, way).replace("{}", "").strip()
        doubtful = link.earlier.kind in DOUBTFUL
        ties[later, earlier, link.relation] = Tie(later, earlier, f"{words}, {NOT_DECLARED}" if doubtful else words, doubtful)
    return list(ties.values())


def _going_on(found: Lineage, way: Way, box_of: Mapping[Node, str]) -> set[str]:
    """Boxes from which the walk goes on to what is not drawn."""
    ends = [(link.later, link.earlier) if way == Way.UP else (link.earlier, link.later) for link in found.links]
    return {box_of[near] for near, far in ends if near in box_of and far not in box_of}


def _names(keys: Mapping[NodeKind, list[uuid.UUID]]) -> dict[Node, tuple[str, tuple[str, str]]]:
    """What nodes of a group have in common, as part of a key, and in words."""
    named: dict[Node, tuple[str, tuple[str, str]]] = {}
    made = NodeKind.RUN in keys
    for pk, agent, name in Run.objects.filter(pk__in=keys.get(NodeKind.RUN, ())).values_list("pk", "agent_id", "agent__name"):
        named[Node(NodeKind.RUN, pk)] = (agent.hex, (f"run of {name}", f"runs of {name}"))
    rows = Artifact.objects.filter(pk__in=keys.get(NodeKind.ARTIFACT, ()) if made else ())
    for pk, kind, agent, name in rows.values_list("pk", "kind", "run__agent_id", "run__agent__name"):
        what = ("log or record", "logs and records") if kind in RECORDS else ("artifact", "artifacts")
        group = f"{agent.hex}{RECORDS_END}" if kind in RECORDS else agent.hex
        named[Node(NodeKind.ARTIFACT, pk)] = (group, (f"{what[0]} of {name}", f"{what[1]} of {name}"))
    scores = Evaluation.objects.filter(pk__in=keys.get(NodeKind.EVALUATION, ()))
    for pk, benchmark, name in scores.values_list("pk", "benchmark_id", "benchmark__name"):
        named[Node(NodeKind.EVALUATION, pk)] = (benchmark.hex, (f"score on {name}", f"scores on {name}"))
    versions = DatasetVersion.objects.filter(pk__in=keys.get(NodeKind.DATASET_VERSION, ()))
    shown = ("pk", "dataset_id", "dataset__name", "dataset__window_of_id", "dataset__window_of__name")
    for pk, dataset, name, whole, whole_name in versions.values_list(*shown):
        words = (f"window of {whole_name}", f"windows of {whole_name}") if whole else (f"version of {name}", f"versions of {name}")
        named[Node(NodeKind.DATASET_VERSION, pk)] = ((whole or dataset).hex, words)
    return named
