"""Make a run folder, complete and checked, before it gets its name."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.pools.base import JSON, SCHEMA, Order, PoolError, StagedFile, check_name, in_short, path_parts

CHUNK_BYTES = 1 << 20
OPEN_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z", re.ASCII)


@dataclass(frozen=True)
class Owner:
    """Who the run is: its user id, or None where it runs as the service itself."""

    uid: int | None

    def give(self, path: Path) -> None:
        if self.uid is not None:
            os.chown(path, self.uid, self.uid)


def check_job(job: Mapping[str, JSON]) -> None:
    """PoolError where the launcher could not act on the job: argv, env, cwd, limits (contracts: labsite.job.v1)."""
    if job.get("schema", SCHEMA) != SCHEMA:
        raise PoolError(f"this pool understands {SCHEMA} only")
    argv = job.get("argv")
    if isinstance(argv, str) or not isinstance(argv, Sequence) or not argv or not all(_is_text(one) for one in argv) or not argv[0]:
        raise PoolError("argv must be a list of text without NUL, with a command in it")
    env = job.get("env") or {}
    if not isinstance(env, Mapping):
        raise PoolError("env must map names to text")
    for name, value in env.items():
        if not isinstance(name, str) or not _VARIABLE.match(name) or not _is_text(value):
            raise PoolError("env must map names (letters, digits, '_') to text without NUL")
    cwd = job.get("cwd") or "code"
    if not isinstance(cwd, str):
        raise PoolError("cwd must be a relative path")
    path_parts(cwd)
    limits = job.get("limits") or {}
    if not isinstance(limits, Mapping):
        raise PoolError("limits must map names to numbers")
    for name, value in limits.items():
        whole = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 2**63
        if value is not None and not whole:
            raise PoolError(f"the limit {name} must be a number from 0 on")


def stage(folder: Path, order: Order, owner: Owner, start: Mapping[str, JSON]) -> None:
    """Fill `folder` (new, empty, the service's own). Every file is hashed while it is copied; a wrong hash raises PoolError.

    The folder belongs to the service and to the run's group, with the sticky bit: the run may add files, and can neither replace nor remove
    what is not its own. Store files are copied and never linked, since a link would let a hostile run change the store.
    """
    for name, files in (("code", order.code), *((f"inputs/{check_name(one.slug, 'a slug')}", one.files) for one in order.inputs)):
        _copy_all(folder / name, files)
    (folder / "inputs").mkdir(mode=0o755, exist_ok=True)
    for name in ("outputs", "home", "tmp"):
        (folder / name).mkdir(mode=0o700)
        owner.give(folder / name)
    try:
        job = json.dumps({"schema": SCHEMA, **order.job}, allow_nan=False).encode()
    except ValueError as error:
        raise PoolError("the job has a number in it that JSON has no word for") from error
    _write(folder / "job.json", job, 0o444)
    for name in ("stdout.log", "stderr.log"):
        _write(folder / name, b"", 0o600)
    _stage_secrets(folder / "secrets", order.secrets, owner)
    state = folder / "state"
    state.mkdir(mode=0o700)
    _write(state / "start.json", json.dumps(start).encode(), 0o600)
    _write(state / "heartbeat", b"", 0o600)
    for name in ("code", "inputs"):
        for path, _, _ in os.walk(folder / name):
            os.chmod(path, 0o555)  # noqa: S103 -- readable to the run, writable to nobody; the folder around it is closed
    if owner.uid is not None:
        os.chown(folder, -1, owner.uid)
        os.chmod(folder, 0o1770)  # noqa: S103 -- the run's own group, see above


def _stage_secrets(folder: Path, values: Mapping[str, str], owner: Owner) -> None:
    folder.mkdir(mode=0o700)
    for name, value in values.items():
        if not _VARIABLE.match(name) or not _is_text(value):
            raise PoolError("a secret has a name of letters, digits and '_', and a value that is text")
        _write(folder / name, value.encode(), 0o600)
        owner.give(folder / name)
    if owner.uid is not None:
        # The folder stays the service's, so that the run cannot move it away from the launcher that empties it.
        os.chown(folder, -1, owner.uid)
        os.chmod(folder, 0o750)  # noqa: S103 -- the run's own group


def _copy_all(folder: Path, files: Sequence[StagedFile]) -> None:
    folder.mkdir(mode=0o755, parents=True)
    for file in files:
        target = folder.joinpath(*path_parts(file.path))
        try:
            target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            _copy(file, target)
        except FileExistsError as error:
            raise PoolError(f"{file.path} is staged twice, or is a folder as well") from error
        except NotADirectoryError as error:
            raise PoolError(f"{file.path} lies below a file") from error
        except OSError as error:
            raise in_short(f"{file.path} could not be staged", error) from error


def _copy(file: StagedFile, target: Path) -> None:
    digest = hashlib.sha256()
    with open(os.open(target, OPEN_NEW, 0o600), "wb", buffering=0) as copy:
        for chunk in _content(file):
            digest.update(chunk)
            _write_whole(copy.fileno(), chunk)
        os.fchmod(copy.fileno(), 0o555 if file.executable else 0o444)
    if digest.hexdigest() != file.sha256:
        raise PoolError(f"{file.path} does not have the hash that was promised (sha256 {file.sha256[:12]}…)")


def _content(file: StagedFile) -> Iterator[bytes]:
    """What lies in the store. Its faults are not those of the folder that is made."""
    try:
        with open(file.source, "rb", buffering=0) as source:
            if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                raise PoolError(f"{file.path} is not a regular file in the store")
            while chunk := source.read(CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise in_short(f"{file.path} could not be read from the store", error) from error


def _write(path: Path, content: bytes, mode: int) -> None:
    number = os.open(path, OPEN_NEW, 0o600)
    try:
        _write_whole(number, content)
        os.fchmod(number, mode)
    finally:
        os.close(number)


def _write_whole(number: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(number, rest) :]


def _is_text(value: JSON) -> bool:
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
