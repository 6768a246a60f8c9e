"""What operators do to the queue: hold and release it, change how soon a run goes. Each with a reason."""

from runs import queue
from runs.lifecycle import RunStatus
from runs.models import QueueHold, QueueItem, Run
from workspaces import scope
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.asked_kinds import AsOfNow
from workspaces.audit import Draft, Refusal, command
from workspaces.canonical import digest
from workspaces.commands import approval as requests
from workspaces.models import Approval, Workspace
from workspaces.reasons import because
from workspaces.verbs import Verb

LEAST, MOST = -100, 100  # priorities


@command(Verb.QUEUE_HELD, needs=Permission.MANAGE_QUEUE, kind=Kind.RUN)
def hold_queue(event: Draft, *, actor: Actor, reason: str) -> QueueHold:
    """Let no queued run of the workspace start until the queue is released. What runs goes on, and what is launched waits."""
    lock_ledger()
    event.reason = because(reason, "Say why; whoever waits will read it.")
    if actor.user is None:
        raise Refusal("A queue is held by a person, who answers for it.")
    standing = QueueHold.objects.select_related("held_by").first()
    if standing is not None:
        raise Refusal(f"{standing.held_by.label} holds the queue already. Why: {standing.reason}")
    held = QueueHold.objects.create(held_by=actor.user, reason=event.reason)
    event.created(held)
    return held


@command(Verb.QUEUE_RELEASED, needs=Permission.MANAGE_QUEUE, kind=Kind.RUN)
def release_queue(event: Draft, *, actor: Actor, reason: str) -> None:
    """Let queued runs start again."""
    lock_ledger()
    event.reason = because(reason, "Say why; it stands in the record.")
    standing = QueueHold.objects.first()
    if standing is None:
        raise Refusal("Nobody holds the queue.")
    event.deleting(standing)
    standing.delete()
    queue.ring("dispatch_run", subject=scope.current_id())


@command(Verb.RUN_PRIORITY_SET, needs=Permission.MANAGE_QUEUE, kind=Kind.RUN)
def set_priority(event: Draft, *, actor: Actor, run: Run, priority: int, reason: str) -> Approval | None:
    """Let a queued run go sooner or later than others: higher goes first. Raised above the workspace's limit it waits for another person's
    approval, and keeps its place until then; the request is returned."""
    workspace = lock_ledger()
    event.reason = because(reason, "Say why; those who are passed will read it.")
    run, item = queued(run)
    event.about = run
    if not LEAST <= priority <= MOST:
        raise Refusal(f"A priority is a whole number from {LEAST} to {MOST}.", field="priority")
    if priority == run.priority:
        raise Refusal(f"{run.name} has priority {priority} already.", field="priority")
    requests.void(event, subject_type="priority", subject_id=run.pk)  # what was asked for before is asked for no more
    if priority <= max(workspace.priority_limit, run.priority):
        _set(event, run, item, priority)
        return None
    if actor.user is None:
        raise Refusal("A priority above the limit is asked for by a person, who answers for it.")
    event.verb = Verb.RUN_PRIORITY_ASKED
    event.details |= {"priority": priority, "limit": workspace.priority_limit}
    content = _content(run, priority, workspace.priority_limit)
    return requests.ask(
        event,
        subject_type="priority",
        subject_id=run.pk,
        subject_label=run.name,
        content=content,
        reason=event.reason,
        requested_by=actor.user,
        token_id=actor.token_id,
    )


@command(Verb.APPROVAL_GIVEN, needs=Permission.APPROVE, kind=Kind.APPROVAL)
def decide_priority(
    event: Draft, *, actor: Actor, approval: Approval, approves: bool, comment: str, seen_hash: str, is_alone: bool = False
) -> Approval:
    """Decide on a priority above the limit. Void where the run has left the queue, or has another priority by now."""
    workspace = lock_ledger()
    asked, _ = requests.taken_up(approval, actor=actor, seen_hash=seen_hash)
    if approves:
        requests.demand_still(asked.requested_by, Permission.MANAGE_QUEUE, Kind.RUN, "move runs in the queue")
    run = Run.objects.select_for_update(no_key=True).get(pk=asked.subject_id)
    item = QueueItem.objects.select_for_update(no_key=True).filter(run=run).first()
    event.details["run"] = run.name
    priority = int(asked.content["priority"])
    now = _content_now(run, item, priority, workspace.priority_limit)
    status = requests.record_vote(
        event,
        approval=asked,
        actor=actor,
        approves=approves,
        comment=comment,
        current_hash=digest(now),
        content_now=now,
        is_alone=is_alone,
    )
    if status == Approval.Status.APPROVED and item is not None:
        _set(event, run, item, priority)
    return asked


@command(Verb.WORKSPACE_PRIORITY_LIMIT_SET, needs=Permission.MANAGE_WORKSPACE, kind=Kind.WORKSPACE)
def set_priority_limit(event: Draft, *, actor: Actor, limit: int, reason: str) -> Workspace:
    """Up to which priority a run needs no approval. What waits already keeps its place."""
    workspace = lock_ledger()
    event.reason = because(reason, "Say why; it stands in the record.")
    if not LEAST <= limit <= MOST:
        raise Refusal(f"A priority is a whole number from {LEAST} to {MOST}.", field="limit")
    if limit == workspace.priority_limit:
        raise Refusal(f"The limit is {limit} already.", field="limit")
    event.change(workspace, priority_limit=limit)
    return workspace


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def queued(run: Run) -> tuple[Run, QueueItem]:
    """The run and its place in the queue, locked; the ledger is locked before. Raises Refusal where it waits no more."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    item = QueueItem.objects.select_for_update(no_key=True).filter(run=run).first()
    if run.status != RunStatus.QUEUED or item is None:
        raise Refusal(f"{run.name} is {run.get_status_display()} and waits in no queue.")
    return run, item


def end_priority(event: Draft, asked: Approval, status: str, reason: str) -> None:
    """Nothing: the run keeps its place."""


def _set(event: Draft, run: Run, item: QueueItem, priority: int) -> None:
    event.change(run, priority=priority)
    event.change(item, priority=priority)
    queue.ring("dispatch_run", subject=scope.current_id())


def as_of_now(approval: Approval) -> AsOfNow | None:
    """What would be asked at this moment, for whoever looks before deciding."""
    run = Run.objects.filter(pk=approval.subject_id).first()
    if run is None or "priority" not in approval.content:
        return None
    workspace = Workspace.objects.get(pk=scope.current_id())
    item = QueueItem.objects.filter(run=run).first()
    now = _content_now(run, item, int(approval.content["priority"]), workspace.priority_limit)
    return AsOfNow(digest(now), now)


def _content_now(run: Run, item: QueueItem | None, priority: int, limit: int) -> dict[str, str | int]:
    waits = run.status == RunStatus.QUEUED and item is not None
    return _content(run, priority, limit) if waits else {"waits_in_the_queue": False}


def _content(run: Run, priority: int, limit: int) -> dict[str, str | int]:
    """What an approver agrees to; it is void once the run, its priority or the limit is another one."""
    return {
        "asks": f"Raise the priority of {run.name} from {run.priority} to {priority}",
        "run": run.public_id,
        "priority": priority,
        "priority_now": run.priority,
        "highest_without_approval": limit,
    }
