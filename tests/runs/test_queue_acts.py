"""What operators do to the queue: hold it, change how soon a run goes, move it to another pool, cancel by the hundred."""

import re
from typing import Any

import pytest

from runs.commands.approval import decide_approval
from runs.commands.cancel_many import cancel_any_runs, cancel_own_runs
from runs.commands.placement import move_run
from runs.commands.queue import hold_queue, release_queue, set_priority, set_priority_limit
from runs.commands.run import cancel
from runs.jobs.cancel import end_cancelled
from runs.lifecycle import RunStatus
from runs.models import Attempt, Certificate, QueueItem, Run
from runs.queries.queue import waiting_runs
from runs.queries.replay import unlike_their_facts
from tests.factories_pages import client_of
from tests.factories_resources import join
from tests.factories_runs import Laboratory, dispatch, launch, make_laboratory, watch
from tests.runs.attempts import WAITS, until
from workspaces.access import Actor, Role
from workspaces.audit import Denied, Refusal
from workspaces.commands.limit import set_limit
from workspaces.commands.member import remove_member
from workspaces.commands.pool import bind_pool, open_pool, unbind_pool
from workspaces.ids import uuid7
from workspaces.models import Approval, AuditEvent, EventSubject, LedgerAccount, Limit, Membership, Notification, Pool, Unit
from workspaces.units import MS_PER_HOUR
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lab() -> Laboratory:
    return make_laboratory(code=WAITS, slots=1)


def people(lab: Laboratory) -> tuple[Actor, Actor]:
    return join(lab.owner, "operator", Role.OPERATOR), join(lab.owner, "approver", Role.APPROVER)


def newest(verb: Verb) -> AuditEvent:
    return AuditEvent.objects.filter(verb=verb).order_by("-sequence")[0]


def reserved() -> list[int]:
    """What is promised to runs, of each unit and window."""
    return list(LedgerAccount.objects.filter(side=LedgerAccount.Side.RESERVED).values_list("balance", flat=True))


def carry_out(lab: Laboratory) -> None:
    end_cancelled(workspace_id=lab.workspace.pk.hex, subject_id=lab.workspace.pk.hex)


def test_a_held_queue_starts_nothing_and_says_who_and_why(lab: Laboratory) -> None:
    with lab.opened():
        operator, _ = people(lab)
        with pytest.raises(Refusal, match="Say why"):
            hold_queue(actor=operator, reason=" ")
        hold_queue(actor=operator, reason="The cooling is out")
        with pytest.raises(Refusal, match="Operator holds the queue already"):
            hold_queue(actor=lab.owner, reason="Me too")
        run = launch(lab)
    dispatch(lab)
    with lab.opened():
        (waiting,) = waiting_runs().items
        assert waiting.reason == "Operator holds the queue. Why: The cooling is out."
        assert Run.objects.get(pk=run.pk).status == RunStatus.QUEUED
        browser = client_of(lab.owner)
        for page in ("", "queue/", f"runs/{run.public_id}/"):
            assert "The cooling is out" in browser.get(f"/workspaces/lab/{page}").content.decode(), page
        release_queue(actor=operator, reason="Cool again")
        with pytest.raises(Refusal, match="Nobody holds"):
            release_queue(actor=operator, reason="Again")
        cancel(actor=lab.owner, run=run)


def test_a_researcher_neither_holds_nor_reorders(lab: Laboratory) -> None:
    with lab.opened():
        researcher = join(lab.owner, "researcher")
        run = launch(lab)
        other = bind_pool(actor=lab.owner, engine="local", slug="other", slots=1, isolation=Pool.Isolation.NONE)
        for act in (
            lambda: hold_queue(actor=researcher, reason="x"),
            lambda: set_priority(actor=researcher, run=run, priority=1, reason="x"),
            lambda: move_run(actor=researcher, run=run, pool=other, reason="x"),
            lambda: cancel_own_runs(actor=researcher, runs=[run.pk]),
            lambda: cancel_any_runs(actor=researcher, runs=[run.pk], reason="x"),
            lambda: set_priority_limit(actor=researcher, limit=1, reason="x"),
        ):
            with pytest.raises(Denied):
                act()


def test_a_priority_up_to_the_limit_is_set_at_once(lab: Laboratory) -> None:
    with lab.opened():
        operator, _ = people(lab)
        first, second = launch(lab), launch(lab)
        assert set_priority(actor=operator, run=second, priority=50, reason="A deadline") is None
        assert [entry.run.pk for entry in waiting_runs().items] == [second.pk, first.pk]
        event = newest(Verb.RUN_PRIORITY_SET)
        assert (event.subject_label, event.actor_id) == (second.name, operator.user and operator.user.pk)


