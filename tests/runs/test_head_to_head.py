"""Two artifacts of an arena by the sequential test: over what counts there, in the order in which it was played, the same on page, CSV and API."""

import csv
import io
import math
from typing import Any

import pytest
from django.test import Client

from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.models import Artifact
from runs.policy.sequential import log_likelihood_ratio
from runs.queries.withdrawal import find_subject
from tests.factories import make_member
from tests.factories_pages import add_artifact, client_of
from tests.factories_runs import Laboratory
from tests.runs.test_arena import HOSTILE, played, players
from tests.runs.test_gates import ELO, asked_of, judged, laboratory, made_champion
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.token import create_token
from workspaces.models import Benchmark, DatasetVersion

__all__ = ["laboratory"]  # the fixture, by its name
pytestmark = pytest.mark.django_db(transaction=True)
BOUND = math.log(0.95 / 0.05)


def asked(browser: Client, laboratory: Laboratory, first: Artifact, second: Artifact, **more: Any) -> tuple[str, dict[str, Any], list[Any]]:
    """The page, what the API says, and the rows of the CSV."""
    place = f"/workspaces/{laboratory.workspace.slug}/benchmarks/accuracy/arena/sequential"
    query = {"first": first.public_id, "second": second.public_id, **more}
    page, told = browser.get(f"{place}/", query), browser.get(f"/api/v1{place}", query)
    assert (page.status_code, told.status_code) == (200, 200), told.content
    sheet = b"".join(browser.get(f"{place}/csv/", query).streaming_content).decode()  # type: ignore[attr-defined]  # a stream
    return page.content.decode(), told.json(), list(csv.DictReader(io.StringIO(sheet)))


def test_the_first_bound_that_is_passed_answers_and_later_games_change_nothing(laboratory: Laboratory) -> None:
    one, two, three = players(laboratory)
    browser = client_of(laboratory.owner)
    played(laboratory, [one, two], (one, two, [0, 0, 4, 1, 1]))
    played(laboratory, [one, two, three], (two, one, [2, 0, 0, 0, 0]), (three, one, [0, 0, 0, 0, 9]))
    page, told, _ = asked(browser, laboratory, one, two, elo1="100")
    assert (told["accepted"], told["pairs"], told["points"]) == ("", 8, 4 + 1.5 + 2 + 4)
    assert told["log_likelihood_ratio"] == log_likelihood_ratio([0, 0, 4, 1, 3], 0, 100)
    assert (told["low"], told["high"]) == (pytest.approx(-BOUND), pytest.approx(BOUND)), "2.94 at 0.05 and 0.05"
    assert "is not decided after 8 pairs of games" in page
    assert "&lt;script&gt;" in page
    assert HOSTILE not in page

    played(laboratory, [one, two], (one, two, [0, 0, 5, 20, 20]))
    played(laboratory, [one, two], (one, two, [40, 0, 0, 0, 0]))
    page, told, rows = asked(browser, laboratory, one, two, elo1="100")
    assert (told["accepted"], told["pairs"]) == ("H1", 53)
    assert "is at least 100 Elo stronger than 1.pt" in page
    assert "accepted after 53 pairs of games" in page
    assert [each["pairs_so_far"] for each in told["items"]] == [6, 8, 53, None]
    assert [row["pairs so far"] for row in rows] == ["6", "8", "53", ""]
    assert [row["run"] for row in rows] == [each["run_id"] for each in told["items"]]
    assert [float(row["log-likelihood ratio"]) for row in rows[:3]] == [each["log_likelihood_ratio"] for each in told["items"][:3]]
    turned = asked(browser, laboratory, two, one, elo1="100")[1]
    assert (turned["accepted"], turned["points"]) == ("H0", 2 * 53 - told["points"])


def test_what_was_withdrawn_was_never_played_and_undoing_it_brings_the_answer_back(laboratory: Laboratory) -> None:
    one, two = players(laboratory, 2)
    browser = client_of(laboratory.owner)
    bad = played(laboratory, [one, two], (one, two, [0, 0, 5, 20, 20]))
    played(laboratory, [one, two], (one, two, [1, 1, 1, 1, 1]))
    before = asked(browser, laboratory, one, two, elo1="100")
    with laboratory.opened():
        subject, label = find_subject("run", bad.run.public_id)
        withdrawal = withdraw(actor=laboratory.owner, subject=subject, label=label, reason="the engine cheated")
    assert (before[1]["accepted"], asked(browser, laboratory, one, two, elo1="100")[1]["pairs"]) == ("H1", 5)
    with laboratory.opened():
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="it did not")
    assert asked(browser, laboratory, one, two, elo1="100")[1:] == before[1:]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"elo0": "50", "elo1": "50"}, "H1 must be more Elo than H0"),
        ({"elo1": "NaN"}, "Enter a number"),
        ({"alpha": "0"}, "greater than or equal to 0.0001"),
        ({"beta": "0.9"}, "less than or equal to 0.4"),
        ({"first": "x" * 500}, "No artifact of this id has played here."),
    ],
)
def test_what_is_no_question_is_said_and_nothing_is_tested(laboratory: Laboratory, query: dict[str, str], words: str) -> None:
    one, two = players(laboratory, 2)
    played(laboratory, [one, two], (one, two, [1, 0, 0, 0, 2]))
    place, browser = f"/workspaces/{laboratory.workspace.slug}/benchmarks/accuracy/arena/sequential", client_of(laboratory.owner)
    page = browser.get(f"{place}/", query)
    assert page.status_code == 200
    assert words in page.content.decode().replace("&#x27;", "'")
    assert browser.get(f"{place}/csv/", query).status_code == 409
    both = {"first": one.public_id, "second": two.public_id}
    assert browser.get(f"/api/v1{place}", {**both, **query}).status_code in {404, 422}
    assert browser.get(f"/api/v1{place}", {**both, "second": one.public_id}).status_code == 422


