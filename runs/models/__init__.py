"""Nouns of the upper floor, one file each."""

from runs.models.artifact import Artifact, Evaluation
from runs.models.attempt import Attempt, KeptFile, Watch
from runs.models.contract_check import CheckResult, ContractCheck
from runs.models.dataset_import import DatasetImport
from runs.models.export import Export
from runs.models.failure import Failure, FailureGroup
from runs.models.hold import PoolContact, PoolDemand, QueueHold
from runs.models.memory import MemoryEntry, MemoryEvidence, MemoryRead, Trust
from runs.models.metric import MetricChunk, MetricSeries, RunLine
from runs.models.overlap import OverlapCheck, RecordIndex, Ruling
from runs.models.policy import Decision, Policy, PolicyVersion
from runs.models.promotion import Promotion
from runs.models.review import Review
from runs.models.run import Certificate, QueueItem, Run, RunInput
from runs.models.sweep import Sweep
from runs.models.undeclared import UndeclaredInput

__all__ = [
    "Artifact",
    "Attempt",
    "Certificate",
    "CheckResult",
    "ContractCheck",
    "DatasetImport",
    "Decision",
    "Evaluation",
    "Export",
    "Failure",
    "FailureGroup",
    "KeptFile",
    "MemoryEntry",
    "MemoryEvidence",
    "MemoryRead",
    "MetricChunk",
    "MetricSeries",
    "OverlapCheck",
    "Policy",
    "PolicyVersion",
    "PoolContact",
    "PoolDemand",
    "Promotion",
    "QueueHold",
    "QueueItem",
    "RecordIndex",
    "Review",
    "Ruling",
    "Run",
    "RunInput",
    "RunLine",
    "Sweep",
    "Trust",
    "UndeclaredInput",
    "Watch",
]
