"""Many requests of every kind, for the tests and the bench of the inbox: with the content that their commands write, in one event."""

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.utils import timezone

from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, command
from workspaces.canonical import digest
from workspaces.models import Approval
from workspaces.verbs import Verb

CHECKS = ("evaluation", "contract", "holdout", "contamination", "cost", "licence", "inputs", "memory", "egress", "file")
CONTENTS: dict[str, dict[str, Any]] = {
    "run": {
        "certificate": [
            {
                "name": "GPU-hours a week",
                "answer": "approval",
                "words": "40 reserved + 24 asked = 64 of 50.",
                "way_out": "Let an approver decide.",
            },
            {"name": "GPU-hours a run", "answer": "pass", "words": "24 of 30."},
        ],
        "limits": {"wall_seconds": 3600, "gpu_ms": 86_400_000, "api_micros": 0},
        "pool": {"slug": "local", "price_micros_per_gpu_hour": 2_000_000, "currency": "EUR"},
        "parameters": {f"parameter-{number}": number for number in range(30)},
    },
    "promotion": {
        "replaces": "model.json, promotion 3",
        "facts": [
            {"name": name, "verdict": "pass", "words": f"{name} holds.", "observed": "0.91", "required": "0.90", "evidence": []}
            for name in CHECKS
        ],
    },
    "policy": {
        "policy": "next-sweep",
        "version": 4,
        "changes": [f"- line {number}" for number in range(12)],
        "replaces": "version 3",
        "would_have_changed": "Of 128 decisions of the last 4 weeks, 7 would have been others: 5 more launches and 2 fewer, 12 GPU-hours more.",
        "document": {"checks": [{"name": name, "of": "x" * 200} for name in CHECKS]},
    },
    "priority": {"run": "run_x", "priority": 80, "priority_now": 0, "highest_without_approval": 50},
}


@command(Verb.LAUNCH_HELD, needs=Permission.VIEW, kind=Kind.APPROVAL)
def _insert(event: Draft, *, actor: Actor, rows: list[Approval]) -> None:
    Approval.objects.bulk_create(rows, batch_size=500)
    event.created(rows[0])


def fill_inbox(*, askers: Sequence[Actor], count: int) -> list[Approval]:
    """`count` open requests, the four kinds in turn and the askers in turn. The subjects are not there."""
    rows = []
    now = timezone.now()
    kinds = list(CONTENTS)
    for number in range(count):
        kind = kinds[number % len(kinds)]
        user = askers[number // len(kinds) % len(askers)].user
        assert user is not None
        content = {"asks": f"Decide on {kind} {number}", **CONTENTS[kind]}
        rows.append(
            Approval(
                subject_type=kind,
                subject_id=uuid.uuid4(),
                subject_label=f"{kind} {number}",
                content=content,
                content_hash=digest(content),
                reason="to see",
                requested_by=user,
                created_at=now - timedelta(seconds=count - number),
                expires_at=now + timedelta(days=7),
            )
        )
    for start in range(0, count, 1000):
        _insert(actor=askers[0], rows=rows[start : start + 1000])
    return rows
