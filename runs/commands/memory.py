"""Memory: written by people and runs, vouched for by others, withdrawn and taken back. No writer gives an entry any trust."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.utils import timezone

from runs.commands.policy_bell import ring_policies
from runs.commands.report import own_attempt
from runs.models import Decision, Evaluation, MemoryEntry, MemoryEvidence, Run, Trust
from runs.queries.secret import redactor_of
from runs.queries.withdrawal import find_subject
from workspaces import ids
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.canonical import canonical, digest
from workspaces.models import Agent, Benchmark, NotFound, User
from workspaces.queries.requester import makers_behind
from workspaces.text import UNSTORABLE, is_storable, is_storable_json, unreadable
from workspaces.verbs import Verb

MOST_EVIDENCE, MOST_NAMES = 20, 100
MOST_TEXT, MOST_CONFIGURATION_BYTES = 8_000, 16_000
MOST_OF_A_RUN = 500
Author = MemoryEntry.Author
GIVEN = (Trust.OBSERVED, Trust.CONFIRMED, Trust.DURABLE)  # what a review may say


@dataclass(frozen=True, slots=True)
class Said:
    """What an entry says. `benchmark` and `agent` are names; the scope decides which of them it wants. `evidence`: kind and id of each thing."""

    kind: str
    collection: str
    title: str
    text: str = ""
    scope: str = MemoryEntry.Scope.WORKSPACE
    benchmark: str = ""
    agent: str = ""
    configuration: Mapping[str, Any] | None = None
    evidence: Sequence[tuple[str, str]] = ()
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    review_due: datetime | None = None


@command(Verb.MEMORY_WRITTEN, needs=Permission.WRITE_MEMORY, kind=Kind.MEMORY)
def write_memory(event: Draft, *, actor: Actor, said: Said, id: uuid.UUID | None = None) -> MemoryEntry:  # noqa: A002  # the word of the column
    """A new entry, unreviewed, whoever writes it."""
    if actor.user is None:
        raise Refusal("Somebody has to answer for what is written.")
    return _keep(event, said, id=id or ids.uuid7(), author_kind=Author.PERSON, author=actor.user)


@command(
    Verb.MEMORY_WRITTEN,
    needs=None,
    public_reason="the token of the one run, checked first thing",
    in_archive="a run that was let go on keeps what it makes",
)
def write_run_memory(event: Draft, *, actor: Actor, run: Run, said: Said, id: uuid.UUID | None = None) -> MemoryEntry:  # noqa: A002  # as above
    """What a run writes with its own token while it runs: unreviewed, resting on that run and on nothing else. Its secrets are blotted out."""
    run = Run.objects.select_for_update(no_key=True, of=("self",)).select_related("benchmark", "agent", "requested_by").get(pk=run.pk)
    redactor = redactor_of(own_attempt(actor, run))
    if MemoryEntry.objects.filter(run=run).count() >= MOST_OF_A_RUN:
        raise Refusal(f"A run may write {MOST_OF_A_RUN} memory entries; {run.name} has.")
    blotted = Said(
        kind=said.kind,
        collection=redactor.blot_text(said.collection),
        title=redactor.blot_text(said.title),
        text=redactor.blot_text(said.text),
        scope=said.scope,
        benchmark=run.benchmark.slug if said.scope == MemoryEntry.Scope.BENCHMARK else "",
        agent=run.agent.slug if said.scope == MemoryEntry.Scope.AGENT else "",
        configuration=None
        if said.configuration is None
        else {redactor.blot_text(k): _blot(redactor, v) for k, v in said.configuration.items()},
        evidence=(("run", run.public_id),),
    )
    event.about = run
    return _keep(event, blotted, id=id or ids.uuid7(), author_kind=Author.RUN, author=run.requested_by, run=run)


@command(Verb.MEMORY_WRITTEN, needs=Permission.WRITE_MEMORY, kind=Kind.MEMORY)
def write_policy_memory(event: Draft, *, actor: Actor, said: Said, decision: Decision, id: uuid.UUID) -> MemoryEntry:  # noqa: A002  # as above
    """What a policy writes, once a decision: unreviewed, and never vouched for by whoever proposed the policy. Raises Refusal where it is there."""
    if actor.user is None:
        raise Refusal("Somebody has to answer for what is written.")
    lock_ledger()
    if MemoryEntry.objects.filter(pk=id).exists():
        raise Refusal("This decision has written its entry.")
    event.reason = decision.label
    return _keep(event, said, id=id, author_kind=Author.POLICY, author=actor.user, policy=decision.policy)


@command(Verb.MEMORY_REVISED, needs=Permission.WRITE_MEMORY, kind=Kind.MEMORY)
def revise_memory(event: Draft, *, actor: Actor, entry: MemoryEntry, said: Said) -> MemoryEntry:
    """A further revision, unreviewed; the one before stays in the history with what was said of it, and nobody reads it any more."""
    if actor.user is None:
        raise Refusal("Somebody has to answer for what is written.")
    entry = _standing(entry)
    if entry.trust == Trust.WITHDRAWN:
        raise Refusal("This entry is withdrawn; undo that first, or write another.")
    if entry.trust != Trust.UNREVIEWED and actor.user.kind != User.Kind.PERSON:
        raise Refusal("A person has vouched for this, so a person replaces it; write another entry beside it.")
    event.change(entry, superseded_at=timezone.now())
    return _keep(
        event,
        said,
        id=ids.uuid7(),
        author_kind=Author.PERSON,
        author=actor.user,
        thread=entry.thread,
        revision=entry.revision + 1,
        before=entry,
    )


@command(Verb.MEMORY_REVIEWED, needs=Permission.APPROVE, kind=Kind.MEMORY)
def review_memory(
    event: Draft, *, actor: Actor, entry: MemoryEntry, trust: str, seen_hash: str, comment: str, review_due: datetime | None = None
) -> MemoryEntry:
    """Say how far an entry may be trusted. Never one's own, nor that of one's own run; void where it is not what the reviewer read."""
    entry = _standing(entry)
    if actor.user is None or actor.user.kind != User.Kind.PERSON:
        raise Refusal("Only a person vouches for memory.")
    if entry.author_id == actor.user.pk:
        raise Refusal("You wrote this, or answer for the run that did; another person reviews it.")
    if actor.user.pk in _makers(entry):
        raise Refusal("It was written through a token that you made; another person reviews it.")
    if seen_hash != entry.content_hash:
        raise Refusal("The entry has changed since you read it; read it again before you vouch for it.")
    if trust not in GIVEN:
        raise Refusal("A review says observed, confirmed or durable.", field="trust")
    if entry.trust == Trust.WITHDRAWN:
        raise Refusal("This entry is withdrawn; undo that first.")
    event.reason = _reason(comment, "comment")
    if trust == entry.trust:
        raise Refusal(f"It is trusted as {trust} already.", field="trust")
    event.details["content_hash"] = entry.content_hash
    due = review_due if review_due is not None else entry.review_due
    if review_due is not None and review_due <= timezone.now():
        raise Refusal("The next review lies ahead.", field="review_due")
    event.change(
        entry, trust=trust, reviewed_by=actor.user, reviewed_at=timezone.now(), review_comment=event.reason, review_due=due
    )  # fmt: skip
    ring_policies()
    return entry


@command(Verb.MEMORY_DATED, needs=Permission.APPROVE, kind=Kind.MEMORY)
def date_memory(
    event: Draft,
    *,
    actor: Actor,
    entry: MemoryEntry,
    valid_from: datetime | None,
    valid_until: datetime | None,
    review_due: datetime | None,
    reason: str,
) -> MemoryEntry:
    """Say from when until when an entry holds, and when somebody should look again. A reviewer's word: a later date makes what is stale fresh."""
    entry = _standing(entry)
    event.reason = _reason(reason)
    if actor.user is None:
        raise Refusal("Only a person sets how long something holds.")
    if entry.trust != Trust.UNREVIEWED and actor.user.pk in {entry.author_id, *_makers(entry)}:
        raise Refusal("Another person has vouched for what you wrote; another person than you says for how long.")
    _check_dates(valid_from, valid_until)
    event.change(entry, valid_from=valid_from, valid_until=valid_until, review_due=review_due)
    return entry


