"""What holds work up until somebody does something. A run that only waits for its turn is not blocked."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.queries.failure import repeated_failures
from runs.queries.home_now import Now
from runs.queries.home_waiting import Queued
from runs.queries.policy import failing
from runs.start import Hold, Holds, Waits
from workspaces.models import Limit, Unit, Workspace
from workspaces.queries.budget import last_recount
from workspaces.queries.overrun import overruns
from workspaces.queries.workspace import creation_steps
from workspaces.standings import Standing
from workspaces.units import plural

STUCK_SHOWN = 5
LATELY = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Block:
    """What holds work up, and where it can be changed: the name of a page and what it wants besides the workspace."""

    words: str
    lines: tuple[str, ...] = ()
    page: str = ""
    argument: str = ""
    act: str = "Look"


def blocks(
    workspace: Workspace, limits: list[Standing], now: Now, queue: Queued | None, moment: datetime, *, hold: Hold | None = None
) -> list[Block]:
    found: list[Block] = []
    if workspace.status == Workspace.Status.CONFIGURING:
        steps = creation_steps(workspace)
        missing = tuple(step.missing for step in steps if not step.is_done)
        words = (
            f"Nothing can run yet: {len(missing)} of {len(steps)} steps of setting up are missing."
            if missing
            else "All is set up: open it for launches."
        )
        found.append(Block(words, missing, "workspace-setup", act="Set up"))
    if hold is not None:
        waits = f"{plural(now.waiting, 'run waits', 'runs wait')}. " if now.waiting else ""
        found.append(Block(f"{hold.by} holds the queue: nothing starts.", (f"{waits}Why: {hold.reason}",), "queue"))
    if queue is not None:
        found += [_stuck(*entry) for entry in queue.stuck() if entry[0].holds != Holds.ALL][:STUCK_SHOWN]
    for standing in limits:
        if standing.mode == Limit.Mode.STOP and standing.unit != Unit.RUNS and standing.window != Limit.Window.RUN and standing.free <= 0:
            until = f" It frees up {standing.until}." if standing.until else ""
            found.append(Block(f"{standing.name}: nothing is left.{until}", page="budget"))
    for alarm in overruns(now=moment):
        found.append(Block(alarm.words, page="run" if alarm.run_ref else "", argument=alarm.run_ref))
    for group in repeated_failures(moment - LATELY):
        words = f"{plural(group.count, 'run', 'runs')} of {group.agent.name[:60]} failed for the same reason."
        found.append(Block(words, (group.title[:200],), "failure", group.public_id))
    found += [
        Block(f"The policy {row.policy.name[:60]} needs somebody.", (row.trouble[:300],), "policy", row.policy.slug) for row in failing()
    ]
    counted = last_recount()
    if counted is not None and not counted.is_right:
        found.append(Block("The ledger does not add up: balances differ from their entries.", page="ledger"))
    silent = sum(row.is_unanswered for row in now.rows)
    if silent:
        what = "1 run; its budget stays held" if silent == 1 else f"{silent} runs; their budget stays held"
        found.append(Block(f"The pool does not answer about {what}.", page="run-list"))
    return found


def _stuck(waits: Waits, pool: str, count: int) -> Block:
    if waits.holds == Holds.POOL:
        return Block(waits.reason, (f"{plural(count, 'run waits', 'runs wait')} for it. {waits.release}",), "pool", pool)
    return Block(f"{plural(count, 'queued run', 'queued runs')} cannot start.", (waits.words,), "queue")
