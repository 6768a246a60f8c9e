"""The place of a row among others by the tie rule of its contract; the one piece that boards, mean ranks and promotions ask.

Two rules, by their common names: standard competition ranking (1, 2, 2, 4), where equal values share a rank, and
ordinal ranking (1, 2, 3, 4), where of equal values the earlier one has the better rank. Both show the earlier one first.
"""

from collections.abc import Sequence
from typing import Any

from django.db.models import Count, F, IntegerField, Q, QuerySet, Value, Window
from django.db.models.functions import Rank, RowNumber

from runs.models import Evaluation
from workspaces.models import Contract


def is_ordinal(contract: Contract) -> bool:
    """Has each row a rank of its own?"""
    return bool(contract.tie_rule == Contract.TieRule.EARLIER_FIRST)


def place(ordinal: bool, by: Sequence[Any], then: Sequence[Any]) -> Window:
    """The rank of each row in the order `by`; `then` tells those apart that are equal in it."""
    if ordinal:
        return Window(RowNumber(), order_by=[*by, *then], output_field=IntegerField())
    return Window(Rank(), order_by=[*by], output_field=IntegerField())


def sharing(ordinal: bool, equal: Sequence[str]) -> Any:
    """How many rows have the rank of this one; rows are equal that are in the columns `equal`."""
    return Value(1, output_field=IntegerField()) if ordinal else Window(Count(Value(1)), partition_by=[F(name) for name in equal])


def ahead(rows: "QuerySet[Evaluation]", contract: Contract, score: Evaluation) -> "QuerySet[Evaluation]":
    """Those of `rows`, which have a rank, whose rank is better than that of `score`."""
    better = "value__gt" if contract.direction == Contract.Direction.MAXIMIZE else "value__lt"
    found = Q(**{better: score.value})
    if is_ordinal(contract):
        earlier = Q(created_at__lt=score.created_at) | Q(created_at=score.created_at, pk__lt=score.pk)
        found |= Q(value=score.value) & earlier
    return rows.filter(found)
