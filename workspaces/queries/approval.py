"""Requests for a decision: the inbox, and one request with everything that the approver agrees to."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from workspaces import units
from workspaces.access import Actor, Kind, Permission, Rights
from workspaces.checklist import checks
from workspaces.models import Approval, ApprovalVote

# Keys of what is asked that say nothing to a person beside the others.
HASHES = ("hash", "sha256")
DEPTH = 4


@dataclass(frozen=True, slots=True)
class Fact:
    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as its page shows it. `checks` go into a checklist; `why_not` says why this reader cannot decide, empty where they can."""

    approval: Approval
    title: str
    checks: list[dict[str, str]]
    facts: list[Fact]
    votes: list[ApprovalVote]
    why_not: str
    missing: int = 0
    is_open: bool = field(default=False)


LEADING = ("limits", "benchmark", "agent", "inputs", "parameters", "seed", "pool")


def approvals(*, status: str = "") -> "QuerySet[Approval]":
    """Requests, those of one status or all."""
    rows = Approval.objects.select_related("requested_by")
    return rows.filter(status=status) if status else rows


def title_of(approval: Approval) -> str:
    """What is asked, in a phrase."""
    asks = approval.content.get("asks") if isinstance(approval.content, dict) else None
    return str(asks or approval.subject_label)


def votes_on(approval: Approval) -> list[ApprovalVote]:
    return list(ApprovalVote.objects.filter(approval=approval).select_related("person").order_by("created_at", "pk"))


def asked(approval: Approval, actor: Actor, rights: Rights) -> Asked:
    """One request with its votes and what the reader may do about it."""
    votes = votes_on(approval)
    content = approval.content if isinstance(approval.content, dict) else {"content": approval.content}
    lines = content.get("certificate")
    rest = {key: content[key] for key in sorted(content, key=_place) if key not in ("asks", "certificate")}
    is_open = approval.status == Approval.Status.PENDING and approval.expires_at > timezone.now()
    return Asked(
        approval=approval,
        title=title_of(approval),
        checks=checks(lines) if isinstance(lines, list) else [],
        facts=list(_facts(rest)),
        votes=votes,
        why_not=_why_not(approval, actor, rights, votes) if is_open else "",
        missing=max(0, approval.quorum - sum(vote.approves for vote in votes)),
        is_open=is_open,
    )


def _why_not(approval: Approval, actor: Actor, rights: Rights, votes: list[ApprovalVote]) -> str:
    if not rights.allows(Permission.APPROVE, Kind.APPROVAL):
        return "Deciding on this needs the right to approve."
    if actor.user is None or actor.user.pk == approval.requested_by_id:
        return "You asked for this yourself; another approver decides."
    if any(vote.person_id == actor.user.pk for vote in votes):
        return "You have decided on this; others still have to."
    return ""


def _place(key: str) -> tuple[int, str]:
    return (LEADING.index(key) if key in LEADING else len(LEADING), key)


def _facts(value: Any, label: str = "", depth: int = 0) -> list[Fact]:
    """Labels and values of nested JSON, with units as the names of the keys say them; keys and hashes are left to the API."""
    if isinstance(value, dict) and depth < DEPTH:
        found: list[Fact] = []
        for key, item in value.items():
            if key == "id" or any(key.endswith(word) for word in HASHES):
                continue
            words = "" if key in ("slug", "name", "label", "limits") else _words(str(key))
            found += _facts(_measured(str(key), item), " ".join(part for part in (label, words) if part), depth + 1)
        return found
    if isinstance(value, list) and depth < DEPTH and all(isinstance(item, dict) for item in value):
        return [fact for item in value for fact in _facts(str(item["label"]) if item.get("label") else item, label, depth + 1)]
    return [] if value in (None, "", [], {}) else [Fact(label[:1].upper() + label[1:], str(value)[:1000])]


def _words(key: str) -> str:
    for ending in ("_ms", "_micros", "_seconds", "_bytes"):
        key = key.removesuffix(ending)
    return {"gpu": "GPU time", "api": "API spend", "wall": "longest time", "milli_gpu_per_slot": "counts a slot as"}.get(
        key, key.replace("_", " ")
    )


def _measured(key: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    if key.endswith("gpu_ms"):
        return f"{units.gpu_hours(value)} GPU-hours"
    if key.startswith("milli_gpu"):
        return f"{Decimal(value) / 1000:f} GPU"
    if key.endswith("_micros"):
        return units.money(value) if value else None
    if key.endswith("_seconds"):
        return units.duration(value)
    return units.size(value) if key.endswith("_bytes") else value
