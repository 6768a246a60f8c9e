"""Launching: one decision over all limits, reserved in the same transaction, on record whether it says yes or no (M2, M3, M5, M11)."""

import threading
from collections import Counter
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from runs.admission import Answer, decide
from runs.admission_facts import facts_from
from runs.commands.approval import decide_approval
from runs.commands.attempt import FIRST_FENCE, NotYet, end_attempt, mark_running, start_attempt
from runs.commands.ending import finish_run
from runs.commands.harvest import Harvest
from runs.commands.launch import launch_run
from runs.commands.run import cancel, cancel_any_run, cancel_run, may_cancel
from runs.launch import LaunchRequest
from runs.lifecycle import RunStatus
from runs.models import Certificate, QueueItem, Run, RunInput
from runs.pools.base import Exit
from runs.queries.estimate import estimate
from runs.queries.queue import waiting_runs
from tests.factories import make_member
from tests.factories_pages import client_of
from tests.factories_registry import make_agent_version, make_dataset_version
from tests.factories_runs import HOUR, launch, make_laboratory
from workspaces.access import Actor, Role, rights_of
from workspaces.audit import Denied, Refusal
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.limit import set_limit
from workspaces.commands.member import remove_member
from workspaces.commands.pool import change_pool
from workspaces.models import (
    AgentVersion,
    Approval,
    ApprovalVote,
    AuditEvent,
    Benchmark,
    EventPayload,
    LedgerAccount,
    Limit,
    Membership,
    NotFound,
    Pool,
    Unit,
)
from workspaces.queries.overrun import overruns

pytestmark = pytest.mark.django_db


def balances() -> dict[str, int]:
    return {row.side: row.balance for row in LedgerAccount.objects.filter(unit="gpu_ms", window="week")}


def test_a_refused_launch_is_on_record_with_its_certificate() -> None:
    laboratory = make_laboratory(weekly_gpu_hours=10)
    with laboratory.opened():
        with pytest.raises(Refusal, match="24 GPU-hours more would make 24 of 10 this week") as refused:
            launch(laboratory, gpu_ms=24 * HOUR)
        certificate = Certificate.objects.find(refused.value.certificate)
        assert certificate.verdict == "refused"
        assert AuditEvent.objects.order_by("-sequence")[0].verb == "launch.refused"
        assert not Run.objects.exists()
        assert balances().get("reserved", 0) == 0


def test_every_certificate_decides_again_as_it_did() -> None:
    """Admitted, waiting for others, held, approved, refused: the facts that were kept give the verdict that was kept, word for word."""
    laboratory = make_laboratory(weekly_gpu_hours=10, at_once=0)
    with laboratory.opened():
        set_limit(actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=3 * HOUR, mode=Limit.Mode.APPROVAL)
        approver = make_member(laboratory.workspace, Role.APPROVER, "anna")
        launch(laboratory, gpu_ms=2 * HOUR)
        launch(laboratory, gpu_ms=4 * HOUR)
        held = Approval.objects.get()
        decide_approval(actor=approver, approval=held, approves=True, seen_hash=held.content_hash)
        with pytest.raises(Refusal):
            launch(laboratory, gpu_ms=7 * HOUR)
        kept = list(Certificate.objects.order_by("created_at"))
        assert [certificate.verdict for certificate in kept] == ["admitted", "approval", "admitted", "refused"]
        answers = {"admitted": Answer.PASS, "approval": Answer.APPROVAL, "refused": Answer.REFUSE}
        for certificate in kept:
            again = decide(facts_from(certificate.facts))
            assert (again.answer, again.as_json()) == (answers[certificate.verdict], certificate.lines)
        waits = [line for line in kept[0].lines if line["answer"] == Answer.WAIT]
        assert [line["name"] for line in waits] == ["Runs at once"]


