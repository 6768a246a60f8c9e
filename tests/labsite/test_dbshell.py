"""`manage.py dbshell` reaches the database as the serving role, and as its owner where an operator says so."""

import os
import subprocess
import sys

import pytest
from django.conf import settings

from labsite.embedded.home import CHECKOUT


def said(*arguments: str, path: str) -> str:
    command = [sys.executable, "manage.py", "dbshell", *arguments, "--", "-Atc", "SELECT current_user"]
    done = subprocess.run(command, cwd=CHECKOUT, env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("path", [os.environ.get("PATH", ""), "/nonexistent"], ids=["psql of the machine", "psql of the wheel"])
def test_the_serving_role_unless_the_owner_is_asked_for(path: str) -> None:
    served, owner = said(path=path), said("--owner", path=path)
    assert served != owner
    assert (served, owner) == (settings.DATABASES["default"]["USER"], settings.OWNER_DATABASE["USER"])
