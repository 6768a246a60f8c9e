"""The arena of a benchmark: games that evaluations have played become ratings, of what labsite gave them, under the contract that holds, and of
nothing that was withdrawn."""

import csv
import io
import math
from typing import Any

import pytest
from django.utils.html import escape

from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.models import Artifact, Evaluation, Run
from runs.queries.arena import Arena, arena
from runs.queries.withdrawal import find_subject
from tests.factories_pages import add_artifact, client_of
from tests.factories_registry import make_agent_version
from tests.factories_runs import Laboratory, launch
from tests.runs.test_gates import JUDGE, judged, laboratory
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Benchmark

__all__ = ["laboratory"]  # the fixture, by its name
pytestmark = pytest.mark.django_db(transaction=True)
HOSTILE = "<script>alert(1)</script>"


def players(laboratory: Laboratory, count: int = 3) -> list[Artifact]:
    with laboratory.opened():
        run = launch(laboratory, name=HOSTILE)
        return [
            add_artifact(actor=laboratory.owner, run=run, path=f"{place}.pt", content=f"player {place}".encode(), kind="model")
            for place in range(count)
        ]


def played(laboratory: Laboratory, given: list[Artifact], *matches: tuple[Artifact, Artifact, list[Any]]) -> Evaluation:
    said = [{"first": first.blob.sha256, "second": second.blob.sha256, "pairs": pairs} for first, second, pairs in matches]
    return judged(laboratory, *given, rows=[(1.0, None)], pairs={"schema": "labsite.pairs.v1", "matches": said}, subject=given[0].name)


def board(laboratory: Laboratory) -> Arena:
    with laboratory.opened():
        return arena(Benchmark.objects.get())


def rated(found: Arena) -> dict[str, tuple[float, int]]:
    return {player.artifact.path: (player.points, player.games) for player in found.players}


def test_games_of_several_evaluations_become_ratings_on_page_csv_and_api(laboratory: Laboratory) -> None:
    one, two, three = players(laboratory)
    played(laboratory, [one, two], (one, two, [0, 0, 10, 0, 0]))
    played(laboratory, [one, two, three], (two, one, [0, 0, 4, 0, 6]), (three, two, [5, 5, 0, 0, 0]))
    found = board(laboratory)
    # 20 games drawn in pairs, then 10 pairs in which `two` had 16 of 20 points: 26 of 40 in all. `three` had 5/2 of 20 against `two`.
    assert rated(found) == {"1.pt": (26 + 17.5, 60), "0.pt": (14, 40), "2.pt": (2.5, 20)}
    assert (found.games, found.runs, found.apart, found.unread, found.has_prior, found.is_cut) == (60, 2, [], 0, False, False)
    by_path = {player.artifact.path: player for player in found.players}
    assert [player.rank for player in found.players] == [1, 2, 3]
    assert (by_path["0.pt"].is_reference, by_path["0.pt"].rating.elo) == (True, 0.0)
    # A chain has the closed form: the log odds of each match, and its standard error.
    assert by_path["1.pt"].rating.elo == pytest.approx(400 * math.log10(26 / 14))
    assert by_path["1.pt"].rating.error == pytest.approx(400 / math.log(10) * math.sqrt(1 / 26 + 1 / 14))
    assert by_path["2.pt"].rating.elo == pytest.approx(400 * (math.log10(26 / 14) - math.log10(17.5 / 2.5)))
    browser, place = client_of(laboratory.owner), f"/workspaces/{laboratory.workspace.slug}/benchmarks/accuracy"
    page = browser.get(f"{place}/arena/").content.decode()
    assert "is rated highest, 108 Elo ahead over 60 games" in page
    assert escape(HOSTILE) in page
    assert "<script>alert" not in page
    assert f'href="{place}/arena/"' in browser.get(f"{place}/").content.decode()
    rows = list(csv.DictReader(io.StringIO(b"".join(browser.get(f"{place}/arena/csv/").streaming_content).decode())))  # type: ignore[attr-defined]  # a stream
    told = browser.get(f"/api/v1{place}/arena").json()
    assert [float(row["elo"]) for row in rows] == [each["elo"] for each in told["items"]] == [player.rating.elo for player in found.players]
    assert [(each["low"], each["high"], each["artifact_id"]) for each in told["items"]] == [
        (player.rating.low, player.rating.high, player.artifact.public_id) for player in found.players
    ]


