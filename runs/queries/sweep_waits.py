"""Why a sweep that a policy launched launches no more members now: what its page says is what the job goes by."""

from dataclasses import dataclass

from runs.lifecycle import TERMINAL
from runs.models import Decision, Run, Sweep
from runs.queries.site_rules import site_stop
from workspaces.units import plural


@dataclass(frozen=True, slots=True)
class AtOnce:
    """The limit `runs_at_once` of the version that launched it, and how many runs of the policy are under way; `own` of them are the sweep's."""

    decision: Decision
    most: int
    under_way: int
    own: int

    @property
    def left(self) -> int:
        return max(0, self.most - self.under_way)


def at_once_of(sweep: Sweep) -> AtOnce | None:
    """None where no policy launched it, or its version sets no such limit."""
    if sweep.decision_id is None:
        return None
    decision = Decision.objects.select_related("version").get(pk=sweep.decision_id)
    most: int | None = (decision.version.document.get("limits") or {}).get("runs_at_once")
    if most is None:
        return None
    under_way = Run.objects.filter(sweep__decision__policy=decision.policy_id).exclude(status__in=sorted(TERMINAL))
    return AtOnce(decision, most, under_way.count(), under_way.filter(sweep=sweep).count())


def left_at_once(sweep: Sweep) -> int:
    """How many more of its runs the limit of its policy lets be under way; of a sweep without one as many as it has."""
    found = at_once_of(sweep)
    return sweep.members if found is None else found.left


def why_it_waits(sweep: Sweep, launched: int) -> str:
    """A sentence, with what would let it go on; empty where nothing of its policy is in the way, or all its members are launched."""
    waiting = sweep.members - launched
    if sweep.decision_id is None or sweep.status != Sweep.Status.RUNNING or waiting <= 0:
        return ""
    members = f"{plural(waiting, 'member', 'members')} of {sweep.members} {'is' if waiting == 1 else 'are'} still to be launched."
    if stopped := site_stop():
        return f"{members} {stopped} They are launched once the operators let policies go on."
    found = at_once_of(sweep)
    if found is None or found.left:
        return ""
    others = found.under_way - found.own
    whose = f", {plural(others, 'run', 'runs')} of other sweeps among them" if others else ""
    return (
        f"{members} Its policy may have {plural(found.most, 'run', 'runs')} under way at once (version {found.decision.version.number}) and has "
        f"{found.under_way}{whose}. The next is launched when one of them ends or is cancelled."
    )
