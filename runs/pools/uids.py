"""Numeric user ids for live attempts: one each, no account made, claimed by a file that is created exclusively.

An installation takes its ids from a block of 4096 that follows from its root folder, within the range that no distribution,
container tool or directory service is given (1879048192 to 2147352575, uid-gid list of systemd), so that two installations on one
machine stay apart.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from runs.pools.base import PoolError
from runs.pools.processes import marked

FIRST, BLOCKS, BLOCK = 1_879_048_192, 65_000, 4096


class UserIds:
    """The claims below one folder."""

    def __init__(self, folder: Path, is_live: Callable[[str, str], bool]) -> None:
        self._folder = folder
        self._is_live = is_live
        digest = hashlib.sha256(os.fsencode(os.path.realpath(folder))).digest()
        self._first = FIRST + int.from_bytes(digest[:8], "big") % BLOCKS * BLOCK

    def claim(self, workspace: str, key: str) -> tuple[int, Path]:
        """A free id and its claim file, which the launcher removes after the confirmed end."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with open(self._folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            taken = {name for name in os.listdir(self._folder) if name.isdigit()}
            start = secrets.randbelow(BLOCK)
            for stale in (False, True):
                for step in range(BLOCK):
                    uid = self._first + (start + step) % BLOCK
                    claim = self._folder / str(uid)
                    if claim.name in taken and not (stale and self._is_stale(claim, uid)):
                        continue
                    claim.write_text(f"{workspace}/{key}")
                    return uid, claim
        raise PoolError(f"all {BLOCK} user ids of this pool are in use")

    def of(self, workspace: str, key: str) -> int | None:
        """The id that an attempt has claimed, found without its folder; None where it has none, or gave it back."""
        try:
            names = [name for name in os.listdir(self._folder) if name.isdigit()]
        except FileNotFoundError:
            return None
        for name in names:
            try:
                if (self._folder / name).read_text() == f"{workspace}/{key}":
                    return int(name)
            except FileNotFoundError:
                continue
        return None

    def _is_stale(self, claim: Path, uid: int) -> bool:
        """Left by a process that was killed: its attempt has ended or was never staged, and nothing runs under the id."""
        try:
            workspace, _, key = claim.read_text().partition("/")
        except FileNotFoundError:
            return True
        return not self._is_live(workspace, key) and not marked("", uid)