def test_looking_and_being_refused_leave_no_trace_in_the_ledger() -> None:
    laboratory = make_laboratory(weekly_gpu_hours=1)
    with laboratory.opened():
        estimate(LaunchRequest(benchmark="accuracy", agent="worker"))
        with pytest.raises(Refusal):
            launch(laboratory, gpu_ms=24 * HOUR)
        assert not LedgerAccount.objects.exists()


@pytest.mark.parametrize(
    ("asked", "noun"),
    [
        ({"benchmark": "bench_nowhere"}, "benchmark"),
        ({"agent": "agent_nowhere"}, "agent"),
        ({"datasets": ("ds_nowhere",)}, "dataset"),
        ({"pool": "pool_nowhere"}, "pool"),
        ({"artifacts": ("art_" + "0" * 32,)}, "artifact"),
    ],
)
def test_names_that_are_not_here_are_not_found(asked: dict[str, object], noun: str) -> None:
    laboratory = make_laboratory()
    with laboratory.opened(), pytest.raises(NotFound, match=f"No such {noun}"):
        launch(laboratory, **asked)


def test_what_is_another_workspaces_is_not_found_either() -> None:
    other, laboratory = make_laboratory("other"), make_laboratory("mine")
    with other.opened():
        theirs = AgentVersion.objects.select_related("agent").get().agent.public_id + "x"
        key = AgentVersion.objects.get().agent_id.hex
    with laboratory.opened():
        for name in (theirs, key, f"agent_{key}"):
            with pytest.raises(NotFound):
                launch(laboratory, agent=name)


def test_a_budget_too_small_to_end_in_is_refused_with_the_least() -> None:
    laboratory = make_laboratory()
    with laboratory.opened(), pytest.raises(Refusal, match=r"Ask for at least that"):
        launch(laboratory, gpu_ms=1)


def newest_event() -> tuple[str, str]:
    """What the record says last: verb and who."""
    event = AuditEvent.objects.order_by("-sequence")[0]
    return event.verb, event.actor_label


def test_above_a_limit_that_asks_for_approval_it_waits_for_someone_else() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        set_limit(
            actor=laboratory.owner,
            unit=Unit.GPU_MS,
            window=Limit.Window.RUN,
            amount=2 * HOUR,
            mode=Limit.Mode.APPROVAL,
            reason="large runs",
        )
        approver, other = (make_member(laboratory.workspace, Role.APPROVER, name) for name in ("anna", "otto"))
        run = launch(laboratory, gpu_ms=3 * HOUR)
        approval = Approval.objects.get(subject_id=run.pk)
        assert run.status == RunStatus.AWAITING_APPROVAL
        assert balances().get("reserved", 0) == 0
        with pytest.raises(Refusal, match="You asked for this yourself"):
            decide_approval(actor=laboratory.owner, approval=approval, approves=True, seen_hash=approval.content_hash)
        assert newest_event() == ("access.denied", laboratory.owner.label)
        with pytest.raises(Refusal, match="changed since you looked"):
            decide_approval(actor=approver, approval=approval, approves=True, seen_hash="0" * 64)
        decide_approval(actor=approver, approval=approval, approves=True, seen_hash=approval.content_hash)
        run.refresh_from_db()
        assert run.status == RunStatus.QUEUED
        assert balances()["reserved"] == 3 * HOUR
        with pytest.raises(Refusal, match="The first decision stands"):
            decide_approval(actor=other, approval=approval, approves=False, comment="late", seen_hash=approval.content_hash)
        assert newest_event() == ("access.denied", other.label)
        remove_member(actor=laboratory.owner, member=Membership.objects.get(user=approver.user).public_id)
        door = f"/workspaces/lab/approvals/{approval.public_id}/decide/"
        assert client_of(approver).post(door, {"decision": "refuse", "comment": "no"}).status_code == 404
        assert newest_event() == ("access.denied", approver.label)
        assert ApprovalVote.objects.get().person == approver.user


