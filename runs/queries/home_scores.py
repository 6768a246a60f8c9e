"""Who leads each benchmark and what has changed since the reader looked last; and what of it is worth promoting."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Aggregate, Count, F, Max, Min, Q, QuerySet

from runs.models import Artifact, Evaluation, Promotion
from runs.queries.home_seeds import SeedLead, seed_lead, seed_leads
from runs.queries.promotion import Told, told
from runs.queries.ranking import FINITE
from runs.queries.standing import standing
from workspaces import kept_query
from workspaces.models import Contract
from workspaces.units import number, plural

BOARDS_SHOWN = 6
PROMOTABLE = ("checkpoint", "model")  # kinds of artifact that other runs can start from
PROMOTABLE_SHOWN = 4
CONTRACT = ("version", "metric", "direction", "unit", "over_seeds", "created_at", "benchmark__slug", "benchmark__name")
SCORE = ("benchmark_id", "contract_id", "value", "standard_error", "subject_artifact_id", "created_at", "run__name")


@dataclass(frozen=True, slots=True)
class Board:
    """A benchmark under its current contract: who leads now and who led then, how many scores there are and how many came since. Where the
    contract ranks over seeds, rows of runs lead; else single scores do."""

    contract: Contract
    leader: Evaluation | SeedLead | None = None
    before: Evaluation | SeedLead | None = None
    total: int = 0
    fresh: int = 0

    @property
    def has_new_leader(self) -> bool:
        return self.leader is not None and self.before is not None and self.leader.pk != self.before.pk

    @property
    def row(self) -> SeedLead | None:
        """The leading row of runs; None where single scores lead."""
        return self.leader if isinstance(self.leader, SeedLead) else None

    @property
    def news(self) -> str:
        """What has changed: `new leader, +0.031, 4 new scores`."""
        if not self.fresh:
            return "no new score"
        scores = plural(self.fresh, "new score", "new scores")
        if self.leader is None:
            return f"{scores}, none of them a number"
        if self.before is None:
            return "the first score" if self.fresh == 1 else f"the first {self.fresh:,} scores"
        if not self.has_new_leader:
            moved = f", {gain(self.leader, self.before)}" if self.leader.value != self.before.value else ""  # a mean moves with each run
            return f"same leader{moved}, {scores}"
        return f"new leader, {gain(self.leader, self.before)}, {scores}"


def gain(leader: Evaluation | SeedLead, before: Evaluation | SeedLead) -> str:
    """By how much the leading value has moved, with its sign, to the digits that its error leaves."""
    change = leader.value - before.value
    value = number(abs(change), leader.standard_error).partition(" ")[0]
    return f"+{value}" if change >= 0 else f"\u2212{value}"


def boards(since: datetime, *, first: uuid.UUID | None = None) -> list[Board]:
    """Benchmarks that have scores under their current contract, the one with the newest score first; before all the benchmark `first`, scored
    or not. Three queries however many there are, and three to five more for each whose contract ranks over seeds."""
    tallies = {row["contract"]: row for row in kept_query.ask(_tallies, since=since)}
    if not tallies and first is None:
        return []
    contracts: list[Contract] = kept_query.ask(_contracts, scored=list(tallies), **({"first": first} if first else {}))
    best = {contract: (None, None) if contract.over_seeds else _best(contract, tallies.get(contract.pk, {})) for contract in contracts}
    leaders = _leaders(best)
    found = []
    for contract, (now, before) in best.items():
        tally = tallies.get(contract.pk, {"total": 0, "fresh": 0})
        total, fresh = int(tally["total"]), int(tally["fresh"])
        if contract.over_seeds:
            found.append(Board(contract, *_rows(contract, since, total, fresh), total, fresh))
        else:
            found.append(Board(contract, leaders.get((contract.pk, now)), leaders.get((contract.pk, before)), total, fresh))
    places = {key: place for place, key in enumerate(tallies)}
    return sorted(found, key=lambda board: (board.contract.benchmark_id != first, places.get(board.contract.pk, 0)))


def _rows(contract: Contract, since: datetime, total: int, fresh: int) -> tuple[SeedLead | None, SeedLead | None]:
    """The row that leads, and the one that led at `since`."""
    if fresh and total > fresh:
        return seed_leads(contract, since)
    row = seed_lead(contract) if total else None
    return row, row


def _contracts(scored: Any, first: Any = None) -> "QuerySet[Contract]":
    wanted = Q(pk=scored)
    contracts = Contract.objects.filter(wanted | Q(benchmark=first, pk__in=_current()) if first else wanted)
    return contracts.select_related("benchmark").only(*CONTRACT)


def _current() -> "QuerySet[Contract, Any]":
    return Contract.objects.order_by("benchmark_id", "-version").distinct("benchmark_id").values("pk")


def _tallies(since: Any) -> "QuerySet[Evaluation, Any]":
    scored = standing().filter(contract__in=_current(), metric=F("contract__metric")).order_by().values("contract")
    return scored.annotate(**_tally(since)).order_by("-newest")[:BOARDS_SHOWN]


def _tally(since: Any) -> dict[str, Aggregate]:
    """Of a contract's scores: how many, how many since, and the ends of what are numbers, now and at `since`."""
    known = FINITE & Q(created_at__lte=since)
    return {
        "total": Count("pk"), "fresh": Count("pk", filter=Q(created_at__gt=since)), "newest": Max("created_at"),
        "high": Max("value", filter=FINITE), "low": Min("value", filter=FINITE),
        "high_before": Max("value", filter=known), "low_before": Min("value", filter=known),
    }  # fmt: skip


