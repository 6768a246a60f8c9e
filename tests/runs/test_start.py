"""May a queued run start: the one rule, and that the dispatcher and the queue page go by it."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from runs.commands.approval import decide_approval
from runs.commands.launch import launch_run
from runs.jobs import dispatch as dispatching
from runs.launch import LaunchRequest
from runs.models import Run
from runs.queries.queue import waiting_of, waiting_runs
from runs.start import Asked, AtOnce, Holds, Room, what_holds
from tests.factories import make_member
from tests.factories_resources import join
from tests.factories_runs import Laboratory, dispatch, launch, make_laboratory
from workspaces.access import Actor, Role
from workspaces.audit import Refusal
from workspaces.commands.limit import set_limit
from workspaces.commands.member import remove_member
from workspaces.commands.pool import change_pool
from workspaces.models import Approval, Limit, Membership, Pool, Unit
from workspaces.units import MS_PER_HOUR

REQUEST = LaunchRequest(benchmark="accuracy", agent="worker", datasets=("table",))
RUN = Asked(slots=2, isolation="user", isolation_words="own user id for each attempt", asked_by="Ada", asker_may_launch=True)
ROOM = Room("local", 4, 2, True, "user", "own user id for each attempt", "here", 8, 2, True)
FREE = AtOnce(running=3, allowed=4)


def test_a_run_with_room_starts() -> None:
    assert what_holds(RUN, ROOM, FREE) is None
    assert what_holds(RUN, ROOM, AtOnce(running=99, allowed=None)) is None


@pytest.mark.parametrize(
    ("run", "room", "at_once", "holds", "words", "needs_somebody"),
    [
        ({"asker_may_launch": False}, {}, FREE, Holds.RUN, "Ada may no longer launch runs here", True),
        ({"withdrawn": "games@1"}, {}, FREE, Holds.RUN, "games@1 was withdrawn, and it rests on that", True),
        ({"held_out": "q.csv of the holdout exam@1"}, {}, FREE, Holds.RUN, "reads q.csv of the holdout exam@1, which was held out", True),
        ({"isolation": "namespace", "isolation_words": "namespaces"}, {}, FREE, Holds.RUN, "admitted on namespaces", True),
        ({"slots": 5}, {}, FREE, Holds.RUN, "needs 5 slots and local has 4", True),
        ({"slots": 4}, {"engine_slots": 3}, FREE, Holds.RUN, "needs 4 slots and here has 3", True),
        ({"budget": "The week is full."}, {}, FREE, Holds.RUN, "The week is full", False),
        ({}, {"is_accepting": False}, FREE, Holds.POOL, "local takes no new work", True),
        ({}, {"engine_is_accepting": False}, FREE, Holds.POOL, "here takes no new work", True),
        ({}, {}, AtOnce(4, 4), Holds.ALL, "4 of 4 runs run at once", False),
        ({}, {"taken": 3}, FREE, Holds.POOL, "3 of 4 slots of local are taken. It starts when a slot is free", False),
        ({}, {"engine_taken": 7}, FREE, Holds.POOL, "7 of 8 places of here are taken", False),
    ],
)
def test_what_stands_in_the_way(
    run: dict[str, Any], room: dict[str, Any], at_once: AtOnce, holds: Holds, words: str, needs_somebody: bool
) -> None:
    waits = what_holds(replace(RUN, **run), replace(ROOM, **room), at_once)
    assert waits is not None
    assert (waits.holds, waits.needs_somebody) == (holds, needs_somebody)
    assert words in waits.words


def test_what_is_wrong_with_a_run_holds_back_nobody_else_even_on_a_full_pool() -> None:
    waits = what_holds(replace(RUN, slots=9), replace(ROOM, taken=4, is_accepting=False), AtOnce(4, 4))
    assert waits is not None
    assert waits.holds == Holds.RUN


def statuses(laboratory: Laboratory, *runs: Run) -> list[str]:
    with laboratory.opened():
        return [Run.objects.get(pk=run.pk).status for run in runs]


def assert_each_says_the_same(laboratory: Laboratory) -> list[str]:
    """What the queue says of each run, its own page says too."""
    waiting = waiting_runs().items
    for entry in waiting:
        own = waiting_of(entry.run, laboratory.workspace)
        # Said as it is at that second: the next one may have begun between the two looks.
        assert own == entry or own == next(again for again in waiting_runs().items if again.run == entry.run)
    return [f"{entry.reason} {entry.release}" for entry in waiting]


@pytest.mark.django_db(transaction=True)
def test_a_run_that_can_never_start_does_not_block_its_pool_and_says_so() -> None:
    laboratory = make_laboratory(isolation=Pool.Isolation.NONE)
    with laboratory.opened():
        stale = launch(laboratory)
        change_pool(actor=laboratory.owner, pool=Pool.objects.get(), isolation=Pool.Isolation.USER)
        fresh = launch(laboratory)
        first, second = waiting_runs().items
        assert "was admitted on no isolation" in first.reason
        assert first.needs_somebody
        assert (second.reason, second.place) == ("It is next.", 2), "it is passed by the one that can"
        launch(laboratory)
        assert_each_says_the_same(laboratory)
        assert waiting_runs().items[2].reason == "1 run goes first on local."
        set_limit(actor=laboratory.owner, unit=Unit.RUNS, window=Limit.Window.NOW, amount=1, mode=Limit.Mode.STOP, reason="one by one")
    dispatch(laboratory)
    with laboratory.opened():
        third = assert_each_says_the_same(laboratory)[1]
        assert re.match(r"1 of 1 runs run at once\. It starts when one of them ends; (worker-0002 ends|no end)", third), third
    assert statuses(laboratory, stale)[0] == "queued"
    assert statuses(laboratory, fresh)[0] != "queued"


@pytest.mark.django_db(transaction=True)
def test_however_many_wait_for_their_window_one_behind_them_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "PAGE", 2)
    monkeypatch.setattr(dispatching, "BATCH", 2)
    laboratory = make_laboratory(weekly_gpu_hours=100)
    with laboratory.opened():
        large = [launch(laboratory, gpu_ms=3 * MS_PER_HOUR) for _ in range(5)]
        small = launch(laboratory, gpu_ms=MS_PER_HOUR)
        set_limit(
            actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=2 * MS_PER_HOUR, mode=Limit.Mode.STOP, reason="less"
        )
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(days=7))
    with laboratory.opened():
        reasons = [entry.reason for entry in waiting_runs().items]
        assert all("3 GPU-hours more would make 3 GPU-hours of 2 GPU-hours" in reason for reason in reasons[:5])
        assert reasons[5] == "It is next."
    dispatch(laboratory)
    assert set(statuses(laboratory, *large)) == {"queued"}
    assert statuses(laboratory, small)[0] != "queued"


@pytest.mark.django_db(transaction=True)
def test_what_somebody_asked_for_does_not_start_once_they_may_not_launch() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        ada = make_member(laboratory.workspace, Role.RESEARCHER, "ada")
        run = launch_run(actor=ada, request=REQUEST).run
        remove_member(actor=laboratory.owner, member=Membership.objects.get(user=ada.user).public_id)
        (waiting,) = waiting_runs().items
        assert waiting.reason.endswith("may no longer launch runs here.")
    dispatch(laboratory)
    assert statuses(laboratory, run) == ["queued"]


@pytest.mark.django_db
def test_what_somebody_asked_for_is_not_approved_once_they_may_not_launch() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        limit: dict[str, Any] = {"unit": Unit.GPU_MS, "window": Limit.Window.RUN, "amount": 1, "mode": Limit.Mode.APPROVAL, "reason": "all"}
        set_limit(actor=laboratory.owner, **limit)
        ada: Actor = make_member(laboratory.workspace, Role.RESEARCHER, "ada")
        approver = make_member(laboratory.workspace, Role.APPROVER, "anna")
        launch_run(actor=ada, request=REQUEST)
        remove_member(actor=laboratory.owner, member=Membership.objects.get(user=ada.user).public_id)
        approval = Approval.objects.get()
        with pytest.raises(Refusal, match="may no longer launch runs here"):
            decide_approval(actor=approver, approval=approval, approves=True, seen_hash=approval.content_hash)
        decide_approval(actor=approver, approval=approval, approves=False, comment="has left", seen_hash=approval.content_hash)
        assert Run.objects.get().status == "aborted"


def lower(laboratory: Laboratory, hours: int, *, window: str = Limit.Window.WEEK, mode: str = Limit.Mode.STOP) -> None:
    set_limit(actor=laboratory.owner, unit=Unit.GPU_MS, window=window, amount=hours * MS_PER_HOUR, mode=mode, reason="a change of plans")


@pytest.mark.django_db(transaction=True)
def test_a_limit_that_is_lowered_binds_what_waits_and_lets_it_go_once_raised() -> None:
    laboratory = make_laboratory(weekly_gpu_hours=100)
    with laboratory.opened():
        large, small = launch(laboratory, gpu_ms=6 * MS_PER_HOUR), launch(laboratory, gpu_ms=3 * MS_PER_HOUR)
        last = launch(laboratory, gpu_ms=3 * MS_PER_HOUR)
        lower(laboratory, 5)
        reasons = [entry.reason for entry in waiting_runs().items]
        assert "its 6 GPU-hours would make 6 GPU-hours of 5 GPU-hours" in reasons[0]
        assert reasons[1] == "It is next."
    dispatch(laboratory)
    assert statuses(laboratory, large, last) == ["queued", "queued"], "3 of 5 are at work: neither fits"
    assert statuses(laboratory, small)[0] != "queued"
    with laboratory.opened():
        assert "its 3 GPU-hours would make 6 GPU-hours of 5 GPU-hours" in waiting_runs().items[1].reason
        lower(laboratory, 100)
    dispatch(laboratory)
    assert "queued" not in statuses(laboratory, large, last)


@pytest.mark.django_db(transaction=True)
def test_a_lower_limit_of_one_run_binds_what_waits() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory, gpu_ms=6 * MS_PER_HOUR)
        lower(laboratory, 2, window=Limit.Window.RUN)
        (entry,) = waiting_runs().items
        assert "it asks for 6 GPU-hours, and 2 GPU-hours are allowed by now" in entry.reason
        assert entry.needs_somebody
    dispatch(laboratory)
    assert statuses(laboratory, run) == ["queued"]


@pytest.mark.django_db(transaction=True)
def test_above_a_lowered_limit_that_asks_for_approval_only_those_go_that_were_approved() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        unasked = launch(laboratory, gpu_ms=6 * MS_PER_HOUR)
        lower(laboratory, 8, mode=Limit.Mode.APPROVAL)
        held = launch(laboratory, gpu_ms=6 * MS_PER_HOUR)
        request = Approval.objects.get()
        decide_approval(actor=join(laboratory.owner, "eve", Role.ADMIN), approval=request, approves=True, seen_hash=request.content_hash)
        lower(laboratory, 2, mode=Limit.Mode.APPROVAL)
        assert "launch it again, which asks an approver" in waiting_runs().items[0].release
    dispatch(laboratory)
    assert statuses(laboratory, unasked) == ["queued"]
    assert statuses(laboratory, held)[0] != "queued"
