"""`/memory`: entries by trust, written, vouched for and withdrawn as on the pages; and what a run reads and writes with its own token."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from ninja import Query, Schema, Status
from pydantic import AwareDatetime, Field, StringConstraints

from runs.api.schema import Name, ReasonIn, Strict, Words
from runs.commands.memory import (
    MOST_EVIDENCE,
    MOST_NAMES,
    MOST_TEXT,
    Said,
    check_configuration,
    date_memory,
    review_memory,
    revise_memory,
    undo_memory_withdrawal,
    withdraw_memory,
    write_memory,
    write_run_memory,
)
from runs.commands.memory_reading import read_run_memory
from runs.models import MemoryEntry, MemoryEvidence, Run, Trust
from runs.queries.memory import Group, Row, entry_page, page_of_trust, searched, similar
from runs.queries.memory_recall import MOST, Wanted
from runs.queries.memory_stale import Living, Stale, living_on_stale, staleness_of, touched_by
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Line, Size, made_before
from workspaces.audit import Refusal
from workspaces.queries.paging import in_order
from workspaces.search_text import LONGEST, Unsearchable

routes = Routes("memory")
READ, WRITE, APPROVE, KIND = Permission.VIEW, Permission.WRITE_MEMORY, Permission.APPROVE, Kind.MEMORY
RELATED = ("author", "run", "benchmark", "agent", "reviewed_by")
Slug = Annotated[Line, StringConstraints(min_length=1, max_length=64)]
Maybe = Annotated[Line, StringConstraints(max_length=200)]
Configuration = Annotated[dict[str, Any], Field(max_length=MOST_NAMES)]
TrustWord = Literal["unreviewed", "observed", "confirmed", "durable", "withdrawn"]
KindWord = Literal["failed_attempt", "finding", "guidance", "note"]


class EvidenceIn(Strict):
    kind: Literal["run", "evaluation", "artifact", "dataset_version"]
    id: Name


class ByRunIn(Strict):
    """What a run says. It rests on that run; its trust is unreviewed, and no field says otherwise."""

    kind: KindWord
    collection: Slug
    title: Name
    text: Annotated[Line, StringConstraints(max_length=MOST_TEXT)] = ""
    scope: Literal["workspace", "benchmark", "agent"] = "workspace"
    configuration: Configuration | None = None


class EntryIn(ByRunIn):
    benchmark_id: Maybe = ""
    agent_id: Maybe = ""
    evidence: Annotated[list[EvidenceIn], Field(max_length=MOST_EVIDENCE)] = []
    valid_from: AwareDatetime | None = None
    valid_until: AwareDatetime | None = None
    review_due: AwareDatetime | None = None


class MemoryReviewIn(Strict):
    """`content_hash` of what was read: 409 where the entry says something else by now."""

    trust: Literal["observed", "confirmed", "durable"]
    content_hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    comment: Annotated[Line, StringConstraints(min_length=1, max_length=1000)]
    review_due: AwareDatetime | None = None


class DatesIn(Strict):
    valid_from: AwareDatetime | None = None
    valid_until: AwareDatetime | None = None
    review_due: AwareDatetime | None = None
    reason: Words = ""


class LikeIn(Strict):
    configuration: Configuration
    collection: Annotated[Line, StringConstraints(max_length=64)] = ""


class ReadIn(Strict):
    """`least` is the trust from which on entries count; each entry that comes back leaves a receipt."""

    collection: Annotated[Line, StringConstraints(max_length=64)] = ""
    text: Annotated[Line, StringConstraints(max_length=LONGEST)] = ""
    least: Literal["unreviewed", "observed", "confirmed", "durable"] = "observed"
    limit: Annotated[int, Field(ge=1, le=MOST, strict=True)] = 20


class StaleOut(Schema):
    why: str
    words: str


class MemoryEntryOut(Schema):
    """`stale` is empty where nothing says that the entry may not hold any more."""

    id: str
    revision: int
    trust: str
    scope: str
    kind: str
    collection: str
    title: str
    text: str
    configuration: dict[str, Any] | None
    content_hash: str
    author_kind: str
    author: str | None
    run_id: str | None
    benchmark_id: str | None
    agent_id: str | None
    valid_from: datetime | None
    valid_until: datetime | None
    review_due: datetime | None
    reviewed_by: str | None
    reviewed_at: datetime | None
    withdrawn_reason: str
    created_at: datetime
    superseded_at: datetime | None
    stale: list[StaleOut]


class MemoryEvidenceOut(Schema):
    kind: str
    uuid: str
    named: str


class EntryWhole(MemoryEntryOut):
    """With what it rests on, and how many runs, policies and people have read any revision of it."""

    evidence: list[MemoryEvidenceOut]
    read_by_runs: int
    read_by_policies: int
    read_by_people: int


class EntryPage(Schema):
    items: list[MemoryEntryOut]
    next: str | None


class FoundOut(MemoryEntryOut):
    apart: float | None


class GroupOut(Schema):
    """Entries of one trust; `total` counts to 1,000 for a search."""

    trust: str
    total: int
    items: list[FoundOut]


class GroupsOut(Schema):
    """Most trusted first."""

    groups: list[GroupOut]


class MemoryReadOut(Schema):
    items: list[MemoryEntryOut]


class LivingOut(Schema):
    entry_id: str
    title: str
    policy_id: str | None
    run_id: str | None
    read_at_trust: str
    read_at: datetime
    reasons: list[StaleOut]


class LivingPage(Schema):
    """`is_whole`: were all reads looked at, or the newest alone?"""

    items: list[LivingOut]
    next: str | None
    is_whole: bool


@routes.get("/memory", needs=READ, kind=KIND, response=EntryPage)
def list_all(
    request: ApiRequest,
    trust: TrustWord,
    collection: Annotated[str, Query(max_length=64)] = "",
    kind: KindWord | None = None,
    cursor: Cursor = "",
    limit: Size = settings.API_PAGE_SIZE,
) -> dict[str, Any]:
    """Standing entries of one trust, newest first; trusts are never mixed in one list."""
    page = page_of_trust(trust, collection=collection, kind=kind or "", cursor=cursor, size=limit)
    return {"items": [_entry(row.entry, row.stale) for row in page.items], "next": page.next}


@routes.get("/memory/search", needs=READ, kind=KIND, response=GroupsOut)
def search(
    request: ApiRequest,
    q: Annotated[str, Query(min_length=1, max_length=LONGEST)],
    collection: Annotated[str, Query(max_length=64)] = "",
    kind: KindWord | None = None,
) -> dict[str, Any]:
    """The best matches of each trust: words, "a phrase", -without."""
    try:
        return _groups(searched(q, collection=collection, kind=kind or ""))
    except Unsearchable as error:
        raise Refusal(str(error), field="q") from error


@routes.post("/memory/similar", needs=READ, kind=KIND, response=GroupsOut)
def find_similar(request: ApiRequest, body: LikeIn) -> dict[str, Any]:
    """Entries whose configuration lies nearest, by trust; 0 is alike, 1 has nothing in common. Changes nothing."""
    check_configuration(body.configuration)
    return _groups(similar(body.configuration, collection=body.collection))


@routes.get("/memory/stale", needs=READ, kind=KIND, response=LivingPage)
def stale(request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """Policies that act and runs that are not over, with the entries that they read and that may not hold any more; what was read last first."""
    living, is_whole = living_on_stale()
    page = in_order(living, lambda one: (-one.read.created_at.timestamp(), one.read.pk.hex), cursor=cursor, size=limit)
    return {"items": [_living(one) for one in page.items], "next": page.next, "is_whole": is_whole}


@routes.post("/memory", needs=WRITE, kind=KIND, response=MemoryEntryOut, status=201)
def write(request: ApiRequest, body: EntryIn) -> Status[dict[str, Any]]:
    """Write an entry. It begins unreviewed."""
    entry = made_before(request, MemoryEntry) or write_memory(actor=request.actor, said=_said(body), id=request.chosen_id)
    return Status(201, _fresh(entry))


@routes.get("/memory/{memoryentry}", needs=READ, kind=KIND, response=EntryWhole)
def get(request: ApiRequest, memoryentry: str) -> dict[str, Any]:
    """One revision of an entry."""
    entry = _found(memoryentry)
    page, touched = entry_page(entry), touched_by(entry, shown=0)
    return _entry(entry, page.stale) | {
        "evidence": [_evidence(one) for one in page.evidence],
        "read_by_runs": touched.runs,
        "read_by_policies": touched.policies,
        "read_by_people": touched.people,
    }


@routes.post("/memory/{memoryentry}/revise", needs=WRITE, kind=KIND, response=MemoryEntryOut, status=201)
def revise(request: ApiRequest, memoryentry: str, body: EntryIn) -> Status[dict[str, Any]]:
    """Write the next revision, unreviewed; 409 where this one does not stand any more."""
    return Status(201, _fresh(revise_memory(actor=request.actor, entry=_found(memoryentry), said=_said(body))))


@routes.post("/memory/{memoryentry}/review", needs=APPROVE, kind=KIND, response=MemoryEntryOut)
def review(request: ApiRequest, memoryentry: str, body: MemoryReviewIn) -> dict[str, Any]:
    """Vouch for what another has written."""
    said = body.model_dump()
    return _fresh(review_memory(actor=request.actor, entry=_found(memoryentry), seen_hash=said.pop("content_hash"), **said))


@routes.post("/memory/{memoryentry}/dates", needs=APPROVE, kind=KIND, response=MemoryEntryOut)
def dates(request: ApiRequest, memoryentry: str, body: DatesIn) -> dict[str, Any]:
    """Say until when it holds; what is left out is without end."""
    return _fresh(date_memory(actor=request.actor, entry=_found(memoryentry), **body.model_dump()))


@routes.post("/memory/{memoryentry}/withdraw", needs=WRITE, kind=KIND, response=MemoryEntryOut)
def withdraw(request: ApiRequest, memoryentry: str, body: ReasonIn) -> dict[str, Any]:
    """Take it from everybody who acts."""
    return _fresh(withdraw_memory(actor=request.actor, entry=_found(memoryentry), reason=body.reason))


@routes.post("/memory/{memoryentry}/undo", needs=WRITE, kind=KIND, response=MemoryEntryOut)
def undo(request: ApiRequest, memoryentry: str, body: ReasonIn) -> dict[str, Any]:
    """Put a withdrawn entry back, unreviewed."""
    return _fresh(undo_memory_withdrawal(actor=request.actor, entry=_found(memoryentry), reason=body.reason))


@routes.post("/runs/{run}/memory", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, response=MemoryEntryOut, status=201, by_run=True)
def write_by_run(request: ApiRequest, run: str, body: ByRunIn) -> Status[dict[str, Any]]:
    """Write memory with the run's own token."""
    made = made_before(request, MemoryEntry)
    said = Said(**body.model_dump())
    entry = made or write_run_memory(actor=request.actor, run=Run.objects.find(run), said=said, id=request.chosen_id)
    return Status(201, _fresh(entry))


