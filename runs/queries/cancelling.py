"""What cancelling a choice of runs would do, in figures, before anybody presses anything."""

import uuid
from dataclasses import dataclass

from django.db.models import OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from runs.lifecycle import TERMINAL, WAITING, AttemptStatus, RunStatus, can_be_cancelled
from runs.models import Attempt, Run
from workspaces import ids
from workspaces.access import Actor, Kind, Permission, Rights
from workspaces.models import NotFound

MOST = 1_000  # runs of one command
NAMED = 20  # runs that the page names


@dataclass(frozen=True, slots=True)
class Plan:
    """`runs` would be cancelled by one command, oldest first; `more` match besides and want another. `others` belong to other people, whose runs
    the reader may not cancel; `ended` have ended or are ending."""

    runs: list[Run]
    more: int
    others: int
    ended: int

    @property
    def waiting(self) -> int:
        return sum(run.status in WAITING for run in self.runs)

    @property
    def working(self) -> int:
        return len(self.runs) - self.waiting

    @property
    def held_gpu_ms(self) -> int:
        """What is reserved for them."""
        return sum(run.reserved_gpu_ms for run in self.runs)

    @property
    def named(self) -> list[Run]:
        return self.runs[:NAMED]

    @property
    def unnamed(self) -> int:
        return max(0, len(self.runs) - NAMED)

    @property
    def keys(self) -> str:
        """As the form carries them to the command."""
        return " ".join(run.pk.hex for run in self.runs)


def never_started() -> QuerySet[Run]:
    """Runs that are to be cancelled and of which nothing was ever started."""
    return Run.objects.filter(status=RunStatus.CANCELLING).exclude(pk__in=Attempt.objects.values("run"))


def cancellable(chosen: QuerySet[Run]) -> QuerySet[Run]:
    """Of these runs those of which there is something left to cancel."""
    attempts = Attempt.objects.filter(run=OuterRef("pk")).order_by("-number").values("status")[:1]
    pairs = Q()
    for status in RunStatus:
        pairs |= Q(
            status=status, newest_attempt__in=[newest or "" for newest in (None, *AttemptStatus) if can_be_cancelled(status, newest)]
        )
    live = chosen.exclude(status__in=[*sorted(TERMINAL), RunStatus.CANCELLING])
    return live.annotate(newest_attempt=Coalesce(Subquery(attempts), Value(""))).filter(pairs)


def cancel_plan(chosen: QuerySet[Run], actor: Actor, rights: Rights) -> Plan:
    live = cancellable(chosen)
    may_any = rights.allows(Permission.MANAGE_QUEUE, Kind.RUN)
    own = live if may_any else live.filter(requested_by=actor.user)
    total, count = live.count(), own.count()
    shown = ("name", "number", "status", "reserved_gpu_ms", "requested_by__username", "requested_by__display_name")
    runs = list(own.select_related("requested_by").only(*shown).order_by("number")[:MOST])
    return Plan(runs=runs, more=count - len(runs), others=total - count, ended=chosen.count() - total)


def key_of(text: str) -> uuid.UUID:
    """The key of a run that is named by its canonical id or UUID; NotFound for what is no such name."""
    key, _ = ids.spellings(Run.prefix, text)
    if key is None:
        raise NotFound("run")
    return key


def keys_of(text: str) -> list[uuid.UUID]:
    """Keys as `Plan.keys` writes them; whatever is none is left out."""
    found = []
    for word in text.split()[: MOST + 1]:
        try:
            found.append(uuid.UUID(hex=word))
        except ValueError:
            continue
    return found
