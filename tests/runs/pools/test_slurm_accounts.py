"""What the accounts of Slurm say of a job that its controller has forgotten, where they answer now and then. Without a cluster."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runs.pools import slurm
from runs.pools.base import Status
from runs.pools.slurm import Slurm
from tests.runs.pools.laboratory import wait_for

NAME = "lab-1-forgotten"
CANCELLED = f"echo '9|{NAME}|{NAME}|CANCELLED by 1000|0:0'"
Says = Callable[[str], None]


@pytest.fixture
def sacct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Says:
    """Have sacct say something from now on. The controller knows no job."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))  # a cluster that nobody else has heard of

    def program(name: str, script: str) -> None:
        path = tmp_path / f"{name}.new"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        path.rename(tmp_path / name)

    program("squeue", "exit 0")
    return lambda script: program("sacct", script)


def test_accounts_that_refused_are_asked_again_after_a_while(sacct: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "ACCOUNTS_SECONDS", 2.0)
    sacct("echo 'sacct: error: failed to open persistent connection to host:db:6819: No route to host' >&2; exit 1")
    assert Slurm().look(NAME).status == Status.MISSING
    sacct(CANCELLED)
    assert Slurm().look(NAME).status == Status.MISSING, "where there are none, nobody asks at each look"
    found = wait_for(lambda: placed if (placed := Slurm().look(NAME)).status != Status.MISSING else None, "the word of the accounts")
    assert (found.status, found.ended_as) == (Status.EXITED, "engine_cancelled")


def test_accounts_that_are_not_reached_say_nothing_and_are_asked_again_at_once(sacct: Says) -> None:
    sacct("echo 'sacct: error: failed to open persistent connection to host:db:6819: Connection refused' >&2; exit 1")
    assert Slurm().look(NAME).status == Status.UNKNOWN
    sacct(CANCELLED)
    assert Slurm().look(NAME).status == Status.EXITED