def test_what_no_evaluation_was_given_and_what_is_no_result_does_not_count(laboratory: Laboratory) -> None:
    one, two, three, four = players(laboratory, 4)
    played(laboratory, [one, two], (one, two, [1, 0, 0, 0, 2]), (one, three, [0, 0, 0, 0, 40]), (one, one, [0, 0, 0, 0, 9]))
    played(laboratory, [one, two], (one, two, [0, 0, 0, -1, 2]))
    played(laboratory, [three, four], (three, four, [1, 0, 0, 0, 0]))
    found = board(laboratory)
    assert rated(found) == {"0.pt": (4, 6), "1.pt": (2, 6)}
    assert (found.unread, len(found.apart), found.runs) == (1, 2, 2)
    assert {(row.artifact.path, row.games, row.met) for row in found.apart} == {("2.pt", 2, (four,)), ("3.pt", 2, (three,))}
    page = client_of(laboratory.owner).get(f"/workspaces/{laboratory.workspace.slug}/benchmarks/accuracy/arena/").content.decode()
    apart = page[page.index("2 artifacts met none of these") :]
    assert apart.count(f'href="/workspaces/{laboratory.workspace.slug}/artifacts/{four.public_id}/"') == 2, "itself, and whom the other met"


def test_results_too_far_apart_leave_the_page_standing(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/runs/test_bradley_terry.py has such results."""
    one, two = players(laboratory, 2)
    played(laboratory, [one, two], (one, two, [1, 0, 0, 0, 2]))

    def rate(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr("runs.queries.arena.rate", rate)
    found = board(laboratory)
    assert (found.is_unrated, found.games, found.players) == (True, 6, [])
    browser, place = client_of(laboratory.owner), f"/workspaces/{laboratory.workspace.slug}/benchmarks/accuracy"
    assert "too far apart to be rated" in browser.get(f"{place}/arena/").content.decode()
    assert browser.get(f"/api/v1{place}/arena").json()["items"] == []


def test_a_run_with_many_files_of_games_counts_by_its_newest(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.queries.arena.MOST_FILES", 2)
    one, two, three = players(laboratory)
    played(laboratory, [one, two], (one, two, [1, 0, 0, 0, 2]))
    loud = played(laboratory, [two, three], (two, three, [1, 0, 0, 0, 2]))
    with laboratory.opened():
        for number in range(5):
            add_artifact(actor=laboratory.owner, run=loud.run, path=f"more-{number}.json", content=f"[{number}]".encode(), kind="pairs")
    found = board(laboratory)
    assert (set(rated(found)), found.is_cut, found.unread) == ({"0.pt", "1.pt"}, False, 1), "its newest is no file of games"


def test_a_withdrawal_takes_the_games_away_and_undoing_it_brings_them_back(laboratory: Laboratory) -> None:
    one, two, three = players(laboratory)
    played(laboratory, [one, two], (one, two, [1, 0, 0, 0, 2]))
    bad = played(laboratory, [two, three], (three, two, [0, 0, 0, 0, 8]))
    before = board(laboratory)
    assert before.has_prior
    assert before.players[0].artifact == three
    with laboratory.opened():
        subject, label = find_subject("run", bad.run.public_id)
        withdrawal = withdraw(actor=laboratory.owner, subject=subject, label=label, reason="the engine cheated")
    assert set(rated(board(laboratory))) == {"0.pt", "1.pt"}
    with laboratory.opened():
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="it did not")
    assert board(laboratory) == before


def test_games_under_an_older_contract_do_not_count(laboratory: Laboratory) -> None:
    one, two = players(laboratory, 2)
    played(laboratory, [one, two], (one, two, [1, 0, 0, 0, 2]))
    with laboratory.opened():
        assert Run.objects.count() > 1
        publish_contract(
            actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", terms="stricter"
        )
    assert board(laboratory).players == []
    page = client_of(laboratory.owner).get(f"/workspaces/{laboratory.workspace.slug}/benchmarks/accuracy/arena/").content.decode()
    assert "No games between artifacts yet" in page


def test_the_evaluator_is_who_has_the_content_that_the_contract_names(laboratory: Laboratory) -> None:
    """Two agents with the same code are the same evaluator, as for scores."""
    one, two = players(laboratory, 2)
    with laboratory.opened():
        twin = make_agent_version(laboratory.owner, "twin", code=JUDGE, kind="evaluate", wall_seconds=60)
        publish_contract(
            actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", evaluator=twin,
            accepts_no_isolation_reason="a test",
        )  # fmt: skip
    played(laboratory, [one, two], (one, two, [1, 0, 0, 0, 2]))
    assert rated(board(laboratory)) == {"0.pt": (4, 6), "1.pt": (2, 6)}
