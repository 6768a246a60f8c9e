"""Thresholds: told once for each crossing and window, whoever settles at once and whatever comes after."""

import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.db import connection

from tests.factories import make_workspace
from tests.factories_resources import in_one, join, settle
from tests.workspaces.test_ledger import HOUR, WEEK, promise
from workspaces import ledger, scope
from workspaces.access import Actor, Role
from workspaces.audit import Draft, Refusal
from workspaces.commands.limit import remove_limit, set_limit
from workspaces.commands.recount import recount_ledger
from workspaces.models import AuditEvent, Crossing, EventSubject, Limit, Notification, Unit, Workspace
from workspaces.queries.budget import reached
from workspaces.queries.notification import shown

NOW = datetime(2024, 11, 27, 12, 0, tzinfo=UTC)  # in no window that is open while the tests run, which a change of a limit looks at
Lab = tuple[Workspace, Actor]


@pytest.fixture
def lab() -> Iterator[Lab]:
    workspace, owner = make_workspace("lab", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        yield workspace, owner


def limit(actor: Actor, hours: int, thresholds: list[int] | None = None, mode: str = Limit.Mode.STOP) -> Limit:
    return set_limit(
        actor=actor, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=hours * HOUR, mode=mode, reason="as agreed", thresholds=thresholds
    )  # fmt: skip


def spend(actor: Actor, hours: int, now: datetime = NOW) -> None:
    run_id, starts_at = promise(actor, hours, now)
    settle(actor=actor, unit=Unit.GPU_MS, reserved=hours * HOUR, spent=hours * HOUR, run_id=run_id, window_start=starts_at)


def crossed() -> list[int]:
    return list(Crossing.objects.order_by("created_at", "percent").values_list("percent", flat=True))


@pytest.mark.django_db
def test_each_threshold_is_told_once_in_a_window_to_those_who_manage_budgets(lab: Lab) -> None:
    workspace, owner = lab
    admin, researcher = join(owner, "eve", Role.ADMIN), join(owner, "ida", Role.RESEARCHER)
    limit(owner, 10, [50, 80])
    spend(owner, 4)
    assert crossed() == []
    spend(owner, 1)
    assert crossed() == [50], "reached is reached"
    spend(owner, 3)
    recount_ledger(actor=owner)
    spend(owner, 1)
    assert crossed() == [50, 80]
    told = Notification.objects.filter(cause=Notification.Cause.LIMIT_CROSSED)
    assert {row.person_id for row in told} == {owner.user.pk, admin.user.pk}  # type: ignore[union-attr]  # people
    assert not told.filter(person=researcher.user).exists()
    (first, second) = shown(list(told.filter(person=admin.user).order_by("created_at")), workspace.slug)
    assert first.row.subject_label == "GPU-hours a week: 50 % reached"
    assert "8 GPU-hours of 10 GPU-hours are spent" in second.row.words
    assert second.url == f"/workspaces/{workspace.slug}/budget/"


@pytest.mark.django_db
def test_the_record_has_every_crossing(lab: Lab) -> None:
    _, owner = lab
    limit(owner, 10, [50])
    spend(owner, 6)
    crossing = Crossing.objects.get()
    event = AuditEvent.objects.get(pk=EventSubject.objects.get(object_id=crossing.pk).event_id)
    assert event.verb == "run.ended"
    assert (crossing.amount, crossing.spent) == (10 * HOUR, 6 * HOUR)


@pytest.mark.django_db
def test_the_next_window_and_a_changed_limit_tell_anew_and_nothing_else_does(lab: Lab) -> None:
    _, owner = lab
    limit(owner, 10, [50])
    spend(owner, 5)
    spend(owner, 5, NOW + WEEK)
    assert crossed() == [50, 50]
    with pytest.raises(Refusal, match="already"):
        limit(owner, 10, [50])
    spend(owner, 1, NOW + WEEK)
    assert crossed() == [50, 50]
    limit(owner, 8, [50, 100])
    spend(owner, 1, NOW + WEEK)
    assert crossed()[2:] == [50]
    assert Crossing.objects.latest("created_at").revision == 2


@pytest.mark.django_db
def test_what_a_limit_had_reached_is_no_alarm_once_it_was_changed_or_removed(lab: Lab) -> None:
    _, owner = lab
    limit(owner, 10, [50, 80])
    limit(owner, 9, [50], mode=Limit.Mode.WARN)
    spend(owner, 8)
    assert [(one.row.amount, one.row.percent) for one in reached(NOW)] == [(9 * HOUR, 50), (10 * HOUR, 80)]
    limit(owner, 100)
    assert [one.row.amount for one in reached(NOW)] == [9 * HOUR]
    remove_limit(actor=owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, mode=Limit.Mode.WARN, reason="no more")
    assert reached(NOW) == []
    limit(owner, 9)
    spend(owner, 1)
    assert [(one.row.amount, one.row.percent) for one in reached(NOW)] == [(9 * HOUR, 80)]
    assert len(crossed()) == 5, "the record keeps what was reached"


@pytest.mark.django_db
@pytest.mark.parametrize(("window", "marks"), [(Limit.Window.RUN, [80]), (Limit.Window.WEEK, [0]), (Limit.Window.WEEK, list(range(1, 12)))])
def test_what_is_no_threshold_is_refused(lab: Lab, window: str, marks: list[int]) -> None:
    with pytest.raises(Refusal) as refused:
        set_limit(actor=lab[1], unit=Unit.GPU_MS, window=window, amount=HOUR, mode=Limit.Mode.STOP, thresholds=marks)
    assert refused.value.field == "thresholds"


@pytest.mark.timeout(300)
@pytest.mark.django_db(transaction=True)
def test_two_hundred_runs_that_settle_at_once_cross_each_threshold_once() -> None:
    workspace, owner = make_workspace("lab", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        limit(owner, 200, [25, 50, 75, 100])
        promised: list[tuple[uuid.UUID, datetime]] = []

        def promise_all(event: Draft) -> None:
            for _ in range(200):
                run_id = uuid.uuid4()
                starts_at = ledger.reserve(event, unit=Unit.GPU_MS, amount=HOUR, run_id=run_id, run_label="a run", now=NOW)
                promised.append((run_id, starts_at))

        in_one(actor=owner, body=promise_all)
    faults: list[Exception] = []

    def worker(number: int) -> None:
        try:
            with scope.open_workspace(workspace.pk):
                for run_id, starts_at in promised[number::20]:
                    settle(actor=owner, unit=Unit.GPU_MS, reserved=HOUR, spent=HOUR, run_id=run_id, window_start=starts_at)
        except Exception as fault:
            faults.append(fault)
        finally:
            connection.close()

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    with scope.open_workspace(workspace.pk):
        assert sorted(crossed()) == [25, 50, 75, 100]
        assert Notification.objects.filter(cause=Notification.Cause.LIMIT_CROSSED).count() == 4
        assert [row.spent for row in Crossing.objects.order_by("percent")] == [50 * HOUR, 100 * HOUR, 150 * HOUR, 200 * HOUR]