def _best(contract: Contract, tally: dict[str, Any]) -> tuple[float | None, float | None]:
    """The value that leads, and the one that led before."""
    end = "high" if contract.direction == Contract.Direction.MAXIMIZE else "low"
    return tally.get(end), tally.get(f"{end}_before")


def _leaders(best: dict[Contract, tuple[float | None, float | None]]) -> dict[tuple[uuid.UUID, float | None], Evaluation]:
    """By contract and value the earliest score that has it: of equal ones that one leads."""
    values = {value for pair in best.values() for value in pair if value is not None}
    if not values:
        return {}
    rows = kept_query.ask(
        _led, benchmarks=[contract.benchmark_id for contract in best], contracts=[contract.pk for contract in best], values=[*values]
    )
    return {(row.contract_id, row.value): row for row in rows}


def _led(benchmarks: Any, contracts: Any, values: Any) -> "QuerySet[Evaluation]":
    """The value of one contract may be another's too; nobody asks for that one."""
    rows = standing().filter(benchmark=benchmarks, contract=contracts, metric=F("contract__metric"), value=values)
    return rows.select_related("run").only(*SCORE).order_by("contract", "value", "created_at", "pk").distinct("contract", "value")


def _of_leaders(measured: Any, makers: Any) -> "QuerySet[Artifact]":
    rows = Artifact.objects.filter(Q(pk=measured) | Q(run=makers), deleted_at=None, kind__in=PROMOTABLE)
    shown = rows.select_related("run", "blob").only("name", "path", "kind", "run__name", "blob__bytes")
    return shown.order_by("-created_at", "-pk")[: 4 * PROMOTABLE_SHOWN]


@dataclass(frozen=True, slots=True)
class Promotable:
    """An artifact that leads, what it leads, and as what it stands promoted already, suspended or not."""

    artifact: Artifact
    boards: list[Board]
    stands: list[Told] = field(default_factory=list)


def promotable(shown: list[Board]) -> list[Promotable]:
    """Worth promoting is the checkpoint or model that a benchmark's best score rests on: the artifact that was measured, or, where the score
    names none, those that the leading run made. Where a row of seeds leads, it is what each of its runs was scored for. What stands promoted
    already comes last."""
    led = [(board, *_rests_on(board.leader)) for board in shown if board.leader is not None]
    if not led:
        return []
    measured = {artifact for _, artifacts, _ in led for artifact in artifacts}
    makers = {run for _, _, runs in led for run in runs}
    leading = kept_query.ask(_of_leaders, measured=[*measured], makers=[*makers])
    stands: dict[uuid.UUID, list[Told]] = {}
    for one in told(kept_query.ask(_standing, artifacts=[artifact.pk for artifact in leading])) if leading else ():
        stands.setdefault(one.promotion.artifact_id, []).append(one)
    found: list[Promotable] = []
    for artifact in leading:
        leads = [board for board, artifacts, runs in led if artifact.pk in artifacts or artifact.run_id in runs]
        found.append(Promotable(artifact, leads, stands.get(artifact.pk, [])))
    return sorted(found, key=lambda entry: (bool(entry.stands), -len(entry.boards)))[:PROMOTABLE_SHOWN]


def _standing(artifacts: Any) -> "QuerySet[Promotion]":
    rows = Promotion.objects.filter(artifact=artifacts, status=Promotion.Status.PROMOTED)
    return rows.only("name", "number", "artifact", "status").order_by("name")


def _rests_on(leader: Evaluation | SeedLead) -> tuple[tuple[uuid.UUID, ...], tuple[uuid.UUID, ...]]:
    """Artifacts that were measured, and runs that told of themselves."""
    if isinstance(leader, SeedLead):
        return leader.row.measured, leader.row.makers
    return ((leader.subject_artifact_id,), ()) if leader.subject_artifact_id else ((), (leader.run_id,))
