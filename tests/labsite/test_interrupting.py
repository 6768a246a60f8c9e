"""`up` says in one line that runs of this machine were not ended in time; LABSITE_URL is an address that answers, whatever is listened on."""

import os
import subprocess
import sys

import pytest

from labsite.embedded.home import CHECKOUT, Home
from labsite.embedded.supervisor import Stop, Supervisor
from labsite.embedded.web import Address
from labsite.management.commands import up


class Said(list[str]):
    """A progress that keeps its lines."""

    def __call__(self, line: str) -> None:
        self.append(line)


def test_interrupting_that_takes_too_long_ends_with_one_line(open_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "INTERRUPT_SECONDS", 0.3, raising=False)
    monkeypatch.setattr(up, "MANAGE", (sys.executable, "-c", "import time; time.sleep(60)"))
    open_home.logs.mkdir(parents=True)
    said, stop = Said(), Stop()
    start = up._Start(open_home, Address("127.0.0.1", 1), said, stop, as_json=False)  # type: ignore[arg-type]  # keeps the lines only
    start.interrupt(Supervisor(open_home, dict(os.environ), said, stop))
    assert said == ["local attempts are not all ended after 0 s; the next start takes the rest up again"]


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("", "", "http://127.0.0.1:8000"),
        ("lab.example.org", "80", "http://lab.example.org:80"),
        ("::1", "8001", "http://[::1]:8001"),
        ("0.0.0.0", "", "http://127.0.0.1:8000"),  # noqa: S104  # nothing is bound here
        ("::", "8000", "http://[::1]:8000"),
    ],
)
def test_runs_are_told_an_address_that_can_be_reached(host: str, port: str, url: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("LABSITE_URL", "LABSITE_HOST", "LABSITE_PORT")}
    environment |= {"LABSITE_HOST": host} if host else {}
    environment |= {"LABSITE_PORT": port} if port else {}
    asked = [sys.executable, "-c", "from labsite import settings; print(settings.LABSITE_URL)"]
    said = subprocess.run(asked, env=environment, cwd=CHECKOUT, capture_output=True, text=True, check=True)  # our own words
    assert said.stdout.strip() == url
    assert Address.of(environment).url == f"{url}/"
