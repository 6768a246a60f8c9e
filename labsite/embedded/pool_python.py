"""The local pool's own Python, from requirements-pool.lock: `python -m labsite.embedded.pool_python <runs folder>`.

Runs are started with `<runs folder>/python/bin/python`, a link that is set when an environment is complete. Other accounts must be able
to run it: as root every attempt has a uid of its own.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from labsite.embedded.home import CHECKOUT, StartError

LOCK = CHECKOUT / "requirements-pool.lock"
OLDEST_PYTHON = (3, 11)


def stamp() -> str:
    """Names the environment that the lock asks for with this Python."""
    return hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()[:16]


def is_ready(runs: Path) -> bool:
    """Does the link point to the environment that the lock asks for?"""
    return (runs / "python").resolve().name == f"python-{stamp()}" and (runs / "python" / "bin" / "python").exists()


def prepare_runs(runs: Path) -> None:
    """Make the run folder; others may pass through it, not list it. Raises StartError where that cannot be."""
    try:
        runs.mkdir(mode=0o711, parents=True, exist_ok=True)
        if runs.stat().st_uid != os.geteuid():
            raise StartError(f"the run folder {runs} belongs to user {runs.stat().st_uid}; start as that user, or set LABSITE_RUNS")
        runs.chmod(0o711)
    except OSError as error:
        raise StartError(f"the run folder {runs} is not writable ({error.strerror}); set LABSITE_RUNS to another") from error


def build(runs: Path) -> None:
    """Make the environment beside the one in use, then turn the link; the one before stays for runs that still use it."""
    with (runs / "python.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if is_ready(runs):
            return
        target = runs / f"python-{stamp()}"
        before = (runs / "python").resolve()
        for old in runs.glob("python-*"):
            if old != before:
                shutil.rmtree(old)
        os.umask(0o022)
        subprocess.run([base_python(), "-m", "venv", "--without-pip", str(target)], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(target / "bin" / "python"), "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", "--require-hashes", "-r", str(LOCK)], check=True)
        link = runs / "python.link"
        link.unlink(missing_ok=True)
        link.symlink_to(target.name)
        link.replace(runs / "python")


def base_python() -> str:
    """A Python for the environment; as root one that other accounts reach, since runs do not run as root."""
    own = str(Path(str(getattr(sys, "_base_executable", sys.executable))).resolve())
    if os.geteuid() != 0 or _open_to_all(Path(own)):
        return own
    for candidate in _others():
        if _open_to_all(Path(candidate).resolve()) and _new_enough(candidate):
            return candidate
    print(f"no Python that other accounts may run; {own} serves runs of isolation `none` only", file=sys.stderr)
    return own


def _others() -> Iterable[str]:
    for name in ("python3.11", "python3.12", "python3.13", "python3"):
        for folder in ("/usr/bin", "/usr/local/bin"):
            if Path(folder, name).exists():
                yield f"{folder}/{name}"


def _open_to_all(program: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (program, *program.parents))


def _new_enough(python: str) -> bool:
    ask = f"import sys, venv; sys.exit(sys.version_info < {OLDEST_PYTHON!r})"
    return subprocess.run([python, "-c", ask], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    build(Path(sys.argv[1]))
