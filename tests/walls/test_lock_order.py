"""Commands wait for one another and never in a circle. Foreign keys are deferred, so their key share on a parent comes late; a row lock that
collides with it (`FOR UPDATE`) deadlocks with every command that points at that row."""

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

from tests.factories import make_workspace
from tests.factories_registry import make_benchmark
from workspaces import scope
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.objective import set_objective
from workspaces.commands.workspace import configure_workspace

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 25


def test_no_row_is_locked_against_those_who_point_at_it() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("workspaces", "runs", "labsite")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(r"select_for_update\((?!.*no_key=True)", line)
    ]
    assert not bare, "say select_for_update(no_key=True), else it deadlocks with deferred foreign keys"


@pytest.mark.django_db(transaction=True)
def test_commands_on_one_workspace_do_not_deadlock() -> None:
    workspace, owner = make_workspace("busy")
    with scope.open_workspace(workspace.pk):
        benchmark = make_benchmark(owner)
    faults: list[BaseException] = []

    def repeatedly(act: Callable[[int], object]) -> None:
        try:
            for number in range(ROUNDS):
                with scope.open_workspace(workspace.pk):
                    act(number)
        except BaseException as fault:
            faults.append(fault)
        finally:
            connection.close()

    acts = (
        lambda number: configure_workspace(actor=owner, cost_centre=f"cc-{number}"),
        lambda number: set_objective(actor=owner, statement=f"Aim {number}", benchmark=benchmark.slug),
        lambda number: publish_contract(actor=owner, benchmark=benchmark, metric=f"accuracy/{number}", direction="maximize"),
    )
    threads = [threading.Thread(target=repeatedly, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
