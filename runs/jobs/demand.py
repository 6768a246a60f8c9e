"""Telling other workspaces what the queue asks of engines: a measurement of each look at the queue, not a change of anything."""

import uuid
from collections.abc import Mapping

from django.db.models.functions import Now

from runs.models import PoolDemand


def say_demand(wanted: Mapping[uuid.UUID, int]) -> None:
    """Keep what the queue asks for now, by pool the places of its next run, and forget what it asked for before."""
    PoolDemand.objects.exclude(pool__in=list(wanted)).delete()
    rows = [PoolDemand(pool_id=pool, slots=slots, wanted_at=Now()) for pool, slots in sorted(wanted.items())]
    PoolDemand.objects.bulk_create(rows, update_conflicts=True, unique_fields=["workspace", "pool"], update_fields=["slots", "wanted_at"])