def test_an_approval_is_void_once_what_was_asked_has_changed() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        set_limit(
            actor=laboratory.owner,
            unit=Unit.GPU_MS,
            window=Limit.Window.RUN,
            amount=2 * HOUR,
            mode=Limit.Mode.APPROVAL,
            reason="large runs",
        )
        approver = make_member(laboratory.workspace, Role.APPROVER, "anna")
        run = launch(laboratory, gpu_ms=3 * HOUR)
        approval = Approval.objects.get(subject_id=run.pk)
        from_commands_only(run, parameters={"changed": True})
        decide_approval(actor=approver, approval=approval, approves=True, seen_hash=approval.content_hash)
        approval.refresh_from_db()
        run.refresh_from_db()
        assert (approval.status, run.status, run.reason_code) == ("void", RunStatus.ABORTED, "approval_void")


def from_commands_only(run: Run, **changed: object) -> None:
    """Change a frozen run as no command of labsite does: what an attacker with the database's serving role could write."""
    Run.objects.filter(pk=run.pk).update(**changed)


def test_a_refused_approval_ends_the_run_and_wants_a_reason() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        set_limit(
            actor=laboratory.owner,
            unit=Unit.GPU_MS,
            window=Limit.Window.RUN,
            amount=2 * HOUR,
            mode=Limit.Mode.APPROVAL,
            reason="large runs",
        )
        approver = make_member(laboratory.workspace, Role.APPROVER, "anna")
        run = launch(laboratory, gpu_ms=3 * HOUR)
        approval = Approval.objects.get(subject_id=run.pk)
        with pytest.raises(Refusal, match="Say why you refuse"):
            decide_approval(actor=approver, approval=approval, approves=False, seen_hash=approval.content_hash)
        decide_approval(actor=approver, approval=approval, approves=False, comment="Too large.", seen_hash=approval.content_hash)
        run.refresh_from_db()
        assert (run.status, run.reason_code, run.reason) == (RunStatus.ABORTED, "approval_refused", "Too large.")


def test_cancel_of_waiting_work_gives_everything_back_at_once() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory, gpu_ms=3 * HOUR)
        cancel_run(actor=laboratory.owner, run=run, reason="not needed")
        run.refresh_from_db()
        assert (run.status, run.reason) == (RunStatus.CANCELLED, "not needed")
        assert not QueueItem.objects.exists()
        assert (balances()["reserved"], balances()["spent"], balances()["available"]) == (0, 0, 100 * HOUR)
        with pytest.raises(Refusal, match="has ended already"):
            cancel_run(actor=laboratory.owner, run=run)


def test_only_operators_cancel_what_others_launched() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory)
        researcher, operator = (make_member(laboratory.workspace, role, role) for role in (Role.RESEARCHER, Role.OPERATOR))
        with pytest.raises(Denied):
            cancel_run(actor=researcher, run=run)
        with pytest.raises(Denied):
            cancel_any_run(actor=researcher, run=run)
        with pytest.raises(Refusal, match=f"Say why; whoever asked for {run.name} will read it"):
            cancel_any_run(actor=operator, run=run, reason=" ")
        cancel_any_run(actor=operator, run=run, reason="Wrong data")


