"""The trace of a promotion: from what people may rest on down to its sources, one step below the other, and what is missing on the way.

The chain is the lineage along content, from the artifact that was put forward; a holdout on it is named and not followed, since nothing was learnt
from it. What labsite should know of a step and does not is said in its place: a gap that nobody sees would read as a whole chain.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from runs.models import Promotion
from runs.queries.lineage import Lineage, Node, Way, walk
from runs.queries.lineage_edges import CONTENT, NodeKind
from runs.queries.lineage_nodes import Descriptions, may_see
from runs.queries.trace_above import above
from runs.queries.trace_gaps import lost_inputs
from runs.queries.trace_item import Item, Step
from runs.queries.trace_runs import RunRead, runs_read
from runs.queries.verdict import State, Verdict, verdicts_of
from workspaces.access import Rights
from workspaces.models import DatasetVersion
from workspaces.queries.withdrawal import standing_on
from workspaces.units import plural

K = NodeKind
MOST_ITEMS = 6  # of a step; the rest is counted
MOST_STEPS = 40
STATES = {State.CLEAN: "yes", State.CONTAMINATED: "no", State.SUSPICIOUS: "person"}  # any other is not known; "no" suspends a promotion
READ = {"Trained": "Learnt from", "Filtered": "Chosen from", "Made with a model": "The model"}  # what such a run read, in a word
TOO_MUCH = "It rests on more than can be looked at; the rest is not shown."


@dataclass(frozen=True, slots=True)
class Trace:
    """`gaps`: what is missing or broken, each with the step in which it stands, from the top."""

    steps: tuple[Step, ...]
    sources: int

    @property
    def is_whole(self) -> bool:
        return not self.gaps

    @property
    def gaps(self) -> list[tuple[int, Item]]:
        return [(number, item) for number, step in enumerate(self.steps, start=1) for item in step.items if item.is_gap]


@dataclass(frozen=True, slots=True)
class _Withdrawn:
    """`is_subject`: it was withdrawn itself, and does not only rest on what was."""

    words: str
    is_subject: bool


@dataclass(slots=True)
class _Below:
    """What the steps below the artifact are made of."""

    found: Lineage
    told: Descriptions
    rights: Rights
    runs: dict[Any, RunRead] = field(default_factory=dict)
    versions: dict[Any, DatasetVersion] = field(default_factory=dict)
    verdicts: dict[Any, Verdict] = field(default_factory=dict)
    lost: dict[Any, list[str]] = field(default_factory=dict)
    withdrawn: dict[Node, "_Withdrawn"] = field(default_factory=dict)
    makers: dict[Node, list[Node]] = field(default_factory=dict)


def trace_of(promotion: Promotion, rights: Rights, workspace: str) -> Trace:
    """The whole trace, in a fixed number of statements. `promotion` comes with its artifact; of a kind that the reader may not see only that it is
    one stands in it. `workspace` is the slug for addresses."""
    found = walk([Node(K.ARTIFACT, promotion.artifact_id)], Way.UP, along=CONTENT)
    below = _read(found, rights, workspace)
    steps = [*above(promotion, rights, workspace), *_steps(below)]
    sources = [item for item in steps[-1].items if item.kind == K.DATASET_VERSION] if steps and steps[-1].key == "sources" else []
    shown = [_cut(step) for step in steps[:MOST_STEPS]]
    if not found.is_whole or len(steps) > MOST_STEPS:
        shown.append(Step("more", "Further down", (Item(TOO_MUCH, verdict="unknown", is_gap=True),)))
    trace = Trace(tuple(shown), len(sources))
    if trace.gaps or steps[0].items[0].verdict != "no" or promotion.status != Promotion.Status.PROMOTED:
        return trace
    suspended = Step(steps[0].key, steps[0].title, (replace(steps[0].items[0], is_gap=True),))
    return Trace((suspended, *shown[1:]), len(sources))


def _read(found: Lineage, rights: Rights, workspace: str) -> _Below:
    keys = found.of(K.RUN)
    shown = [node for node in found.nodes if node.kind in (K.RUN, K.DATASET_VERSION, K.ARTIFACT, K.UNDECLARED)]
    read = _Below(found, Descriptions(rights, workspace, ahead=shown), rights)
    read.runs = {run.run.pk: run for run in runs_read(keys, workspace)}
    read.lost, read.makers = lost_inputs(keys), _made_by(found)
    rows = DatasetVersion.objects.filter(pk__in=found.of(K.DATASET_VERSION)).select_related("dataset")
    read.versions = {row.pk: row for row in rows}
    read.verdicts = verdicts_of(read.versions.values())
    for (kind, pk), marks in standing_on((node.kind, node.id) for node in found.nodes).items():
        own = [mark for mark in marks if mark.subject_id == pk]
        said = f"Withdrawn: {_ended('; '.join(mark.reason for mark in own))}" if own else "It rests on what is withdrawn."
        read.withdrawn[Node(NodeKind(kind), pk)] = _Withdrawn(said, is_subject=bool(own))
    return read


def _steps(below: _Below) -> list[Step]:
    """Runs and what they read in turn, nearest first; what no run made stands in the last step, as a source."""
    sources: dict[Node, None] = {}
    inputs = _inputs(below.found)
    steps: list[Step] = []
    level, seen = _makers(below, [node for node, distance in below.found.distance.items() if distance == 0]), set[Node]()
    while level:
        seen |= set(level)
        title = _title(below, level)
        steps.append(Step(f"runs-{len(steps)}", title, tuple(_run(below, node, inputs.get(node, [])) for node in level)))
        read = list(dict.fromkeys(other for node in level for other in inputs.get(node, [])))
        further: list[Node] = []
        for node in read:
            if _is_held_out(below, node):
                continue
            if node.kind == K.DATASET_VERSION and not _makers(below, [node]):
                sources[node] = None
            elif node.kind in (K.DATASET_VERSION, K.ARTIFACT):
                further.append(node)
        fresh = [node for node in further if node not in seen]
        seen |= set(fresh)
        if fresh:
            steps.append(Step(f"made-{len(steps)}", READ.get(title, "Read"), tuple(_made(below, node) for node in fresh)))
        level = [node for node in _makers(below, fresh) if node not in seen]
    if sources:
        steps.append(Step("sources", "Sources", tuple(_source(below, node) for node in sources)))
    return steps


def _inputs(found: Lineage) -> dict[Node, list[Node]]:
    """Of each run what it read."""
    read: dict[Node, list[Node]] = {}
    for link in found.links:
        if link.later.kind == K.RUN and link.earlier.kind in (K.DATASET_VERSION, K.ARTIFACT, K.UNDECLARED):
            read.setdefault(link.later, []).append(link.earlier)
    return read


def _makers(below: _Below, nodes: list[Node]) -> list[Node]:
    """The runs that made these, or the artifacts that they were made of."""
    return list(dict.fromkeys(run for node in nodes for run in below.makers.get(node, ())))


def _made_by(found: Lineage) -> dict[Node, list[Node]]:
    of: dict[Node, list[Node]] = {}
    for link in found.links:
        if link.later.kind in (K.DATASET_VERSION, K.ARTIFACT) and link.earlier.kind in (K.RUN, K.ARTIFACT):
            of.setdefault(link.later, []).append(link.earlier)
    return {node: [run for near in earlier for run in ([near] if near.kind == K.RUN else of.get(near, []))] for node, earlier in of.items()}


def _is_held_out(below: _Below, node: Node) -> bool:
    return node.kind == K.DATASET_VERSION and node.id in below.versions and below.versions[node.id].is_holdout


# --- What each step says ------------------------------------------------------------------------------------------------------------------


def _title(below: _Below, level: list[Node]) -> str:
    made_data = {link.earlier for link in below.found.links if link.later.kind == K.DATASET_VERSION}
    titles = {below.runs[node.id].title(makes_data=node in made_data) for node in level if node.id in below.runs}
    return titles.pop() if len(titles) == 1 else "Made by"


def _run(below: _Below, node: Node, read: list[Node]) -> Item:
    described = below.told.of([node])[node]
    found = below.runs.get(node.id)
    if found is None or not may_see(below.rights, K.RUN):
        if described.is_hidden:
            return Item(described.label, kind=K.RUN, verdict="unknown", words="You may not see runs here.")
        return Item(
            "A run that is not here", kind=K.RUN, words="What was made by it is, but nothing says any more how.", verdict="no", is_gap=True
        )
    beside = [other for other in read if _is_held_out(below, other) or (other.kind == K.DATASET_VERSION and not _makers(below, [other]))]
    names = below.told.of([*beside, *[other for other in read if other.kind == K.UNDECLARED]])
    unsaid = [names[other].label for other in read if other.kind == K.UNDECLARED]
    lost, gone = below.lost.get(node.id, []), below.withdrawn.get(node)
    trouble = [
        *([f"It read what it had not declared: {', '.join(unsaid)}."] if unsaid else []),
        *([f"The link to what it read is gone: {', '.join(lost)}."] if lost else []),
        *([gone.words] if gone is not None else []),
    ]
    kept_apart = [names[other].label for other in beside if _is_held_out(below, other)]
    words = [*trouble, *([found.said] if found.said else []), *([described.doubt.capitalize()] if described.doubt else [])]
    words += [f"Held out: {', '.join(kept_apart)}."] if kept_apart else []
    return Item(
        described.label,
        kind=K.RUN,
        id=described.public_id,
        url=described.url,
        who=found.who,
        who_url=found.who_url,
        when=described.when,
        verdict="no" if trouble or not found.is_good else "unknown" if described.doubt else "yes",
        words=" ".join(words),
        is_gap=bool(unsaid or lost) or not found.is_good or (gone is not None and gone.is_subject),
    )


def _made(below: _Below, node: Node) -> Item:
    described = below.told.of([node])[node]
    gone = below.withdrawn.get(node)
    if described.is_hidden:
        return Item(described.label, kind=node.kind, verdict="unknown", words="You may not see it.")
    words, verdict = ([gone.words], "no") if gone is not None else ([], "")
    is_gap = gone is not None and gone.is_subject
    if node.id in below.versions:
        said, verdict_of_data = _data(below, below.versions[node.id])
        words, verdict, is_gap = [*words, said], verdict or verdict_of_data, is_gap or verdict_of_data == "no"
    elif not described.url:
        return Item("Something that is not here", kind=node.kind, words="A run names it as read.", verdict="no", is_gap=True)
    return Item(
        described.label, kind=node.kind, id=described.public_id, url=described.url, who=described.by, when=described.when,
        verdict=verdict or "yes", words=" ".join(words), is_gap=is_gap,
    )  # fmt: skip


def _source(below: _Below, node: Node) -> Item:
    item = _made(below, node)
    row = below.versions.get(node.id)
    if row is None or not item.id:
        return item
    source = row.source or (row.dataset.evidence if row.dataset.origin == row.dataset.Origin.REUSABLE else "")
    if source:
        said = f"From {source}; licence {row.licence or row.dataset.licence or 'not given'}. {item.words}"
        return replace(item, words=said)
    words = f"Nobody has said where it is from, and no run made it. {item.words}"
    return replace(item, words=words, verdict="no" if item.verdict == "no" else "unknown", is_gap=True)


def _data(below: _Below, row: DatasetVersion) -> tuple[str, str]:
    """What there is to say of a version, and its verdict."""
    found = below.verdicts[row.pk]
    count = plural(row.records, "record", "records") if row.records is not None else "records not counted"
    verdict = "no" if found.is_contaminated else STATES.get(found.state, "unknown")
    last = f" It was contaminated: {found.contaminated}" if found.was_contaminated else ""
    return (f"{count}, {found.state}." if verdict == "yes" else f"{count}, {found.state}: {found.reason}{last}"), verdict


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def _cut(step: Step) -> Step:
    """At most so many items, those with a gap first among what is kept."""
    if len(step.items) <= MOST_ITEMS:
        return step
    kept = sorted(step.items, key=lambda item: not item.is_gap)[:MOST_ITEMS]
    return Step(step.key, step.title, tuple(item for item in step.items if item in kept), len(step.items) - MOST_ITEMS)


def find_traced(promotion: str) -> Promotion:
    """A promotion with all that its trace reads of it. NotFound where there is none."""
    related = ("artifact__blob", "artifact__run", "evaluation__contract__benchmark", "requested_by", "decided_by")
    return Promotion.objects.find(promotion, *related)