def test_a_priority_above_the_limit_waits_for_another_person(lab: Laboratory) -> None:
    with lab.opened():
        operator, approver = people(lab)
        first, second = launch(lab), launch(lab)
        asked = set_priority(actor=operator, run=second, priority=51, reason="A deadline")
        assert asked is not None
        assert [entry.run.pk for entry in waiting_runs().items] == [first.pk, second.pk], "it keeps its place until then"
        with pytest.raises((Refusal, Denied)):
            decide_approval(actor=operator, approval=asked, approves=True, seen_hash=asked.content_hash)
        decided = decide_approval(actor=approver, approval=asked, approves=True, seen_hash=asked.content_hash)
        assert decided.status == Approval.Status.APPROVED
        assert [entry.run.pk for entry in waiting_runs().items] == [second.pk, first.pk]
        assert set_priority(actor=operator, run=second, priority=40, reason="Enough") is None, "lowering needs nobody"
        again = set_priority(actor=operator, run=second, priority=60, reason="No, it does")
        assert again is not None, "raising it anew needs an approver anew"


def test_a_priority_that_was_asked_for_by_somebody_who_has_left_is_not_given(lab: Laboratory) -> None:
    with lab.opened():
        operator, approver = people(lab)
        asked = set_priority(actor=operator, run=launch(lab), priority=51, reason="A deadline")
        assert asked is not None
        assert operator.user is not None
        remove_member(actor=lab.owner, member=Membership.objects.get(user=operator.user).public_id)
        with pytest.raises(Refusal, match="may no longer move runs in the queue here"):
            decide_approval(actor=approver, approval=asked, approves=True, seen_hash=asked.content_hash)


def test_an_approval_of_a_priority_is_void_once_the_run_goes(lab: Laboratory) -> None:
    with lab.opened():
        operator, approver = people(lab)
        gone, changed = launch(lab), launch(lab)
        first = set_priority(actor=operator, run=gone, priority=90, reason="x")
        second = set_priority(actor=operator, run=changed, priority=90, reason="x")
        assert first is not None
        assert second is not None
        cancel(actor=lab.owner, run=gone)
        assert Approval.objects.get(pk=first.pk).status == Approval.Status.VOID
        set_priority_limit(actor=lab.owner, limit=60, reason="More room")
        decided = decide_approval(actor=approver, approval=second, approves=True, seen_hash=second.content_hash)
        assert decided.status == Approval.Status.VOID, "the limit that was spoken of is another one"
        assert Run.objects.get(pk=changed.pk).priority == 0


def test_a_launch_above_the_limit_is_held_with_its_arithmetic(lab: Laboratory) -> None:
    with lab.opened():
        _, approver = people(lab)
        run = launch(lab, priority=51)
        assert run.status == RunStatus.AWAITING_APPROVAL
        (line,) = [line for line in run.certificate.lines if line["name"] == "Priority"]
        assert line["words"] == "Priority 51 is above 50, up to which a run goes without an approver."
        asked = Approval.objects.get(subject_id=run.pk)
        decide_approval(actor=approver, approval=asked, approves=True, seen_hash=asked.content_hash)
        run.refresh_from_db()
        assert run.status == RunStatus.QUEUED
        assert list(unlike_their_facts()) == [], "the certificates' facts give the same again"
        assert launch(lab, priority=50).status == RunStatus.QUEUED


def test_a_moved_run_is_admitted_anew_and_reserves_what_the_new_pool_counts(lab: Laboratory) -> None:
    with lab.opened():
        operator, _ = people(lab)
        dear = bind_pool(
            actor=lab.owner, engine="local", slug="dear", slots=2, isolation=Pool.Isolation.NONE, milli_gpu_per_slot=2000
        )  # fmt: skip
        run, behind = launch(lab), launch(lab)
        before = Run.objects.get(pk=run.pk)
        with pytest.raises(Refusal, match="waits for local already"):
            move_run(actor=operator, run=run, pool=before.pool, reason="x")
        moved = move_run(actor=operator, run=run, pool=dear, reason="The other is busy")
        assert (moved.pool_id, moved.wall_seconds) == (dear.pk, before.wall_seconds)
        assert moved.reserved_gpu_ms == 2 * before.reserved_gpu_ms
        assert reserved() == [moved.reserved_gpu_ms + behind.reserved_gpu_ms]
        assert moved.certificate_id != before.certificate_id
        assert moved.frozen["pool"]["slug"] == "dear"
        assert QueueItem.objects.get(run=run).pool_id == dear.pk
        assert newest(Verb.RUN_MOVED).subject_label == run.name
        cancel(actor=lab.owner, run=moved)
        cancel(actor=lab.owner, run=behind)


