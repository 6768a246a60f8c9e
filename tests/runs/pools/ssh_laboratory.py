"""A Laboratory whose pool is on an SSHHost."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from runs.pools.base import JSON
from runs.pools.isolation import Isolation, can_enter
from runs.pools.ssh import SSHPool
from tests.runs.pools.laboratory import Laboratory
from tests.runs.pools.ssh_host import SSHHost


def pool_on(host: SSHHost, isolation: Isolation = Isolation.NONE, scheduler: Mapping[str, JSON] | None = None, **other: str) -> SSHPool:
    """A pool there; `other` replaces what its constructor is given by name (root, host_key, private_key, interpreter)."""
    keys = {"host_key": host.pinned, "private_key": host.private_key, "root": str(host.home / f"runs-{isolation}")}
    return SSHPool("127.0.0.1", host.port, host.user, isolation=isolation, scheduler=scheduler, **{**keys, **other})


def laboratory(host: SSHHost, store: Path, isolation: Isolation = Isolation.NONE) -> Iterator[Laboratory]:
    if isolation == Isolation.NAMESPACE and not can_enter(isolation):
        pytest.skip("this kernel gives no user namespaces; see sysctl kernel.unprivileged_userns_clone")
    files = {"host_key_file": host.pinned, "private_key_file": host.private_key}
    for name, content in files.items():
        (store / name).touch(mode=0o600)
        (store / name).write_text(content)
    spec = {"root": str(host.home / f"runs-{isolation}"), "isolation": isolation.value, "port": str(host.port), "user": host.user}
    pool = pool_on(host, isolation)
    pool.probe()  # makes the pool's folder, as "test connection" does; without it nothing is known there
    lab = Laboratory(pool, store, {**spec, **{name: str(store / name) for name in files}})
    try:
        yield lab
    finally:
        lab.clear()
