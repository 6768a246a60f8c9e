"""A contract that opens and closes, has ceilings, a denominator and an evaluator: what is launched, what is scored, what is shown."""

import csv
import io
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.utils import timezone

from runs.commands.attempt import FIRST_FENCE, end_attempt
from runs.commands.ending import finish_run
from runs.commands.harvest import Harvest
from runs.models import Certificate, Evaluation
from runs.pools.base import Exit
from runs.pools.events import Score, read_event
from runs.pools.values import MalformedError
from runs.queries.launch_score import score_launch
from tests.factories_people import signed_in
from tests.factories_registry import make_agent_version, make_benchmark, stored
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.factories_submissions import SYSTEM, finish, start
from workspaces.audit import Refusal
from workspaces.commands.agent import publish_agent_version
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Benchmark, EventPayload

pytestmark = pytest.mark.django_db
PAGE = "/workspaces/lab/benchmarks/accuracy/"
HOUR = timedelta(hours=1)
ENDED = Exit(code=0, signal=None, started_at=1, ended_at=2, reason="exit", peak_memory_bytes=None, cpu_seconds=None)


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    made = make_laboratory(at_once=50, slots=16, weekly_gpu_hours=10_000)
    with made.opened():
        yield made


def publish(laboratory: Laboratory, **parts: Any) -> None:
    benchmark = Benchmark.objects.get(slug="accuracy")
    publish_contract(actor=laboratory.owner, benchmark=benchmark, metric="accuracy", direction="maximize", **parts)


def shown(laboratory: Laboratory) -> str:
    return " ".join(signed_in(laboratory.owner).get(PAGE).content.decode().split())


def test_nothing_is_launched_before_it_opens_or_after_it_closes(laboratory: Laboratory) -> None:
    now = timezone.now()
    publish(laboratory, opens_at=now + HOUR)
    with pytest.raises(Refusal, match=r"accuracy takes runs from \d+ \w+ \d{4} \d\d:\d\d Europe/Berlin, as contract version 2 says"):
        launch(laboratory)
    assert Certificate.objects.get().verdict == "refused"
    assert "not open yet: it takes runs from" in shown(laboratory)
    publish(laboratory, opens_at=now - HOUR, closes_at=now)
    with pytest.raises(Refusal, match="It is closed"):
        launch(laboratory)
    assert "closed since" in shown(laboratory)
    publish(laboratory, opens_at=now - HOUR, closes_at=now + HOUR)
    launch(laboratory)
    assert "open until" in shown(laboratory)


def test_what_was_asked_for_in_time_is_scored_after_it_closes_and_a_score_from_elsewhere_is_not(laboratory: Laboratory) -> None:
    make_benchmark(laboratory.owner, "other")
    publish(laboratory, closes_at=timezone.now() + HOUR)
    run = launch(laboratory)
    elsewhere = launch(laboratory, benchmark="other")
    benchmark = Benchmark.objects.get(slug="accuracy")
    assert finish(run, 0.9).evaluations.filter(benchmark=benchmark).exists()
    publish(laboratory, opens_at=timezone.now() + HOUR)
    finish(elsewhere, 0.99)  # on accuracy, that opens only later
    assert not elsewhere.evaluations.exists()
    payload = EventPayload.objects.get(event__verb="run.ended", event__subject_id=elsewhere.pk)
    assert payload.body["details"]["scores_that_the_contract_does_not_keep"] == {
        "accuracy": "It was asked for while contract version 3 was not open."
    }


def test_an_evaluation_above_a_ceiling_of_the_contract_is_refused_at_its_launch(laboratory: Laboratory) -> None:
    make_agent_version(laboratory.owner, "frugal", kind="evaluate", wall_seconds=60, memory_bytes=2**20)
    publish(laboratory, wall_seconds=30)
    with pytest.raises(Refusal, match=r"60 of at most 30 seconds that the contract allows an evaluation\. Ask for 30 seconds less"):
        launch(laboratory, agent="frugal")
    launch(laboratory)  # what it makes is what evaluations measure: the ceilings are theirs
    publish(laboratory, wall_seconds=60, memory_bytes=2**19)
    with pytest.raises(Refusal, match="of memory that the contract allows an evaluation"):
        launch(laboratory, agent="frugal")
    publish(laboratory, wall_seconds=60, memory_bytes=2**20)
    launch(laboratory, agent="frugal")


