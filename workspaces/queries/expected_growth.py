"""Does a dataset grow faster than it should? The bound is what a person expects, else three times what its last windows brought."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from django.db.models import F, Sum, Window
from django.db.models.functions import RowNumber

from workspaces.models import Dataset, DatasetPiece, DatasetVersion

DAY = timedelta(days=1)
LEAST_SPAN = timedelta(hours=1)  # a window that was cut a moment after another says little about a day
WINDOWS, TIMES = 4, 3


@dataclass(frozen=True, slots=True)
class Expected:
    """`records_a_day`: the bound, None while nobody says it and there are fewer than four windows. `last_day`: records of the last 24 hours."""

    records_a_day: int | None
    is_said: bool
    last_day: int

    @property
    def is_exceeded(self) -> bool:
        return self.records_a_day is not None and self.last_day > self.records_a_day


def expected_of(datasets: Sequence[Dataset], *, now: datetime) -> dict[uuid.UUID, Expected]:
    """For those that grow by runs, two statements however many; nothing is asked where none does."""
    live = [dataset for dataset in datasets if dataset.is_live]
    if not live:
        return {}
    fresh = DatasetPiece.objects.filter(dataset__in=live, created_at__gt=now - DAY).order_by().values_list("dataset")
    last_day: dict[uuid.UUID, int] = dict(fresh.annotate(Sum("records")))
    rates = _rates([dataset for dataset in live if dataset.records_a_day is None])
    found = {}
    for dataset in live:
        expected = dataset.records_a_day
        if expected is None and len(rates.get(dataset.pk, ())) == WINDOWS:
            expected = round(TIMES * median(rates[dataset.pk]))
        found[dataset.pk] = Expected(expected, dataset.records_a_day is not None, last_day.get(dataset.pk) or 0)
    return found


def _rates(datasets: Sequence[Dataset]) -> dict[uuid.UUID, list[float]]:
    """Records a day of the last four windows of each: what a window holds over the time since the one before it, or since the dataset began."""
    if not datasets:
        return {}
    place = Window(RowNumber(), partition_by=F("dataset__window_of"), order_by=F("dataset__window_number").desc())
    rows = DatasetVersion.objects.filter(dataset__window_of__in=datasets).annotate(place=place).filter(place__lte=WINDOWS + 1)
    windows: dict[uuid.UUID, list[tuple[int, datetime]]] = {dataset.pk: [] for dataset in datasets}
    for source, records, cut_at in rows.order_by("place").values_list("dataset__window_of", "records", "created_at"):
        if source is not None:
            windows[source].append((records or 0, cut_at))
    begun = {dataset.pk: dataset.created_at for dataset in datasets}
    found = {}
    for source, listed in windows.items():
        before = [cut_at for _, cut_at in listed[1:]] + [begun[source]]
        spans = [max(cut_at - start, LEAST_SPAN) for (_, cut_at), start in zip(listed, before, strict=False)]
        found[source] = [records / (span / DAY) for (records, _), span in zip(listed, spans, strict=True)][:WINDOWS]
    return found
