"""What has happened that a policy is to be asked about: rows since its version acts that it has not decided on. PostgreSQL says which."""

import uuid
from collections.abc import Callable
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from runs.lifecycle import TERMINAL
from runs.models import Decision, Evaluation, MemoryEntry, Policy, PolicyVersion, Promotion, Run, Sweep
from runs.policy.facts import Cause
from workspaces import ids, scope
from workspaces.models import Agent, Approval, Benchmark, Dataset, DatasetVersion, Workspace
from workspaces.queries.approval import title_of
from workspaces.windows import clock_of

BACK = timedelta(days=7)  # what is older is history, and made up for by nobody
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def acting_versions() -> "QuerySet[PolicyVersion]":
    rows = PolicyVersion.objects.filter(status=PolicyVersion.Status.ACTIVE, policy__status=Policy.Status.ACTIVE)
    return rows.select_related("policy", "proposed_by").order_by("policy__created_at")


def causes_of(version: PolicyVersion, trigger: dict[str, Any], now: datetime, *, limit: int) -> list[Cause]:
    """The oldest first; raises NotFound where the trigger names what is not here. A version is asked about what happened since it was approved, or
    since its policy was let go on."""
    since = max(instant for instant in (version.decided_at, version.policy.status_at, now - BACK) if instant is not None)
    on = str(trigger["on"])
    if on == "schedule":
        return _of_schedule(version, trigger, since, now)
    looks = LOOKS.get(on)
    if looks is None:
        return []
    kind, rows, order = looks(trigger, since)
    asked = Decision.objects.filter(policy=version.policy_id, cause_type=kind, cause_id=OuterRef("pk"))
    return [Cause(kind, row.pk, _label(row), getattr(row, order)) for row in rows.exclude(Exists(asked)).order_by(order, "pk")[:limit]]


def _named(trigger: dict[str, Any], **fields: str) -> dict[str, Any]:
    """Look-ups for what a trigger narrows to. Raises NotFound where that is not here."""
    kinds: dict[str, Any] = {"agent": Agent, "benchmark": Benchmark, "dataset": Dataset}
    return {field: kinds[name].objects.find(trigger[name]).pk for name, field in fields.items() if name in trigger}


def _runs(trigger: dict[str, Any], since: datetime) -> "tuple[str, QuerySet[Any], str]":
    narrowed = _named(trigger, agent="agent", benchmark="benchmark")
    return "run", Run.objects.filter(ended_at__gt=since, status__in=sorted(TERMINAL), **narrowed), "ended_at"


def _sweeps(trigger: dict[str, Any], since: datetime) -> "tuple[str, QuerySet[Any], str]":
    """Those of which nothing is under way any more, stopped ones too: a loop must not wait for ever for one that broke off."""
    under_way = Run.objects.filter(sweep=OuterRef("pk")).exclude(status__in=sorted(TERMINAL))
    narrowed = _named(trigger, agent="agent", benchmark="benchmark")
    return "sweep", Sweep.objects.filter(ended_at__gt=since, **narrowed).exclude(Exists(under_way)), "ended_at"


def _evaluations(trigger: dict[str, Any], since: datetime) -> "tuple[str, QuerySet[Any], str]":
    """Scores of the metric that ranks: those beside it come of the same measurement, which is asked about once."""
    narrowed = _named(trigger, agent="run__agent", benchmark="benchmark")
    rows = Evaluation.objects.filter(created_at__gt=since, metric=F("contract__metric"), **narrowed)
    return "evaluation", rows.select_related("run"), "created_at"


def _versions(trigger: dict[str, Any], since: datetime) -> "tuple[str, QuerySet[Any], str]":
    """A version of the dataset, or a window cut off it."""
    rows = DatasetVersion.objects.filter(created_at__gt=since).select_related("dataset")
    if "dataset" in trigger:
        dataset = Dataset.objects.find(trigger["dataset"]).pk
        rows = rows.filter(Q(dataset=dataset) | Q(dataset__window_of=dataset))
    return "dataset version", rows, "created_at"


def _promotions(trigger: dict[str, Any], since: datetime) -> "tuple[str, QuerySet[Any], str]":
    rows = Promotion.objects.filter(decided_at__gt=since)
    return "promotion", rows.filter(name=ids.same_name(trigger["name"])) if "name" in trigger else rows, "decided_at"


