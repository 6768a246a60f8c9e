"""How many runs one person has left on a benchmark whose contract limits them, and from when the next one is allowed.

What counts (docs/architecture/evidence.md, "Contracts"): every run that a person asked for on the benchmark within the period, under whichever
version of its contract, and whoever acted for them: a token counts as its holder, a service account as itself, a member of a sweep as whoever asked
for the sweep, a retry as whoever retried. A run counts while it may still be scored; once it has ended, if it reported a score on the benchmark
itself or said one in a line (a program that tells its score and then fails has been measured all the same), or if that person cancelled it. One
that ended without either, or that somebody else cancelled, gives its place back. What a run left may
be scored by another run: then that one counts.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from runs.admission_facts import QuotaFacts
from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Evaluation, Run, RunLine
from workspaces import kept_query
from workspaces.models import Contract, EventSubject, User, Workspace
from workspaces.verbs import Verb
from workspaces.windows import Window, window_of, words

ENDED = Q(status__in=sorted(TERMINAL))
CANCELS = (Verb.RUN_CANCEL_ASKED, Verb.RUN_CANCELLED, Verb.RUN_MANY_CANCEL_ASKED)


@dataclass(frozen=True, slots=True)
class Quota:
    """The limit of a contract as it stands for one person. `under_way` are those of `used` that may still give their place back."""

    benchmark: str
    allowed: int
    period: str
    used: int
    under_way: int
    window: Window
    until: str  # the end of the window in words, on the workspace's clock

    @property
    def left(self) -> int:
        return max(0, self.allowed - self.used)

    @property
    def next_allowed_at(self) -> datetime | None:
        """From when the next run is allowed for certain; None: now."""
        return None if self.left else self.window.ends_at

    def as_facts(self) -> QuotaFacts:
        """As an admission decides upon it, one run being asked for."""
        return QuotaFacts(
            benchmark=self.benchmark,
            allowed=self.allowed,
            period=self.period,
            used=self.used,
            under_way=self.under_way,
            asked=1,
            until=self.until,
        )


def newer_than(contract: Contract) -> kept_query.Question:
    """What `quota_of` asks first, for one who asks for more in the same round trip: the benchmark's newest contract, where it is newer."""
    return kept_query.question(Contract, order_by=("-version",), limit=1, benchmark=contract.benchmark_id, version__gt=contract.version)


def quota_of(
    contract: Contract,
    person: User | None,
    *,
    now: datetime,
    workspace: Workspace,
    but: uuid.UUID | None = None,
    newer: list[Contract] | None = None,
) -> Quota | None:
    """What stands against the limit of `contract` for `person` in the period that `now` lies in; None where it sets none, or nobody asks.

    Where the benchmark has a newer contract, as for a retry or a member of a sweep, the one that leaves less counts. A command counts under
    the ledger's lock. `but` is a run that is decided upon anew and does not stand in its own way. `newer` is what `newer_than` has found.
    """
    newest = next(iter(kept_query.ask_together([newer_than(contract)])[0] if newer is None else newer), None)
    if newest is not None:
        newest.benchmark = contract.benchmark
    found = [_quota(each, person, now=now, workspace=workspace, but=but) for each in (contract, newest) if each is not None]
    return min((quota for quota in found if quota is not None), key=lambda quota: quota.left, default=None)


def _quota(contract: Contract, person: User | None, *, now: datetime, workspace: Workspace, but: uuid.UUID | None) -> Quota | None:
    if contract.runs_per_person is None or person is None:
        return None
    zone = workspace.zone or "UTC"
    window = window_of(contract.period, now, zone, workspace.week_start)
    asked = Run.objects.filter(
        benchmark=contract.benchmark_id, created_at__gte=window.starts_at, created_at__lt=window.ends_at, requested_by=person
    )
    counts = counted(asked if but is None else asked.exclude(pk=but)).aggregate(used=Count("pk"), under_way=Count("pk", filter=~ENDED))
    return Quota(
        benchmark=contract.benchmark.name,
        allowed=contract.runs_per_person,
        period=contract.period,
        used=counts["used"],
        under_way=counts["under_way"],
        window=window,
        until=words(window.ends_at, zone, now),
    )


def counted(runs: "QuerySet[Run]") -> "QuerySet[Run]":
    """Those of `runs` that stand against the limit of whoever asked for them."""
    scored = Evaluation.objects.filter(run=OuterRef("pk"), benchmark=OuterRef("benchmark"))
    said = RunLine.objects.filter(attempt__run=OuterRef("pk"), type="score")
    # Among all that the event changed: cancelled by the hundred, a run is seldom the one that the event is about.
    cancelled = EventSubject.objects.filter(
        object_id=OuterRef("pk"), type="run", event__actor_id=OuterRef("requested_by"), event__verb__in=CANCELS
    )
    return runs.filter(~ENDED | Exists(scored) | Exists(said) | Q(Exists(cancelled), status=RunStatus.CANCELLED))
