"""Workspaces that share an engine have their turns by share: the smallest goes first, a weight counts, and nobody starves."""

import re

import pytest

from runs.lifecycle import RunStatus
from runs.models import Attempt, PoolDemand, Run
from runs.queries.queue import waiting_of, waiting_runs
from runs.queries.site import engine_shares
from runs.share import Share, turn_of
from tests.factories_runs import Laboratory, collect, dispatch, launch, make_laboratory, watch
from tests.runs.attempts import WAITS, let_go, until
from workspaces import scope
from workspaces.models import EngineWeight

HOUR = 3_600_000


def test_the_smallest_share_for_its_weight_goes_first() -> None:
    own = Share(4 * HOUR, 1)
    assert turn_of(own, []) is None
    assert turn_of(own, [Share(1 * HOUR, 1, wanted_slots=0)]) is None, "who asks for nothing is passed"
    assert turn_of(own, [Share(4 * HOUR, 1, wanted_slots=1)]) is None, "at equal shares whoever comes first goes first"
    turn = turn_of(own, [Share(3 * HOUR, 1, wanted_slots=2), Share(10 * HOUR, 4, wanted_slots=1), Share(9 * HOUR, 2, wanted_slots=5)])
    assert turn is not None
    assert (turn.first, turn.slots) == (Share(10 * HOUR, 4, wanted_slots=1), 3)


@pytest.fixture
def two() -> tuple[Laboratory, Laboratory]:
    """Two laboratories on one engine of one place."""
    return make_laboratory("first", code=WAITS, engine_slots=1, slots=1), make_laboratory("second", code=WAITS, engine_slots=1, slots=1)


def running(laboratory: Laboratory) -> Run | None:
    with laboratory.opened():
        return Run.objects.filter(status__in=[RunStatus.STARTING, RunStatus.RUNNING]).first()


def end(laboratory: Laboratory, run: Run) -> None:
    let_go(laboratory, run)

    def is_over() -> bool:
        watch(laboratory)
        collect(laboratory)
        with laboratory.opened():
            return Run.objects.get(pk=run.pk).is_terminal

    until(is_over, "the end of the run")


@pytest.mark.django_db(transaction=True)
def test_two_workspaces_on_one_place_take_turns(two: tuple[Laboratory, Laboratory]) -> None:
    for laboratory in two:
        with laboratory.opened():
            for _ in range(3):
                launch(laboratory)
    order: list[str] = []
    for _ in range(6):
        for laboratory in (*two, *two):  # as the clock rings: the first one is always asked first
            dispatch(laboratory)
        at_work = [(laboratory, run) for laboratory in two if (run := running(laboratory)) is not None]
        assert len(at_work) == 1, "the engine has one place"
        ((laboratory, run),) = at_work
        order.append(laboratory.workspace.slug)
        end(laboratory, run)
    assert sorted(order) == ["first"] * 3 + ["second"] * 3, "nobody starves"
    assert order[:2] == ["first", "second"], order
    assert not re.search("firstfirst", "".join(order[:4])), order


@pytest.mark.django_db(transaction=True)
def test_who_waits_for_its_turn_says_so_with_numbers(two: tuple[Laboratory, Laboratory]) -> None:
    first, second = two
    with first.opened():
        launch(first)
        launch(first)
    dispatch(first)
    with second.opened():
        launch(second)
    dispatch(second)  # no place: it says what it asks for
    run = running(first)
    assert run is not None
    end(first, run)
    dispatch(first)
    assert running(first) is None, "the other has had less"
    with first.opened():
        (waiting,) = waiting_runs().items
        assert waiting_of(waiting.run, first.workspace) == waiting
    assert re.fullmatch(
        r"Another workspace that waits for local goes first: it has had 0\.00 slot-hours at weight 1 there in 24 hours, "
        r"this one \d\.\d\d slot-hours at weight 1\.",
        waiting.reason,
    ), waiting.reason
    assert "second" not in waiting.reason, "no word of who it is"
    dispatch(second)
    started = running(second)
    assert started is not None
    with second.opened():
        assert not PoolDemand.objects.exists(), "it asks for nothing more"
    end(second, started)
    dispatch(first)
    last = running(first)
    assert last is not None
    end(first, last)


@pytest.mark.django_db(transaction=True)
def test_figures_of_others_are_asked_in_a_site_scope_only(two: tuple[Laboratory, Laboratory]) -> None:
    first, second = two
    EngineWeight.objects.create(workspace=first.workspace, weight=3)
    with first.opened():
        run = launch(first)
    dispatch(first)
    with second.opened():
        launch(second)
    dispatch(second)
    with first.opened():
        engine = Attempt.objects.get(run=run).pool.engine_id
        with pytest.raises(scope.ScopeError):
            engine_shares(engine, asking=first.workspace.pk)
    with scope.open_site("a test asks"):
        shares = engine_shares(engine, asking=first.workspace.pk)
        assert shares[first.workspace.pk].weight == 3
        assert shares[first.workspace.pk].slot_ms > 0
        assert shares[second.workspace.pk] == Share(0, 1, wanted_slots=1)
        assert engine_shares(engine, asking=second.workspace.pk) == {}, "only the second itself asks for a place"
    end(first, run)