def test_a_move_that_does_not_fit_leaves_the_run_where_it_is_and_a_certificate(lab: Laboratory) -> None:
    with lab.opened():
        operator, _ = people(lab)
        dear = bind_pool(
            actor=lab.owner, engine="local", slug="dear", slots=2, isolation=Pool.Isolation.NONE, milli_gpu_per_slot=9000
        )  # fmt: skip
        run = launch(lab)
        limit: dict[str, Any] = {"unit": Unit.GPU_MS, "window": Limit.Window.WEEK, "mode": Limit.Mode.STOP}
        set_limit(actor=lab.owner, amount=MS_PER_HOUR // 10, reason="less", **limit)
        certificates = Certificate.objects.count()
        with pytest.raises(Refusal, match="would not be admitted on dear") as refused:
            move_run(actor=operator, run=run, pool=dear, reason="x")
        assert refused.value.certificate
        assert Certificate.objects.count() == certificates + 1
        after = Run.objects.get(pk=run.pk)
        assert (after.pool_id, after.reserved_gpu_ms) == (run.pool_id, run.reserved_gpu_ms)
        assert newest(Verb.RUN_MOVE_REFUSED).subject_label == run.name
        cancel(actor=lab.owner, run=after)
        assert set(reserved()) <= {0}


def test_what_an_approver_agreed_to_holds_on_another_pool_that_counts_no_more(lab: Laboratory) -> None:
    with lab.opened():
        operator, approver = people(lab)
        alike, dear = (
            bind_pool(actor=lab.owner, engine="local", slug=slug, slots=2, isolation=Pool.Isolation.NONE, milli_gpu_per_slot=milli)
            for slug, milli in (("alike", 1000), ("dear", 2000))
        )
        limit: dict[str, Any] = {"unit": Unit.GPU_MS, "window": Limit.Window.WEEK, "mode": Limit.Mode.APPROVAL}
        set_limit(actor=lab.owner, amount=1, reason="ask for all", **limit)
        run = launch(lab)
        asked = Approval.objects.get(subject_id=run.pk)
        decide_approval(actor=approver, approval=asked, approves=True, seen_hash=asked.content_hash)
        run.refresh_from_db()
        with pytest.raises(Refusal, match=r"let an approver decide.*To ask an approver, cancel it and launch it there\."):
            move_run(actor=operator, run=run, pool=dear, reason="x")
        moved = move_run(actor=operator, run=run, pool=alike, reason="The other is busy")
        assert (moved.pool_id, moved.reserved_gpu_ms) == (alike.pk, run.reserved_gpu_ms)
        assert list(unlike_their_facts()) == [], "the certificates' facts give the same again"
        cancel(actor=lab.owner, run=moved)


def test_many_are_cancelled_by_one_command_that_names_each(lab: Laboratory) -> None:
    with lab.opened():
        operator, _ = people(lab)
        runs = [launch(lab) for _ in range(5)]
    dispatch(lab)
    with lab.opened():
        at_work = Run.objects.get(status__in=[RunStatus.STARTING, RunStatus.RUNNING])
        over = runs[-1]
        cancel(actor=lab.owner, run=over)
        with pytest.raises(Refusal, match="Say why"):
            cancel_any_runs(actor=operator, runs=[run.pk for run in runs], reason="")
        done = cancel_any_runs(actor=operator, runs=[run.pk for run in runs], reason="Wrong data")
        assert (done.waiting, done.working, done.left) == (3, 1, 1)
        assert done.words == "3 runs that had not started end now; 1 run is being stopped; 1 had ended or was ending already."
        event = newest(Verb.RUN_MANY_CANCEL_ASKED)
        named = set(EventSubject.objects.filter(event=event, type="run").values_list("object_id", flat=True))
        assert named == {run.pk for run in runs[:-1]}
        assert not QueueItem.objects.exists(), "nothing of them starts any more"
        assert set(Run.objects.exclude(pk=over.pk).values_list("status", flat=True)) == {RunStatus.CANCELLING}
        assert lab.owner.user is not None
        told = Notification.objects.filter(person=lab.owner.user, subject_label__contains="3 other runs")
        assert told.count() == 1, "their owner is told once"
    carry_out(lab)

    def is_over() -> bool:
        watch(lab)
        with lab.opened():
            return Run.objects.get(pk=at_work.pk).is_terminal

    until(is_over, "the end of the one at work")
    with lab.opened():
        assert set(Run.objects.values_list("status", flat=True)) == {RunStatus.CANCELLED}
        assert set(Run.objects.exclude(pk=over.pk).values_list("reason", flat=True)) == {"Wrong data"}
        assert set(reserved()) == {0}
        assert not Attempt.objects.filter(ended_at=None).exists()
        with pytest.raises(Refusal, match="each has ended or is ending"):
            cancel_any_runs(actor=operator, runs=[run.pk for run in runs], reason="Again")


def test_a_command_has_a_bound_with_its_arithmetic(lab: Laboratory) -> None:
    with lab.opened(), pytest.raises(Refusal, match=re.escape("1,001 runs are named, and one command takes 1,000.")):
        cancel_own_runs(actor=lab.owner, runs=[uuid7() for _ in range(1_001)])


def test_the_page_cancels_exactly_what_it_showed(lab: Laboratory) -> None:
    with lab.opened():
        researcher = join(lab.owner, "researcher")
        foreign = launch(lab)
        own = launch(Laboratory(lab.workspace, researcher))
        browser = client_of(researcher)
        shown = browser.get(f"/workspaces/lab/runs/cancel/?run={own.public_id}&run={foreign.public_id}").content.decode()
        assert "Cancel 1 run?" in shown
        assert "of other people" in shown
        (keys,) = re.findall(r'name="runs" value="([0-9a-f ]*)"', shown)
        assert keys == own.pk.hex
        assert browser.get("/workspaces/lab/runs/cancel/?all=1&status=waiting").content.decode().count(own.name)
        later = launch(Laboratory(lab.workspace, researcher))
        assert browser.post("/workspaces/lab/runs/cancel/", {"runs": keys, "reason": ""}).status_code == 303
        assert Run.objects.get(pk=own.pk).status == RunStatus.CANCELLING
        assert Run.objects.get(pk=later.pk).status == RunStatus.QUEUED
        assert browser.post("/workspaces/lab/runs/cancel/", {"runs": foreign.pk.hex}).status_code == 403


def test_a_closed_pool_says_who_closed_it_and_why(lab: Laboratory) -> None:
    with lab.opened():
        operator, _ = people(lab)
        other = bind_pool(actor=lab.owner, engine="local", slug="other", slots=1, isolation=Pool.Isolation.NONE)
        launch(lab, pool="other")
        closed = unbind_pool(actor=operator, pool=other, reason="New disks")
        assert (closed.closed_by, closed.closed_reason) == (operator.user, "New disks")
        (waiting,) = waiting_runs().items
        assert waiting.reason == "other takes no new work: Operator closed it. Why: New disks."
        assert "New disks" in client_of(lab.owner).get("/workspaces/lab/pools/other/").content.decode()
        with pytest.raises(Refusal, match="Say why"):
            open_pool(actor=operator, pool=closed, reason="")
        opened = open_pool(actor=operator, pool=closed, reason="They are in")
        assert (opened.closed_at, opened.closed_by, opened.closed_reason) == (None, None, "")


def test_the_api_does_the_same(lab: Laboratory) -> None:
    with lab.opened():
        bind_pool(actor=lab.owner, engine="local", slug="other", slots=1, isolation=Pool.Isolation.NONE)
        first, second = launch(lab), launch(lab)
        browser = client_of(lab.owner)

        def post(path: str, **body: object) -> Any:
            answer = browser.post(f"/api/v1/workspaces/lab/{path}", body, content_type="application/json")
            assert answer.status_code == 200, answer.content
            return answer.json()

        assert post("queue/hold", reason="Cooling")["reason"] == "Cooling"
        assert browser.get("/api/v1/workspaces/lab/queue").json()["hold"]["by"] == lab.owner.label
        assert post("queue/release", reason="Cool") == {"is_held": False}
        assert post(f"queue/{second.public_id}/priority", priority=7, reason="x")["priority"] == 7
        asked = post(f"queue/{second.public_id}/priority", priority=70, reason="x")
        assert (asked["priority"], asked["approval"] is None) == (7, False)
        moved = post(f"queue/{second.public_id}/move", compute_pool_id="other", reason="x")
        assert moved["compute_pool_id"] == "pool_other"
        done = post("runs/cancel", run_ids=[first.public_id, second.public_id], reason="x")
        assert done == {"waiting": 2, "working": 0, "left": 0}
    carry_out(lab)
    with lab.opened():
        assert set(Run.objects.values_list("status", flat=True)) == {RunStatus.CANCELLED}
        assert not Approval.objects.filter(status=Approval.Status.PENDING).exists()