@command(Verb.MEMORY_WITHDRAWN, needs=Permission.WRITE_MEMORY, kind=Kind.MEMORY)
def withdraw_memory(event: Draft, *, actor: Actor, entry: MemoryEntry, reason: str) -> MemoryEntry:
    """Take an entry from everybody who would read it. It stays on its page, with who had read it."""
    entry = _standing(entry)
    event.reason = _reason(reason)
    if actor.user is None:
        raise Refusal("A person withdraws memory.")
    if entry.trust == Trust.WITHDRAWN:
        raise Refusal("It is withdrawn already.")
    if entry.trust != Trust.UNREVIEWED and actor.user.kind != User.Kind.PERSON:
        raise Refusal("A person has vouched for this, so a person withdraws it.")
    event.change(entry, trust=Trust.WITHDRAWN, withdrawn_by=actor.user, withdrawn_at=timezone.now(), withdrawn_reason=event.reason)
    return entry


@command(Verb.MEMORY_WITHDRAWAL_UNDONE, needs=Permission.WRITE_MEMORY, kind=Kind.MEMORY)
def undo_memory_withdrawal(event: Draft, *, actor: Actor, entry: MemoryEntry, reason: str) -> MemoryEntry:
    """Put an entry back, unreviewed: whoever vouched for it did so before there was a reason to withdraw it."""
    entry = _standing(entry)
    event.reason = _reason(reason)
    if entry.trust != Trust.WITHDRAWN:
        raise Refusal("It is not withdrawn.")
    if actor.user is None or actor.user.kind != User.Kind.PERSON:
        raise Refusal("Only a person puts back what was withdrawn.")
    event.change(
        entry, trust=Trust.UNREVIEWED, withdrawn_by=None, withdrawn_at=None, withdrawn_reason="",
        reviewed_by=None, reviewed_at=None, review_comment="",
    )  # fmt: skip
    return entry


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def content_of(entry: MemoryEntry, evidence: Sequence[MemoryEvidence]) -> dict[str, Any]:
    """Everything that a reviewer vouches for."""
    return {
        **{name: getattr(entry, name) for name in ("thread", "revision", "scope", "kind", "collection", "title", "text", "configuration")},
        "benchmark": entry.benchmark_id,
        "agent": entry.agent_id,
        "evidence": sorted(f"{one.kind} {one.subject_id.hex}" for one in evidence),
    }


