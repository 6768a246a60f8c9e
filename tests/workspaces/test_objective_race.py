"""Two people who set the objective at the same moment: one after the other, and the later one stands."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from tests.factories import make_workspace
from workspaces import scope
from workspaces.commands.objective import set_objective
from workspaces.models import Objective


@pytest.mark.django_db(transaction=True)
def test_objectives_that_are_set_at_once_follow_each_other() -> None:
    workspace, owner = make_workspace("lab")

    def setting(number: int) -> None:
        try:
            with scope.open_workspace(workspace.pk):
                set_objective(actor=owner, statement=f"Aim {number}")
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(setting, range(8)))
    with scope.open_workspace(workspace.pk):
        assert (Objective.objects.count(), Objective.objects.filter(is_current=True).count()) == (8, 1)
