"""Saying what a workspace tries to improve. An earlier objective stays on the record."""

import math
import uuid
from datetime import date

from workspaces import scope
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.registry import insert
from workspaces.models import Benchmark, Objective, Workspace
from workspaces.verbs import Verb


@command(Verb.OBJECTIVE_SET, needs=Permission.MANAGE_WORKSPACE, kind=Kind.WORKSPACE)
def set_objective(
    event: Draft,
    *,
    actor: Actor,
    statement: str,
    benchmark: str | None = None,
    target: float | None = None,
    due_on: date | None = None,
    reason: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Objective:
    """Set the current objective: a sentence, and where it can be measured the benchmark (id or slug), the score to reach, and the day."""
    event.reason = reason.strip()[:1000]
    if target is not None and not math.isfinite(target):
        raise Refusal("A target is a number that can be reached.", field="target")
    if target is not None and not benchmark:
        raise Refusal("A target is reached on a benchmark; name it.", field="benchmark")
    measured = Benchmark.objects.find(benchmark) if benchmark else None
    Workspace.objects.select_for_update(no_key=True).get(pk=scope.current_id())  # two at once: the second replaces the first
    for before in Objective.objects.select_for_update(no_key=True).filter(is_current=True):
        event.change(before, is_current=False)
        event.details["before"] = before.statement
    event.details["statement"] = statement
    objective = Objective(statement=statement.strip(), benchmark=measured, target=target, due_on=due_on)
    if id is not None:
        objective.pk = id
    insert(event, objective)
    event.subjects.reverse()  # the new objective is what this event is about
    return objective
