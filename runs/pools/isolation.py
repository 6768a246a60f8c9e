"""How far a local attempt is kept from the machine: which ways this kernel offers, and which folder stands in the way."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from contextlib import suppress
from enum import Enum
from functools import lru_cache
from pathlib import Path

from runs.pools.base import NoAnswer, PoolError

LAUNCHER = Path(__file__).with_name("launcher.py")


class Isolation(str, Enum):
    """The isolation of a local pool (see `describe`)."""

    USER = "user"
    NAMESPACE = "namespace"
    NONE = "none"

    __str__ = str.__str__


_SENTENCES = {
    Isolation.USER: (
        "Each attempt runs under a numeric user of its own, with private temporary folders; "
        "labsite's own files and other runs are out of its reach."
    ),
    Isolation.NAMESPACE: (
        "Each attempt runs in Linux namespaces of its own: it can write only to its run folder, and labsite's own files, "
        "other runs and other processes are hidden from it."
    ),
    Isolation.NONE: "Attempts run as labsite's own user and can read and change everything that labsite can.",
}


_FAR_SENTENCES = {
    Isolation.USER: (
        "The account is root: each attempt runs under a numeric user of its own on that host, with private temporary folders; "
        "other runs and the pool's folder are out of its reach."
    ),
    Isolation.NAMESPACE: (
        "Each attempt runs in Linux namespaces of its own on that host: it can write only to its run folder; "
        "the account's home, other runs and other processes are hidden from it."
    ),
    Isolation.NONE: (
        "Attempts run as the pool's account on that host and can read and change everything that it can, other runs of this pool among it; "
        "labsite's own files are on another machine."
    ),
}


def describe(isolation: Isolation, *, is_far: bool = False) -> str:
    """One sentence for the pool's page; `is_far`: on another host, that of a pool over SSH."""
    return (_FAR_SENTENCES if is_far else _SENTENCES)[isolation]


def available(as_root: bool) -> list[Isolation]:
    """The isolations that a service (root or not) can offer here, strongest first; each but `none` by a trial."""
    if as_root:
        return [Isolation.USER, Isolation.NONE]
    with suppress(NoAnswer):
        if can_enter(Isolation.NAMESPACE):
            return [Isolation.NAMESPACE, Isolation.NONE]
    return [Isolation.NONE]


@lru_cache
def can_enter(isolation: Isolation) -> bool:
    """Whether this process may make the mounts (and, without root, the namespaces) of an isolation; tried once per process. Raises NoAnswer where it
    cannot be tried just now, which says nothing of the next time."""
    call = [sys.executable, "-I", "-S", "-E", str(LAUNCHER), "trial", isolation.value]
    try:
        tried = subprocess.run(  # noqa: S603 -- our own script, a list
            call, env={}, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoAnswer(f"whether this kernel keeps runs apart could not be tried: {error}") from error
    return tried.returncode == 0


def barrier(path: Path) -> Path | None:
    """The first folder on the way to `path` (links resolved) that does not let a foreign user id through; None where the way is free."""
    real = Path(os.path.realpath(path))
    for folder in reversed(real.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None


def demand_way(path: Path) -> None:
    """PoolError with the one line an operator needs where an attempt's user could not reach `path`."""
    found = barrier(path)
    if found is not None:
        raise PoolError(
            f"{found} does not let other users through; set LABSITE_RUNS to a folder whose parents do (labsite never changes them)"
        )