def test_the_same_content_under_another_id_is_the_one_that_played_and_who_is_not_named_is_another(laboratory: Laboratory) -> None:
    one, two = players(laboratory, 2)
    played(laboratory, [one, two], (one, two, [1, 0, 0, 0, 2]))
    with laboratory.opened():
        again = add_artifact(actor=laboratory.owner, run=one.run, path="again.pt", content=b"player 0", kind="model")
    place, browser = f"/workspaces/{laboratory.workspace.slug}/benchmarks/accuracy/arena/sequential/", client_of(laboratory.owner)
    for artifact, said in ((again, "Whether 0.pt of"), (one, "Whether 0.pt of"), (two, "Whether 1.pt of")):
        assert said in browser.get(place, {"first": artifact.public_id}).content.decode()
        assert "is not decided after 3 pairs" in browser.get(place, {"second": artifact.public_id}).content.decode()


def test_games_that_cannot_be_rated_are_tested_all_the_same(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = players(laboratory, 2)
    played(laboratory, [one, two], (one, two, [1, 0, 0, 0, 2]))

    def rate(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr("runs.queries.arena.rate", rate)
    assert "is not decided after 3 pairs" in asked(client_of(laboratory.owner), laboratory, one, two)[0]


def test_whoever_may_not_see_artifacts_or_runs_is_told_nothing_of_who_played(laboratory: Laboratory) -> None:
    one, two = players(laboratory, 2)
    played(laboratory, [one, two], (one, two, [1, 0, 0, 0, 2]))
    path = (
        f"/api/v1/workspaces/{laboratory.workspace.slug}/benchmarks/accuracy/arena/sequential?first={one.public_id}&second={two.public_id}"
    )
    whole = ["evaluation:read", "artifact:read", "run:read"]
    for scopes in (whole[:1], whole[1:], whole[:2], whole):
        with laboratory.opened():
            _, secret = create_token(actor=laboratory.owner, name="reader", scopes=scopes, days=1)
        answer = Client(headers={"Authorization": f"Bearer {secret}"}).get(path)
        assert answer.status_code == (200 if scopes == whole else 403), answer.content


def test_without_a_word_the_strongest_meets_the_strongest_it_has_met(laboratory: Laboratory) -> None:
    one, two, three = players(laboratory)
    place, browser = f"/workspaces/{laboratory.workspace.slug}/benchmarks/accuracy/arena/", client_of(laboratory.owner)
    assert "No games between artifacts yet" in browser.get(f"{place}sequential/").content.decode()
    played(laboratory, [one, two, three], (one, two, [1, 0, 0, 0, 9]), (two, three, [4, 0, 0, 0, 6]))
    assert "Whether 0.pt of" in browser.get(f"{place}sequential/", {"elo1": "10"}).content.decode()
    assert f'href="{place}sequential/"' in browser.get(place).content.decode()
    assert "have not met" in asked(browser, laboratory, one, three)[0]
    assert client_of(make_member(laboratory.workspace, "viewer")).get(f"{place}sequential/").status_code == 200


def test_a_gate_counts_the_games_that_the_arena_counts_and_the_first_bound_holds(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    champion = made_champion(laboratory)
    (one,) = players(laboratory, 1)
    played(laboratory, [one, champion], (one, champion, [0, 0, 5, 20, 20]))
    with laboratory.opened():
        holdout = DatasetVersion.objects.get(dataset__slug="unseen")
        publish_contract(
            actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", terms="stricter",
            holdout=holdout, accepts_no_isolation_reason="a test",
        )  # fmt: skip
    newest = judged(laboratory, one, rows=[(1.0, None)])
    verdict, words = asked_of(laboratory, newest, ELO)[1]["elo_sequential"]
    assert (verdict, "No run that is scored under the contract has played" in words) == ("unknown", True), words

    monkeypatch.setattr("runs.queries.arena.MOST_FILES", 2)
    played(laboratory, [one, champion], (one, champion, [0, 0, 4, 1, 1]))
    played(laboratory, [one, champion], (one, champion, [0, 0, 5, 20, 20]))
    accepted = asked_of(laboratory, newest, ELO)[1]["elo_sequential"]
    assert (accepted[0], "After 51 pairs" in accepted[1]) == ("pass", True)
    played(laboratory, [one, champion], (champion, one, [0, 0, 0, 0, 80]))
    assert asked_of(laboratory, newest, ELO)[1]["elo_sequential"] == accepted, "what was accepted stays so, however many games follow"
    told = asked(client_of(laboratory.owner), laboratory, one, champion, elo1="100")[1]
    assert (told["accepted"], told["pairs"]) == ("H1", 51)

    monkeypatch.setattr("runs.queries.arena.MOST_FILES", 1)
    verdict, words = asked_of(laboratory, newest, ELO)[1]["elo_sequential"]
    assert (verdict, "these are all that are read" in words) == ("unknown", True)
