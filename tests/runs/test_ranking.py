"""A page of a board has the ranks that the whole of it has, wherever it is cut; and what is asked of long boards is bounded and says so."""

import math
import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from django.test import Client

from runs.commands.run import cancel_run
from runs.queries import ranking
from runs.queries import scoreboard as boards
from runs.queries import unscored as without_score
from runs.queries.ranking import page_of, rows_of
from runs.queries.scoreboard import scoreboard
from runs.queries.unscored import unscored
from tests.factories_pages import add_artifact, copy_runs, score_runs
from tests.factories_registry import make_agent_version
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.runs.slow_boards import ranked
from workspaces.models import Benchmark, Contract

pytestmark = pytest.mark.django_db
VALUES = (0.5, 0.25, -0.0, 0.0, 1e-300, math.nan, math.inf, -math.inf)  # many share one: ties at every cut


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    made = make_laboratory(at_once=50, weekly_gpu_hours=10_000)
    with made.opened():
        yield made


def fill(laboratory: Laboratory, values: list[float]) -> Benchmark:
    runs = copy_runs(actor=laboratory.owner, pattern=launch(laboratory), count=len(values))
    score_runs(actor=laboratory.owner, scores={run: (value, None) for run, value in zip(runs, values, strict=True)})
    return Benchmark.objects.get()


@pytest.mark.parametrize("seed", range(3))
def test_a_page_has_the_ranks_of_the_whole(laboratory: Laboratory, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    fill(laboratory, [chance.choice(VALUES) for _ in range(23)])
    contract = Contract.objects.get()
    of = {"benchmark": contract.benchmark_id, "contract": contract.pk, "metric": "accuracy"}
    marks = ("place", "sharing")
    for direction, ordinal in product(Contract.Direction.values, (False, True)):
        whole = list(ranked(rows_of(**of), direction, ordinal=ordinal))
        having = sum(not getattr(row, "is_unranked") for row in whole)
        for start, size in product(range(0, 26, 3), (1, 4, 30, 50)):
            page = page_of(direction, ordinal=ordinal, ranked=having, total=len(whole), start=start, size=size, **of)
            expected = whole[start : start + size]
            assert [row.pk for row in page] == [row.pk for row in expected], (direction, ordinal, start, size)
            for row, other in zip(page, expected, strict=True):
                assert getattr(row, "is_unranked") == getattr(other, "is_unranked")
                if not getattr(other, "is_unranked"):
                    assert [getattr(row, name) for name in marks] == [getattr(other, name) for name in marks]


@pytest.mark.parametrize("looked_at", [1, 4, 1000])
def test_the_best_of_each_agent_is_found_wherever_it_stands(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    """Far down the board, among what is no number, and what another agent's run has measured; an agent without a score has none."""
    monkeypatch.setattr(ranking, "LOOKED_AT", looked_at)
    pattern, owner = launch(laboratory), laboratory.owner
    versions = [make_agent_version(owner, f"agent-{number}") for number in range(6)]
    made = {}
    for number, values in enumerate([(0.9, 0.8, 0.9, 0.7), (0.2, 0.3), (math.nan, math.inf), (0.5, math.nan), (0.1,)]):
        agent: dict[str, Any] = {"agent_id": versions[number].agent_id, "agent_version_id": versions[number].pk}
        runs = copy_runs(actor=owner, pattern=pattern, count=len(values), **agent)
        made[number] = runs[0]
        score_runs(actor=owner, scores={run: (value, None) for run, value in zip(runs, values, strict=True)})
    judges = copy_runs(actor=owner, pattern=made[4], count=3, kind="evaluate")
    for judge, of_agent, value in zip(judges, (1, 4, 2), (0.95, 0.3, -math.inf), strict=True):
        artifact = add_artifact(actor=owner, run=made[of_agent], path=judge.name, content=b"a")
        score_runs(actor=owner, scores={judge: (value, None)}, subject_artifact=artifact)
    contract = Contract.objects.get()
    of = {"benchmark": contract.benchmark_id, "contract": contract.pk, "metric": "accuracy"}
    for direction in Contract.Direction.values:
        best: dict[object, object] = {}
        for row in ranked(rows_of(**of), direction).select_related("run", "subject_artifact__run"):
            is_measured = row.run.kind == "evaluate" and row.subject_artifact is not None
            best.setdefault(row.subject_artifact.run.agent_id if is_measured else row.run.agent_id, row.pk)
        assert len(best) == 5
        assert set(ranking.best_keys(direction, **of)) == set(best.values())
        assert len(ranking.best_keys(direction, **of)) == 5


def test_how_runs_were_isolated_is_asked_of_the_first(laboratory: Laboratory, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = fill(laboratory, [0.1 * number for number in range(8)])
    assert (scoreboard(benchmark).bare, scoreboard(benchmark).looked_at) == (8, 8)
    monkeypatch.setattr(boards, "LOOKED_AT", 3)
    found = scoreboard(benchmark)
    assert (found.bare, found.looked_at, found.ranked, found.is_mixed) == (3, 3, 8, False)
    assert laboratory.owner.user is not None
    client.force_login(laboratory.owner.user)
    assert "of the first 3" in client.get(f"/workspaces/lab/benchmarks/{benchmark.slug}/").content.decode()


def test_runs_without_a_score_are_looked_for_among_the_newest(
    laboratory: Laboratory, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = launch(laboratory, name="old"), launch(laboratory, name="new")
    for run in (old, new):
        cancel_run(actor=laboratory.owner, run=run)
    contract = Contract.objects.get()
    assert [row.run.name for row in unscored(contract).rows] == ["new", "old"]
    assert not unscored(contract).has_older
    monkeypatch.setattr(without_score, "LOOKED_AT", 1)
    found = unscored(contract)
    assert ([row.run.name for row in found.rows], found.total, found.has_older) == (["new"], 1, True)
    assert laboratory.owner.user is not None
    client.force_login(laboratory.owner.user)
    assert "among the newest" in client.get("/workspaces/lab/benchmarks/accuracy/").content.decode()