@routes.post("/runs/{run}/memory/read", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, response=MemoryReadOut, by_run=True)
def read_by_run(request: ApiRequest, run: str, body: ReadIn) -> dict[str, Any]:
    """Read memory with the run's own token: about the workspace, the run's benchmark and its agent, most trusted first; at most 1,000 times a run."""
    found = Run.objects.find(run, "benchmark", "agent")
    wanted = Wanted(
        collection=body.collection, benchmark=found.benchmark, agent=found.agent, text=body.text, least=Trust(body.least), most=body.limit
    )
    entries = read_run_memory(actor=request.actor, run=found, wanted=wanted)
    reasons = staleness_of(entries)
    whole = MemoryEntry.objects.select_related(*RELATED).in_bulk([entry.pk for entry in entries])
    return {"items": [_entry(whole[entry.pk], reasons.get(entry.pk, ())) for entry in entries]}


# --- Shapes ---------------------------------------------------------------------------------------------------------------------------------


def _found(text: str) -> MemoryEntry:
    return MemoryEntry.objects.find(text, *RELATED)


def _fresh(entry: MemoryEntry) -> dict[str, Any]:
    found = _found(entry.public_id)
    return _entry(found, staleness_of([found]).get(found.pk, ()))


def _said(body: EntryIn) -> Said:
    said = body.model_dump(exclude={"evidence", "benchmark_id", "agent_id"})
    return Said(
        **said, benchmark=body.benchmark_id, agent=body.agent_id, evidence=tuple((one.kind, one.id) for one in body.evidence)
    )  # fmt: skip


