"""Launches side by side: as many are admitted as there is room for, to the unit. The large form is tests/bench/admission_race.py."""

import threading

import pytest

from runs.models import Certificate, Run
from tests.factories_runs import HOUR, launch, make_laboratory
from tests.runs.attempts import in_threads
from workspaces.audit import Refusal
from workspaces.models import LedgerAccount
from workspaces.queries.chain import verify_chain
from workspaces.queries.ledger import recount

pytestmark = pytest.mark.django_db(transaction=True)

LAUNCHES, ROOM, CONNECTIONS = 30, 3, 10


@pytest.mark.parametrize("round_number", [1, 2])
def test_as_many_are_admitted_as_there_is_room_for(round_number: int) -> None:
    laboratory = make_laboratory(weekly_gpu_hours=ROOM * round_number)
    refused: list[str] = []
    together = threading.Barrier(CONNECTIONS)

    def work() -> None:
        together.wait(30)
        for _ in range(LAUNCHES // CONNECTIONS):
            with laboratory.opened():
                try:
                    launch(laboratory, gpu_ms=round_number * HOUR)
                except Refusal as no:
                    refused.append(str(no))

    assert in_threads(CONNECTIONS, work) == []
    with laboratory.opened():
        assert Run.objects.count() == ROOM
        assert len(refused) == LAUNCHES - ROOM
        assert Certificate.objects.filter(verdict="refused").count() == len(refused), "a refusal without its arithmetic"
        balances = dict(LedgerAccount.objects.filter(unit="gpu_ms", window="week").values_list("side", "balance"))
        assert (balances["available"], balances["reserved"]) == (0, ROOM * round_number * HOUR)
        assert recount() == []
        assert verify_chain().is_whole
