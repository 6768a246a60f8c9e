"""The data folder: whose it is, what it may not be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labsite.embedded.home import CHECKOUT, Home, StartError

HOLD = """
import os, sys
from labsite.embedded.home import Home
with Home.of(os.environ).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_default_is_in_the_checkout() -> None:
    assert Home.of({}).path == CHECKOUT / ".labsite"
    assert Home.of({"LABSITE_HOME": "/srv/x"}).path == Path("/srv/x")


def test_addresses_are_empty_before_the_first_start(tmp_path: Path) -> None:
    assert Home(tmp_path / "none").addresses() == {}
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="not writable"), Home(tmp_path / "file" / "home").locked():
        pass


def test_a_folder_without_write_permission_is_named(open_home: Home) -> None:
    open_home.path.parent.chmod(0o555)
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)  # root may write everywhere
    try:
        with pytest.raises(StartError, match="not writable"), open_home.locked():
            pass
    finally:
        os.seteuid(before)
        open_home.path.parent.chmod(0o755)
    assert not open_home.path.exists()


def test_a_folder_of_someone_else_is_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "photographs").write_text("")
    with pytest.raises(StartError, match="holds 'photographs'"), Home(tmp_path).locked():
        pass
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["photographs"]


def test_the_lock_is_free_again_when_its_holder_was_killed(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    environment = os.environ | {"LABSITE_HOME": str(home.path)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=CHECKOUT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StartError, match="already running"), home.locked():
            pass
        holder.kill()
    with home.locked():
        assert home.path.stat().st_mode & 0o777 == 0o700


def test_passwords_are_made_once(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with home.locked():
        first = home.ensure_password("labsite_app")
        assert len(first) >= 32
        assert home.ensure_password("labsite_app") == home.password("labsite_app") == first
