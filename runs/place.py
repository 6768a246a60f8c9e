"""The place behind an attempt: where it runs."""

from django.conf import settings

from runs.models import Attempt
from runs.pools.base import Pool as PoolPlace
from runs.pools.base import PoolError
from runs.pools.isolation import Isolation
from runs.pools.local import LocalPool
from workspaces.models import Engine


def place_of(attempt: Attempt) -> PoolPlace:
    """The engine of an attempt's pool, with the isolation that the run was admitted on. Raises PoolError for a kind that this installation
    cannot serve."""
    kind = attempt.pool.engine.kind
    if kind == Engine.Kind.LOCAL:
        return LocalPool(
            settings.LABSITE_RUNS,
            Isolation(attempt.run.isolation),
            hidden=[settings.BASE_DIR, settings.LABSITE_HOME],
            python=settings.LABSITE_RUNS / "python",
        )
    raise PoolError(f"{kind} engines cannot be reached from this installation")
