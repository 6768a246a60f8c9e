"""`make run` as a plain account: what it says at the end, its sign-ins, a run that ends; as root it is started by test_tutorials.py."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.labsite.plain_account import PYTHON, PlainAccount, can_become_plain
from tests.labsite.started import SECONDS, Started, read, sign_ins, signed_in

# In a process of its own, as the account: the workspace `lab` by commands, with the printed admin as a member, and one launch.
LAUNCH = """
import django
django.setup()
from tests.factories_runs import launch, make_laboratory
from workspaces.access import Role
from workspaces.commands.member import add_member
from workspaces.models import User
laboratory = make_laboratory(slots=1)
with laboratory.opened():
    add_member(actor=laboratory.owner, role=Role.VIEWER, user=User.objects.get(username="admin"))
    print(launch(laboratory, name="first-light").public_id)
"""


@pytest.fixture
def started() -> Iterator[Started]:
    if not can_become_plain():
        pytest.skip("only root, with setpriv and a mount namespace, can start it as another account")
    account = PlainAccount()
    account.home.chmod(0o711)
    yield Started(account, account.home)
    account.remove()


@pytest.mark.timeout(300)
def test_a_plain_account_starts_it_signs_in_and_runs_a_run(started: Started) -> None:
    with started.up() as block:
        passwords = started.says_everything(block)
        launched = subprocess.run(
            started.argv(PYTHON, "-c", LAUNCH), cwd=started.checkout, env=started.environment, capture_output=True, text=True, check=False
        )  # fmt: skip
        assert launched.returncode == 0, launched.stderr
        run = launched.stdout.split()[-1]
        browser = signed_in(started.url, "admin", passwords["admin"])
        deadline = time.monotonic() + SECONDS
        while "succeeded" not in (page := read(browser, f"{started.url}/workspaces/lab/runs/{run}/")):
            assert time.monotonic() < deadline, page[-3000:]
            time.sleep(0.2)
        assert "first-light" in page
        assert owners(started.place / "data") == {os.stat(started.place).st_uid}
    with started.up() as block:
        assert sign_ins(block) == {}
        assert started.url in block
        signed_in(started.url, "admin", passwords["admin"])


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}
