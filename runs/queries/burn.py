"""Who and what spent the budget: the ledger's own entries, by benchmark, agent, policy, run or person. Parts sum to the whole, to the unit."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, F, Max, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce

from runs.models import Run
from workspaces.accounts import Act, Side
from workspaces.models import LedgerAccount, LedgerEntry, Limit
from workspaces.units import amount as amount_words
from workspaces.units import figure

BY = ("benchmark", "agent", "policy", "run", "person")
SPENDING = (Act.SPEND, Act.OVERRUN, Act.EXTERNAL)
SHOWN = 200
OTHERS = "no run"
BY_PEOPLE = "no policy: asked for by a person"


@dataclass(frozen=True, slots=True)
class Part:
    """What one of them spent. `estimate` is what its runs were promised before (0 where nobody promised), `ref` names its page."""

    label: str
    ref: str
    spent: int
    estimate: int
    runs: int
    unit: str

    @property
    def words(self) -> str:
        return amount_words(self.spent, self.unit)

    @property
    def figure(self) -> str:
        return figure(self.spent, self.unit)

    @property
    def estimate_figure(self) -> str:
        return figure(self.estimate, self.unit) if self.estimate else ""


@dataclass(frozen=True, slots=True)
class Burn:
    """The whole and its parts, the largest first."""

    unit: str
    by: str
    total: int
    parts: list[Part]

    @property
    def words(self) -> str:
        return amount_words(self.total, self.unit)

    @property
    def shown(self) -> list[Part]:
        return self.parts[:SHOWN]

    @property
    def left_out(self) -> int:
        return max(0, len(self.parts) - SHOWN)


def weeks(unit: str, *, limit: int = 26) -> list[datetime]:
    """Starts of the weeks that the ledger keeps of a unit, the newest first."""
    rows = LedgerAccount.objects.filter(unit=unit, window=Limit.Window.WEEK, side=Side.SPENT)
    return list(rows.order_by("-starts_at").values_list("starts_at", flat=True)[:limit])


def burn(unit: str, *, by: str, week: datetime | None = None, since: datetime | None = None, until: datetime | None = None) -> Burn:
    """Spending in the week that starts at `week`, or entered within [since, until); without either all that the weeks hold."""
    spent = {row["run_id"]: row for row in _spent(unit, week=week, since=since, until=until)}
    promised = _promised(unit, [run_id for run_id in spent if run_id is not None])
    name = NAMED[by]
    runs: dict[uuid.UUID, Run] = Run.objects.select_related("benchmark", "agent", "sweep__decision__policy", "requested_by").only(*COLUMNS).in_bulk(
        [run_id for run_id in spent if run_id is not None]
    )  # fmt: skip
    sums: dict[tuple[str, str], list[int]] = {}
    for run_id, row in spent.items():
        run = runs.get(run_id) if run_id is not None else None
        key = name(run) if run is not None else (row["named"] or OTHERS, "")
        entry = sums.setdefault(key, [0, 0, 0])
        entry[0] += row["total"]
        entry[1] += promised.get(run_id, 0)
        entry[2] += run is not None
    parts = [Part(label, ref, total, estimate, count, unit) for (label, ref), (total, estimate, count) in sums.items()]
    parts.sort(key=lambda part: (-part.spent, part.label, part.ref))
    return Burn(unit, by, sum(part.spent for part in parts), parts)


COLUMNS = (
    "name", "benchmark__name", "benchmark__slug", "agent__name", "agent__slug", "requested_by__username", "requested_by__display_name",
    "sweep__decision__policy__name", "sweep__decision__policy__slug",
)  # fmt: skip
NAMED: dict[str, Callable[[Run], tuple[str, str]]] = {
    "benchmark": lambda run: (run.benchmark.name, run.benchmark.slug),
    "agent": lambda run: (run.agent.name, run.agent.slug),
    "policy": lambda run: _policy(run),
    "run": lambda run: (run.name, run.public_id),
    "person": lambda run: (run.requested_by.label, run.requested_by.username),
}


def _policy(run: Run) -> tuple[str, str]:
    """The policy whose decision launched it; people stand together, whom another part of the page tells apart."""
    decision = run.sweep.decision if run.sweep is not None else None
    return (decision.policy.name, decision.policy.slug) if decision is not None else (BY_PEOPLE, "")


def _spent(unit: str, *, week: datetime | None, since: datetime | None, until: datetime | None) -> "QuerySet[Any, dict[str, Any]]":
    """Net spending by run. A line that takes another back counts against it."""
    rows = LedgerEntry.objects.filter(act__in=SPENDING, debit__unit=unit, debit__window=Limit.Window.WEEK)
    if week is not None:
        rows = rows.filter(debit__starts_at=week)
    if since is not None:
        rows = rows.filter(created_at__gte=since)
    if until is not None:
        rows = rows.filter(created_at__lt=until)
    signed = Case(When(credit__side=Side.SPENT, then=F("amount")), default=-F("amount"))
    return rows.order_by().values("run_id").annotate(total=Coalesce(Sum(signed), Value(0)), named=Max("run_label"))


def _promised(unit: str, runs: list[uuid.UUID]) -> dict[uuid.UUID | None, int]:
    """What each was promised last: one that was moved to another pool gave back what it was promised first."""
    rows = LedgerEntry.objects.filter(act=Act.RESERVE, debit__unit=unit, debit__window=Limit.Window.WEEK, run_id__in=runs)
    return dict(rows.order_by("run_id", "-created_at", "-pk").distinct("run_id").values_list("run_id", "amount"))
