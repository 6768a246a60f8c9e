"""What runs have spent beyond their reservations: the alarm that the home page shows until the week that bears it has ended."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from workspaces import kept_query
from workspaces.accounts import Act, Side
from workspaces.ids import canonical
from workspaces.models import LedgerEntry, Limit
from workspaces.units import amount


@dataclass(frozen=True, slots=True)
class Overrun:
    """One run and one unit. `amount` in the unit's integers is what exceeded the reservation, `words` says it with its unit."""

    run_id: uuid.UUID | None
    run_label: str
    unit: str
    amount: int
    since: datetime

    @property
    def run_ref(self) -> str:
        return canonical("run", None, self.run_id) if self.run_id else ""

    @property
    def words(self) -> str:
        return f"{self.run_label or 'A run'} used {amount(self.amount, self.unit)} more than was reserved for it."


def overruns(*, now: datetime, limit: int = 20) -> list[Overrun]:
    """Overruns of the week that runs, the newest first."""
    return [Overrun(*row) for row in kept_query.ask(_overruns, limit, now=now)]


def _overruns(limit: int, now: Any) -> "QuerySet[Any, Any]":
    rows = LedgerEntry.objects.filter(
        act=Act.OVERRUN, credit__side=Side.SPENT, credit__window=Limit.Window.WEEK, credit__starts_at__lte=now, credit__ends_at__gt=now
    )
    return rows.order_by("-created_at", "-pk").values_list("run_id", "run_label", "credit__unit", "amount", "created_at")[:limit]
