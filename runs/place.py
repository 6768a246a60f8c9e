"""The place behind an attempt: where it runs."""

from django.conf import settings

from runs.models import Attempt
from runs.pools.base import Pool as PoolPlace
from runs.pools.base import PoolError
from runs.pools.isolation import Isolation
from runs.pools.local import LocalPool
from runs.pools.ssh import SSHPool
from workspaces.models import Engine, Pool, Secret
from workspaces.queries.sealed import value_of
from workspaces.sealing import BrokenSeal


def place_of(attempt: Attempt) -> PoolPlace:
    """The engine of an attempt's pool, with the isolation that the run was admitted on. Raises PoolError for a kind that this installation
    cannot serve."""
    return place_in(attempt.pool, attempt.run.isolation)


def place_in(pool: Pool, isolation: str) -> LocalPool | SSHPool:
    """The engine of a pool, as `place_of` gives it."""
    kind = pool.engine.kind
    if kind == Engine.Kind.LOCAL:
        return LocalPool(
            settings.LABSITE_RUNS,
            Isolation(isolation),
            hidden=[settings.BASE_DIR, settings.LABSITE_HOME],
            python=settings.LABSITE_RUNS / "python",
        )
    if kind == Engine.Kind.SSH:
        return SSHPool(
            pool.engine.host, pool.engine.port, pool.login, pool.folder, pool.engine.host_key, _private_key(pool),
            isolation=Isolation(isolation),
            python=pool.python or None,
        )  # fmt: skip
    raise PoolError(f"{kind} engines cannot be reached from this installation")


def _private_key(pool: Pool) -> str:
    """The SSH key that opens the pool's account, as it holds now."""
    secret = Secret.objects.get(pk=pool.secret_id) if pool.secret_id else None
    if secret is None or secret.revoked_at is not None:
        raise PoolError(f"the key of {pool.slug} was revoked; give the pool another secret")
    try:
        return value_of(secret)
    except BrokenSeal as broken:
        raise PoolError(f"the key of {pool.slug} cannot be opened: {broken}") from broken
