"""Whose role is narrowed to some kinds of object reads nothing of the others, on whichever page (feature 17)."""

from typing import Any

import pytest

from tests.factories import make_user
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, dispatch, launch, make_laboratory
from tests.runs.attempts import WAITS, let_go
from workspaces.access import Actor, Kind
from workspaces.commands.limit import set_limit
from workspaces.commands.member import add_member
from workspaces.models import Benchmark, Dataset, Limit, Pool, Unit
from workspaces.units import MS_PER_HOUR

pytestmark = pytest.mark.django_db(transaction=True)
RUNNING, HELD, LIMIT = "planted-running-run", "planted-held-run", "77 GPU-hours"
# What a page says of a kind, where it says anything.
SIGNS = {Kind.RUN: (RUNNING,), Kind.APPROVAL: (HELD,), Kind.BUDGET: (LIMIT,), Kind.DATASET: ("table",)}
PAGES = {
    Kind.BENCHMARK: ("", "?part=live", "benchmarks/", "benchmarks/accuracy/"),
    Kind.POOL: ("", "?part=live", "pools/", "pools/local/"),
    Kind.AGENT: ("", "?part=live", "agents/", "agents/worker/"),
    Kind.DATASET: ("", "?part=live", "datasets/", "datasets/table/"),
}


@pytest.fixture
def laboratory() -> Any:
    laboratory = make_laboratory(code=WAITS, weekly_gpu_hours=77)
    limit: dict[str, Any] = {"unit": Unit.GPU_MS, "window": Limit.Window.RUN, "amount": 2 * MS_PER_HOUR, "mode": Limit.Mode.APPROVAL}
    with laboratory.opened():
        set_limit(actor=laboratory.owner, reason="large", **limit)
        run = launch(laboratory, name=RUNNING)
        launch(laboratory, name=HELD, gpu_ms=5 * MS_PER_HOUR)
    dispatch(laboratory)
    yield laboratory
    let_go(laboratory, run)


def reader(laboratory: Laboratory, *kinds: Kind) -> Any:
    user = make_user("narrowed")
    with laboratory.opened():
        add_member(actor=laboratory.owner, user=user, role="viewer", kinds=kinds)
    return client_of(Actor.of(user))


@pytest.mark.parametrize("kind", list(PAGES))
def test_a_page_tells_a_narrowed_reader_nothing_of_other_kinds(laboratory: Laboratory, kind: Kind) -> None:
    browser = reader(laboratory, kind)
    for path in PAGES[kind]:
        answer = browser.get(f"/workspaces/lab/{path}")
        assert answer.status_code == 200, path
        body = answer.content.decode()
        for other, signs in SIGNS.items():
            if other != kind:
                assert not [sign for sign in signs if f">{sign}<" in body or (sign != "table" and sign in body)], (
                    f"{path} tells of a {other}"
                )
    assert browser.get("/workspaces/lab/runs/").status_code == 403


def test_the_signs_are_there_for_who_may_read_them(laboratory: Laboratory) -> None:
    browser = reader(laboratory, Kind.RUN, Kind.APPROVAL, Kind.BUDGET)
    body = browser.get("/workspaces/lab/").content.decode()
    assert RUNNING in body
    assert HELD in body
    with laboratory.opened():
        assert Pool.objects.exists()
        assert Benchmark.objects.exists()
        assert Dataset.objects.exists()
