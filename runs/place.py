"""The place behind an attempt: where it runs. The only file that knows which pool serves a row, and what is said of it on pages."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from django.conf import settings

from runs.models import Attempt
from runs.pools.base import JSON, PoolError
from runs.pools.base import Pool as PoolPlace
from runs.pools.isolation import Isolation, describe
from runs.pools.local import LocalPool
from runs.pools.scheduled import ScheduledPool
from runs.pools.schedulers import scheduler_of
from runs.pools.travelling import bring
from runs.queries.ours import NOT_OURS, is_ours
from workspaces.models import Engine, Pool, Secret
from workspaces.queries.sealed import value_of
from workspaces.sealing import BrokenSeal
from workspaces.units import plural, size

if TYPE_CHECKING:
    from runs.pools.ssh import FarHost, SSHPool


@dataclass(frozen=True)
class Found:
    """What a test of a pool's connection has shown: a sentence of facts, and sentences of what is wrong although it answers."""

    words: str
    warnings: tuple[str, ...] = ()


class NotOurs(PoolError):
    """Another installation has started the attempt; this one touches nothing of it."""

    def __init__(self) -> None:
        super().__init__(NOT_OURS)


def place_of(attempt: Attempt) -> PoolPlace:
    """The engine of an attempt's pool, with the isolation that the run was admitted on. Raises PoolError where it cannot be reached for a
    reason that is known before anybody is asked, NotOurs where it is another installation's."""
    if not is_ours(attempt.key):
        raise NotOurs
    return place_in(attempt.pool, attempt.run.isolation)


def place_in(pool: Pool, isolation: str) -> PoolPlace:
    """The engine of a pool, as `place_of` gives it."""
    return _far(pool, isolation) if pool.engine.host else _here(pool, isolation)


def open_path(pool: Pool, path: str, below: Sequence[str]) -> BinaryIO:
    """A file of the pool's machine, below one of the folders that are listed for it and never among labsite's own. Raises PoolError."""
    return place_in(pool, pool.isolation).open_path(path, below=below, never=[str(settings.LABSITE_RUNS), *map(str, _own_places())])


def isolation_words(pool: Pool) -> str:
    """One sentence about what a pool keeps its attempts from."""
    return describe(Isolation(pool.isolation), is_far=bool(pool.engine.host))


def probe_of(pool: Pool) -> Found:
    """Go to the pool's engine once, and say what it is and what stands in the way. Raises PoolError."""
    if pool.engine.host:
        host = _far(pool, pool.isolation).probe()
        engine = _engine_words(pool, host.engine) if host.engine is not None else Found("")
        return Found(f"{_host_words(pool, host)} {engine.words}".strip(), engine.warnings)
    place = _here(pool, pool.isolation)
    if isinstance(place, ScheduledPool):
        engine = _engine_words(pool, place.scheduler.probe())
        return Found(f"{engine.words} Runs work in {settings.LABSITE_RUNS}, which every node has to see.", engine.warnings)
    return Found(f"{pool.slug} is on this machine.")


def _here(pool: Pool, isolation: str) -> LocalPool:
    root, python = settings.LABSITE_RUNS, settings.LABSITE_RUNS / "python"
    hidden = _own_places()
    engine = _scheduler(pool)
    if engine is None:
        return LocalPool(root, Isolation(isolation), hidden, python)
    return ScheduledPool(root, Isolation(isolation), hidden, python, scheduler_of(engine), launcher=bring(root))


def _own_places() -> list[Path]:
    """Folders of labsite on this machine that no run may see."""
    return [settings.BASE_DIR, settings.LABSITE_HOME, *(place for place in settings.LABSITE_REGIONS.values() if isinstance(place, Path))]


def _far(pool: Pool, isolation: str) -> "SSHPool":
    # Its SSH library takes a tenth of a second and 13 MB, which a process is spared that asks no other host.
    ssh: type[SSHPool] = importlib.import_module("runs.pools.ssh").SSHPool
    return ssh(
        pool.engine.host, pool.engine.port, pool.login, pool.folder, pool.engine.host_key, _private_key(pool),
        isolation=Isolation(isolation),
        python=pool.python or None,
        scheduler=_scheduler(pool),
    )  # fmt: skip


def _scheduler(pool: Pool) -> Mapping[str, JSON] | None:
    """What starts the pool's runs, as schedulers.py reads it; None where the machine itself does."""
    kind = pool.engine.kind
    if kind == Engine.Kind.SLURM:
        return {"kind": "slurm", "partition": pool.partition, "account": pool.account}
    if kind == Engine.Kind.RAY:
        return {"kind": "ray", "jobs_url": pool.engine.jobs_url}
    return None


def _private_key(pool: Pool) -> str:
    """The SSH key that opens the pool's account, as it holds now."""
    secret = Secret.objects.get(pk=pool.secret_id) if pool.secret_id else None
    if secret is None or secret.revoked_at is not None:
        raise PoolError(f"the key of {pool.slug} was revoked; give the pool another secret")
    try:
        return value_of(secret)
    except BrokenSeal as broken:
        raise PoolError(f"the key of {pool.slug} cannot be opened: {broken}") from broken


def _host_words(pool: Pool, host: "FarHost") -> str:
    kept = ", ".join(isolation.value for isolation in host.isolations)
    lacks = (
        "" if Isolation(pool.isolation) in host.isolations else f" It cannot keep what this pool promises: {pool.get_isolation_display()}."
    )
    clock = f" Its clock is {abs(host.clock_offset_seconds):.0f} s {'ahead' if host.clock_offset_seconds > 0 else 'behind'}."
    return (
        f"{pool.engine.address} answers as {host.user}: Python {host.python}, {plural(host.cores, 'core', 'cores')}, "
        f"{size(host.memory_bytes)} of memory, {size(host.free_bytes)} free on disk; isolation: {kept}."
        f"{clock if host.clock_offset_seconds else ''}{lacks}"
    )


def _engine_words(pool: Pool, said: Mapping[str, JSON]) -> Found:
    warnings = said.get("warnings")
    counted = " and ".join(
        plural(int(value), one, many)
        for value, one, many in ((said.get("nodes"), "node", "nodes"), (said.get("gpus"), "GPU", "GPUs"))
        if isinstance(value, (int, float)) and value
    )
    words = f"{pool.engine.get_kind_display()} answers: {said.get('version')}{f', {counted}' if counted else ''}."
    return Found(words, tuple(map(str, warnings)) if isinstance(warnings, (list, tuple)) else ())
