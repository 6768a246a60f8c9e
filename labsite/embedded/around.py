"""Run a command with throw-away servers around it: `python -m labsite.embedded.around -- pytest tests`.

Data folder and run folder are temporary and removed afterwards; the command's exit code is ours. DATABASE_URL, REDIS_URL and
LABSITE_RUNS of the caller win, so that the same suite runs on external servers.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from labsite.embedded.home import Home, StartError
from labsite.embedded.servers import environment_with, running_servers


def run_with_servers(argv: Sequence[str]) -> int:
    """Exit code of `argv`, run with fresh servers; minus a signal's number becomes 128 plus it, as in a shell."""
    place = Path(tempfile.mkdtemp(prefix="labsite-around-"))
    place.chmod(0o711)  # nothing to read here; its parts are private
    home = Home(place / "home")
    try:
        runs = place / "runs"
        runs.mkdir(mode=0o711)
        with home.locked(), running_servers(home, os.environ, throw_away=True) as servers:
            defaults = {"LABSITE_RUNS": str(runs), "LABSITE_STATIC": str(place / "static")}
            (place / "static").mkdir()
            command = subprocess.Popen(argv, env=defaults | environment_with(servers, home))
            # The terminal's Ctrl-C reaches the command by itself; a signal to us alone is passed on.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, lambda number, frame: _pass_on(command, number, frame))
            code = command.wait()
        return 128 - code if code < 0 else code
    finally:
        shutil.rmtree(home.sockets, ignore_errors=True)  # elsewhere, where the temporary folder's path is long
        shutil.rmtree(place, ignore_errors=True)


def _pass_on(command: "subprocess.Popen[bytes]", number: int, frame: FrameType | None) -> None:
    if command.poll() is None:
        command.send_signal(number)


def main(arguments: Sequence[str]) -> int:
    argv = list(arguments[1:]) if arguments[:1] == ["--"] else list(arguments)
    if not argv:
        print("usage: python -m labsite.embedded.around -- COMMAND [ARGUMENT ...]", file=sys.stderr)
        return 2
    try:
        return run_with_servers(argv)
    except StartError as refusal:
        print(f"labsite: {refusal}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
