"""Does a pool answer? By the newest word of those who ask it: the orphan finder each minute, a test of its connection, the watch of its runs."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Greatest

from runs.models import Watch
from workspaces.models import Pool


@dataclass(frozen=True, slots=True)
class Contact:
    """When a pool last answered, and when it last did not; `reason` is of that. Both None: nobody has asked it yet."""

    answered_at: datetime | None = None
    failed_at: datetime | None = None
    reason: str = ""

    @classmethod
    def of(cls, row: Model) -> "Contact":
        """Of a row of `with_contact`."""
        return cls(getattr(row, "answered_at"), getattr(row, "failed_at"), getattr(row, "silence") or "")

    @property
    def is_silent(self) -> bool:
        """Is the newest word that it does not answer?"""
        return self.failed_at is not None and (self.answered_at is None or self.failed_at > self.answered_at)

    @property
    def is_asked(self) -> bool:
        return self.answered_at is not None or self.failed_at is not None


@dataclass(frozen=True, slots=True)
class Stranger:
    """Work that a pool has and no row of labsite explains. `is_ours`: it bears the name of this installation."""

    key: str
    since: datetime
    is_ours: bool


def with_contact(pools: "QuerySet[Pool]") -> "QuerySet[Pool]":
    """Pools with what `Contact` is made of, by no further query."""
    # Of the newest attempt, which is an open one where there are any. When a folder was left, which no pool said, is no answer.
    seen = Watch.objects.filter(attempt__pool=OuterRef("pk"), observed_at__isnull=False).exclude(observed=Watch.FOLDER_LEFT)
    newest = Subquery(seen.order_by("-attempt__ended_at").values("observed_at")[:1])
    return pools.annotate(
        answered_at=Greatest(F("contacts__answered_at"), newest), failed_at=F("contacts__failed_at"), silence=F("contacts__reason")
    )
