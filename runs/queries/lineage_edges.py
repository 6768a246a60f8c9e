"""The edges of the lineage: sentences about two rows that stand in one table already, from what came later to what it came from.

Relations are those of W3C PROV (PROV-DM, 2013). A new noun joins by a line in EDGES.
"""

from dataclasses import dataclass
from enum import StrEnum

from django.db import models

from runs.models import (
    Artifact,
    DatasetImport,
    Decision,
    Evaluation,
    MemoryEntry,
    MemoryEvidence,
    MemoryRead,
    PolicyVersion,
    Promotion,
    Run,
    RunInput,
    Sweep,
    UndeclaredInput,
)
from workspaces.models import AgentVersion, Approval, ApprovalVote, Contract, DatasetPiece, DatasetVersion


class Relation(StrEnum):
    USED = "used"
    GENERATED_BY = "wasGeneratedBy"
    DERIVED_FROM = "wasDerivedFrom"
    ATTRIBUTED_TO = "wasAttributedTo"
    ASSOCIATED_WITH = "wasAssociatedWith"
    INFORMED_BY = "wasInformedBy"
    INFLUENCED_BY = "wasInfluencedBy"  # nothing of its content is in what came later: what was decided about, what a contract names besides


class NodeKind(StrEnum):
    RUN = "run"
    EVALUATION = "evaluation"
    ARTIFACT = "artifact"
    DATASET_VERSION = "dataset_version"
    AGENT_VERSION = "agent_version"
    CONTRACT = "contract"
    APPROVAL = "approval"
    PERSON = "person"
    UNDECLARED = "undeclared_input"
    PROMOTION = "promotion"
    SWEEP = "sweep"
    DECISION = "policy_decision"
    POLICY_VERSION = "policy_version"
    MEMORY = "memory_entry"
    IMPORT = "import"
    DATASET_SOURCE = "dataset_source"  # what a dataset version names as where it is from; its key is the version's
    BENCHMARK_SOURCE = "benchmark_source"  # the public benchmark of another workspace; its key is the copy's


