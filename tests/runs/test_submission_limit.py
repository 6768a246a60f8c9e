"""Runs per person and period: what counts, for whom, until when, whatever is asked for at once; and certificates that decide again as they did."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from runs.admission import Answer, decide
from runs.admission_facts import FORM, Facts, QuotaFacts, facts_from
from runs.commands.approval import decide_approval
from runs.commands.cancel_many import cancel_any_runs, cancel_own_runs, end_cancelled_runs
from runs.commands.launch import launch_run, retry_run
from runs.commands.run import cancel_any_run, cancel_run
from runs.commands.sweep import create_sweep
from runs.launch import LaunchRequest
from runs.lifecycle import RunStatus
from runs.models import Certificate, Evaluation, Run, RunLine, Sweep
from runs.queries.quota import Quota, quota_of
from tests.factories import make_member, make_user
from tests.factories_people import make_token, signed_in
from tests.factories_registry import make_agent_version, make_benchmark
from tests.factories_runs import HOUR, Laboratory, launch, make_laboratory
from tests.factories_submissions import end, finish, start
from tests.runs.test_admission import GOOD
from workspaces.access import Actor, Role
from workspaces.audit import Refusal
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.limit import set_limit
from workspaces.commands.member import add_member
from workspaces.models import Approval, Benchmark, Contract, Limit, Unit, User
from workspaces.queries.registry import current_contract

pytestmark = pytest.mark.django_db

TERMS: dict[str, Any] = {"metric": "accuracy", "direction": "maximize"}
NIGHT = datetime(2026, 11, 27, 22, 30, tzinfo=UTC)  # Friday 23:30 in Berlin
REQUEST = LaunchRequest(benchmark="accuracy", agent="worker", datasets=("table",))


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    """Its contract allows each person two runs a day."""
    made = make_laboratory(at_once=500, slots=16, weekly_gpu_hours=10_000)
    with made.opened():
        allow(made, 2)
        yield made


def allow(laboratory: Laboratory, runs: int | None, period: str = "day", **terms: Any) -> Contract:
    limit: dict[str, Any] = {"runs_per_person": runs, "period": period} if runs is not None else {}
    return publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(slug="accuracy"), **{**TERMS, **terms}, **limit)


def standing(laboratory: Laboratory, actor: Actor | None = None, now: datetime | None = None) -> Quota:
    contract = current_contract(Benchmark.objects.get(slug="accuracy").pk)
    assert contract is not None
    found = quota_of(contract, (actor or laboratory.owner).user, now=now or timezone.now(), workspace=laboratory.workspace)
    assert found is not None
    return found


def used(laboratory: Laboratory, actor: Actor | None = None, now: datetime | None = None) -> tuple[int, int]:
    found = standing(laboratory, actor, now)
    return found.used, found.under_way


def at(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    monkeypatch.setattr(timezone, "now", lambda: moment)


# --- The decision ---------------------------------------------------------------------------------------------------------------------------


QUOTA = QuotaFacts("Accuracy", allowed=5, period="day", used=4, under_way=2, asked=1, until="Saturday 00:00 Europe/Berlin")


def with_quota(**changed: Any) -> Facts:
    return replace(GOOD, quota=replace(QUOTA, **changed))


def test_the_last_one_passes_and_the_next_is_refused_with_arithmetic_instant_and_zone() -> None:
    last = decide(with_quota())
    assert (last.answer, last.lines[-1].words) == (
        Answer.PASS,
        "1 run more would make 5 of 5 that one person may ask for on Accuracy today.",
    )
    over = decide(with_quota(used=5))
    assert over.answer == Answer.REFUSE
    assert over.reasons == [
        "1 run more would make 6 of 5 that one person may ask for on Accuracy today. The next is allowed from Saturday 00:00 Europe/Berlin, or"
        " earlier if one of the 2 under way ends without a score."
    ]
    assert decide(with_quota(used=5, under_way=0)).reasons[0].endswith("The next is allowed from Saturday 00:00 Europe/Berlin.")
    assert decide(with_quota(used=5, under_way=1)).reasons[0].endswith(", or earlier if the one under way ends without a score.")


def test_no_approver_lifts_it() -> None:
    assert decide(replace(with_quota(used=5), is_approved=True)).answer == Answer.REFUSE


def test_facts_with_it_come_back_and_facts_from_before_are_decided_as_they_were() -> None:
    facts = with_quota(used=5)
    kept = json.loads(json.dumps(facts.as_json()))
    assert facts_from(kept) == facts
    assert kept["form"] == FORM
    before = json.loads(json.dumps(GOOD.as_json()))
    del before["quota"]
    before["form"] = 2
    assert facts_from(before) == GOOD
    assert decide(facts_from(before)) == decide(GOOD)


# --- What counts ----------------------------------------------------------------------------------------------------------------------------


def test_it_counts_while_it_may_be_scored_and_afterwards_if_it_was(laboratory: Laboratory) -> None:
    run = launch(laboratory)
    assert used(laboratory) == (1, 1), "queued"
    attempt = start(run)
    assert used(laboratory) == (1, 1), "running"
    end(attempt, 0.5)
    assert used(laboratory) == (1, 0), "scored"


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ({"code": 1}, RunStatus.FAILED),
        ({"code": 1, "value": 0.9}, RunStatus.FAILED),  # a score that a failed run wrote is not recorded
        ({"code": 0}, RunStatus.SUCCEEDED),
        ({"code": 137, "reason": "wall_limit"}, RunStatus.TIMED_OUT),
    ],
)
def test_one_that_ended_without_a_score_gives_its_place_back(laboratory: Laboratory, ends: dict[str, Any], status: RunStatus) -> None:
    assert finish(launch(laboratory), **ends).status == status
    assert used(laboratory) == (0, 0)


def test_a_score_that_is_no_number_counts_and_one_on_another_benchmark_does_not(laboratory: Laboratory) -> None:
    finish(launch(laboratory), float("nan"))
    assert used(laboratory) == (1, 0)
    make_benchmark(laboratory.owner, "speed")
    finish(launch(laboratory), 1.0, benchmark="speed")
    assert used(laboratory) == (1, 0)


def test_ones_own_cancel_counts_and_that_of_others_does_not(laboratory: Laboratory) -> None:
    operator = make_member(laboratory.workspace, Role.OPERATOR)
    cancel_any_run(actor=operator, run=launch(laboratory), reason="wrong table")
    assert used(laboratory) == (0, 0)
    cancel_run(actor=laboratory.owner, run=launch(laboratory))
    assert used(laboratory) == (1, 0)
    for actor, expected in ((operator, (1, 0)), (laboratory.owner, (2, 0))):
        run = launch(laboratory)
        attempt = start(run)
        (cancel_run if actor is laboratory.owner else cancel_any_run)(actor=actor, run=run, reason="wrong table")
        assert end(attempt, code=143, reason="cancelled").status == RunStatus.CANCELLED
        assert used(laboratory) == expected


def test_ones_own_cancel_by_the_hundred_counts_each_run_and_that_of_others_none(laboratory: Laboratory) -> None:
    allow(laboratory, 9)
    operator = make_member(laboratory.workspace, Role.OPERATOR)
    cancel_any_runs(actor=operator, runs=[launch(laboratory).pk for _ in range(2)], reason="wrong table")
    cancelled = [launch(laboratory).pk for _ in range(2)]
    cancel_own_runs(actor=laboratory.owner, runs=cancelled)
    end_cancelled_runs(actor=Actor.system(job_id="test"), runs=[run.pk for run in Run.objects.filter(status=RunStatus.CANCELLING)])
    assert set(Run.objects.values_list("status", flat=True)) == {RunStatus.CANCELLED}
    assert used(laboratory) == (2, 0)


def test_each_person_has_their_own_and_every_contract_version_counts(laboratory: Laboratory) -> None:
    rosa = make_member(laboratory.workspace, Role.RESEARCHER, "rosa")
    for _ in range(2):
        finish(launch(laboratory), 0.5)
    assert (standing(laboratory).left, standing(laboratory, rosa).left) == (0, 2)
    launch_run(actor=rosa, request=REQUEST)
    allow(laboratory, 3)
    assert (used(laboratory), used(laboratory, rosa)) == ((2, 0), (1, 1))
    launch(laboratory)
    with pytest.raises(Refusal, match="would make 4 of 3"):
        launch(laboratory)
    make_benchmark(laboratory.owner, "speed")
    launch(laboratory, benchmark="speed")
    assert used(laboratory) == (3, 1)


def test_a_token_counts_as_its_holder_and_a_service_account_as_itself(laboratory: Laboratory) -> None:
    assert laboratory.owner.user is not None
    token, _ = make_token(laboratory.workspace, laboratory.owner, "run:write")
    launch_run(actor=replace(laboratory.owner, token_id=token.pk, token_scopes=frozenset({"run:write"})), request=REQUEST)
    assert used(laboratory) == (1, 1)
    robot = make_user("robot", kind=User.Kind.SERVICE)
    add_member(actor=laboratory.owner, role=Role.RESEARCHER, user=robot)
    launch_run(actor=Actor.of(robot), request=REQUEST)
    assert (used(laboratory), used(laboratory, Actor.of(robot))) == ((1, 1), (1, 1))


def test_a_score_on_a_benchmark_that_counts_its_runs_wants_a_run_asked_for_on_it(laboratory: Laboratory) -> None:
    make_benchmark(laboratory.owner, "speed")
    finish(launch(laboratory, benchmark="speed"), 0.99)
    assert not Evaluation.objects.exists()
    assert used(laboratory) == (0, 0)


def test_a_retry_under_an_older_contract_counts_against_the_newest_too(laboratory: Laboratory) -> None:
    allow(laboratory, None)
    first = finish(launch(laboratory), 0.5)
    allow(laboratory, 1)
    for ask in (lambda: retry_run(actor=laboratory.owner, run=first), lambda: launch(laboratory)):
        with pytest.raises(Refusal, match="would make 2 of 1"):
            ask()


def test_who_tells_a_score_and_then_fails_has_been_measured(laboratory: Laboratory) -> None:
    attempt = start(launch(laboratory))
    line = {"benchmark": "accuracy", "metric": "accuracy", "value": 0.5}
    RunLine.objects.create(attempt=attempt, number=1, type="score", body=line)
    assert end(attempt, code=1).status == RunStatus.FAILED
    assert used(laboratory) == (1, 0)


def test_only_an_admin_lets_people_ask_for_more(laboratory: Laboratory) -> None:
    rosa = make_member(laboratory.workspace, Role.RESEARCHER, "rosa")
    benchmark = Benchmark.objects.get(slug="accuracy")
    loosened: tuple[dict[str, Any], ...] = ({}, {"runs_per_person": 3, "period": "day"}, {"runs_per_person": 1, "period": "week"})
    for looser in loosened:
        with pytest.raises(Refusal, match="only an admin loosens that"):
            publish_contract(actor=rosa, benchmark=benchmark, **{**TERMS, "terms": "anew"}, **looser)
    assert publish_contract(actor=rosa, benchmark=benchmark, **TERMS, runs_per_person=1, period="day").runs_per_person == 1
    assert allow(laboratory, 9).runs_per_person == 9


def test_a_retry_is_a_run_of_whoever_asks_for_it(laboratory: Laboratory) -> None:
    rosa = make_member(laboratory.workspace, Role.RESEARCHER, "rosa")
    first = finish(launch(laboratory), 0.5)
    retry_run(actor=rosa, run=first)
    assert (used(laboratory), used(laboratory, rosa)) == ((1, 0), (1, 1))
    retry_run(actor=laboratory.owner, run=first)
    with pytest.raises(Refusal, match="would make 3 of 2"):
        retry_run(actor=laboratory.owner, run=first)


# --- The period -----------------------------------------------------------------------------------------------------------------------------


def test_the_next_is_allowed_at_midnight_of_the_workspace(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, NIGHT)
    for _ in range(2):
        launch(laboratory)
    with pytest.raises(
        Refusal, match=r"The next is allowed from Saturday 00:00 Europe/Berlin, or earlier if one of the 2 under way"
    ) as refused:
        launch(laboratory)
    found = standing(laboratory, now=NIGHT)
    assert (found.left, found.next_allowed_at) == (0, datetime(2026, 11, 27, 23, 0, tzinfo=UTC))
    assert Certificate.objects.find(refused.value.certificate).verdict == Certificate.Verdict.REFUSED
    at(monkeypatch, NIGHT + timedelta(minutes=29, seconds=59))
    with pytest.raises(Refusal):
        launch(laboratory)
    at(monkeypatch, NIGHT + timedelta(minutes=30))
    run = launch(laboratory)
    assert run.created_at == NIGHT + timedelta(minutes=30), "it counts at the instant that was decided upon"
    assert standing(laboratory, now=run.created_at).left == 1


@pytest.mark.parametrize(
    ("period", "ends", "name"),
    [
        ("day", datetime(2026, 11, 27, 23, 0, tzinfo=UTC), "today"),
        ("week", datetime(2026, 11, 29, 23, 0, tzinfo=UTC), "this week"),
        ("month", datetime(2026, 11, 30, 23, 0, tzinfo=UTC), "this month"),
    ],
)
def test_periods_are_cut_by_the_calendar(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, period: str, ends: datetime, name: str
) -> None:
    allow(laboratory, 1, period)
    at(monkeypatch, NIGHT)
    launch(laboratory)
    at(monkeypatch, ends - timedelta(microseconds=1))
    with pytest.raises(Refusal, match=f"would make 2 of 1 that one person may ask for on accuracy {name}"):
        launch(laboratory)
    at(monkeypatch, ends)
    launch(laboratory)


def test_a_run_that_was_held_counts_when_it_was_asked_for_and_not_against_itself(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limit(actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=3 * HOUR, mode=Limit.Mode.APPROVAL)
    approver = make_member(laboratory.workspace, Role.APPROVER, "anna")
    allow(laboratory, 1)
    at(monkeypatch, NIGHT)
    run = launch(laboratory, gpu_ms=4 * HOUR)
    assert run.status == RunStatus.AWAITING_APPROVAL
    with pytest.raises(Refusal, match="would make 2 of 1"):
        launch(laboratory)
    at(monkeypatch, NIGHT + timedelta(hours=1))
    launch(laboratory)  # Saturday's
    held = Approval.objects.get()
    decide_approval(actor=approver, approval=held, approves=True, seen_hash=held.content_hash)
    assert Run.objects.get(pk=run.pk).status == RunStatus.QUEUED


# --- All at once ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_of_many_launches_at_once_exactly_as_many_pass_as_there_are_left() -> None:
    laboratory = make_laboratory(at_once=500, weekly_gpu_hours=100_000)
    with laboratory.opened():
        allow(laboratory, 5)
    outcomes: Counter[str] = Counter()
    gate = threading.Barrier(4)

    def ask() -> None:
        try:
            with laboratory.opened():
                gate.wait(timeout=60)
                for _ in range(10):
                    try:
                        launch(laboratory)
                        outcomes["admitted"] += 1
                    except Refusal as refusal:
                        outcomes["refused" if "of 5 that one person may ask for" in str(refusal) else str(refusal)] += 1
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {"admitted": 5, "refused": 35}
    with laboratory.opened():
        assert Run.objects.count() == 5
        for certificate in Certificate.objects.all():
            again = decide(facts_from(certificate.facts))
            assert again.as_json() == certificate.lines


def test_a_sweep_is_asked_for_with_all_its_members(laboratory: Laboratory) -> None:
    schema = {"type": "object", "properties": {"rate": {"type": "number"}}}
    make_agent_version(laboratory.owner, slug="sweeper", parameter_schema=schema, wall_seconds=60)
    request = replace(REQUEST, agent="sweeper")
    allow(laboratory, 4)
    finish(launch(laboratory), 0.5)
    space = {"kind": "grid", "axes": {"rate": [1, 2, 3, 4]}}
    with pytest.raises(Refusal, match=r"4 runs, and 3 of 4 .* are left\. At most 3 members fit.*The next is allowed from") as refused:
        create_sweep(actor=laboratory.owner, name="wide", space=space, request=request)
    assert refused.value.field == "space"
    assert not Sweep.objects.exists()
    create_sweep(actor=laboratory.owner, name="narrow", space={"kind": "grid", "axes": {"rate": [1, 2, 3]}}, request=request)


# --- Where it is said -----------------------------------------------------------------------------------------------------------------------


def test_the_api_says_what_is_left_and_from_when_the_next_is_allowed(laboratory: Laboratory) -> None:
    client, path = signed_in(laboratory.owner), "/api/v1/workspaces/lab/benchmarks/accuracy/runs-left"
    body = client.get(path).json()
    assert (body["allowed"], body["period"], body["used"], body["left"], body["next_allowed_at"]) == (2, "day", 0, 2, None)
    for _ in range(2):
        launch(laboratory)
    body = client.get(path).json()
    assert (body["used"], body["under_way"], body["left"], body["zone"]) == (2, 2, 0, "Europe/Berlin")
    assert body["next_allowed_at"] == body["ends_at"] is not None
    allow(laboratory, None)
    body = client.get(path).json()
    assert (body["allowed"], body["left"], body["next_allowed_at"]) == (None, None, None)
    assert client.get("/api/v1/workspaces/lab/benchmarks/nowhere/runs-left").status_code == 404


def test_the_launch_form_says_what_is_left(laboratory: Laboratory) -> None:
    client, path = signed_in(laboratory.owner), "/workspaces/lab/runs/launch/?benchmark=accuracy&agent=worker"
    finish(launch(laboratory), 0.5)
    page = " ".join(client.get(path).content.decode().split())
    assert "Your runs today" in page
    assert "1 of 2 left, until " in page
    launch(laboratory)
    page = client.get(path).content.decode()
    assert "would make 3 of 2 that one person may ask for" in page
