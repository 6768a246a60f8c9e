"""The tie rule of a contract. Boards count by it (ranking.py, mean_rank.py, seed_rows.py), promotions ask who is ahead; tests/runs/slow_boards.py
spells it out row by row and is held against all of them.

Two rules, by their common names: standard competition ranking (1, 2, 2, 4), where equal values share a rank, and
ordinal ranking (1, 2, 3, 4), where of equal values the earlier one has the better rank. Both show the earlier one first.
"""

from django.db.models import Q, QuerySet

from runs.models import Evaluation
from workspaces.models import Contract


def is_ordinal(contract: Contract) -> bool:
    """Has each row a rank of its own?"""
    return bool(contract.tie_rule == Contract.TieRule.EARLIER_FIRST)


def ahead(rows: "QuerySet[Evaluation]", contract: Contract, score: Evaluation) -> "QuerySet[Evaluation]":
    """Those of `rows`, which have a rank, whose rank is better than that of `score`."""
    better = "value__gt" if contract.direction == Contract.Direction.MAXIMIZE else "value__lt"
    found = Q(**{better: score.value})
    if is_ordinal(contract):
        earlier = Q(created_at__lt=score.created_at) | Q(created_at=score.created_at, pk__lt=score.pk)
        found |= Q(value=score.value) & earlier
    return rows.filter(found)
