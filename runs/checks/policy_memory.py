"""The memory that a policy reads as it decides, frozen: what it may go by, and what it may not, so that a decision can say that it left it aside."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from runs.models import MemoryEntry, Trust
from runs.policy.document import Policy
from runs.queries.memory import standing
from runs.queries.memory_recall import Wanted, holding, recall
from runs.queries.memory_stale import staleness_of
from runs.queries.parameters import defaults_of
from workspaces.canonical import canonical
from workspaces.models import Agent, AgentVersion, Benchmark

MOST, MOST_ENDED = 100, 20
MOST_CONFIGURATION_BYTES = 1_000  # kept of each; a larger one is compared with nothing


def memory_for(policy: Policy, now: datetime) -> dict[str, Any] | None:
    """None where the document reads none. The names that it bears are known to be here."""
    asked = policy.action.get("memory")
    if asked is None:
        return None
    agent = Agent.objects.find(policy.action["agent"])
    version = AgentVersion.objects.filter(agent=agent).order_by("-number").first()
    of = Wanted(benchmark=Benchmark.objects.find(policy.action["benchmark"]), agent=agent, least=Trust.UNREVIEWED, most=MOST)
    known = _read(replace(of, collection=asked["avoid"]), now, with_failed=bool(asked.get("failed_attempts", False)))
    if "prefer" in asked:  # what failed is nothing to prefer
        known["preferred"] = _read(replace(of, collection=asked["prefer"]), now, with_failed=False)
    # A run that failed is remembered with what it was not told too.
    return known | {"defaults": defaults_of(version) if version is not None else {}}


def _read(wanted: Wanted, now: datetime, *, with_failed: bool) -> dict[str, Any]:
    """What stands in one collection, what has ended in it with the reason, and how many failed attempts were hidden."""
    failed = MemoryEntry.EntryKind.FAILED_ATTEMPT
    entries = recall(wanted, for_policy=not with_failed, now=now)
    ended = standing(collection=wanted.collection)
    ended = ended if with_failed else ended.exclude(kind=failed)
    withdrawn = list(ended.filter(trust=Trust.WITHDRAWN).order_by("-created_at", "-pk")[:MOST_ENDED])
    over = list(ended.exclude(trust=Trust.WITHDRAWN).filter(valid_until__lte=now).order_by("-created_at", "-pk")[:MOST_ENDED])
    found = [*entries, *over, *withdrawn]
    stale = staleness_of(found, now=now)
    hidden = 0 if with_failed else holding(now).filter(collection=wanted.collection, kind=failed).exclude(trust=Trust.WITHDRAWN).count()
    return {
        "collection": wanted.collection,
        "entries": [_frozen(entry, [reason.words for reason in stale.get(entry.pk, ())]) for entry in found],
        "hidden": hidden,
    }


def _frozen(entry: MemoryEntry, stale: list[str]) -> dict[str, Any]:
    """What was known of it, but for its words: who may read decisions may not be allowed to read memory, and what is erased is erased. `since`:
    when another person vouched for it last, else when it was written."""
    configuration = entry.configuration
    if configuration is not None and len(canonical(configuration)) > MOST_CONFIGURATION_BYTES:
        configuration = None
    return {
        "id": entry.pk.hex,
        "revision": entry.revision,
        "kind": entry.kind,
        "trust": entry.trust,
        "since": (entry.reviewed_at or entry.created_at).isoformat(),
        "stale": stale[:5],
        "configuration": configuration,
    }
