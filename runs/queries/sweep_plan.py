"""What a sweep would ask for, before anything is written: its members, what each reserves, and whether all together fit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

from runs.admission import SPANS, Answer, decide, wait_words
from runs.admission_facts import LimitFacts, QuotaFacts
from runs.launch import LaunchRequest
from runs.queries.admission import admission_facts
from runs.queries.frozen import Prepared
from runs.queries.launch_request import prepare
from runs.queries.parameters import checked_parameters
from runs.search_space import BadSpace, SearchSpace, arithmetic, read_space
from workspaces.audit import Refusal
from workspaces.models import Limit, User
from workspaces.standings import CALENDAR
from workspaces.units import amount, plural


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """`prepared` is the first member; `misfit` says why it would be refused, or with the arithmetic why the members do not fit
    together; else empty."""

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


def plan_sweep(request: LaunchRequest, document: Any, *, person: User | None) -> SweepPlan:
    """Read the space and ask the agent's schema about every value in it. Raises Refusal with its field, NotFound for names that are not
    here. `person` is whom the members count for."""
    try:
        space = read_space(document)
    except BadSpace as fault:
        raise Refusal(str(fault), field=f"space.{fault.axis}" if fault.axis else "space") from fault
    first, *others = space.probes()
    seed = space.seeds[0] if space.seeds else request.seed
    prepared = prepare(replace(request, parameters={**request.parameters, **first}, seed=seed))
    for probe in others:
        checked_parameters({**request.parameters, **probe}, prepared.version)
    facts = admission_facts(prepared, now=timezone.now(), person=person)
    verdict = decide(facts)
    if verdict.answer == Answer.REFUSE:
        return SweepPlan(space, prepared, " ".join(verdict.reasons))
    return SweepPlan(space, prepared, _too_many(facts.quota, space) or _misfit(facts.limits, space))


def _too_many(quota: QuotaFacts | None, space: SearchSpace) -> str:
    """What the contract leaves the person in this period, against all members."""
    if quota is None or space.count <= quota.left:
        return ""
    left = quota.left
    most = f"At most {plural(left, 'member fits', 'members fit')}: leave values out, or wait."
    return (
        f"{arithmetic(space)} = {plural(space.count, 'run', 'runs')}, and {left:,} of {quota.allowed:,} that one person may ask for on "
        f"{quota.benchmark} {SPANS[quota.period]} are left. {most} {wait_words(quota)}"
    )


def _misfit(limits: Sequence[LimitFacts], space: SearchSpace) -> str:
    """Each hard limit of a calendar window, against all members. Limits that need approval or only warn speak at each launch."""
    for limit in limits:
        if limit.mode != Limit.Mode.STOP or limit.window not in CALENDAR or not limit.asked:
            continue
        total, free = limit.asked * space.count, max(0, limit.amount - limit.used - limit.reserved)
        if total > free:
            together = f"{amount(limit.asked, limit.unit)} = {amount(total, limit.unit)}"
            return (
                f"{arithmetic(space)} = {space.count:,} members × {together}, and {amount(free, limit.unit)} are free "
                f"({limit.name.lower()}). At most {free // limit.asked:,} members fit: leave values out, ask for less each, or for an increase."
            )
    return ""