def _keep(event: Draft, said: Said, *, id: uuid.UUID, before: MemoryEntry | None = None, **author: Any) -> MemoryEntry:  # noqa: A002  # as above
    """Checked, with its evidence and its hash. Dates come from what is said; a revision that says none keeps those of the one before."""
    check_said(said)
    dates = {name: getattr(said, name) or getattr(before, name, None) for name in ("valid_from", "valid_until", "review_due")}
    _check_dates(dates["valid_from"], dates["valid_until"])
    entry = entry_of(
        said,
        id=id,
        scope=said.scope,
        benchmark=_named(Benchmark, said.benchmark, "benchmark") if said.scope == "benchmark" else None,
        agent=_named(Agent, said.agent, "agent") if said.scope == "agent" else None,
        **dates,
        **author,
    )
    evidence = [_evidence(entry, kind, text) for kind, text in dict.fromkeys(said.evidence)]
    entry.content_hash = digest(content_of(entry, evidence))
    entry.save(force_insert=True)
    MemoryEvidence.objects.bulk_create(evidence)
    event.created(entry, *evidence)
    event.about = event.about or entry
    ring_policies()
    return entry


def entry_of(said: Said, **values: Any) -> MemoryEntry:
    """What was said as a row, which nobody has kept yet; `values` are those that its words do not say."""
    configuration = dict(said.configuration) if said.configuration else None
    return MemoryEntry(
        kind=said.kind, collection=said.collection, title=said.title.strip(), text=said.text.strip(), configuration=configuration, **values
    )


