"""Nouns of the ground floor, one file each."""

from workspaces.models.agent import Agent, AgentFile, AgentPool, AgentVersion
from workspaces.models.approval import Approval, ApprovalComment, ApprovalRule, ApprovalVote, Delegation
from workspaces.models.base import NotFound, Owned, Row, Telemetry
from workspaces.models.benchmark import Benchmark, Contract
from workspaces.models.blob import Blob
from workspaces.models.budget import Crossing, ExternalSpend, LedgerAccount, LedgerEntry, Limit, Recount, Unit
from workspaces.models.dataset import Dataset, DatasetFile, DatasetPiece, DatasetVersion
from workspaces.models.declared import DeclaredName
from workspaces.models.event import ActorKind, AuditEvent, AuditHead, EventPayload, EventSubject, SiteEvent
from workspaces.models.idempotency import IdempotencyKey, SiteIdempotencyKey
from workspaces.models.installation import Installation
from workspaces.models.invitation import Invitation
from workspaces.models.membership import Membership, WorkspaceGroupPermission
from workspaces.models.notification import Notification
from workspaces.models.objective import Objective
from workspaces.models.pool import Engine, EngineSlot, EngineWeight, Pool
from workspaces.models.secret import DataKey, Secret, SecretAgent, SecretBenchmark, SecretPool, SecretUse
from workspaces.models.share import ShareGrant
from workspaces.models.site_policy import SitePolicy, SiteRules
from workspaces.models.token import Token, TokenUse
from workspaces.models.upload import Upload
from workspaces.models.user import User
from workspaces.models.withdrawal import Withdrawal, WithdrawnObject
from workspaces.models.workspace import Workspace

__all__ = [
    "ActorKind", "Agent", "AgentFile", "AgentPool", "AgentVersion", "Approval", "ApprovalComment", "ApprovalRule", "ApprovalVote",
    "AuditEvent", "AuditHead", "Benchmark", "Blob",
    "Contract", "Crossing", "DataKey", "Dataset", "DatasetFile", "DatasetPiece",
    "DatasetVersion", "DeclaredName", "Delegation", "Engine", "EngineSlot", "EngineWeight", "EventPayload", "EventSubject",
    "ExternalSpend", "IdempotencyKey", "Installation", "Invitation",
    "LedgerAccount", "LedgerEntry", "Limit", "Membership", "NotFound", "Notification",
    "Objective", "Owned", "Pool", "Recount", "Row",
    "Secret", "SecretAgent", "SecretBenchmark", "SecretPool", "SecretUse",
    "ShareGrant", "SiteEvent", "SiteIdempotencyKey", "SitePolicy", "SiteRules",
    "Telemetry", "Token", "TokenUse", "Unit", "Upload", "User", "Withdrawal", "WithdrawnObject", "Workspace", "WorkspaceGroupPermission",
]  # fmt: skip
