"""What a sweep would ask for, before anything is written: its members, what each reserves, and whether all together fit."""

from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

from runs.launch import LaunchRequest
from runs.queries.frozen import Prepared
from runs.queries.launch_request import prepare
from runs.queries.parameters import checked_parameters
from runs.search_space import BadSpace, SearchSpace, arithmetic, read_space
from workspaces.audit import Refusal
from workspaces.models import Limit, Unit
from workspaces.standings import amount_words, standings


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """`prepared` is the first member; `misfit` the sentence with the arithmetic where the members do not fit together, else empty."""

    space: SearchSpace
    prepared: Prepared
    misfit: str

    @property
    def members(self) -> str:
        return arithmetic(self.space)

    @property
    def gpu_ms(self) -> int:
        """What all members reserve, at most."""
        return self.prepared.gpu_ms * self.space.count


def plan_sweep(request: LaunchRequest, document: Any) -> SweepPlan:
    """Read the space and ask the agent's schema about every value in it. Raises Refusal with its field, NotFound for names that are not here."""
    try:
        space = read_space(document)
    except BadSpace as fault:
        raise Refusal(str(fault), field=f"space.{fault.axis}" if fault.axis else "space") from fault
    first, *others = space.probes()
    seed = space.seeds[0] if space.seeds else request.seed
    prepared = prepare(replace(request, parameters={**request.parameters, **first}, seed=seed))
    for probe in others:
        checked_parameters({**request.parameters, **probe}, prepared.version)
    return SweepPlan(space, prepared, _misfit(prepared, space))


def _misfit(prepared: Prepared, space: SearchSpace) -> str:
    """Each hard limit of a calendar window, against all members. Limits that need approval or only warn speak at each launch."""
    asked = {Unit.GPU_MS: prepared.gpu_ms, Unit.API_MICROS: prepared.api_micros}
    for standing in standings(now=timezone.now()):
        each = asked.get(Unit(standing.unit), 0)
        if standing.mode != Limit.Mode.STOP or standing.window not in (Limit.Window.WEEK, Limit.Window.MONTH) or not each:
            continue
        total, free = each * space.count, max(0, standing.amount - standing.used - standing.reserved)
        if total > free:
            together = f"{amount_words(each, standing.unit)} = {amount_words(total, standing.unit)}"
            return (
                f"{arithmetic(space)} = {space.count:,} members × {together}, and {amount_words(free, standing.unit)} are free "
                f"({standing.name.lower()}). At most {free // each:,} members fit: leave values out, ask for less each, or for an increase."
            )
    return ""
