"""`/promotions` and `/promoted/<name>`: put an artifact forward, see on what it was promoted, take it back; the address that stays."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import Schema, Status
from pydantic import Field

from runs.api.artifact import shape_artifacts
from runs.api.schema import ArtifactOut
from runs.checks.candidate import candidate_of
from runs.checks.eligibility import facts_of
from runs.checks.score import placed
from runs.commands.promotion import name_of, propose_promotion, withdraw_promotion
from runs.eligibility import is_eligible
from runs.models import Artifact, Promotion
from runs.queries.promotion import RELATED, Told, find_restable, find_standing, page_of_promotions, told
from runs.queries.reading import read_back
from runs.queries.trace import find_traced, trace_of
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size, Text, made_before
from workspaces.downloads import stored_file
from workspaces.models import Approval, NotFound

routes = Routes("promotions")
VIEW, PROMOTE = Permission.VIEW, Permission.PROMOTE


class EvidenceOut(Schema):
    page: str
    argument: str
    label: str


class FactOut(Schema):
    key: str
    name: str
    verdict: str = Field(description="pass, fail or unknown; unknown never passes.")
    observed: str
    required: str
    words: str
    evidence: list[EvidenceOut]
    note: str = ""
    more: int = Field(0, description="How many things there are beside those that the evidence names.")


class PromotionOut(Schema):
    id: str
    uuid: UUID
    status: str = Field(description="proposed, promoted, refused, withdrawn or superseded.")
    undecided: str = Field(
        description="Void, expired or withdrawn where its request ended so and nobody refused it, although the status is refused; else empty."
    )
    suspended: str = Field(description="Why nobody should rest on it for now although it stands; empty where that is not so.")
    number: int
    name: str
    artifact: ArtifactOut
    evaluation_id: str | None
    supersedes_id: str | None
    facts: list[FactOut]
    reason: str
    end_reason: str
    requested_by: str
    decided_by: str | None
    approval_id: str | None
    content_hash: str
    created_at: datetime
    decided_at: datetime | None
    ended_at: datetime | None
    url: str


class PromotionList(Schema):
    items: list[PromotionOut]
    next: str | None


class EligibilityOut(Schema):
    name: str
    eligible: bool
    facts: list[FactOut]


class TraceItemOut(Schema):
    label: str
    kind: str | None = Field(description="What it is, as in lineages; null for what is only said.")
    id: str = Field(description="Canonical id, empty where it has none or the caller may not see it.")
    url: str
    who: str
    when: datetime | None
    verdict: str = Field(description="yes, no, person (waits for one) or unknown; unknown never passes.")
    words: str
    gap: bool = Field(description="What should be known here is not, or does not hold.")


class TraceStepOut(Schema):
    title: str
    items: list[TraceItemOut]
    more: int = Field(description="How many things of the step are left out.")


class TraceOut(Schema):
    promotion_id: str
    whole: bool
    gaps: int
    sources: int
    steps: list[TraceStepOut]


class PromotionIn(Body):
    artifact_id: Line = Field(min_length=1, max_length=200)
    name: Line = Field(min_length=1, max_length=64, description="What it is promoted as; one artifact stands under a name at a time.")
    reason: Line = Field("", max_length=1000)


class WithdrawIn(Body):
    reason: Line = Field(min_length=1, max_length=1000)


class EnvelopeOut(Schema):
    payload: str = Field(description="Base64 of an in-toto Statement v1 with a SLSA verification summary.")
    payloadType: str  # noqa: N815  # the name in DSSE
    signatures: list[dict[str, str]]


@routes.get("/promotions", needs=VIEW, kind=Kind.ARTIFACT, response=PromotionList)
def list_promotions(
    request: ApiRequest,
    name: Text = "",
    status: Literal["proposed", "promoted", "refused", "withdrawn", "superseded"] | None = None,
    cursor: Cursor = "",
    limit: Size = settings.API_PAGE_SIZE,
) -> Any:
    """Promotions, newest first; of one name or status, where asked."""
    page = page_of_promotions(name=name, status=status or "", cursor=cursor, size=limit)
    return {"items": _all(request, page.items), "next": page.next}


@routes.post("/promotions", needs=PROMOTE, kind=Kind.ARTIFACT, response=PromotionOut, status=201)
def post_promotion(request: ApiRequest, body: PromotionIn) -> Any:
    """Put an artifact forward; another person decides on the approval `approval_id`."""
    made = made_before(request, Promotion)
    if made is None:
        artifact = Artifact.objects.find(body.artifact_id, "blob")
        made = propose_promotion(actor=request.actor, artifact=artifact, name=body.name, reason=body.reason, id=request.chosen_id)
    return Status(201, _one(request, made.public_id))


@routes.get("/promotions/{promotion}", needs=VIEW, kind=Kind.ARTIFACT, response=PromotionOut)
def get_promotion(request: ApiRequest, promotion: str) -> Any:
    """One promotion with the facts that it was put forward upon."""
    return _one(request, promotion)


@routes.get("/promotions/{promotion}/trace", needs=VIEW, kind=Kind.ARTIFACT, response=TraceOut)
def get_trace(request: ApiRequest, promotion: str) -> Any:
    """From the promotion down to its sources, step by step: people, gates, scores, then runs and what they read in turn. What should be on record
    and is not, or does not hold, stands in its step with `gap`."""
    found = find_traced(promotion)
    trace = trace_of(found, request.rights, request.workspace.slug)
    return {
        "promotion_id": found.public_id,
        "whole": trace.is_whole,
        "gaps": len(trace.gaps),
        "sources": trace.sources,
        "steps": [
            {"title": step.title, "more": step.more, "items": [{**item.values, "gap": item.is_gap} for item in step.items]}
            for step in trace.steps
        ],
    }


@routes.get("/promotions/{promotion}/statement", needs=VIEW, kind=Kind.ARTIFACT, response=EnvelopeOut)
def get_statement(request: ApiRequest, promotion: str) -> Any:
    """The signed statement (DSSE); its key is at `/.well-known/lab-keys.json`."""
    found = Promotion.objects.find(promotion)
    if found.statement is None:
        raise NotFound("statement")
    return found.statement


@routes.post("/promotions/{promotion}/withdraw", needs=PROMOTE, kind=Kind.ARTIFACT, response=PromotionOut)
def post_withdrawal(request: ApiRequest, promotion: str, body: WithdrawIn) -> Any:
    """Nobody should rest on it any more; nothing stands under its name then."""
    found = withdraw_promotion(actor=request.actor, promotion=Promotion.objects.find(promotion), reason=body.reason)
    return _one(request, found.public_id)


@routes.get("/artifacts/{artifact}/eligibility", needs=VIEW, kind=Kind.ARTIFACT, response=EligibilityOut)
def get_eligibility(request: ApiRequest, artifact: str, name: Text = "champion") -> Any:
    """What the checks would say now of promoting it as `name`. The file is read back for it."""
    found = Artifact.objects.find(artifact, "blob", "run__contract")
    facts = facts_of(placed(candidate_of(found, name_of(name), read=read_back(found.blob))))
    return {"name": name_of(name), "eligible": is_eligible(facts), "facts": [fact.stored for fact in facts]}


@routes.get("/promoted/{name}", needs=VIEW, kind=Kind.ARTIFACT, response=PromotionOut)
def get_promoted(request: ApiRequest, name: str) -> Any:
    """What stands under a name now, and why it is suspended where it is; 404 where nothing stands."""
    return _all(request, told([find_standing(name)]))[0]


@routes.get("/promoted/{name}/content", needs=VIEW, kind=Kind.ARTIFACT)
def get_promoted_content(request: ApiRequest, name: str) -> HttpResponseBase:
    """The bytes of what stands under a name now, as an attachment; 409 with the reason where that is suspended."""
    found = find_restable(name).artifact
    return stored_file(request, found.blob, path=found.path)


def _one(request: ApiRequest, promotion: str) -> dict[str, Any]:
    return _all(request, told([Promotion.objects.find(promotion, *RELATED)]))[0]


def _all(request: ApiRequest, rows: list[Told]) -> list[dict[str, Any]]:
    asked = Approval.objects.filter(subject_type="promotion", subject_id__in=[row.promotion.pk for row in rows]).order_by("created_at")
    approvals = {approval.subject_id: approval.public_id for approval in asked}
    artifacts = shape_artifacts(request, [row.promotion.artifact for row in rows])
    return [_out(request, row, approvals.get(row.promotion.pk), artifact) for row, artifact in zip(rows, artifacts, strict=True)]


def _out(request: ApiRequest, row: Told, approval: str | None, artifact: dict[str, Any]) -> dict[str, Any]:
    promotion = row.promotion
    copied = ("status", "number", "name", "facts", "reason", "end_reason", "content_hash", "created_at", "decided_at", "ended_at")
    return {key: getattr(promotion, key) for key in copied} | {
        "id": promotion.public_id,
        "uuid": promotion.pk,
        "suspended": row.suspended,
        "undecided": row.undecided,
        "artifact": artifact,
        "evaluation_id": promotion.evaluation.public_id if promotion.evaluation else None,
        "supersedes_id": promotion.supersedes.public_id if promotion.supersedes else None,
        "requested_by": promotion.requested_by.label,
        "decided_by": promotion.decided_by.label if promotion.decided_by else None,
        "approval_id": approval,
        "url": reverse("promotion", args=[request.workspace.slug, promotion.public_id]),
    }
