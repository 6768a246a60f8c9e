"""Policies: what acts by itself, its versions, its decisions, and what a version would have changed."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from django.conf import settings
from ninja import Schema, Status
from pydantic import Field, StringConstraints

from runs.api.schema import Name, ReasonIn, Strict, Words
from runs.commands.decision import decide_now
from runs.commands.policy import create_policy, pause_policy, propose_version, resume_policy, retire_policy
from runs.models import Decision, Policy, PolicyVersion
from runs.queries.policy import Preview, Standing, list_policies, page_of_decisions, page_of_versions, preview, spent_on, standing_versions
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Line, Size

routes = Routes("policies")
decisions = Routes("decisions")
Document = Annotated[dict[str, Any], Field(max_length=20)]


class PolicyIn(Strict):
    slug: Annotated[Line, StringConstraints(min_length=1, max_length=64)]
    name: Name
    benchmark_id: Annotated[Line, StringConstraints(max_length=200)] = ""


class VersionIn(Strict):
    document: Document
    reason: Words = ""


class PreviewIn(Strict):
    document: Document
    weeks: Annotated[int, Field(ge=1, le=520, strict=True)] = 4


class VersionOut(Schema):
    id: str
    number: int
    status: str
    document: dict[str, Any]
    content_hash: str
    reason: str
    proposed_by: str
    decided_by: str | None
    created_at: datetime
    decided_at: datetime | None


class PolicyOut(Schema):
    """`acting` is the version that acts, `waiting` the one that waits for a decision."""

    id: str
    slug: str
    name: str
    status: str
    status_reason: str
    benchmark_id: str | None
    acting: VersionOut | None
    waiting: VersionOut | None
    created_at: datetime


class PolicyPage(Schema):
    items: list[PolicyOut]
    next: str | None


class VersionPage(Schema):
    items: list[VersionOut]
    next: str | None


class DecisionRow(Schema):
    """`gpu_ms` is what its launches might reserve together, at most; null where nobody could tell."""

    id: str
    policy_id: str
    version: int
    number: int
    outcome: str
    status: str
    words: str
    failure: str
    cause_type: str
    cause_label: str
    gpu_ms: int | None
    created_at: datetime
    ended_at: datetime | None


class DecisionPage(Schema):
    items: list[DecisionRow]
    next: str | None


class DecisionOut(DecisionRow):
    """With everything that it was decided upon. `spent_gpu_ms` is what it has cost so far."""

    facts: dict[str, Any]
    checks: list[dict[str, Any]]
    candidates: list[dict[str, Any]]
    sweep_id: str | None
    spent_gpu_ms: int


class ChangedOut(Schema):
    """`chosen_then` and `chosen_now`: where they differ, in words what each would launch, what the other would not first; the first five."""

    decision_id: str
    number: int
    outcome_then: str
    outcome_now: str
    launches_then: int
    launches_now: int
    words_then: str
    words_now: str
    chosen_then: list[str]
    chosen_now: list[str]


class PreviewOut(Schema):
    """What a document would have decided on the newest 10,000 decisions since `since`; of those that differ the newest 50. `unread` are those whose
    facts are of a form that is read no more."""

    faults: list[str]
    since: datetime
    decisions: int
    different: int
    unread: int
    acted_then: int
    acted_now: int
    gpu_ms_then: int
    gpu_ms_now: int
    changed: list[ChangedOut]


@routes.get("/policies", needs=Permission.VIEW, kind=Kind.POLICY, response=PolicyPage)
def list_all(request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """Policies of the workspace, newest first."""
    found = list_policies(cursor=cursor, size=limit)
    standing = standing_versions(found.items)
    return {"items": [_shape(policy, standing) for policy in found.items], "next": found.next}


@routes.post("/policies", needs=Permission.PROPOSE_POLICY, kind=Kind.POLICY, response=PolicyOut, status=201)
def create(request: ApiRequest, body: PolicyIn) -> Status[dict[str, Any]]:
    """A policy without a version; it does nothing yet."""
    return Status(201, _shape(create_policy(actor=request.actor, slug=body.slug, name=body.name, benchmark=body.benchmark_id)))


@routes.get("/policies/{policy}", needs=Permission.VIEW, kind=Kind.POLICY, response=PolicyOut)
def get_policy(request: ApiRequest, policy: str) -> dict[str, Any]:
    """One policy: the version that acts, and the one that waits for a decision."""
    return _shape(Policy.objects.find(policy, "benchmark"))


@routes.get("/policies/{policy}/versions", needs=Permission.VIEW, kind=Kind.POLICY, response=VersionPage)
def list_versions(request: ApiRequest, policy: str, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """Every version, newest first."""
    found = page_of_versions(Policy.objects.find(policy), cursor=cursor, size=limit)
    return {"items": [_version(version) for version in found.items], "next": found.next}


@routes.post("/policies/{policy}/versions", needs=Permission.PROPOSE_POLICY, kind=Kind.POLICY, response=VersionOut, status=201)
def propose(request: ApiRequest, policy: str, body: VersionIn) -> Status[dict[str, Any]]:
    """Ask for a document to act. Another person decides; until then nothing changes."""
    return Status(201, _version(propose_version(actor=request.actor, policy=Policy.objects.find(policy), **body.dict())))


@routes.post("/policies/{policy}/preview", needs=Permission.PROPOSE_POLICY, kind=Kind.POLICY, response=PreviewOut)
def post_preview(request: ApiRequest, policy: str, body: PreviewIn) -> dict[str, Any]:
    """What a document would have decided on the decisions of the last weeks. Nothing is written."""
    return _preview(preview(Policy.objects.find(policy), body.document, weeks=body.weeks))


@routes.post("/policies/{policy}/decide", needs=Permission.LAUNCH_RUN, kind=Kind.POLICY, response=DecisionOut, status=201)
def decide(request: ApiRequest, policy: str) -> Status[dict[str, Any]]:
    """Ask it at once. Under one Idempotency-Key it decides once."""
    return Status(201, _decision(decide_now(actor=request.actor, policy=Policy.objects.find(policy), cause_id=request.chosen_id)))


@routes.post("/policies/{policy}/pause", needs=Permission.PROPOSE_POLICY, kind=Kind.POLICY, response=PolicyOut)
def pause(request: ApiRequest, policy: str, body: ReasonIn) -> dict[str, Any]:
    """Decide nothing until it goes on."""
    return _shape(pause_policy(actor=request.actor, policy=Policy.objects.find(policy), reason=body.reason))


@routes.post("/policies/{policy}/resume", needs=Permission.APPROVE, kind=Kind.POLICY, response=PolicyOut)
def resume(request: ApiRequest, policy: str, body: ReasonIn) -> dict[str, Any]:
    """Let it go on."""
    return _shape(resume_policy(actor=request.actor, policy=Policy.objects.find(policy), reason=body.reason))


@routes.post("/policies/{policy}/retire", needs=Permission.APPROVE, kind=Kind.POLICY, response=PolicyOut)
def retire(request: ApiRequest, policy: str, body: ReasonIn) -> dict[str, Any]:
    """Let it act no more, for good."""
    return _shape(retire_policy(actor=request.actor, policy=Policy.objects.find(policy), reason=body.reason))


@routes.get("/policies/{policy}/decisions", needs=Permission.VIEW, kind=Kind.POLICY, response=DecisionPage)
def list_decisions(request: ApiRequest, policy: str, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """What it has decided, newest first."""
    found = page_of_decisions(Policy.objects.find(policy), cursor=cursor, size=limit)
    return {"items": [_row(row) for row in found.items], "next": found.next}


@decisions.get("/decisions/{decision}", needs=Permission.VIEW, kind=Kind.POLICY, response=DecisionOut)
def get_decision(request: ApiRequest, decision: str) -> dict[str, Any]:
    """One decision with its facts, its checks, and every configuration that was weighed."""
    return _decision(Decision.objects.find(decision, "policy", "version"))


def _shape(policy: Policy, standing: Mapping[Standing, PolicyVersion] | None = None) -> dict[str, Any]:
    standing = standing_versions([policy]) if standing is None else standing
    acting, waiting = standing.get((policy.pk, "active")), standing.get((policy.pk, "proposed"))
    return {
        "id": policy.public_id,
        "benchmark_id": policy.benchmark.public_id if policy.benchmark else None,
        "acting": _version(acting) if acting else None,
        "waiting": _version(waiting) if waiting else None,
        **{name: getattr(policy, name) for name in ("slug", "name", "status", "status_reason", "created_at")},
    }


def _version(version: PolicyVersion) -> dict[str, Any]:
    return {
        "id": version.public_id,
        "proposed_by": version.proposed_by.username,
        "decided_by": version.decided_by.username if version.decided_by else None,
        **{name: getattr(version, name) for name in ("number", "status", "document", "content_hash", "reason", "created_at", "decided_at")},
    }


def _row(decision: Decision) -> dict[str, Any]:
    names = ("number", "outcome", "status", "words", "failure", "cause_type", "cause_label", "gpu_ms", "created_at", "ended_at")
    return {
        "id": decision.public_id,
        "policy_id": decision.policy.public_id,
        "version": decision.version.number,
        **{name: getattr(decision, name) for name in names},
    }


def _decision(decision: Decision) -> dict[str, Any]:
    sweep, spent_gpu_ms = spent_on(decision)
    return _row(decision) | {
        "facts": decision.facts,
        "checks": decision.checks,
        "candidates": decision.candidates,
        "sweep_id": sweep.public_id if sweep else None,
        "spent_gpu_ms": spent_gpu_ms,
    }


def _preview(seen: Preview) -> dict[str, Any]:
    nothing = dict.fromkeys(("decisions", "different", "unread", "acted_then", "acted_now", "gpu_ms_then", "gpu_ms_now"), 0)
    return {"faults": list(seen.faults), "since": seen.since, "changed": [], **nothing, **(seen.simulation or {})}