def check_said(said: Said) -> None:
    """What can be told of an entry from its words alone. Raises Refusal."""
    if said.kind not in MemoryEntry.EntryKind.values or said.scope not in MemoryEntry.Scope.values:
        raise Refusal("There is no such kind or scope of memory.", field="kind")
    try:
        ids.validate_slug(said.collection)
    except ValidationError as error:
        raise Refusal(*error.messages, field="collection") from error
    if fault := unreadable(said.title):
        raise Refusal(fault, field="title")
    if not said.title.strip() or len(said.title) > 200:
        raise Refusal("A title has 1 to 200 characters.", field="title")
    if len(said.text) > MOST_TEXT:
        raise Refusal(f"An entry has up to {MOST_TEXT:,} characters; this has {len(said.text):,}.", field="text")
    for field in ("title", "text"):
        if not is_storable(getattr(said, field)):
            raise Refusal(f"This holds {UNSTORABLE}.", field=field)
    if said.configuration:
        check_configuration(said.configuration)
    if len(said.evidence) > MOST_EVIDENCE:
        raise Refusal(f"An entry rests on up to {MOST_EVIDENCE} things; this names {len(said.evidence)}.", field="evidence")


def check_configuration(configuration: Mapping[str, Any]) -> None:
    """Names with a plain value each: what can be compared. Raises Refusal."""
    if len(configuration) > MOST_NAMES or any(isinstance(value, dict | list) for value in configuration.values()):
        raise Refusal(
            f"A configuration has up to {MOST_NAMES} names, each with a number, a text, true, false or null.", field="configuration"
        )
    if not is_storable_json(dict(configuration)) or any(type(value) is int and abs(value) > 2**63 for value in configuration.values()):
        raise Refusal("A configuration holds text that can be kept, and finite numbers of up to 64 bits.", field="configuration")
    count = len(canonical(dict(configuration)))
    if count > MOST_CONFIGURATION_BYTES:
        raise Refusal(f"A configuration has up to {MOST_CONFIGURATION_BYTES:,} bytes; this has {count:,}.", field="configuration")


def _check_dates(valid_from: datetime | None, valid_until: datetime | None) -> None:
    if valid_from is not None and valid_until is not None and valid_until <= valid_from:
        raise Refusal("It would end before it begins to hold.", field="valid_until")


def _named(model: "type[Benchmark] | type[Agent]", text: str, field: str) -> Any:
    try:
        return model.objects.find(text)
    except NotFound as error:
        raise Refusal(f"Memory of one {field} says of which; there is no such {field} here.", field=field) from error


def _evidence(entry: MemoryEntry, kind: str, text: str) -> MemoryEvidence:
    try:
        if kind == "evaluation":
            evaluation = Evaluation.objects.find(text, "run")
            return MemoryEvidence(entry=entry, evaluation=evaluation, named=f"{evaluation.metric} of {evaluation.run.name}"[:300])
        node, label = find_subject(kind, text)
    except NotFound as error:
        raise Refusal(f"There is no {error.noun} {text[:100]} here to rest on.", field="evidence") from error
    return MemoryEvidence(entry=entry, named=label[:300], **{f"{node.kind.value}_id": node.id})


def _makers(entry: MemoryEntry) -> frozenset[uuid.UUID]:
    """Who made the token that wrote it, or that asked for the run which did."""
    return makers_behind([entry.pk] if entry.run_id is None else [entry.pk, entry.run_id])


def _standing(entry: MemoryEntry) -> MemoryEntry:
    """The entry, locked; what another revision has replaced is history, and nothing happens to it any more."""
    locked = MemoryEntry.objects.select_for_update(no_key=True).get(pk=entry.pk)
    if locked.superseded_at is not None:
        raise Refusal("This is not the latest revision any more; open the one that stands.")
    return locked


def _reason(text: str, field: str = "reason") -> str:
    given = text.strip()[:1000]
    if not given:
        raise Refusal("Say why; it stands on the entry's page.", field=field)
    return given


def _blot(redactor: Any, value: Any) -> Any:
    return redactor.blot_text(value) if isinstance(value, str) else value
