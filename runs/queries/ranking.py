"""The order of scores on a board, and the places in it.

A rank wants to know how many are ahead, never who they are: a page of a board is read by the index that holds the order, and of what stands on no
page those are counted that share a value with its ends, or are ahead of them. Nothing but the best of each agent sorts the whole board.
"""

import math
from collections import Counter
from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import Case, Count, F, IntegerField, OrderBy, Q, QuerySet, UUIDField, Value, When, Window
from django.db.models.functions import RowNumber

from runs.admission import EVALUATE
from runs.models import Evaluation
from runs.queries.standing import standing
from workspaces import kept_query
from workspaces.kept_query import Keys
from workspaces.models import Agent, Contract

FINITE = Q(value__gt=-math.inf, value__lt=math.inf)  # PostgreSQL sorts NaN above infinity
NO_NUMBERS = (math.nan, math.inf, -math.inf)
PAGE = 50  # scores of one page
LOOKED_AT = 1_000  # of the best, among which the best of each agent are looked for first


def rows_of(**of: Any) -> "QuerySet[Evaluation]":
    """Scores of one metric under one contract: `benchmark`, `contract`, `metric`; of them those with the keys `pk`, where that is given."""
    return standing().filter(**{name: Keys(values=value) if isinstance(value, list) else value for name, value in of.items()})


def page_of(direction: str, *, ordinal: bool, ranked: int, total: int, start: int = 0, size: int = PAGE, **of: Any) -> list[Evaluation]:
    """`size` of the rows in their order from the place `start`, each with `is_unranked` (0 or 1), `place`, which ties share unless `ordinal`, and
    `sharing`, how many do; `ranked` of `total` have a rank."""
    is_usual = not start and size == PAGE
    numbers = kept_query.ask(_numbers, direction, size, **of) if is_usual else list(_numbers(direction, size, start, **of))
    ahead, shared = start, dict[float, int]()
    if numbers and not ordinal:
        ends = {*([numbers[0].value] if start else ()), *([numbers[-1].value] if len(numbers) == size else ())}
        shared = Counter(row.value for row in numbers) | shared_by(ends, **of)
        ahead = _better(direction, numbers[0].value, **of).count() if start else 0
    for at, row in enumerate(numbers):
        if ordinal or (at and row.value != numbers[at - 1].value):
            ahead = start + at
        mark(row, is_unranked=0, place=ahead + 1, sharing=shared.get(row.value, 1))
    if total == ranked or len(numbers) == size:
        return numbers
    first = max(0, start - ranked)
    others = _no_numbers(direction, **of)[first : first + size - len(numbers)]
    return [*numbers, *(mark(row, is_unranked=1, place=None, sharing=1) for row in others)]


def _numbers(direction: str, size: int, start: int = 0, **of: Any) -> "QuerySet[Evaluation]":
    return rows_of(**of).filter(FINITE).order_by(*best_first(direction))[start : start + size]


def _no_numbers(direction: str, **of: Any) -> "QuerySet[Evaluation]":
    return rows_of(**of).filter(value__in=NO_NUMBERS).order_by(*best_first(direction))


def shared_by(values: Collection[float], **of: Any) -> Counter[float]:
    """How many of the rows have each of these values."""
    found = kept_query.ask(_with_values, values=[*values], **of) if values else ()
    return Counter(dict(found))


def _with_values(values: Any, **of: Any) -> "QuerySet[Any, Any]":
    rows = rows_of(**of).filter(value=values)
    return rows.order_by().values_list("value").annotate(Count("pk"))


def _better(direction: str, value: float, **of: Any) -> "QuerySet[Evaluation]":
    rows = rows_of(**of).filter(FINITE)
    return rows.filter(value__gt=value) if direction == Contract.Direction.MAXIMIZE else rows.filter(value__lt=value)


def mark(row: Evaluation, **values: int | None) -> Evaluation:
    vars(row).update(values)
    return row


def best_first(direction: str) -> tuple[OrderBy, str, str]:
    """The order in which scores lead: by value, of equal ones the earliest."""
    value = F("value")
    return (value.desc() if direction == Contract.Direction.MAXIMIZE else value.asc(), "created_at", "pk")


def best_keys(direction: str, **of: Any) -> list[UUID]:
    """Keys of the best score of each agent among those that `rows_of` has; an evaluation counts for the agent that made what it measured.

    Most agents have one among the best of the whole board; whose runs are not found there are looked for by the agent. Up to five queries.
    """
    leading = credited(rows_of(**of).filter(FINITE)).order_by(*best_first(direction)).values_list("credited", "pk")[:LOOKED_AT]
    best: dict[UUID, UUID] = {}
    for agent, key in leading:
        best.setdefault(agent, key)
    others = Keys(values=list(Agent.objects.exclude(pk__in=best).values_list("pk", flat=True)))
    if not others.value:
        return [*best.values()]
    own, measured = rows_of(**of).filter(run__agent=others), rows_of(**of).filter(subject_artifact__run__agent=others)
    found = [key for rows in (own, measured) for key in _best_of(credited(rows).filter(credited=others), direction)]
    return [*best.values(), *(_best_of(credited(rows_of(**of | {"pk": found})), direction) if found else ())]


def credited(rows: "QuerySet[Evaluation]") -> "QuerySet[Any, Any]":
    """Each with the agent that it counts for as `credited`: the one that made what it measured, else its run's."""
    measured = Q(run__kind=EVALUATE, subject_artifact__isnull=False)
    return rows.annotate(
        credited=Case(When(measured, then=F("subject_artifact__run__agent")), default=F("run__agent"), output_field=UUIDField())
    )


def _best_of(rows: "QuerySet[Any, Any]", direction: str) -> "QuerySet[Any, UUID]":
    order: list[OrderBy | str] = ["is_unranked", *best_first(direction)]
    numbered = _marked(rows).annotate(nth=Window(RowNumber(), partition_by=[F("credited")], order_by=order))
    return numbered.filter(nth=1).values_list("pk", flat=True)


def _marked(rows: "QuerySet[Evaluation]") -> "QuerySet[Evaluation]":
    return rows.annotate(is_unranked=Case(When(FINITE, then=Value(0)), default=Value(1), output_field=IntegerField()))
