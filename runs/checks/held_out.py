"""Artifacts that runs of a chain read as they were, with no dataset version between: overlap compares versions alone, so what of a holdout came that
way is told here, by content and by who made it.

A run that trains read no holdout, or it was not admitted; a run that evaluates did, and may have written it down. What such a run left, and what
evaluations made of that, is not known to be free of it until it is frozen as a version and compared. A model (by its kind) is no list of records.
"""

import uuid
from collections.abc import Collection
from dataclasses import dataclass, field

from runs.admission import EVALUATE
from runs.models import Artifact, Run
from runs.overlap.forms import ending_of
from runs.overlap.kinds import is_paper
from runs.overlap.reading import KINDS
from runs.queries.held_out import TABLES, held_out_content
from runs.queries.launch_score import MODELS
from runs.queries.lineage import Lineage
from runs.queries.lineage_edges import NodeKind
from runs.queries.verdict import State, verdicts_of
from workspaces.models import DatasetFile, DatasetVersion


@dataclass(frozen=True, slots=True)
class Doubt:
    """An artifact that is part of a holdout, or may be; `state` is contaminated, suspicious, unchecked or unknown, `reason` a sentence."""

    id: str
    label: str
    state: str
    reason: str


@dataclass(slots=True)
class _Chain:
    """Who read and made what. `evaluating`: runs that evaluate."""

    evaluating: set[uuid.UUID]
    artifacts: dict[uuid.UUID, set[uuid.UUID]] = field(default_factory=dict)  # by the run that read them
    versions: dict[uuid.UUID, set[uuid.UUID]] = field(default_factory=dict)
    made: dict[uuid.UUID, set[uuid.UUID]] = field(default_factory=dict)  # artifacts by the run that left them


def doubts_of(reached: Lineage, *, itself: Collection[uuid.UUID] = ()) -> list[Doubt]:
    """Of all artifacts that runs of the chain read for something else than to evaluate, and of `itself`, by label; in a fixed number of queries."""
    chain = _chain(reached)
    read = {key for run, keys in chain.artifacts.items() if run not in chain.evaluating for key in keys} | {*itself}
    asked = read.union(*chain.artifacts.values())
    rows = {row.pk: row for row in Artifact.objects.filter(pk__in=asked).select_related("run").order_by("created_at", "pk")}
    copies = held_out_content({row.blob_id for row in rows.values()})
    exact = {key: copies[row.blob_id] for key, row in rows.items() if row.blob_id in copies}
    from_holdout = _from_holdout(chain, reached, {key: found.holdout for key, found in exact.items()})
    found = [_doubt(rows[key], State.CONTAMINATED, f"it {told.words}.") for key, told in exact.items() if key in read]
    open_ones = [rows[key] for key in rows if key in read and key in from_holdout and key not in exact and _holds_records(rows[key])]
    return sorted([*found, *_compared(open_ones, from_holdout)], key=lambda doubt: doubt.label)


def _chain(reached: Lineage) -> _Chain:
    runs = Run.objects.filter(pk__in=reached.of(NodeKind.RUN), kind=EVALUATE).values_list("pk", flat=True)
    chain = _Chain(set(runs))
    for link in reached.links:
        ends = (link.later.kind, link.earlier.kind)
        if ends == (NodeKind.RUN, NodeKind.ARTIFACT):
            chain.artifacts.setdefault(link.later.id, set()).add(link.earlier.id)
        elif ends == (NodeKind.RUN, NodeKind.DATASET_VERSION):
            chain.versions.setdefault(link.later.id, set()).add(link.earlier.id)
        elif ends == (NodeKind.ARTIFACT, NodeKind.RUN):
            chain.made.setdefault(link.earlier.id, set()).add(link.later.id)
    return chain


def _from_holdout(chain: _Chain, reached: Lineage, copies: dict[uuid.UUID, str]) -> dict[uuid.UUID, str]:
    """Artifacts that evaluations left which read a holdout, or what others had left of one: which holdout."""
    rows = DatasetVersion.objects.filter(pk__in=reached.of(NodeKind.DATASET_VERSION), role=DatasetVersion.Role.HOLDOUT)
    holdouts = {row.pk: f"{row.dataset.slug}@{row.number}" for row in rows.select_related("dataset")}
    told: dict[uuid.UUID, str] = {}
    while True:
        known = len(told)
        for run in chain.evaluating:
            read = [holdouts[key] for key in chain.versions.get(run, ()) if key in holdouts]
            read += [name for key in chain.artifacts.get(run, ()) if (name := copies.get(key) or told.get(key))]
            for key in chain.made.get(run, ()) if read else ():
                told.setdefault(key, min(read))
        if len(told) == known:
            return told


def _holds_records(artifact: Artifact) -> bool:
    form = KINDS.get(ending_of(artifact.path), "")
    return not is_paper(artifact.path) and (artifact.kind not in MODELS or form in TABLES)


def _compared(artifacts: list[Artifact], from_holdout: dict[uuid.UUID, str]) -> list[Doubt]:
    """Those that are in no dataset version, and those of which a version that has them is not clean."""
    files = DatasetFile.objects.filter(blob__in={row.blob_id for row in artifacts}).exclude(version__role=DatasetVersion.Role.HOLDOUT)
    frozen: dict[uuid.UUID, list[DatasetVersion]] = {}
    for file in files.select_related("version__dataset").order_by("version__created_at", "pk") if artifacts else ():
        frozen.setdefault(file.blob_id, []).append(file.version)
    verdicts = verdicts_of({version.pk: version for versions in frozen.values() for version in versions}.values())
    found = []
    for row in artifacts:
        versions = frozen.get(row.blob_id, [])
        bad = next((version for version in versions if not verdicts[version.pk].is_promotable), None)
        if bad is not None:
            verdict = verdicts[bad.pk]
            found.append(_doubt(row, verdict.state, f"it is a file of {bad.dataset.slug}@{bad.number}. {verdict.reason}"))
        elif not versions:
            made = f"it was made by a run that read the holdout {from_holdout[row.pk]}"
            found.append(_doubt(row, State.UNKNOWN, f"{made} and has not been compared with it; freeze it as a dataset version."))
    return found


def _doubt(artifact: Artifact, state: State, reason: str) -> Doubt:
    return Doubt(artifact.public_id, f"{artifact.name or artifact.path} of {artifact.run.name}"[:300], state.value, reason[:300])
