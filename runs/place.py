"""The pool behind a row: where attempts of it run."""

from django.conf import settings

from runs.pools.base import Pool as PoolPlace
from runs.pools.base import PoolError
from runs.pools.isolation import Isolation
from runs.pools.local import LocalPool
from workspaces.models import Engine, Pool


def place_of(pool: Pool) -> PoolPlace:
    """The engine of a pool, ready to take orders. Raises PoolError for a kind that this installation cannot serve."""
    if pool.engine.kind == Engine.Kind.LOCAL:
        return LocalPool(
            settings.LABSITE_RUNS,
            Isolation(pool.isolation),
            hidden=[settings.BASE_DIR, settings.LABSITE_HOME],
            python=settings.LABSITE_RUNS / "python",
        )
    raise PoolError(f"{pool.engine.kind} engines cannot be reached from this installation")
