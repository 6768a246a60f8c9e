"""The week's GPU budget: what is spent, what is held, and whether it lasts."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.queries.home_now import Now
from workspaces.models import Limit, Unit, Workspace
from workspaces.standings import Standing, standings

GROUND = 0.05  # of a window must have passed before a pace says anything


@dataclass(frozen=True, slots=True)
class Burn:
    """The week's GPU budget. `pace` is the share of the window that is over, 0..1."""

    standing: Standing
    pace: float
    reserved_runs: int
    runs_out_at: datetime | None

    @property
    def committed(self) -> int:
        return self.standing.used + self.standing.reserved


def standing_limits(workspace: Workspace, going: Now, now: datetime) -> list[Standing]:
    return standings(now=now, runs_at_once=going.running, workspace=workspace)


def burn(limits: list[Standing], going: Now, now: datetime) -> Burn | None:
    """The hard stop of the week, or else whichever weekly limit there is."""
    weekly = [standing for standing in limits if standing.unit == Unit.GPU_MS and standing.window == Limit.Window.WEEK]
    standing = next((standing for standing in weekly if standing.mode == Limit.Mode.STOP), weekly[0] if weekly else None)
    if standing is None or standing.starts_at is None or standing.ends_at is None:
        return None
    whole = (standing.ends_at - standing.starts_at).total_seconds()
    gone = min(max((now - standing.starts_at).total_seconds(), 0.0), whole)
    return Burn(standing, gone / whole, going.reserved, _runs_out(standing, gone, now))


def _runs_out(standing: Standing, gone: float, now: datetime) -> datetime | None:
    """When the budget would be used up if it went on being spent as it was; None where that is after the window, or too early to say."""
    assert standing.starts_at is not None
    assert standing.ends_at is not None
    if standing.used <= 0 or gone < GROUND * (standing.ends_at - standing.starts_at).total_seconds():
        return None
    left = (standing.amount - standing.used) / (standing.used / gone)
    at = now + timedelta(seconds=min(max(left, 0.0), 10**8))
    return at if at < standing.ends_at else None
