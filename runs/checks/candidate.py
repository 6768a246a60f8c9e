"""What the checks look at: an artifact that is put forward under a name, with the score it is judged by and what stands under that name now."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.db.models import F, Q, QuerySet

from runs.models import Artifact, Evaluation, Promotion, Run
from runs.queries.lineage import Lineage, Node, Way, walk
from runs.queries.lineage_edges import CONTENT, NodeKind
from runs.queries.on_holdout import read_holdout
from runs.queries.standing import standing as scores_that_stand
from workspaces.models import Benchmark, Contract
from workspaces.queries.registry import current_contract


@dataclass(frozen=True, slots=True)
class Place:
    """Where a score stood among the others when somebody looked, in words: the whole board is read for it, so nobody looks who holds a lock."""

    score: uuid.UUID
    words: str


@dataclass(frozen=True)
class Candidate:
    """`read` is the SHA-256 of its file as it was read back just now; empty where the store has no such file, None where nobody has read it yet.
    `place`: of its score, where somebody has looked."""

    artifact: Artifact
    name: str
    benchmark: Benchmark
    contract: Contract | None
    score: Evaluation | None  # under `contract`
    standing: Promotion | None
    standing_score: Evaluation | None  # of what stands, under the same contract
    read: str | None = None
    place: Place | None = None

    @property
    def note(self) -> str:
        """Its place in words; empty where nobody has looked, or another score counts by now."""
        return self.place.words if self.place and self.score and self.place.score == self.score.pk else ""

    @property
    def run(self) -> Run:
        run: Run = self.artifact.run
        return run

    @cached_property
    def made_of(self) -> Lineage:
        """Everything that went into it, however far back; walked once for all checks that ask."""
        return made_of([Node(NodeKind.ARTIFACT, self.artifact.pk)])


def made_of(starts: Sequence[Node]) -> Lineage:
    """Everything that went into these, however far back: what every check of a chain looks at, a gate's as a promotion's."""
    return walk(starts, Way.UP, along=CONTENT)


def candidate_of(artifact: Artifact, name: str, *, read: str | None = None, place: Place | None = None) -> Candidate:
    """`artifact` comes with its run and blob. It is judged on the benchmark of what stands under the name, else on the one that an evaluating run
    has measured it on last, else on its own run's: what its maker reports may be no more than a gain over where it began."""
    standing = standing_under(name)
    benchmark = _benchmark(artifact, standing)
    contract = current_contract(benchmark.pk)
    return Candidate(
        artifact=artifact,
        name=name,
        benchmark=benchmark,
        contract=contract,
        score=newest_score(artifact, contract),
        standing=standing,
        standing_score=newest_score(standing.artifact, contract) if standing else None,
        read=read,
        place=place,
    )


def standing_under(name: str) -> Promotion | None:
    """What is promoted under the name now."""
    rows = Promotion.objects.filter(name=name, status=Promotion.Status.PROMOTED)
    return rows.select_related("artifact__blob", "artifact__run", "evaluation__benchmark").first()


def _benchmark(artifact: Artifact, standing: Promotion | None) -> Benchmark:
    if standing is not None and standing.evaluation is not None:
        return Benchmark.objects.get(pk=standing.evaluation.benchmark_id)
    by_another = scores_that_stand().filter(subject_artifact=artifact).order_by("-created_at", "-pk")
    measured = by_another.values_list("benchmark", flat=True).first()
    return Benchmark.objects.get(pk=measured or artifact.run.benchmark_id)


def newest_score(artifact: Artifact, contract: Contract | None) -> Evaluation | None:
    """The newest score of it under the contract that rests on nothing withdrawn: not the best of several, which whoever repeats a measurement
    could choose. What was measured on the holdout goes before all other (`is_on_holdout`), what an evaluating run has measured before
    what its maker reported."""
    if contract is None:
        return None
    rows = _measured(artifact).filter(benchmark=contract.benchmark_id, contract=contract, metric=contract.metric)
    rows = rows.annotate(is_on_holdout=read_holdout()).select_related("run", "contract")
    return rows.order_by("-is_on_holdout", F("subject_artifact").asc(nulls_last=True), "-created_at", "-pk").first()


def beside_holdout(score: Evaluation, contract: Contract) -> str:
    """Why a score of `newest_score` says nothing of the contract's holdout, in a sentence; empty where it does, or there is none."""
    if not contract.names_holdout or getattr(score, "is_on_holdout"):
        return ""
    if contract.holdout is None:
        return f"The holdout of contract {contract.version} is not in this workspace, so nothing here is measured on it."
    named = f"{contract.holdout.dataset.slug}@{contract.holdout.number}"
    if score.subject_artifact_id is None:
        return f"{score.run.name} reported it itself, and contract {contract.version} measures on {named}; launch an evaluation that reads both."
    return f"{score.run.name} did not read {named}, on which contract {contract.version} measures; launch an evaluation that reads both."


def _measured(artifact: Artifact) -> "QuerySet[Evaluation]":
    return scores_that_stand().filter(Q(subject_artifact=artifact) | Q(run=artifact.run_id, subject_artifact=None))
