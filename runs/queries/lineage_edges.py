"""The edges of the lineage: sentences about two rows that stand in one table already, from what came later to what it came from.

Relations are those of W3C PROV (PROV-DM, 2013). A new noun joins by a line in EDGES.
"""

from dataclasses import dataclass
from enum import StrEnum

from django.db import models

from runs.models import Artifact, Evaluation, Run, RunInput, UndeclaredInput
from workspaces.models import AgentVersion, Approval, ApprovalVote, Contract, DatasetPiece, DatasetVersion


class Relation(StrEnum):
    USED = "used"
    GENERATED_BY = "wasGeneratedBy"
    DERIVED_FROM = "wasDerivedFrom"
    ATTRIBUTED_TO = "wasAttributedTo"
    ASSOCIATED_WITH = "wasAssociatedWith"
    INFORMED_BY = "wasInformedBy"


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


# What content flows along: by these a fault in a source reaches what was made of it. Who did it and who allowed it are not made of anything.
CONTENT = frozenset({Relation.USED, Relation.GENERATED_BY, Relation.DERIVED_FROM})
# What a run has read without having declared it.
DOUBTFUL = frozenset({NodeKind.UNDECLARED})


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows of `model` in which `later` and `earlier` name the two ends. `of_windows`: `later` is a window's dataset, whose one version is meant;
    `subject`: only rows about such a subject."""

    relation: Relation
    later_kind: NodeKind
    earlier_kind: NodeKind
    model: type[models.Model]
    later: str
    earlier: str
    of_windows: bool = False
    subject: str = ""


K, R = NodeKind, Relation
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
    Edge(R.ATTRIBUTED_TO, K.DATASET_VERSION, K.PERSON, DatasetVersion, "id", "created_by_id"),
    Edge(R.ATTRIBUTED_TO, K.AGENT_VERSION, K.PERSON, AgentVersion, "id", "created_by_id"),
    Edge(R.ASSOCIATED_WITH, K.RUN, K.PERSON, Run, "id", "requested_by_id"),
    Edge(R.INFORMED_BY, K.RUN, K.RUN, Run, "id", "retry_of_id"),
    Edge(R.INFORMED_BY, K.RUN, K.APPROVAL, Approval, "subject_id", "id", subject="run"),
    Edge(R.ASSOCIATED_WITH, K.APPROVAL, K.PERSON, ApprovalVote, "approval_id", "person_id"),
)
