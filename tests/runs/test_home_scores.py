"""Scoreboards on the home page: who leads, what is new since the reader looked last, and what the best scores rest on."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from runs.commands.approval import decide_approval
from runs.models import Artifact, Evaluation, Promotion, Run
from runs.queries.home_aim import Aim
from runs.queries.home_scores import Board, boards, promotable
from runs.queries.promotion import Told
from tests.factories import make_member
from tests.factories_pages import HOSTILE, add_artifact, client_of, copy_runs, score_runs
from tests.factories_promotions import make_candidate, propose
from tests.factories_registry import make_benchmark
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Benchmark, Contract, Objective

NAN = float("nan")
Scored = list[tuple[float, float | None, bool]]  # value, standard error, is it new


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


def score(laboratory: Laboratory, scores: Scored, **values: Any) -> list[Run]:
    """A run for each score; those that are not new were scored two days ago."""
    made = copy_runs(actor=laboratory.owner, pattern=Run.objects.first() or launch(laboratory), count=len(scores))
    for run, (value, error, is_new) in zip(made, scores, strict=True):
        when = {} if is_new else {"created_at": timezone.now() - timedelta(days=2)}
        score_runs(actor=laboratory.owner, scores={run: (value, error)}, **when, **values)
    return made


def day_ago() -> datetime:
    return timezone.now() - timedelta(days=1)


def the_board() -> Board:
    (board,) = boards(day_ago())
    return board


@pytest.mark.parametrize(
    ("scores", "news"),
    [
        ([(0.5, None, False)], "no new score"),
        ([(0.5, None, True)], "the first score"),
        ([(0.5, None, True), (0.4, None, True)], "the first 2 scores"),
        ([(0.5, None, False), (0.4, None, True)], "same leader, 1 new score"),
        ([(0.5, None, False), (0.5, None, True)], "same leader, 1 new score"),  # a tie is led by whoever was first
        ([(0.5, 0.01, False), (0.531, 0.012, True), (0.2, None, True)], "new leader, +0.031, 2 new scores"),
        ([(NAN, None, True), (float("inf"), None, True)], "2 new scores, none of them a number"),
        ([(0.5, None, False), (NAN, None, True)], "same leader, 1 new score"),
    ],
)
def test_what_is_new_is_said_in_words(laboratory: Laboratory, scores: Scored, news: str) -> None:
    with laboratory.opened():
        score(laboratory, scores)
        assert the_board().news == news


def test_where_less_is_better_the_lowest_leads_and_moves_down(laboratory: Laboratory) -> None:
    with laboratory.opened():
        score(laboratory, [(0.9, None, True)])
        benchmark = Benchmark.objects.get()
        publish_contract(actor=laboratory.owner, benchmark=benchmark, metric="accuracy", direction="minimize")
        assert boards(day_ago()) == []
        (board,) = boards(day_ago(), first=benchmark.pk)
        assert (board.contract.version, board.total, board.leader) == (2, 0, None), "scores under the contract before do not count"
        made = copy_runs(actor=laboratory.owner, pattern=Run.objects.all()[0], count=3, contract_id=board.contract.pk)
        score_runs(actor=laboratory.owner, scores={made[0]: (0.5, 0.1)}, created_at=timezone.now() - timedelta(days=2))
        score_runs(actor=laboratory.owner, scores={made[1]: (0.25, 0.1), made[2]: (float("-inf"), None)})
        board = the_board()
    assert board.news == "new leader, −0.25, 2 new scores"
    assert board.leader
    assert board.leader.value == 0.25


def test_the_objective_comes_first_and_the_others_by_their_newest_score(laboratory: Laboratory) -> None:
    with laboratory.opened():
        score(laboratory, [(0.5, None, False)])
        others = [make_benchmark(laboratory.owner, slug=slug, metric="loss") for slug in ("b-quiet", "a-scored", "c-scored")]
        for benchmark in others[1:]:
            contract = Contract.objects.get(benchmark=benchmark)
            (run,) = copy_runs(
                actor=laboratory.owner, pattern=Run.objects.all()[0], count=1, benchmark_id=benchmark.pk, contract_id=contract.pk
            )
            score_runs(actor=laboratory.owner, scores={run: (1.0, None)}, metric="loss")
        first = Benchmark.objects.get(slug="accuracy")
        assert [board.contract.benchmark.slug for board in boards(day_ago(), first=first.pk)] == ["accuracy", "c-scored", "a-scored"]
        assert [board.contract.benchmark.slug for board in boards(day_ago())] == ["c-scored", "a-scored", "accuracy"]
        assert next(iter(boards(day_ago(), first=others[0].pk))).contract.benchmark.slug == "b-quiet"


def test_each_leader_leads_to_its_board_and_run(laboratory: Laboratory) -> None:
    with laboratory.opened():
        score(laboratory, [(0.5, 0.01, False)])
        (leader,) = copy_runs(actor=laboratory.owner, pattern=Run.objects.all()[0], count=1, name=HOSTILE)
        score_runs(actor=laboratory.owner, scores={leader: (0.531, 0.012)})
    page = client_of(laboratory.owner).get("/workspaces/lab/").content.decode()
    assert "new leader, +0.031, 1 new score" in page
    assert "0.531 ± 0.012" in page
    assert f"/workspaces/lab/runs/{leader.public_id}/" in page
    assert "/workspaces/lab/benchmarks/accuracy/" in page
    assert "<script>alert" not in page


@pytest.fixture
def trained(laboratory: Laboratory) -> tuple[Laboratory, dict[str, Artifact]]:
    """Two runs that made something, the second of which is better."""
    made: dict[str, Artifact] = {}
    with laboratory.opened():
        for run, kind in zip(score(laboratory, [(0.4, None, False), (0.6, 0.01, False)]), ("worse", "better"), strict=True):
            for suffix, what in (("model", "model"), ("log", "log"), ("games", "games")):
                made[f"{kind}-{suffix}"] = add_artifact(
                    actor=laboratory.owner, run=run, path=f"{kind}.{suffix}", content=f"{kind} {suffix}".encode(), kind=what
                )
    return laboratory, made


def test_worth_promoting_is_what_the_leading_run_made(trained: tuple[Laboratory, dict[str, Artifact]]) -> None:
    laboratory, made = trained
    with laboratory.opened():
        (entry,) = promotable(boards(day_ago()))
        assert entry.artifact == made["better-model"]
        assert [board.contract.benchmark.slug for board in entry.boards] == ["accuracy"]
    page = client_of(laboratory.owner).get("/workspaces/lab/").content.decode()
    assert f"/workspaces/lab/artifacts/{made['better-model'].public_id}/" in page
    assert made["worse-model"].public_id not in page
    assert "The checkpoint or model that each benchmark" in page, "the rule is on the page"


def test_worth_promoting_is_what_the_best_score_was_measured_of(trained: tuple[Laboratory, dict[str, Artifact]]) -> None:
    laboratory, made = trained
    with laboratory.opened():
        (judge,) = copy_runs(actor=laboratory.owner, pattern=Run.objects.all()[0], count=1, name="judge")
        add_artifact(actor=laboratory.owner, run=judge, path="judge.model", content=b"the judge's own", kind="model")
        score_runs(actor=laboratory.owner, scores={judge: (0.9, 0.01)}, subject_artifact=made["worse-model"])
        (entry,) = promotable(boards(day_ago()))
        assert entry.artifact == made["worse-model"], "the artifact that was measured, not what the measuring run made"


def test_what_stands_promoted_says_so_and_comes_after_what_is_new(laboratory: Laboratory) -> None:
    with laboratory.opened():
        champion = make_candidate(laboratory, value=0.9)
        new = add_artifact(actor=laboratory.owner, run=champion.run, path="new.model", content=b"new", kind="model")
        _, asked = propose(laboratory.owner, champion)
        assert [entry.stands for entry in promotable(boards(day_ago()))] == [[], []], "it only waits"
        approver = make_member(laboratory.workspace, "approver")
        decide_approval(actor=approver, approval=asked, approves=True, seen_hash=asked.content_hash)
        (standing,) = Promotion.objects.all()
        found = promotable(boards(day_ago()))
        assert [(entry.artifact, entry.stands) for entry in found] == [(new, []), (champion, [Told(standing)])]
    page = client_of(laboratory.owner).get("/workspaces/lab/").content.decode().partition("Worth promoting")[2].partition("</section>")[0]
    assert f'stands as <a href="/workspaces/lab/promotions/{standing.public_id}/">champion</a>' in page
    assert (f"{new.public_id}/promote/" in page, f"{champion.public_id}/promote/" in page) == (True, False)


def test_nothing_is_worth_promoting_where_nothing_leads(laboratory: Laboratory) -> None:
    with laboratory.opened():
        (run,) = score(laboratory, [(NAN, None, True)])
        add_artifact(actor=laboratory.owner, run=run, path="a.model", content=b"x", kind="model")
        assert promotable(boards(day_ago())) == []
    assert "Worth promoting" not in client_of(laboratory.owner).get("/workspaces/lab/").content.decode()


def test_what_is_left_to_the_target_is_no_rounding_of_it(laboratory: Laboratory) -> None:
    with laboratory.opened():
        contract = Contract(direction="maximize", unit="Elo")
        found = Aim(Objective(target=800), Board(contract, Evaluation(value=794.7087, standard_error=127.5)))
    assert found.missing == "5.3 Elo"
