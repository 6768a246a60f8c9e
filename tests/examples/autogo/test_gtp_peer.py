"""The controller against peers that answer late, wrong, or never."""

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.examples.autogo.bundle import load

peer: Any = load("gtp_peer")
ECHO = "import sys\nfor line in sys.stdin:\n    number, *words = line.split()\n"


def program(text: str, *arguments: str) -> list[str]:
    return [sys.executable, "-u", "-c", text, *arguments]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def test_answers_come_back_however_they_are_cut(tmp_path: Path) -> None:
    text = (
        ECHO
        + "    sys.stdout.write(f'={number} ' + ' '.join(words))\n    sys.stdout.flush()\n    sys.stdout.write('\\r\\nmore\\r\\n\\r\\n')\n"
    )
    with peer.Peer(program(text), name="echo") as echo:
        assert echo.ask("one") == "one\nmore"
        assert echo.ask("two words") == "two words\nmore"


def test_a_refusal_is_the_peers_own_and_it_goes_on() -> None:
    text = ECHO + "    print(f'?{number} not today\\n' if words[0] == 'fly' else f'={number}\\n')\n"
    with peer.Peer(program(text), name="echo") as echo:
        with pytest.raises(peer.Refused, match="not today"):
            echo.ask("fly")
        assert echo.ask("walk") == ""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import time\ntime.sleep(60)", r"slow has not answered 'name' within 0\.5 s"),
        (ECHO + "    print(f'={number} half')\nimport time\ntime.sleep(60)", "has not answered 'name' within"),
        (
            "import time\nfor turn in range(600):\n    print('x', end='', flush=True)\n    time.sleep(0.05)",
            "has not answered 'name' within",
        ),
        ("import sys\nwhile True:\n    sys.stdout.write('\\r' * 65536)\nimport time\ntime.sleep(1)", "has not answered 'name' within"),
        (ECHO + "    print('hello\\n')", "answers 'name' with 'hello', which begins with neither = nor ?"),
        (ECHO + "    print('\\n\\n\\n')", "which begins with neither"),
        (ECHO + "    print('=99 me\\n')", "under the id 99; it was asked under 1"),
        (ECHO + "    print('= me\\n')", "under no id; it was asked under 1"),
        (ECHO + "    print('=1x\\n')", "which begins with neither"),
        ("import sys\nsys.stdin.readline()\nsys.exit(3)", "ended without an answer to 'name', with exit code 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "ended .*'name', by signal 9"),
        ("import os, time\nos.close(1)\ntime.sleep(60)", "ended without an answer to 'name', closing its pipe"),
        ("import sys\nsys.stdin.readline()\nwhile True:\n    sys.stdout.write('y' * 65536)", "with more than 262,144 bytes"),
    ],
)
def test_a_peer_that_does_not_keep_to_the_protocol_is_named_and_ended(text: str, sentence: str) -> None:
    slow = "time.sleep" in text and "close" not in text
    with peer.Peer(program(text), name="slow", seconds=0.5 if slow else 20) as bad:
        began = time.monotonic()
        with pytest.raises(peer.PeerError, match=sentence):
            bad.ask("name")
        assert time.monotonic() - began < 15
        assert bad._process.poll() is not None
        with pytest.raises(peer.PeerError, match="after its end"):
            bad.ask("name")


def test_what_a_peer_has_started_ends_with_it(tmp_path: Path) -> None:
    """A child that holds the pipe open outlives its parent; the group is what is ended."""
    note = tmp_path / "pid"
    child = "import time\ntime.sleep(120)"
    text = (
        f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "open(sys.argv[1], 'w').write(str(child.pid))\nprint('=1\\n', flush=True)\nsys.stdin.readline()\n"
    )
    with peer.Peer(program(text, str(note)), name="parent") as parent:
        assert parent.ask("name") == ""
        pid = int(note.read_text())
        assert is_alive(pid)
    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(pid)


def test_a_peer_that_will_not_quit_is_ended() -> None:
    text = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('=1\\n', flush=True)\ntime.sleep(120)"
    with peer.Peer(program(text), name="stubborn") as stubborn:
        stubborn.ask("name")
        began = time.monotonic()
    assert time.monotonic() - began < 10
    assert stubborn._process.returncode == -9


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(peer.PeerError, match="nobody cannot be started: No such file or directory"):
        peer.Peer(["/nonexistent/engine"], name="nobody")


def test_one_line_is_one_command() -> None:
    with peer.Peer(program(ECHO), name="echo") as echo, pytest.raises(ValueError, match="one line"):
        echo.ask("name\nquit")
