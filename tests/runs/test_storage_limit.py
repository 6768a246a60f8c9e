"""A storage limit and what a run has made: collected up to the limit, said, and the rest once there is room."""

import pytest

from runs.models import Artifact, Attempt, Watch
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from tests.runs.ended import collect_late
from workspaces.commands.blob import stored_bytes
from workspaces.commands.limit import set_limit
from workspaces.models import Limit, Unit

CODE = b"for name in ('a', 'b'):\n    open(f'../outputs/{name}.bin', 'wb').write(b'x' * 600_000 + name.encode())\n"


def limit_storage(laboratory: Laboratory, amount: int) -> None:
    set_limit(
        actor=laboratory.owner, unit=Unit.STORAGE_BYTES, window=Limit.Window.NOW, mode=Limit.Mode.STOP, amount=amount, reason="as agreed"
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.pool
def test_outputs_are_collected_up_to_the_storage_limit_and_the_rest_once_there_is_room() -> None:
    laboratory = make_laboratory(code=CODE)
    with laboratory.opened():
        run, used = launch(laboratory), stored_bytes()
        limit_storage(laboratory, used + 1_000_000)
    drive(laboratory, run)
    with laboratory.opened():
        run.refresh_from_db()
        assert run.status == "succeeded"
        assert "no room for 1 file of 600 kB" in run.reason
        assert Artifact.objects.filter(run=run, path__endswith=".bin").count() == 1
        limit_storage(laboratory, used + 10**9)
        attempt = Attempt.objects.get(run=run)
        Watch.objects.update(lease_until=None)  # it is tried again after a while: now
    collect_late(laboratory, attempt)
    with laboratory.opened():
        run.refresh_from_db()
        assert Artifact.objects.filter(run=run, path__endswith=".bin").count() == 2
        assert "Some of its outputs were collected later" in run.reason
