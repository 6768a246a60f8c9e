"""The ledger run by run: one line with three figures, whatever its entries, in pages that miss and repeat none."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import make_workspace
from tests.factories_resources import reserve, settle
from workspaces import scope
from workspaces.access import Actor
from workspaces.commands.limit import set_limit
from workspaces.models import Limit, Unit
from workspaces.queries.ledger import lines

pytestmark = pytest.mark.django_db
HOUR = 3_600_000
NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


@pytest.fixture
def lab() -> Iterator[Actor]:
    workspace, owner = make_workspace("lab", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        set_limit(actor=owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=100 * HOUR, mode=Limit.Mode.STOP, reason="as agreed")
        yield owner


def promise(actor: Actor, hours: int) -> tuple[uuid.UUID, datetime]:
    run_id = uuid.uuid4()
    return run_id, reserve(actor=actor, unit=Unit.GPU_MS, amount=hours * HOUR, run_id=run_id, now=NOW)


def test_a_run_is_one_line_with_what_it_reserved_spent_and_gave_back(lab: Actor) -> None:
    run_id, starts_at = promise(lab, 4)
    (line, limit) = lines().items
    assert (line.reserved_figure, line.spent_figure, line.released_figure, line.is_open) == ("4", "", "", True)
    assert (limit.newest.words, limit.newest.amount, limit.newest.run_ref, limit.is_open) == (
        "given by the limit",
        "100 GPU-hours",
        "",
        False,
    )
    settle(actor=lab, unit=Unit.GPU_MS, reserved=4 * HOUR, spent=3 * HOUR, run_id=run_id, window_start=starts_at)
    (line, _) = lines().items
    assert (line.reserved_figure, line.spent_figure, line.released_figure, line.is_open) == ("4", "3", "1", False)
    assert [entry.words for entry in line.entries] == ["reserved", "spent", "given back"]


def test_what_exceeds_the_reservation_counts_as_spent_and_is_marked(lab: Actor) -> None:
    run_id, starts_at = promise(lab, 2)
    settle(actor=lab, unit=Unit.GPU_MS, reserved=2 * HOUR, spent=3 * HOUR, run_id=run_id, window_start=starts_at)
    line = lines().items[0]
    assert (line.reserved, line.spent, line.overrun, line.released, line.is_open) == (2 * HOUR, 3 * HOUR, HOUR, 0, False)


def test_pages_miss_and_repeat_no_run(lab: Actor) -> None:
    runs = [promise(lab, 1) for _ in range(7)]
    for run_id, starts_at in runs[:4]:
        settle(actor=lab, unit=Unit.GPU_MS, reserved=HOUR, spent=0, run_id=run_id, window_start=starts_at)
    seen, cursor = [], ""
    while True:
        page = lines(cursor=cursor, size=2)
        seen += [line.newest.entry.run_id for line in page.items]
        if not page.next:
            break
        cursor = page.next
    released, reserved = [run_id for run_id, _ in runs[:4]], [run_id for run_id, _ in runs[4:]]
    assert seen == [*reversed(released), *reversed(reserved), None]


def test_units_stand_apart_and_two_queries_are_enough(lab: Actor) -> None:
    for _ in range(5):
        run_id, _ = promise(lab, 1)
        reserve(actor=lab, unit=Unit.API_MICROS, amount=2_500_000, run_id=run_id, now=NOW)
    with CaptureQueriesContext(connection) as queries:
        found = lines(unit=Unit.API_MICROS).items
    assert [line.reserved_figure for line in found] == ["2.50"] * 5
    assert len(queries) == 2
    assert len(lines().items) == 6
