"""`manage.py up` in folders of its own, as a person starts it and reads what it says."""

import http.cookiejar
import os
import re
import signal
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labsite.embedded import pool_python
from labsite.embedded.home import CHECKOUT
from tests.labsite.plain_account import PYTHON, PlainAccount

SECONDS = 90


class Started:
    """`manage.py up` in folders of its own, as one account; `block` is the text with which it ends its start."""

    def __init__(self, account: PlainAccount | None, place: Path) -> None:
        self.account = account
        self.place = place
        self.checkout = account.checkout if account else CHECKOUT
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_URL") and name != "LABSITE_STATIC"}
        self.environment = environment | {
            "HOME": str(place),
            "LABSITE_HOME": str(place / "data"),
            "LABSITE_RUNS": str(place / "runs"),
            "LABSITE_PORT": str(self.port),
            "LABSITE_EXAMPLES": "0",
            "DJANGO_SETTINGS_MODULE": "labsite.settings",
            "PYTHONPATH": str(self.checkout),
        }
        python = place / "runs" / f"python-{pool_python.stamp()}"  # runs here need no packages
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(python)], check=True)
        (place / "runs" / "python").symlink_to(python.name)
        if account:
            account.give(place)

    def argv(self, *argv: str) -> list[str]:
        return self.account.command(*argv) if self.account else list(argv)

    def says_everything(self, block: str) -> dict[str, str]:
        """The block of a first start: address, folders, how to stop, and a sign-in for each of the first people, which are returned."""
        passwords = sign_ins(block)
        assert f"labsite answers at  {self.url}/\n" in block
        assert set(passwords) == {"admin", "researcher", "approver"}
        assert "These passwords are shown this once." in block
        assert f"data {self.place}/data   runs {self.place}/runs   logs {self.place}/data/logs" in block
        assert block.rstrip().endswith("Ctrl-C stops it; the next start goes on from here.")
        return passwords

    @contextmanager
    def up(self) -> Iterator[str]:
        """Up, and the block of text; ended by Ctrl-C, which must end well."""
        process = subprocess.Popen(
            self.argv(PYTHON, "manage.py", "up"), cwd=self.checkout, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        assert process.stdout
        said: list[str] = []
        try:
            for line in process.stdout:
                said.append(line)
                if "Ctrl-C stops it" in line:
                    break
            else:
                pytest.fail("".join(said))
            block = "".join(said)
            yield block[block.index("labsite answers at") :]
        finally:
            process.send_signal(signal.SIGINT)
            rest = process.communicate(timeout=SECONDS)[0]
        assert process.returncode == 0, rest


def sign_ins(block: str) -> dict[str, str]:
    """Names and passwords of the table."""
    lines = block.splitlines()
    heads = [index for index, line in enumerate(lines) if re.match(r"\s+user\s+password\s+what for", line)]
    rows = lines[heads[0] + 1 :] if heads else []
    return dict(line.split()[:2] for line in rows[:3])


def signed_in(url: str, name: str, password: str) -> urllib.request.OpenerDirector:
    """A browser that has gone through the sign-in page."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    form = read(browser, f"{url}/accounts/login/")
    assert "Sign in" in form
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert token
    fields = {"login": name, "password": password, "csrfmiddlewaretoken": token[1]}
    page = read(browser, f"{url}/accounts/login/", urllib.parse.urlencode(fields).encode())
    assert 'name="password"' not in page, "the sign-in that was printed does not let in"
    return browser


def read(browser: urllib.request.OpenerDirector, url: str, body: bytes | None = None) -> str:
    with browser.open(urllib.request.Request(url, body, {"Referer": url}), timeout=SECONDS) as answer:  # noqa: S310  # our own address, on loopback
        return str(answer.read().decode())
