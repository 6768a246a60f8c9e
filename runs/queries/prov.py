"""A walk as PROV-JSON (W3C member submission of 24 April 2013): what things are, who and what had a part in them, and the relations between.

Things are entities; runs, sweeps, imports and decisions are activities, people are agents; the version of code that a run executed is an entity
too, and the plan of the run's association. A thing of a kind that the reader may not see stands without its name, under an identifier that is this
document's alone.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from runs.queries.lineage import Lineage, Link, Node
from runs.queries.lineage_described import Described
from runs.queries.lineage_edges import DOUBTFUL, NodeKind, Relation
from runs.queries.lineage_nodes import describe
from workspaces.access import Rights
from workspaces.models import Workspace

ACTIVITIES = frozenset({NodeKind.RUN, NodeKind.APPROVAL, NodeKind.PROMOTION, NodeKind.SWEEP, NodeKind.DECISION, NodeKind.IMPORT})
PLANS = frozenset({NodeKind.AGENT_VERSION, NodeKind.POLICY_VERSION})
AGENTS = frozenset({NodeKind.PERSON})
# The two ends of each relation, that which came later first (PROV-JSON, section 3).
ENDS: dict[Relation, tuple[str, str]] = {
    Relation.USED: ("prov:activity", "prov:entity"),
    Relation.GENERATED_BY: ("prov:entity", "prov:activity"),
    Relation.DERIVED_FROM: ("prov:generatedEntity", "prov:usedEntity"),
    Relation.ATTRIBUTED_TO: ("prov:entity", "prov:agent"),
    Relation.ASSOCIATED_WITH: ("prov:activity", "prov:agent"),
    Relation.INFORMED_BY: ("prov:informed", "prov:informant"),
    Relation.INFLUENCED_BY: ("prov:influencee", "prov:influencer"),
}
Document = dict[str, dict[str, Any]]


def prov_document(found: Lineage, rights: Rights, workspace: Workspace) -> Document:
    """The whole walk. What it began with says `lab:complete`: false where there is more than one answer holds."""
    told = describe(found.nodes, rights, workspace.slug)
    names = _names(found, told)
    site = settings.LABSITE_URL.rstrip("/")
    document: Document = {
        "prefix": {"lab": f"{site}/ns#", "item": f"{site}/workspaces/{workspace.pk}/items/"},
        "entity": {},
        "activity": {},
        "agent": {},
    }
    for node in found.nodes:
        document[part_of(node.kind)][names[node]] = _attributes(node, told[node]) | (
            {"lab:complete": found.is_whole} if not found.distance[node] else {}
        )  # fmt: skip
    plans = {link.later: link.earlier for link in found.links if link.earlier.kind == NodeKind.AGENT_VERSION}
    for number, link in enumerate(found.links, 1):
        document.setdefault(link.relation.value, {})[f"_:r{number}"] = _relation(link, names, plans)
    return {part: held for part, held in document.items() if held}


def _names(found: Lineage, told: Mapping[Node, Described]) -> dict[Node, str]:
    return {node: f"item:{told[node].public_id or f'hidden_{number}'}" for number, node in enumerate(found.nodes, 1)}


def _attributes(node: Node, told: Described) -> dict[str, Any]:
    values: dict[str, Any] = {"prov:label": told.label, "prov:type": types_of(node.kind)}
    for key, value in told.attributes.items():
        if value is None:
            continue
        if node.kind in ACTIVITIES and key in ("startTime", "endTime"):
            values[f"prov:{key}"] = _moment(value)
        else:
            values[f"lab:{key}"] = value
    if told.when is not None:
        values["lab:recordedAt"] = {"$": _moment(told.when), "type": "xsd:dateTime"}
    if told.doubt:
        values["lab:doubt"] = told.doubt
    return values


def part_of(kind: NodeKind) -> str:
    """Under which member of a document things of the kind stand."""
    return "activity" if kind in ACTIVITIES else "agent" if kind in AGENTS else "entity"


def types_of(kind: NodeKind) -> Any:
    """What `prov:type` says of things of the kind: one name, or several."""
    types = [_name(f"lab:{''.join(part.capitalize() for part in kind.value.split('_'))}")]
    if kind in PLANS:
        types.append(_name("prov:Plan"))
    if kind == NodeKind.PERSON:
        types.append(_name("prov:Person"))
    return types[0] if len(types) == 1 else types


def _relation(link: Link, names: Mapping[Node, str], plans: Mapping[Node, Node]) -> dict[str, Any]:
    later, earlier = ENDS[link.relation]
    values: dict[str, Any] = {later: names[link.later], earlier: names[link.earlier]}
    if link.relation == Relation.ASSOCIATED_WITH and link.later in plans:
        values["prov:plan"] = names[plans[link.later]]
    if link.relation == Relation.USED and link.earlier.kind == NodeKind.AGENT_VERSION:
        values["prov:role"] = "code"
    if link.role:
        values["prov:role"] = link.role
    if link.earlier.kind in DOUBTFUL:
        values["lab:declared"] = False
    return values


def _name(qualified: str) -> dict[str, str]:
    return {"$": qualified, "type": "prov:QUALIFIED_NAME"}


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds")