def test_only_the_evaluator_scores(laboratory: Laboratory) -> None:
    judge = make_agent_version(laboratory.owner, "judge", kind="evaluate", code=b"print('judge')\n")
    make_agent_version(laboratory.owner, "rival", kind="evaluate", code=b"print('rival')\n")
    publish(laboratory, evaluator=judge)
    with pytest.raises(Refusal, match=r"Only judge version 1 scores on accuracy, as contract version 2 says; this is rival version 1\."):
        launch(laboratory, agent="rival")
    trained = finish(launch(laboratory, name="trained"), 0.99)
    assert not trained.evaluations.exists()
    judged = finish(launch(laboratory, agent="judge", name="judged"), 0.7)
    assert [row.value for row in judged.evaluations.all()] == [0.7]
    page = shown(laboratory)
    assert "Only judge version 1 scores under contract version 2; what others report is not kept." in page
    assert "judged leads with 0.7" in page


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"samples": 10, "errored": 6, "abstained": 5}, "6 errored and 5 abstained are more than the 10 samples"),
        ({"errored": 1}, "samples, which is missing"),
        ({"samples": 10, "abstained": -1}, "abstained is not an integer"),
        ({"samples": 10, "errored": 1.5}, "errored is not an integer"),
    ],
)
def test_a_score_line_whose_counts_do_not_add_up_is_a_bad_line(counts: dict[str, object], words: str) -> None:
    with pytest.raises(MalformedError, match=words):
        read_event({"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.5, **counts})


def test_a_score_line_without_counts_reads_as_it_always_did() -> None:
    line = {"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.5, "samples": 7}
    assert read_event(line) == Score("accuracy", "accuracy", 0.5, None, 7)
    assert read_event({**line, "errored": 3, "abstained": 4}) == Score("accuracy", "accuracy", 0.5, None, 7, 3, 4)


def test_a_score_is_shown_with_its_denominator(laboratory: Laboratory) -> None:
    publish(laboratory, counts_all_samples=True)
    attempt = start(launch(laboratory))
    line = read_event(
        {"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.5, "samples": 40, "errored": 3, "abstained": 1}
    )
    assert isinstance(line, Score)
    from_run = finish(launch(laboratory, name="silent", seed=2), 0.4)
    end_attempt(actor=SYSTEM, attempt=attempt, fence=FIRST_FENCE, ended=ENDED)
    finish_run(actor=SYSTEM, attempt=attempt, harvest=Harvest(scores=(line,)))
    kept = Evaluation.objects.exclude(run=from_run).get()
    assert (kept.samples, kept.errored, kept.abstained) == (40, 3, 1)
    page = shown(laboratory)
    assert "of 40, 3 errored, 1 abstained" in page
    assert "they stay in the denominator, as the contract says" in page
    client = signed_in(laboratory.owner)
    rows = list(csv.DictReader(io.StringIO(b"".join(client.get(f"{PAGE}csv/")).decode())))
    assert [(row["samples"], row["errored"], row["abstained"]) for row in rows] == [("40", "3", "1"), ("100", "", "")]
    items = client.get("/api/v1/workspaces/lab/benchmarks/accuracy/scoreboard").json()["items"]
    assert [(item["samples"], item["errored"], item["abstained"]) for item in items] == [(40, 3, 1), (100, None, None)]


def test_the_launch_that_scores_a_run_is_filled_with_the_evaluator(laboratory: Laboratory) -> None:
    judge = make_agent_version(laboratory.owner, "judge", kind="evaluate", code=b"print('judge')\n")
    make_agent_version(laboratory.owner, "rival", kind="evaluate", code=b"print('rival')\n")
    publish_agent_version(
        actor=laboratory.owner, agent=judge.agent, argv=["python", "main.py"], files=[stored("main.py", b"print(2)\n")], kind="evaluate"
    )
    publish(laboratory, evaluator=judge)
    run = finish(launch(laboratory))
    query = parse_qs(score_launch(run.public_id).query)
    assert (query["agent"], query["version"]) == (["judge"], ["1"])
