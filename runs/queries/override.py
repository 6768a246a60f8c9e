"""What people decided against the usual course of the queue, the pools and the budget, and why: read from the record, which holds it all."""

from django.db.models import Exists, OuterRef, Q

from runs.models import Run
from workspaces.models import ActorKind, EventSubject
from workspaces.queries.event import Filters, Told, matching, newest
from workspaces.queries.paging import Page
from workspaces.verbs import Verb

# What stands in the address, in words, and the verbs of it.
KINDS: dict[str, tuple[str, tuple[Verb, ...]]] = {
    "priority": ("priority changed", (Verb.RUN_PRIORITY_SET, Verb.RUN_PRIORITY_ASKED)),
    "moved": ("moved to another pool", (Verb.RUN_MOVED, Verb.RUN_MOVE_REFUSED)),
    "cancelled": ("run of another cancelled", (Verb.RUN_CANCEL_ASKED, Verb.RUN_CANCELLED, Verb.RUN_MANY_CANCEL_ASKED)),
    "lost": ("declared lost", (Verb.RUN_DECLARED_LOST,)),
    "retried": ("retried by hand", (Verb.LAUNCH_ADMITTED, Verb.LAUNCH_HELD)),
    "queue": ("queue held or released", (Verb.QUEUE_HELD, Verb.QUEUE_RELEASED)),
    "pool": ("pool closed or opened", (Verb.POOL_UNBOUND, Verb.POOL_OPENED)),
    "corrected": ("ledger or spend corrected", (Verb.LEDGER_CORRECTED, Verb.SPEND_CORRECTED)),
    "limit": ("limit changed", (Verb.LIMIT_SET, Verb.LIMIT_REMOVED, Verb.WORKSPACE_PRIORITY_LIMIT_SET)),
}


def overrides(filters: Filters, *, kind: str = "", cursor: str = "", size: int = 50) -> Page[Told]:
    """Overrides that match, newest first; of one of `KINDS`, or of all. The cursor is the sequence number of the last one seen. Raises Refusal
    for a filter that names nobody, BadCursor."""
    rows = matching(filters).exclude(actor_kind=ActorKind.SYSTEM).filter(_wanted(kind))
    return newest(rows, cursor=cursor, size=size)


def _wanted(kind: str) -> Q:
    wanted = Q(pk=None)
    for name, (_, verbs) in KINDS.items():
        if kind in ("", name):
            wanted |= Q(verb__in=[verb.value for verb in verbs]) & _condition(name)
    return wanted


def _condition(kind: str) -> Q:
    """What of these verbs is an override at all: cancelling one's own run, or a first launch, is none."""
    run = Run.objects.filter(pk=OuterRef("subject_id"))
    match kind:
        case "cancelled":
            of_others = Run.objects.filter(pk=OuterRef("object_id")).exclude(requested_by=OuterRef(OuterRef("actor_id")))
            return Q(Exists(EventSubject.objects.filter(Exists(of_others), event=OuterRef("pk"), type="run")))
        case "retried":
            return Q(Exists(run.filter(trigger="retry")))
        case _:
            return Q()
