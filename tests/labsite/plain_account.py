"""A plain account of this machine, for root to start things as: the one of those who have none, with a home folder and a checkout that it may read
and nothing more. Where the interpreter stands in a folder that is closed to others, it is opened in a mount namespace of the process alone."""

import os
import pwd
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from labsite.embedded.home import CHECKOUT

NAME = "nobody"  # PostgreSQL wants an account that has a name
PYTHON = str(Path(sys.prefix).resolve() / "bin" / "python")  # by a path without links, so that it leads through what is opened below


class PlainAccount:
    def __init__(self) -> None:
        account = pwd.getpwnam(NAME)
        self.user, self.group = account.pw_uid, account.pw_gid
        self.place = Path(tempfile.mkdtemp(prefix="labsite-plain-"))
        self.place.chmod(0o755)
        self.home = self.place / "home"
        self.home.mkdir(mode=0o700)
        self.checkout = self.place / "checkout"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=CHECKOUT, capture_output=True, check=True
        )
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (CHECKOUT / name).is_file():
                (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(CHECKOUT / name, self.checkout / name)
        self.give(self.home)

    def give(self, folder: Path) -> None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, self.user, self.group, follow_symlinks=False)

    def command(self, *argv: str) -> list[str]:
        """`argv` as this account, in the process that is started; it keeps no right of root's."""
        become = ["setpriv", f"--reuid={self.user}", f"--regid={self.group}", "--clear-groups", "--no-new-privs", *argv]
        script = "\n".join(["set -e", *self._openings(), f"exec {shlex.join(become)}"])
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]

    def _openings(self) -> Iterator[str]:
        """What brings the interpreter and its packages before the account, by the paths that they have."""
        closed = {path: folder for path in {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve()} if (folder := _closed(path))}
        stages = {path: self.place / f"stage-{number}" for number, path in enumerate(closed)}
        for path, stage in stages.items():
            yield shlex.join(["mkdir", "-p", str(stage)])
            yield shlex.join(["mount", "--bind", str(path), str(stage)])
        for folder in dict.fromkeys(closed.values()):
            yield shlex.join(["mount", "-t", "tmpfs", "-o", "mode=755", "none", str(folder)])
        for path, stage in stages.items():
            yield shlex.join(["mkdir", "-p", str(path)])
            yield shlex.join(["mount", "--bind", str(stage), str(path)])

    def remove(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)


def can_become_plain() -> bool:
    """Only root can, where it may make a mount namespace."""
    if os.geteuid() != 0 or not shutil.which("setpriv") or not shutil.which("git"):
        return False
    return subprocess.run(["unshare", "--mount", "--propagation", "private", "true"], capture_output=True, check=False).returncode == 0


def _closed(path: Path) -> Path | None:
    """The first folder on the way to `path` that others may not enter."""
    return next((folder for folder in reversed(path.parents) if not folder.stat().st_mode & 0o001), None)