@pytest.mark.django_db(transaction=True)
def test_two_hundred_launches_at_once_never_overshoot() -> None:
    laboratory = make_laboratory(weekly_gpu_hours=10)
    outcomes: Counter[str] = Counter()

    def ask(count: int) -> None:
        try:
            for _ in range(count):
                with laboratory.opened():
                    try:
                        launch_run(actor=laboratory.owner, request=LaunchRequest(benchmark="accuracy", agent="worker", gpu_ms=1 * HOUR))
                        outcomes["admitted"] += 1
                    except Refusal:
                        outcomes["refused"] += 1
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(25,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {"admitted": 10, "refused": 190}
    with laboratory.opened():
        assert Run.objects.count() == QueueItem.objects.count() == 10
        assert (balances()["reserved"], balances()["available"]) == (10 * HOUR, 0)
        assert Certificate.objects.filter(verdict="refused").count() == 190


def test_a_holdout_wants_isolation_unless_an_owner_accepted_it_with_a_reason() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        holdout = make_dataset_version(laboratory.owner, "held-out", role="holdout", content=b"a,b\n5,6\n")
        benchmark = Benchmark.objects.get()
        terms: dict[str, Any] = {"benchmark": benchmark, "metric": "accuracy", "direction": "maximize", "holdout": holdout}
        publish_contract(actor=laboratory.owner, **terms)
        with pytest.raises(Refusal, match="gives no isolation; this benchmark has a holdout"):
            launch(laboratory)
        researcher = make_member(laboratory.workspace, Role.RESEARCHER, "rosa")
        with pytest.raises(Refusal, match="Only an owner accepts"):
            publish_contract(actor=researcher, accepts_no_isolation_reason="I am in a hurry.", **terms)
        publish_contract(actor=laboratory.owner, accepts_no_isolation_reason="A machine of our own.", **terms)
        assert launch(laboratory).status == RunStatus.QUEUED


def test_nothing_is_trained_on_a_holdout() -> None:
    laboratory = make_laboratory(isolation=Pool.Isolation.USER)
    with laboratory.opened():
        make_dataset_version(laboratory.owner, "held-out", role="holdout", content=b"a,b\n5,6\n")
        with pytest.raises(Refusal, match=r"An agent of kind train reads held-out@1\. Leave the holdout out"):
            launch(laboratory, datasets=("held-out",))
        make_agent_version(laboratory.owner, "player", kind="selfplay")
        with pytest.raises(Refusal, match=r"An agent of kind selfplay reads held-out@1\. .* score with an agent of kind evaluate"):
            launch(laboratory, agent="player", datasets=("held-out",))
        make_dataset_version(laboratory.owner, "renamed", role="train", content=b"a,b\n5,6\n")
        with pytest.raises(Refusal, match=r"reads renamed@1, whose table\.csv is table\.csv of the holdout held-out@1\."):
            launch(laboratory, datasets=("renamed",))
        make_agent_version(laboratory.owner, "judge", kind="evaluate")
        assert launch(laboratory, agent="judge", datasets=("held-out",)).status == RunStatus.QUEUED
        assert not RunInput.objects.exclude(run__kind="evaluate").exists(), "so it is never in the folder of another"


def test_an_approval_is_admitted_anew_and_leaves_its_own_certificate() -> None:
    laboratory = make_laboratory(weekly_gpu_hours=10)
    with laboratory.opened():
        set_limit(
            actor=laboratory.owner,
            unit=Unit.GPU_MS,
            window=Limit.Window.RUN,
            amount=2 * HOUR,
            mode=Limit.Mode.APPROVAL,
            reason="large runs",
        )
        approver = make_member(laboratory.workspace, Role.APPROVER, "anna")
        held, taken = launch(laboratory, gpu_ms=9 * HOUR), launch(laboratory, gpu_ms=2 * HOUR)
        approval = Approval.objects.get(subject_id=held.pk)
        with pytest.raises(Refusal, match="The limits no longer admit it") as refused:
            decide_approval(actor=approver, approval=approval, approves=True, seen_hash=approval.content_hash)
        assert Certificate.objects.find(refused.value.certificate).verdict == "refused"
        assert AuditEvent.objects.order_by("-sequence")[0].verb == "launch.refused"
        assert not ApprovalVote.objects.exists()
        cancel_run(actor=laboratory.owner, run=taken)
        decide_approval(actor=approver, approval=approval, approves=True, seen_hash=approval.content_hash)
        held.refresh_from_db()
        assert (held.status, held.certificate.verdict) == (RunStatus.QUEUED, "admitted")


def test_a_run_does_not_start_on_a_pool_that_has_lost_its_isolation() -> None:
    laboratory = make_laboratory(isolation=Pool.Isolation.USER)
    with laboratory.opened():
        run = launch(laboratory)
        change_pool(actor=laboratory.owner, pool=Pool.objects.get(), isolation=Pool.Isolation.NONE)
        with pytest.raises(Refusal, match="now gives no isolation"):
            start_attempt(actor=Actor.system(job_id="test"), run=run)
        change_pool(actor=laboratory.owner, pool=Pool.objects.get(), isolation=Pool.Isolation.USER)
        assert start_attempt(actor=Actor.system(job_id="test"), run=run).number == 1


def test_a_cancel_is_offered_to_whom_it_would_be_carried_out_for() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory)
        people: dict[str, Actor] = {
            str(role): make_member(laboratory.workspace, role, role) for role in (Role.VIEWER, Role.RESEARCHER, Role.OPERATOR)
        }
        everyone: dict[str, Actor] = {"own": laboratory.owner, **people}
        offered = {name: may_cancel(actor, rights_of(actor, laboratory.workspace.pk), run) for name, actor in everyone.items()}
        assert offered == {"own": True, Role.VIEWER: False, Role.RESEARCHER: False, Role.OPERATOR: True}
        for role in (Role.VIEWER, Role.RESEARCHER):
            with pytest.raises(Denied):
                cancel(actor=people[role], run=run)
        cancel(actor=people[Role.OPERATOR], run=run, reason="Wrong data")
        run.refresh_from_db()
        assert run.status == RunStatus.CANCELLED
        assert not may_cancel(laboratory.owner, rights_of(laboratory.owner, laboratory.workspace.pk), run)