def _entry(entry: MemoryEntry, reasons: "list[Stale] | tuple[Stale, ...]") -> dict[str, Any]:
    names = (
        "revision", "trust", "scope", "kind", "collection", "title", "text", "configuration", "content_hash", "author_kind", "valid_from",
        "valid_until", "review_due", "reviewed_at", "withdrawn_reason", "created_at", "superseded_at",
    )  # fmt: skip
    return {
        "id": entry.public_id,
        "author": entry.author.username if entry.author else None,
        "run_id": entry.run.public_id if entry.run else None,
        "benchmark_id": entry.benchmark.public_id if entry.benchmark else None,
        "agent_id": entry.agent.public_id if entry.agent else None,
        "reviewed_by": entry.reviewed_by.username if entry.reviewed_by else None,
        "stale": [_stale(reason) for reason in reasons],
        **{name: getattr(entry, name) for name in names},
    }


def _stale(reason: Stale) -> dict[str, str]:
    return {"why": reason.why, "words": reason.words}


def _evidence(one: MemoryEvidence) -> dict[str, str]:
    return {"kind": one.kind, "uuid": str(one.subject_id), "named": one.named}


def _groups(groups: list[Group]) -> dict[str, Any]:
    return {"groups": [{"trust": group.trust.value, "total": group.total, "items": [_hit(row) for row in group.rows]} for group in groups]}


def _hit(row: Row) -> dict[str, Any]:
    return _entry(row.entry, row.stale) | {"apart": row.apart}


def _living(one: Living) -> dict[str, Any]:
    return {
        "entry_id": one.entry.public_id,
        "title": one.entry.title,
        "policy_id": one.policy.public_id if one.policy else None,
        "run_id": one.run.public_id if one.run else None,
        "read_at_trust": one.read.trust,
        "read_at": one.read.created_at,
        "reasons": [_stale(reason) for reason in one.reasons],
    }
