"""The burn page: what spent the budget in a week, or in a span of days, and the same as a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from runs.queries.burn import BY, Burn, burn, weeks
from workspaces.access import Kind, Permission, Rights
from workspaces.accounts import window_at
from workspaces.models import Limit, Unit, Workspace
from workspaces.pages import PageRequest
from workspaces.views.csv_file import Piece, csv_file
from workspaces.windows import DAY, clock_of, first_instant

HEAD = ("unit", "by", "name", "id", "runs", "reserved_before", "spent")
UNITS = (Unit.GPU_MS, Unit.API_MICROS)
WORDS = {
    "benchmark": ("Benchmark", Kind.BENCHMARK),
    "agent": ("Agent", Kind.AGENT),
    "policy": ("Policy", Kind.POLICY),
    "run": ("Run", Kind.BUDGET),  # the ledger names runs to the same readers
    "person": ("Person", Kind.RUN),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for; what it asks for wrongly is left out and said."""

    unit: str
    by: str
    week: datetime | None
    since: date | None
    until: date | None
    fault: str = ""

    def answer(self, zone: str) -> Burn:
        """`until` is a day that counts."""
        place = clock_of(zone)
        return burn(
            self.unit,
            by=self.by,
            week=self.week,
            since=first_instant(self.since, place) if self.since else None,
            until=first_instant(min(self.until, date.max - DAY) + DAY, place) if self.until else None,
        )

    @property
    def query(self) -> str:
        span = f"&week={self.week:%Y-%m-%dT%H:%MZ}" if self.week else ""
        days = "".join(f"&{name}={day}" for name, day in (("from", self.since), ("to", self.until)) if day)
        return f"unit={self.unit}{span}{days}"


def asked_of(query: Mapping[str, str], workspace: Workspace, rights: Rights) -> Asked:
    """Read the address: unit, by, week, or the days from and to. Without a span it is the week that runs. `by` is of the kinds that the
    reader's role is about."""
    unit = Unit.API_MICROS if query.get("unit") == Unit.API_MICROS else Unit.GPU_MS
    may = _kinds(rights)
    by = query["by"] if query.get("by") in may else may[0]
    try:
        since, until = (date.fromisoformat(query[name]) if query.get(name) else None for name in ("from", "to"))
    except ValueError:
        return Asked(unit, by, _this_week(workspace), None, None, "A day is written like 2026-11-28; this is the week that runs.")
    if since and until and since > until:
        return Asked(unit, by, _this_week(workspace), None, None, "The span ends before it begins; this is the week that runs.")
    if since or until:
        return Asked(unit, by, None, since, until)
    wanted = query.get("week", "")
    found = next((start for start in weeks(unit) if f"{start:%Y-%m-%dT%H:%MZ}" == wanted), None) if wanted else None
    return Asked(unit, by, found or _this_week(workspace), None, None)


def burn_page(request: PageRequest) -> HttpResponseBase:
    asked = asked_of(request.GET, request.workspace, request.rights)
    context = {
        "burn": asked.answer(request.workspace.zone),
        "asked": asked,
        "weeks": [(start, f"{start:%Y-%m-%dT%H:%MZ}", start == asked.week) for start in weeks(asked.unit, limit=6)],
        "units": [(unit.value, unit.label) for unit in UNITS],
        "kinds": [(by, WORDS[by][0]) for by in _kinds(request.rights)],
        "head": WORDS[asked.by][0],
        "page": asked.by,
    }
    return render(request, "runs/burn.html", context)


def burn_csv(request: PageRequest) -> HttpResponseBase:
    asked, zone = asked_of(request.GET, request.workspace, request.rights), request.workspace.zone

    def piece(cursor: str) -> Piece:
        found = asked.answer(zone)
        return [[found.unit, found.by, part.label, part.ref, part.runs, part.estimate, part.spent] for part in found.parts], ""

    return csv_file(f"{request.workspace.slug}-burn", HEAD, piece, workspace_id=request.workspace.pk)


def _kinds(rights: Rights) -> list[str]:
    return [by for by in BY if rights.allows(Permission.VIEW, WORDS[by][1])]


def _this_week(workspace: Workspace) -> datetime:
    return window_at(workspace, Limit.Window.WEEK, timezone.now()).starts_at
