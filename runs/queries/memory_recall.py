"""What somebody who acts may rest on: standing revisions, trusted enough, that hold now."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.utils import timezone

from runs.models import MemoryEntry, Trust
from runs.queries.memory_search import find_words
from workspaces.models import Agent, Benchmark

MOST = 100
BEST_FIRST = (Trust.DURABLE, Trust.CONFIRMED, Trust.OBSERVED, Trust.UNREVIEWED, Trust.WITHDRAWN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader asks for. Entries about the whole workspace always count, those about a benchmark or an agent only where it is named.
    `text` is a search; `most` is at most 100."""

    collection: str = ""
    benchmark: Benchmark | None = None
    agent: Agent | None = None
    text: str = ""
    least: Trust = Trust.OBSERVED
    most: int = 20


def recall(wanted: Wanted, *, for_policy: bool = True, now: datetime | None = None) -> list[MemoryEntry]:
    """Most trusted first, then newest. For a policy without failed attempts, which are kept for people (feature 69)."""
    enough = BEST_FIRST[: BEST_FIRST.index(wanted.least) + 1]
    rows = holding(now or timezone.now()).filter(trust__in=[trust for trust in enough if trust != Trust.WITHDRAWN])
    rows = rows.filter(Q(scope="workspace") | Q(benchmark=wanted.benchmark, scope="benchmark") | Q(agent=wanted.agent, scope="agent"))
    if wanted.collection:
        rows = rows.filter(collection=wanted.collection)
    if for_policy:
        rows = rows.exclude(kind=MemoryEntry.EntryKind.FAILED_ATTEMPT)
    if wanted.text.strip():
        rows = rows.filter(pk__in=[found.id for found in find_words(wanted.text, collection=wanted.collection, most=MOST)])
    return list(rows.order_by(trust_order(), "-created_at", "-pk")[: max(1, min(wanted.most, MOST))])


def holding(now: datetime) -> "QuerySet[MemoryEntry]":
    """Standing revisions that hold at `now`."""
    begun = Q(valid_from=None) | Q(valid_from__lte=now)
    return MemoryEntry.objects.filter(begun & (Q(valid_until=None) | Q(valid_until__gt=now)), superseded_at=None)


def trust_order() -> Case:
    ranks = [When(trust=trust, then=Value(place)) for place, trust in enumerate(BEST_FIRST)]
    return Case(*ranks, output_field=IntegerField())
