"""`/withdrawals`: what is not rested on any more; the same as the pages say."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from ninja import Query, Schema, Status
from pydantic import Field

from runs.api.schema import ReasonIn, Strict
from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.models import Evaluation
from runs.queries.home_seeds import SeedLead
from runs.queries.lineage import Node
from runs.queries.lineage_described import Described
from runs.queries.lineage_edges import NodeKind
from runs.queries.lineage_nodes import describe
from runs.queries.withdrawal import (
    copies_now,
    counts_of,
    counts_of_all,
    find_subject,
    marked_promotions,
    marks_of,
    memory_now,
    radius,
    withdrawals,
)
from runs.queries.withdrawn_content import Copies, withdrawn_content
from runs.queries.withdrawn_memory import Memory
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Line, Size
from workspaces.models import Dataset, Withdrawal
from workspaces.queries.paging import newest_first
from workspaces.queries.registry import find_version
from workspaces.queries.withdrawal import withdrawals_on

routes = Routes("withdrawals")
Subject = Literal["dataset_version", "run", "artifact"]


class WithdrawalIn(Strict):
    """`fingerprint`: of the radius that was looked at; 409 where something else rests on it by now. Left out, whatever rests on it then is
    withdrawn, unseen."""

    kind: Subject
    id: Annotated[str, Field(min_length=1, max_length=100)]
    reason: Line
    fingerprint: Annotated[str, Field(max_length=64)] = ""


class WithdrawalOut(Schema):
    id: str
    uuid: str
    status: str
    kind: str
    subject: str
    subject_uuid: str
    reason: str
    withdrawn_by: str
    created_at: datetime
    undone_by: str | None
    undone_at: datetime | None
    undone_reason: str
    reached: dict[str, int]


class CopyOut(Schema):
    """A dataset version that holds some of the same files; no record leads to it, so it would not be reached."""

    dataset_id: str
    version: int
    shared_files: int
    files: int


class WithdrawalWhole(WithdrawalOut):
    promotions: list[str] = Field(description="Ids of promotions that stand and are suspended by it, by their names; a hundred at most.")
    copies: list[CopyOut] = Field(description="Those with the most shared files, twenty at most; none where it is undone.")
    copies_count: int
    memory: list[str] = Field(description="Ids of entries that are stale by it, the newest first, twenty at most; none where it is undone.")
    memory_count: int | None


class MarkOut(Schema):
    """`uuid` and `label` are null for kinds that the caller may not see. `steps`: of the lineage, 0 for what was withdrawn."""

    kind: str
    uuid: str | None
    id: str | None
    label: str | None
    steps: int


class MarkPage(Schema):
    items: list[MarkOut]
    next: str | None


class OriginalOut(Schema):
    kind: Subject
    label: str | None = Field(description="Null for an artifact, where the caller may see none.")
    withdrawal_id: str
    reason: str


class WithdrawnContentOut(Schema):
    """`shared_files` of `files` files of a version are, byte for byte, in something withdrawn too, although no record leads there; `originals` are
    some of these things."""

    shared_files: int
    files: int
    originals: list[OriginalOut]


class WithdrawalPage(Schema):
    items: list[WithdrawalOut]
    next: str | None


class LeadingRowOut(Schema):
    """Runs of one agent version that are alike but for the seed; `value` is the mean or the median of their scores."""

    agent: str
    agent_version: int
    parameters: dict[str, Any]
    value: float
    runs: int


class BoardOut(Schema):
    """By the ranking of the board: where its contract ranks over seeds (`over_seeds`), rows of runs lead, and `led_by` is null."""

    benchmark_id: str
    scores_that_go: int
    scores_that_stay: int
    over_seeds: Literal["mean", "median"] | None
    led_by: str | None
    would_be_led_by: str | None
    led_by_row: LeadingRowOut | None
    would_be_led_by_row: LeadingRowOut | None


class RadiusOut(Schema):
    subject: str
    reached: dict[str, int]
    at_work: list[str]
    boards: list[BoardOut]
    promotions: list[str] = Field(
        description="Ids of promotions that stand and would be suspended, in the order of their names; a hundred at most."
    )
    copies: list[CopyOut] = Field(description="Those with the most shared files, twenty at most.")
    copies_count: int
    memory: list[str] = Field(description="Ids of entries that would be stale, the newest first, twenty at most.")
    memory_count: int | None
    fingerprint: str


@routes.get("/withdrawals", needs=Permission.VIEW, kind=Kind.DATASET, response=WithdrawalPage)
def list_withdrawals(request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """Withdrawals, newest first, undone ones too."""
    page = newest_first(withdrawals(), cursor=cursor, size=limit)
    counts = counts_of_all(page.items)
    return {"items": [_row(one, counts.get(one.pk, {})) for one in page.items], "next": page.next}


@routes.get("/withdrawals/preview", needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET, response=RadiusOut)
def preview(request: ApiRequest, kind: Subject, id: Annotated[str, Query(max_length=100)]) -> dict[str, Any]:  # noqa: A002  # the key of the query
    """Everything that withdrawing it now would reach. Runs, promotions and rows that lead are named to whom may see runs, artifacts and evaluations;
    the counts are for all."""
    found = radius(*find_subject(kind, id))
    sees_runs, sees_artifacts, sees_scores = (
        request.rights.allows(Permission.VIEW, seen) for seen in (Kind.RUN, Kind.ARTIFACT, Kind.EVALUATION)
    )
    return {
        "subject": found.label,
        "reached": dict(found.counts),
        "at_work": [run.public_id for run in found.at_work] if sees_runs else [],
        "boards": [
            {
                "benchmark_id": change.benchmark.public_id,
                "scores_that_go": change.withdrawn,
                "scores_that_stay": change.left,
                "over_seeds": change.over or None,
                **_leading("led_by", change.leader if sees_scores else None),
                **_leading("would_be_led_by", change.next_leader if sees_scores else None),
            }
            for change in found.boards
        ],
        "promotions": [one.promotion.public_id for one in found.promotions] if sees_artifacts else [],
        **_copies(found.copies),
        **_memory(found.memory, request),
        "fingerprint": found.fingerprint,
    }


@routes.post("/withdrawals", needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET, response=WithdrawalOut, status=201)
def create(request: ApiRequest, body: WithdrawalIn) -> Status[dict[str, Any]]:
    """Withdraw something and all that rests on it."""
    node, label = find_subject(body.kind, body.id)
    return Status(201, _row(withdraw(actor=request.actor, subject=node, label=label, reason=body.reason, fingerprint=body.fingerprint)))


@routes.get("/withdrawals/{withdrawal}", needs=Permission.VIEW, kind=Kind.DATASET, response=WithdrawalWhole)
def get_withdrawal(request: ApiRequest, withdrawal: str) -> dict[str, Any]:
    """One withdrawal, what it suspends, and where its files lie besides. Promotions are named to whom may see artifacts."""
    found = Withdrawal.objects.find(withdrawal, "withdrawn_by", "undone_by")
    holds = found.undone_at is None
    names = holds and request.rights.allows(Permission.VIEW, Kind.ARTIFACT)
    promotions = [one.promotion.public_id for one in marked_promotions(found)] if names else []
    copies, memory = (copies_now(found), memory_now(found)) if holds else (Copies(), Memory())
    return _row(found) | {"promotions": promotions, **_copies(copies), **_memory(memory, request)}


@routes.get("/withdrawals/{withdrawal}/objects", needs=Permission.VIEW, kind=Kind.DATASET, response=MarkPage)
def list_objects(request: ApiRequest, withdrawal: str, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """Everything that it has marked, what was withdrawn among it, also where it is undone."""
    page = newest_first(marks_of(Withdrawal.objects.find(withdrawal)), cursor=cursor, size=limit)
    nodes = [Node(NodeKind(mark.kind), mark.object_id) for mark in page.items]
    told = describe(nodes, request.rights, request.workspace.slug)
    items = [_mark(node, told[node], mark.distance) for node, mark in zip(nodes, page.items, strict=True)]
    return {"items": items, "next": page.next}


@routes.get(
    "/datasets/{dataset}/versions/{version}/withdrawn-content", needs=Permission.VIEW, kind=Kind.DATASET, response=WithdrawnContentOut
)
def get_withdrawn_content(request: ApiRequest, dataset: str, version: str) -> dict[str, Any]:
    """What of a version, which rests on nothing withdrawn by the record, is a copy of something that is."""
    asked = find_version(Dataset.objects.find(dataset), version)
    found = None if withdrawals_on(NodeKind.DATASET_VERSION, asked.pk) else withdrawn_content(asked)
    sees_artifacts = request.rights.allows(Permission.VIEW, Kind.ARTIFACT)
    return {
        "shared_files": found.shared if found else 0,
        "files": found.files if found else asked.files.count(),
        "originals": [
            {
                "kind": one.kind,
                "label": one.label if sees_artifacts or one.kind != NodeKind.ARTIFACT else None,
                "withdrawal_id": one.withdrawal.public_id,
                "reason": one.withdrawal.reason,
            }
            for one in (found.originals if found else ())
        ],
    }


@routes.post("/withdrawals/{withdrawal}/undo", needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET, response=WithdrawalOut)
def undo(request: ApiRequest, withdrawal: str, body: ReasonIn) -> dict[str, Any]:
    """Let it hold no more; everything is as it would be without it."""
    return _row(undo_withdrawal(actor=request.actor, withdrawal=Withdrawal.objects.find(withdrawal), reason=body.reason))


def _copies(found: Copies) -> dict[str, Any]:
    named = [
        {"dataset_id": copy.version.dataset.public_id, "version": copy.version.number, "shared_files": copy.shared, "files": copy.files}
        for copy in found.named
    ]
    return {"copies": named, "copies_count": found.count}


def _memory(found: Memory, request: ApiRequest) -> dict[str, Any]:
    sees = request.rights.allows(Permission.VIEW, Kind.MEMORY)
    return {"memory": [entry.public_id for entry in found.named] if sees else [], "memory_count": found.count if sees else None}


def _mark(node: Node, told: Described, steps: int) -> dict[str, Any]:
    seen = None if told.is_hidden else told
    return {
        "kind": node.kind.value,
        "uuid": str(node.id) if seen else None,
        "id": seen and seen.public_id,
        "label": seen and seen.label,
        "steps": steps,
    }


def _leading(name: str, lead: Evaluation | SeedLead | None) -> dict[str, Any]:
    if not isinstance(lead, SeedLead):
        return {name: lead and lead.run.public_id, f"{name}_row": None}
    version = lead.row.version
    row = {
        "agent": version.agent.slug,
        "agent_version": version.number,
        "parameters": lead.row.parameters,
        "value": lead.value,
        "runs": lead.count,
    }
    return {name: None, f"{name}_row": row}


def _row(withdrawal: Withdrawal, reached: Mapping[str, int] | None = None) -> dict[str, Any]:
    return {
        "id": withdrawal.public_id,
        "uuid": str(withdrawal.pk),
        "status": "undone" if withdrawal.undone_at else "withdrawn",
        "kind": withdrawal.subject_kind,
        "subject": withdrawal.subject_label,
        "subject_uuid": str(withdrawal.subject_id),
        "reason": withdrawal.reason,
        "withdrawn_by": withdrawal.withdrawn_by.username,
        "created_at": withdrawal.created_at,
        "undone_by": withdrawal.undone_by.username if withdrawal.undone_by else None,
        "undone_at": withdrawal.undone_at,
        "undone_reason": withdrawal.undone_reason,
        "reached": dict(counts_of(withdrawal) if reached is None else reached),
    }