@pytest.mark.parametrize(("mode", "starts"), [(Limit.Mode.STOP, False), (Limit.Mode.WARN, True)])
def test_runs_at_once_mean_the_same_to_admission_to_dispatch_and_to_the_queue(mode: str, starts: bool) -> None:
    laboratory = make_laboratory(at_once=48)
    with laboratory.opened():
        order: dict[str, Any] = {"actor": laboratory.owner, "unit": Unit.RUNS, "window": Limit.Window.NOW, "reason": "as agreed"}
        set_limit(amount=1, mode=mode, **order)
        start_attempt(actor=Actor.system(job_id="test"), run=launch(laboratory))
        second = launch(laboratory)
        line = next(line for line in second.certificate.lines if (line["unit"], line["mode"]) == ("runs", mode) and line["allowed"] == 1)
        assert line["answer"] == (Answer.WARN if starts else Answer.WAIT)
        (waiting,) = waiting_runs().items
        assert (waiting.reason == "1 of 1 runs run at once.") is not starts
        if starts:
            assert start_attempt(actor=Actor.system(job_id="test"), run=second).number == 1
        else:
            with pytest.raises(NotYet, match="1 of 1 runs run at once"):
                start_attempt(actor=Actor.system(job_id="test"), run=second)


def test_a_run_that_uses_more_than_was_reserved_raises_an_alarm() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        system = Actor.system(job_id="test")
        run = launch(laboratory, gpu_ms=HOUR)
        attempt = mark_running(actor=system, attempt=start_attempt(actor=system, run=run), fence=FIRST_FENCE)
        now = timezone.now().timestamp()
        late = Exit(code=0, signal=None, started_at=now - 7200, ended_at=now, reason="exit", peak_memory_bytes=None, cpu_seconds=None)
        end_attempt(actor=system, attempt=attempt, fence=FIRST_FENCE, ended=late)
        assert overruns(now=timezone.now()) == []
        finish_run(actor=system, attempt=attempt, harvest=Harvest())
        event = AuditEvent.objects.order_by("-sequence")[0]
        assert (event.verb, event.subject_id) == ("run.overran", run.pk)
        assert EventPayload.objects.get(event=event).body["details"]["overrun"] == {"gpu_ms": HOUR}
        (alarm,) = overruns(now=timezone.now())
        assert (alarm.run_id, alarm.amount) == (run.pk, HOUR)
