"""How a live dataset grows: records by day, what waits for a window, and the windows that were cut."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import TruncDate

from workspaces.models import Dataset, DatasetPiece
from workspaces.queries.withdrawal import marked
from workspaces.windows import clock_of, first_instant

DAYS_SHOWN = 28
WINDOWS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class WindowRow:
    dataset: Dataset
    number: int
    records: int
    created_at: datetime
    runs: int
    said: int  # of the records, those that nobody counted: as its runs said


@dataclass(frozen=True, slots=True)
class Growth:
    """`days` are (local day, records added), the last `DAYS_SHOWN` without a gap; `waiting_records` are what the next window can hold.
    `said_records` are those of the total that nobody counted: as runs said."""

    total_records: int
    said_records: int
    total_pieces: int
    waiting_records: int
    waiting_pieces: int
    days: tuple[tuple[date, int], ...]
    windows: tuple[WindowRow, ...]
    windows_count: int

    @property
    def chart(self) -> list[tuple[str, list[tuple[float, float]]]]:
        return [("records", self.cumulative)]

    @property
    def cumulative(self) -> list[tuple[float, float]]:
        """Records in all at the end of each shown day, by days before today, as a chart takes them."""
        total = self.total_records - sum(count for _, count in self.days)
        points = []
        for place, (_, count) in enumerate(self.days):
            total += count
            points.append((float(place - len(self.days) + 1), float(total)))
        return points


def waiting(dataset: Dataset) -> "QuerySet[DatasetPiece]":
    """Pieces that wait for a window, in their order; those of runs and artifacts that are withdrawn do so once that is undone."""
    return DatasetPiece.objects.filter(waits(), dataset=dataset).order_by("number")


def waits() -> Q:
    """The condition on pieces."""
    is_withdrawn = Q(made_by_run_id__in=marked("run")) | Q(source_artifact_id__isnull=False, source_artifact_id__in=marked("artifact"))
    return Q(window=None) & ~is_withdrawn


def waiting_of(dataset: Dataset) -> tuple[int, int]:
    """Records and pieces that wait for a window."""
    found = waiting(dataset).aggregate(records=Sum("records"), pieces=Count("pk"))
    return found["records"] or 0, found["pieces"]


def said_in(window: Dataset) -> int:
    """Of the records of a window, those that nobody counted: as its runs said."""
    return DatasetPiece.objects.filter(window=window, is_counted=False).aggregate(said=Sum("records"))["said"] or 0


def growth_of(dataset: Dataset, *, zone: str, today: date) -> Growth:
    """Growth of one live dataset by the days of `zone`, an IANA name."""
    pieces = DatasetPiece.objects.filter(dataset=dataset)
    sums = pieces.aggregate(said=Sum("records", filter=Q(is_counted=False)), records=Sum("records"), pieces=Count("pk"))
    waiting_records, waiting_pieces = waiting_of(dataset)
    clock = clock_of(zone)
    first = today - timedelta(days=DAYS_SHOWN - 1)
    rows = pieces.filter(created_at__gte=first_instant(first, clock)).annotate(day=TruncDate("created_at", tzinfo=clock))
    by_day = dict(rows.values_list("day").annotate(Sum("records")))
    windows = dataset.windows.annotate(
        records=Sum("window_pieces__records"),
        runs=Count("window_pieces__made_by_run_id", distinct=True),
        said=Sum("window_pieces__records", filter=Q(window_pieces__is_counted=False)),
    ).order_by("-window_number")[:WINDOWS_SHOWN]
    return Growth(
        total_records=sums["records"] or 0,
        said_records=sums["said"] or 0,
        total_pieces=sums["pieces"] or 0,
        waiting_records=waiting_records,
        waiting_pieces=waiting_pieces,
        days=tuple((first + timedelta(days=place), by_day.get(first + timedelta(days=place)) or 0) for place in range(DAYS_SHOWN)),
        windows=tuple(
            WindowRow(
                dataset=window, number=window.window_number or 0, records=getattr(window, "records") or 0,
                created_at=window.created_at, runs=getattr(window, "runs"), said=getattr(window, "said") or 0,
            )
            for window in windows
        ),
        windows_count=dataset.windows.count(),
    )  # fmt: skip
