"""How much of what they may do policies have done, and what waits of it for a person: in one query each, for however many policies."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, F, OuterRef, QuerySet, Subquery, UUIDField, When, Window
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, RowNumber
from django.utils import timezone

from runs.models import Decision, PolicyVersion, Run
from runs.policy.decide import Outcome
from runs.queries.policy_cause import acting_versions
from workspaces import kept_query
from workspaces.kept_query import Question
from workspaces.models import Approval

NAMED = 3  # requests of a policy that are named; the others are counted
HEX = "^[0-9a-f]{32}$"


@dataclass(frozen=True, slots=True)
class Use:
    """`used` of `allowed` decisions of the version that acts have acted; `allowed` is None where it sets no limit. `requests` are the oldest that
    wait of all its decisions put forward, launched or asked, `waiting` how many there are."""

    used: int = 0
    allowed: int | None = None
    requests: tuple[Approval, ...] = ()
    waiting: int = 0

    @property
    def is_up(self) -> bool:
        return self.allowed is not None and self.used >= self.allowed

    @property
    def more(self) -> int:
        return self.waiting - len(self.requests)

    @property
    def words(self) -> str:
        """Empty where there is no limit."""
        if self.allowed is None:
            return ""
        used = f"{self.used:,} of {self.allowed:,} {'decision' if self.allowed == 1 else 'decisions'} used"
        return f"{used}: it acts no more until a version allows more" if self.is_up else used


UNUSED = Use()


def uses_of(acting: Mapping[uuid.UUID, PolicyVersion | None]) -> dict[uuid.UUID, Use]:
    """Of each policy, given with its version that acts."""
    allowed = {version.pk: most for version in acting.values() if version is not None and (most := _allowed(version.document)) is not None}
    counted, asked = kept_query.ask_together(
        [
            Question(_counted, (), {"versions": list(allowed)}),
            Question(_waiting, (), {"policies": list(acting), "now": timezone.now()}),
        ]
    )
    used = {row["version"]: row["count"] for row in counted}
    requests: dict[uuid.UUID, list[Any]] = {}
    for row in asked:
        requests.setdefault(row.policy_id, []).append(row)
    return {
        policy: Use(
            used.get(version.pk, 0) if version else 0,
            allowed.get(version.pk) if version else None,
            tuple(requests.get(policy, ())),
            requests[policy][0].waiting if policy in requests else 0,
        )
        for policy, version in acting.items()
    }


def at_rest() -> tuple[int, int]:
    """(policies that act, how many of them have used up their limit): what a quiet workspace waits for."""
    versions = list(acting_versions())
    uses = uses_of({version.policy_id: version for version in versions}) if versions else {}
    return len(versions), sum(use.is_up for use in uses.values())


def acted(version: Any) -> "QuerySet[Decision]":
    """Decisions of a version, or of several, that its limit `decisions` counts (`runs.policy.decide`)."""
    return Decision.objects.filter(version=version, outcome=Outcome.ACTS.value)


def _allowed(document: Any) -> int | None:
    limits = document.get("limits") if isinstance(document, dict) else None
    most = limits.get("decisions") if isinstance(limits, dict) else None
    return most if isinstance(most, int) else None


def _counted(versions: Any) -> "QuerySet[Any, Any]":
    return acted(versions).order_by().values("version").annotate(count=Count("pk"))


def _waiting(policies: Any, now: datetime) -> "QuerySet[Approval]":
    """Which decision a request is of: a question is about it, a promotion names it, a run is of the sweep that it launched."""
    launched = Run.objects.filter(pk=OuterRef("subject_id")).values("sweep__decision")[:1]
    named = Case(When(content__decision__regex=HEX, then=KeyTextTransform("decision", "content")))
    decision = Case(
        When(subject_type="question", then=F("subject_id")),
        When(subject_type="promotion", then=Cast(named, UUIDField())),
        When(subject_type="run", then=Subquery(launched)),
        output_field=UUIDField(),
    )
    rows = Approval.objects.filter(status=Approval.Status.PENDING, expires_at__gt=now, subject_type__in=["question", "promotion", "run"])
    rows = rows.annotate(decision_id=decision)
    of = Subquery(Decision.objects.filter(pk=OuterRef("decision_id")).values("policy")[:1])
    rows = rows.annotate(policy_id=of).filter(policy_id=policies)
    by_policy = [F("policy_id")]
    nth = Window(RowNumber(), partition_by=by_policy, order_by=[F("created_at"), F("pk")])
    rows = rows.annotate(nth=nth, waiting=Window(Count("pk"), partition_by=by_policy)).filter(nth__lte=NAMED)
    return rows.defer("content").order_by("policy_id", "nth")
