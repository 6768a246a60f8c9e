"""Which engines can be asked, by the word that a request to the far side carries."""

from __future__ import annotations

from collections.abc import Mapping

from runs.pools.base import JSON, PoolError
from runs.pools.ray import RayJobs
from runs.pools.scheduler import Scheduler
from runs.pools.slurm import Slurm


def scheduler_of(settings: Mapping[str, JSON]) -> Scheduler:
    """The engine that `settings` names under `kind`, with its own settings. Raises PoolError for one that is not known."""
    kind = settings.get("kind")
    if kind == "slurm":
        return Slurm(partition=str(settings.get("partition") or ""), account=str(settings.get("account") or ""))
    if kind == "ray":
        return RayJobs(str(settings.get("jobs_url") or ""))
    raise PoolError(f"there is no engine of the kind {kind!a}")
