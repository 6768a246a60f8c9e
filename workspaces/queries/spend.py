"""Lines of API spend from outside, as people read them."""

from dataclasses import dataclass

from django.db.models import Sum

from workspaces.ids import canonical
from workspaces.models import ExternalSpend
from workspaces.units import money


@dataclass(frozen=True, slots=True)
class SpendRow:
    """One line; `is_taken_back` by another of the list or a later page."""

    row: ExternalSpend
    amount: str
    run_ref: str
    is_taken_back: bool

    @property
    def is_back(self) -> bool:
        """Does this line take another back?"""
        return self.row.amount_micros < 0


def entered_in_all() -> str:
    """What all lines come to, those that take back included: `45.12 EUR`; "" where there is none."""
    sums = ExternalSpend.objects.order_by().values("currency").annotate(total=Sum("amount_micros")).order_by("currency")
    return " and ".join(money(row["total"], row["currency"]) for row in sums)


def spend_rows(rows: list[ExternalSpend]) -> list[SpendRow]:
    back = set(ExternalSpend.objects.filter(corrects__in=[row.pk for row in rows]).values_list("corrects_id", flat=True)) if rows else set()
    return [
        SpendRow(row, money(row.amount_micros, row.currency), canonical("run", None, row.run_id) if row.run_id else "", row.pk in back)
        for row in rows
    ]