# What content flows along: by these a fault in a source reaches what was made of it. Who did it and who allowed it are not made of anything, and
# what was only told, as memory tells it, is no data: a score that an entry speaks of is not in the run that read the entry (`is_told`).
CONTENT = frozenset({Relation.USED, Relation.GENERATED_BY, Relation.DERIVED_FROM})
# What a run has read without having declared it.
DOUBTFUL = frozenset({NodeKind.UNDECLARED})


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows of `model` in which `later` and `earlier` name the two ends, `earlier` also by a column of a row that it names (`contract__holdout_id`).
    `of_windows`: `later` is a window's dataset, whose one version is meant; `only`: a column and what it must say, for anything at all `None`;
    `role`: what the earlier end was in it, where one table says several things of people; `is_told`: what passes along it are words about
    something, so that a walk along CONTENT alone leaves it out; `is_only_down`: a walk to the sources leaves it out, since another edge of the
    same row leads to the same things with less between."""

    relation: Relation
    later_kind: NodeKind
    earlier_kind: NodeKind
    model: type[models.Model]
    later: str
    earlier: str
    of_windows: bool = False
    only: tuple[str, str | None] | None = None
    role: str = ""
    is_told: bool = False
    is_only_down: bool = False


K, R = NodeKind, Relation
ASKED, DECIDED, VOUCHED = "asked for it", "decided on it", "vouched for it"
EDGES = (
    Edge(R.USED, K.RUN, K.DATASET_VERSION, RunInput, "run_id", "dataset_version_id"),
    Edge(R.USED, K.RUN, K.ARTIFACT, RunInput, "run_id", "artifact_id"),
    Edge(R.USED, K.RUN, K.AGENT_VERSION, Run, "id", "agent_version_id"),
    Edge(R.USED, K.RUN, K.UNDECLARED, UndeclaredInput, "run_id", "id"),
    Edge(R.DERIVED_FROM, K.UNDECLARED, K.DATASET_VERSION, UndeclaredInput, "id", "dataset_version_id"),
    Edge(R.DERIVED_FROM, K.UNDECLARED, K.ARTIFACT, UndeclaredInput, "id", "artifact_id"),
    Edge(R.GENERATED_BY, K.ARTIFACT, K.RUN, Artifact, "id", "run_id"),
    Edge(R.GENERATED_BY, K.EVALUATION, K.RUN, Evaluation, "id", "run_id"),
    Edge(R.DERIVED_FROM, K.EVALUATION, K.ARTIFACT, Evaluation, "id", "subject_artifact_id"),
    Edge(R.DERIVED_FROM, K.EVALUATION, K.CONTRACT, Evaluation, "id", "contract_id"),
    Edge(R.DERIVED_FROM, K.CONTRACT, K.DATASET_VERSION, Contract, "id", "holdout_id"),
    Edge(R.GENERATED_BY, K.DATASET_VERSION, K.RUN, DatasetVersion, "id", "made_by_run_id"),
    Edge(R.DERIVED_FROM, K.DATASET_VERSION, K.ARTIFACT, DatasetVersion, "id", "source_artifact_id"),
    Edge(R.GENERATED_BY, K.DATASET_VERSION, K.RUN, DatasetPiece, "window_id", "made_by_run_id", of_windows=True),
    Edge(
        R.DERIVED_FROM, K.DATASET_VERSION, K.ARTIFACT, DatasetPiece, "window_id", "source_artifact_id", of_windows=True, is_only_down=True
    ),
    Edge(R.ATTRIBUTED_TO, K.DATASET_VERSION, K.PERSON, DatasetVersion, "id", "created_by_id"),
    Edge(R.ATTRIBUTED_TO, K.AGENT_VERSION, K.PERSON, AgentVersion, "id", "created_by_id"),
    Edge(R.ASSOCIATED_WITH, K.RUN, K.PERSON, Run, "id", "requested_by_id"),
    Edge(R.INFORMED_BY, K.RUN, K.RUN, Run, "id", "retry_of_id"),
    Edge(R.INFORMED_BY, K.RUN, K.APPROVAL, Approval, "subject_id", "id", only=("subject_type", "run")),
    Edge(R.INFORMED_BY, K.RUN, K.SWEEP, Run, "id", "sweep_id"),
    Edge(R.ASSOCIATED_WITH, K.APPROVAL, K.PERSON, Approval, "id", "requested_by_id", role=ASKED),
    Edge(R.ASSOCIATED_WITH, K.APPROVAL, K.PERSON, ApprovalVote, "approval_id", "person_id", role=DECIDED),
    # Where what was brought in is from.
    Edge(R.GENERATED_BY, K.DATASET_VERSION, K.IMPORT, DatasetImport, "version_id", "id"),
    Edge(R.USED, K.IMPORT, K.DATASET_SOURCE, DatasetImport, "id", "version_id"),
    Edge(R.ASSOCIATED_WITH, K.IMPORT, K.PERSON, DatasetImport, "id", "requested_by_id", role=ASKED),
    Edge(R.DERIVED_FROM, K.DATASET_VERSION, K.DATASET_SOURCE, DatasetImport, "version_id", "version_id"),
    Edge(R.DERIVED_FROM, K.DATASET_VERSION, K.DATASET_SOURCE, DatasetVersion, "id", "id", only=("origin", "external")),
    Edge(R.DERIVED_FROM, K.CONTRACT, K.BENCHMARK_SOURCE, Contract, "id", "benchmark_id", only=("source_version", None)),
    Edge(R.ATTRIBUTED_TO, K.CONTRACT, K.PERSON, Contract, "id", "benchmark__created_by_id"),
    # What a contract names besides its holdout: no score is made of it.
    Edge(R.INFLUENCED_BY, K.CONTRACT, K.DATASET_VERSION, Contract, "id", "train_id"),
    Edge(R.INFLUENCED_BY, K.CONTRACT, K.DATASET_VERSION, Contract, "id", "validation_id"),
    Edge(R.INFLUENCED_BY, K.CONTRACT, K.AGENT_VERSION, Contract, "id", "evaluator_id"),
    # What was put forward, by whom, and who let people rest on it.
    Edge(R.INFLUENCED_BY, K.PROMOTION, K.ARTIFACT, Promotion, "id", "artifact_id"),
    Edge(R.INFLUENCED_BY, K.PROMOTION, K.EVALUATION, Promotion, "id", "evaluation_id"),
    Edge(R.INFORMED_BY, K.PROMOTION, K.PROMOTION, Promotion, "id", "supersedes_id"),
    Edge(R.INFORMED_BY, K.PROMOTION, K.APPROVAL, Approval, "subject_id", "id", only=("subject_type", "promotion")),
    Edge(R.ASSOCIATED_WITH, K.PROMOTION, K.PERSON, Promotion, "id", "requested_by_id", role=ASKED),
    Edge(R.ASSOCIATED_WITH, K.PROMOTION, K.PERSON, Promotion, "id", "decided_by_id", role=DECIDED),
    # What acts by itself: which rule, who proposed it, who let it act, and what it was asked about.
    Edge(R.ASSOCIATED_WITH, K.SWEEP, K.PERSON, Sweep, "id", "requested_by_id", role=ASKED),
    Edge(R.INFORMED_BY, K.SWEEP, K.DECISION, Sweep, "id", "decision_id"),
    Edge(R.INFLUENCED_BY, K.DECISION, K.POLICY_VERSION, Decision, "id", "version_id"),
    Edge(R.INFORMED_BY, K.DECISION, K.RUN, Decision, "id", "cause_id", only=("cause_type", "run")),
    Edge(R.INFORMED_BY, K.DECISION, K.SWEEP, Decision, "id", "cause_id", only=("cause_type", "sweep")),
    Edge(R.INFORMED_BY, K.DECISION, K.PROMOTION, Decision, "id", "cause_id", only=("cause_type", "promotion")),
    Edge(R.INFLUENCED_BY, K.DECISION, K.EVALUATION, Decision, "id", "cause_id", only=("cause_type", "evaluation")),
    Edge(R.INFLUENCED_BY, K.DECISION, K.DATASET_VERSION, Decision, "id", "cause_id", only=("cause_type", "dataset version")),
    Edge(R.INFORMED_BY, K.DECISION, K.APPROVAL, Decision, "id", "cause_id", only=("cause_type", "question")),
    Edge(R.INFORMED_BY, K.APPROVAL, K.DECISION, Approval, "id", "subject_id", only=("subject_type", "question")),
    Edge(R.ATTRIBUTED_TO, K.POLICY_VERSION, K.PERSON, PolicyVersion, "id", "proposed_by_id"),
    Edge(R.INFLUENCED_BY, K.POLICY_VERSION, K.APPROVAL, Approval, "subject_id", "id", only=("subject_type", "policy")),
    # What was learnt: what an entry rests on, who wrote it and vouches for it, and what has read it. Each revision stands for itself.
    Edge(R.DERIVED_FROM, K.MEMORY, K.RUN, MemoryEvidence, "entry_id", "run_id", is_told=True),
    Edge(R.DERIVED_FROM, K.MEMORY, K.EVALUATION, MemoryEvidence, "entry_id", "evaluation_id", is_told=True),
    Edge(R.DERIVED_FROM, K.MEMORY, K.ARTIFACT, MemoryEvidence, "entry_id", "artifact_id", is_told=True),
    Edge(R.DERIVED_FROM, K.MEMORY, K.DATASET_VERSION, MemoryEvidence, "entry_id", "dataset_version_id", is_told=True),
    Edge(R.GENERATED_BY, K.MEMORY, K.RUN, MemoryEntry, "id", "run_id", is_told=True),
    Edge(R.ATTRIBUTED_TO, K.MEMORY, K.PERSON, MemoryEntry, "id", "author_id"),
    Edge(R.INFLUENCED_BY, K.MEMORY, K.PERSON, MemoryEntry, "id", "reviewed_by_id", role=VOUCHED),
    Edge(R.USED, K.RUN, K.MEMORY, MemoryRead, "run_id", "entry_id", is_told=True),
    Edge(R.USED, K.DECISION, K.MEMORY, MemoryRead, "decision_id", "entry_id", is_told=True),
)