def _answers(trigger: dict[str, Any], since: datetime) -> "tuple[str, QuerySet[Any], str]":
    """Questions that a person has answered; one that was declined, or that nobody answered, starts nothing."""
    rows = Approval.objects.filter(subject_type="question", status=Approval.Status.APPROVED, decided_at__gt=since)
    if "policy" in trigger:
        policy = Policy.objects.find(trigger["policy"]).pk
        rows = rows.filter(subject_id__in=Decision.objects.filter(policy=policy).values("pk"))
    said = {"votes__approves": True} | ({"votes__answer": trigger["answer"]} if "answer" in trigger else {})
    return "question", rows.filter(**said).annotate(answer=F("votes__answer")), "decided_at"


def _written(trigger: dict[str, Any], since: datetime) -> "tuple[str, QuerySet[Any], str]":
    """What people and runs write. What policies write starts no policy: two of them could answer each other for ever."""
    rows = _memory(trigger).filter(created_at__gt=since).exclude(author_kind=MemoryEntry.Author.POLICY)
    return "memory entry", rows, "created_at"


def _reviewed(trigger: dict[str, Any], since: datetime) -> "tuple[str, QuerySet[Any], str]":
    """Whoever wrote it, a person has looked at it in between."""
    return "memory entry", _memory(trigger).filter(reviewed_at__gt=since), "reviewed_at"


def _memory(trigger: dict[str, Any]) -> "QuerySet[Any]":
    narrowed = _named(trigger, agent="agent", benchmark="benchmark")
    narrowed |= {name: trigger[name] for name in ("collection", "kind") if name in trigger}
    return MemoryEntry.objects.filter(superseded_at=None, withdrawn_at=None, **narrowed)


LOOKS: dict[str, Callable[[dict[str, Any], datetime], "tuple[str, QuerySet[Any], str]"]] = {
    "run_ended": _runs,
    "sweep_ended": _sweeps,
    "evaluation_scored": _evaluations,
    "dataset_grew": _versions,
    "promotion_decided": _promotions,
    "question_answered": _answers,
    "memory_written": _written,
    "memory_reviewed": _reviewed,
}


def _label(row: Any) -> str:
    if isinstance(row, Evaluation):
        return f"{row.metric} of {row.run.name}"
    if isinstance(row, MemoryEntry):
        return row.title
    if isinstance(row, Approval):
        return f"{title_of(row)[:150]}: {getattr(row, 'answer', '')[:140]}"
    return str(getattr(row, "label", None) or row)


# --- Schedule -----------------------------------------------------------------------------------------------------------------------------


def _of_schedule(version: PolicyVersion, trigger: dict[str, Any], since: datetime, now: datetime) -> list[Cause]:
    """The latest instant that is due, if it lies after `since` and was not decided on: those that were slept through are one."""
    [zone] = Workspace.objects.filter(pk=scope.current_id()).values_list("zone", flat=True)
    due = last_due(trigger, clock_of(zone), now)
    if due <= since:
        return []
    cause_id = uuid.uuid5(version.policy_id, due.isoformat())
    # Asked at or after that instant already: by a clock that was put back since, by up to a day, or in the zone of before.
    since_due = Q(created_at__gte=due, created_at__lte=now + timedelta(days=1))
    decided = Decision.objects.filter(policy=version.policy_id, cause_type="schedule")
    if decided.filter(since_due | Q(cause_id=cause_id)).exists():
        return []
    return [Cause("schedule", cause_id, f"{due:%Y-%m-%d %H:%M} {zone}")]


def last_due(trigger: dict[str, Any], zone: ZoneInfo, now: datetime) -> datetime:
    """The latest instant, not after `now`, at which the schedule falls due on the workspace's clock.

    A time that a clock change leaves out falls due when the clock has moved; one that comes twice falls due at its first (PEP 495, fold 0).
    """
    local = now.astimezone(zone)
    hour, minute = (int(part) for part in trigger.get("at", "00:00").split(":"))
    if trigger["every"] == "hour":  # at these minutes of the workspace's clock, whose offset need not be whole hours
        face = local.replace(tzinfo=None)
        behind = (face - face.replace(minute=minute, second=0, microsecond=0)) % timedelta(hours=1)
        return local - behind if behind else local
    day = local.date()
    for _ in range(9):
        if trigger["every"] == "day" or WEEKDAYS[day.weekday()] == trigger.get("weekday", "monday"):
            due = datetime.combine(day, time(hour, minute), zone)
            if due.timestamp() <= now.timestamp():
                return datetime.fromtimestamp(due.timestamp(), zone)
        day -= timedelta(days=1)
    raise AssertionError("a schedule falls due once in nine days at least")
