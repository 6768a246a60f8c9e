"""A board over seeds, cut anywhere, is the one that its rules give row by row: ties, what is no number, what was measured again."""

import math
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from runs.models import Evaluation, Run
from runs.queries.home_seeds import SeedLead, seed_lead, seed_leads
from runs.queries.scoreboard import scores_under
from runs.queries.seed_board import place_of, seed_board
from tests.factories_pages import add_artifact, add_check, copy_runs, score_runs
from tests.factories_registry import make_agent_version
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.runs.slow_boards import rows_over_seeds
from workspaces.commands.benchmark import publish_contract
from workspaces.contract_metrics import Metric
from workspaces.models import Benchmark, Contract
from workspaces.queries.registry import current_contract

pytestmark = pytest.mark.django_db
NOON = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(days=1)
# 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are not the same sum, but one mean; beyond 1e150 there is none.
VALUES = (
    0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 0.2, 0.2, 0.2, math.nan, 0.5, 0.5, math.inf, 1.0, 1.0, 1e200, 0.4, 0.4, -0.0, 0.0, 0.0, -math.inf, 1e150, 1e150,
)  # fmt: skip
PARAMETERS: tuple[dict[str, Any], ...] = (
    {"rate": 1}, {"rate": 1.0, "seed": 7}, {"rate": True}, {"rate": "1"}, {}, {"seed": 3}, {"rate": [1, 2]}, {"rate": [2, 1]}, {"rate": None},
)  # fmt: skip


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    made = make_laboratory()
    with made.opened():
        yield made


def contract() -> Contract:
    found = current_contract(Benchmark.objects.get().pk)
    assert found is not None
    return found


def fill(laboratory: Laboratory) -> None:
    """Rows of one to three runs of two versions, each an hour after the one before; some of them were measured, once or again and again."""
    other = make_agent_version(laboratory.owner, "other")
    pattern = launch(laboratory)
    asked = [
        {"parameters": {**PARAMETERS[place % len(PARAMETERS)], **({"row": place // 3} if place > 26 else {})}, "seed": place % 3 or None}
        | ({"agent_id": other.agent_id, "agent_version_id": other.pk} if place % 5 == 4 else {})
        for place in range(60)
    ]
    runs = copy_runs(actor=laboratory.owner, pattern=pattern, count=len(asked), each=asked, contract_id=contract().pk)
    for place, run in enumerate(runs):
        score_one(laboratory, run, VALUES[place % len(VALUES)], hours=place // 4)
    judges = copy_runs(actor=laboratory.owner, pattern=pattern, count=24, kind="evaluate", contract_id=contract().pk)
    for place, judge in enumerate(judges):
        measured = runs[(place * place) % 17]  # some of them twice and more
        made = add_artifact(actor=laboratory.owner, run=measured, path=f"{place}", content=b"a")
        score_one(laboratory, judge, VALUES[(place * 5) % len(VALUES)], hours=[20, 3, 9, 9][place % 4], subject_artifact=made)
    # What an evaluation says of nothing in particular counts for itself, and what an experiment names counts for the experiment.
    (alone,) = copy_runs(
        actor=laboratory.owner, pattern=pattern, count=1, kind="evaluate", contract_id=contract().pk, parameters={"rate": 9}
    )
    score_one(laboratory, alone, 0.25, hours=1)
    (named,) = copy_runs(actor=laboratory.owner, pattern=pattern, count=1, contract_id=contract().pk, parameters={"rate": 8})
    score_one(
        laboratory, named, 0.35, hours=1, subject_artifact=add_artifact(actor=laboratory.owner, run=runs[0], path="named", content=b"b")
    )
    add_check(actor=laboratory.owner, evaluation=Evaluation.objects.get(run=runs[30]), words="moved")


def score_one(laboratory: Laboratory, run: Run, value: float, *, hours: int, **of: Any) -> None:
    score_runs(actor=laboratory.owner, scores={run: (value, None)}, created_at=NOON + timedelta(hours=hours), **of)


@pytest.mark.parametrize("tie_rule", Contract.TieRule.values)
@pytest.mark.parametrize(
    ("over", "direction"), [("mean", "maximize"), ("median", "minimize"), ("mean", "minimize"), ("median", "maximize")]
)
def test_pages_cut_anywhere_and_leaders_are_those_of_the_whole_board(
    laboratory: Laboratory, over: str, direction: str, tie_rule: str
) -> None:
    asked: dict[str, Any] = {"metric": "accuracy", "direction": direction, "tie_rule": tie_rule, "over_seeds": over}
    publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), **asked)
    fill(laboratory)
    scores = scores_under(contract())
    for leading in (Metric("accuracy", "", "maximize"), Metric("accuracy", "", "minimize")):
        expected = [told(row) for row in rows_over_seeds(scores, contract(), leading)]
        assert len(expected) > 25
        assert len({row[0] for row in expected}) < len(expected), "some share a place, or have none"
        for start, size in ((0, 100), (0, 7), (5, 6), (11, 9), (20, 2), (len(expected) - 3, 9), (len(expected), 5)):
            found = seed_board(scores, contract(), leading, (), start=start, size=size)
            shown = [
                (row.rank, row.sharing, row.version.pk, row.parameters, none_of(row.score.value), row.score.count, row.first_at)
                for row in found.rows
            ]
            assert shown == [row[:-1] for row in expected[start : start + size]], (start, size)
            assert found.total == len(expected)
            assert found.leader == (found.rows[0] if not start else None)
    check_leaders()
    check_places()


def told(row: dict[str, Any]) -> tuple[Any, ...]:
    shown = (None, 1, None) if row["is_unranked"] else (row["place"], row["sharing"], row["together"])
    return (*shown[:2], row["version"], row["alike"], shown[2], row["count"], row["first_at"], row["scores"])


def none_of(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def check_leaders() -> None:
    """Now, and by what was there at some moment."""
    for hours in (0, 2, 4, 9, 14, 30):
        until = NOON + timedelta(hours=hours)
        scores = scores_under(contract())
        now, before = (
            next((told(row) for row in rows_over_seeds(some, contract(), contract().primary) if not row["is_unranked"]), None)
            for some in (scores, scores.filter(created_at__lte=until))
        )
        found = seed_leads(contract(), until)
        assert [lead_told(lead) for lead in found] == [row and (row[2], row[3], row[4], row[5]) for row in (now, before)], hours
        assert found[0] == seed_lead(contract())


def lead_told(lead: SeedLead | None) -> tuple[Any, ...] | None:
    return (lead.row.version.pk, lead.row.parameters, lead.value, lead.count) if lead else None


def check_places() -> None:
    """Of each score, whether it counts or another of the same run does."""
    scores = scores_under(contract())
    rows = rows_over_seeds(scores, contract(), contract().primary)
    ranked = sum(not row["is_unranked"] for row in rows)
    counting = {key: row for row in rows for key in row["scores"]}
    for score in scores.filter(pk__in=counting).select_related("run", "subject_artifact__run"):
        row, found = counting[score.pk], place_of(scores, contract(), score)
        assert found is not None
        assert (found.rank, found.total, none_of(found.value), found.count) == (
            None if row["is_unranked"] else row["place"], ranked, None if row["is_unranked"] else row["together"], row["count"],
        )  # fmt: skip
