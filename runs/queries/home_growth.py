"""Which datasets grow, and by how much since the reader looked last."""

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Count, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import TruncDay, TruncHour, TruncMinute

from workspaces import kept_query
from workspaces.models import Dataset, DatasetPiece, DatasetVersion
from workspaces.queries.expected_growth import Expected, expected_of
from workspaces.queries.growth import waits
from workspaces.units import plural
from workspaces.windows import clock_of

SHOWN = 4
VERSIONS_LOOKED_AT = 24
DAYS_SHOWN, MOST_BARS = 14, 60
STEPS = ((timedelta(minutes=1), "minute", TruncMinute), (timedelta(hours=1), "hour", TruncHour), (timedelta(days=1), "day", TruncDay))
DATASET = ("slug", "name", "window_records", "is_live", "records_a_day", "created_at")


@dataclass(frozen=True, slots=True)
class Growing:
    """A dataset that grows: by pieces, or by new versions where `version` is its newest. `bars` are records added in each `step`, without a gap;
    none where all came at once."""

    dataset: Dataset
    records: int | None
    fresh: int  # records, or versions, since the reader looked last
    newest_at: datetime
    windows: int = 0
    waiting: int = 0  # records that stand in no window yet
    version: int | None = None
    bars: list[tuple[str, float, str]] = field(default_factory=list)
    step: str = ""  # minute, hour, day
    expected: Expected | None = None  # where it grows by pieces

    @property
    def news(self) -> str:
        if not self.fresh:
            return "nothing new"
        return f"+{self.fresh:,}" if self.version is None else plural(self.fresh, "new version", "new versions")


def growing(since: datetime, *, now: datetime, zone: str) -> list[Growing]:
    """The datasets that grew last: live ones first, then those with more than one version. Bars are drawn of the first."""
    live = _live(since, now, zone)
    return live + _versioned(since, SHOWN - len(live))


def _live(since: datetime, now: datetime, zone: str) -> list[Growing]:
    tallies = kept_query.ask(_tallies, since=since)
    datasets = Dataset.objects.only(*DATASET).in_bulk([row["dataset"] for row in tallies]) if tallies else {}
    expected = expected_of(list(datasets.values()), now=now)
    found = []
    for place, row in enumerate(tallies):
        bars, step = _bars(row["dataset"], row["first"], now, zone) if place == 0 else ([], "")
        found.append(
            Growing(
                dataset=datasets[row["dataset"]], records=row["all"], fresh=row["fresh"] or 0, newest_at=row["newest"],
                windows=row["cut"], waiting=row["waiting"] or 0, bars=bars, step=step,
                expected=expected.get(row["dataset"]),
            )
        )  # fmt: skip
    return found


def _tallies(since: Any) -> "QuerySet[DatasetPiece, Any]":
    pieces = DatasetPiece.objects.order_by().values("dataset")
    rows = pieces.annotate(
        all=Sum("records"),
        fresh=Sum("records", filter=Q(created_at__gt=since)),
        waiting=Sum("records", filter=waits()),
        cut=Count("window", distinct=True),
        first=Min("created_at"),
        newest=Max("created_at"),
    )
    return rows.order_by("-newest")[:SHOWN]


def _bars(dataset: uuid.UUID, first: datetime, now: datetime, zone: str) -> tuple[list[tuple[str, float, str]], str]:
    """Records added by the minutes, hours or days since the first came, whichever are not too many; by days of the last two weeks at most."""
    clock, age = clock_of(zone), now - first
    step, unit, cut = next((entry for entry in STEPS if age <= MOST_BARS * entry[0]), STEPS[-1])
    start = max(first, now - timedelta(days=DAYS_SHOWN)) if unit == "day" else first
    pieces = DatasetPiece.objects.filter(dataset=dataset, created_at__gte=start).order_by()
    rows = pieces.annotate(span=cut("created_at", tzinfo=clock)).values_list("span").annotate(Sum("records"))
    added = {_place(span, unit, clock): records for span, records in rows}
    if len(added) < 2:
        return [], ""
    begin, end = min(added), max(_place(now, unit, clock), *added)
    places = [begin + number * step for number in range(int((end - begin) / step) + 1)]
    return [(_label(place, unit, clock), float(added.get(place, 0)), "") for place in places], unit


def _place(moment: datetime, unit: str, clock: ZoneInfo) -> datetime:
    """The beginning of the span as a key that steps of equal length reach: an instant, or for days the local date at midnight UTC, since
    local days are not equally long."""
    if unit == "day":
        return datetime.combine(moment.astimezone(clock).date(), time.min, UTC)
    length = 60 if unit == "minute" else 3600
    return datetime.fromtimestamp(moment.timestamp() // length * length, UTC)


def _label(place: datetime, unit: str, clock: ZoneInfo) -> str:
    return f"{place.day} {place:%B}, records" if unit == "day" else f"{place.astimezone(clock):%H:%M}, records"


def _versioned(since: datetime, room: int) -> list[Growing]:
    """Datasets of more than one version, the one with the newest first; of many new versions the newest are counted."""
    if room <= 0:
        return []
    versions: dict[uuid.UUID, list[DatasetVersion]] = {}
    for row in kept_query.ask(_newest_versions):
        versions.setdefault(row.dataset_id, []).append(row)
    return [
        Growing(rows[0].dataset, rows[0].records, sum(row.created_at > since for row in rows), rows[0].created_at, version=rows[0].number)
        for rows in list(versions.values())[:room]
    ]


def _newest_versions() -> "QuerySet[DatasetVersion]":
    shown = ("number", "records", "created_at", *(f"dataset__{name}" for name in DATASET))
    rows = DatasetVersion.objects.filter(number__gt=1).select_related("dataset").only(*shown)
    return rows.order_by("-created_at", "-pk")[:VERSIONS_LOOKED_AT]
