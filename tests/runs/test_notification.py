"""Whoever asked is told that a run or a sweep has ended: once, with its score or its reason."""

import time
from typing import Any

import pytest

from runs.commands.approval import decide_approval
from runs.commands.launch import retry_run
from runs.commands.run import cancel_run
from runs.commands.sweep import create_sweep, stop_sweep
from runs.jobs.advance import advance_sweep
from runs.launch import LaunchRequest
from runs.lifecycle import RunStatus
from runs.models import Run, Sweep
from tests.factories import make_member
from tests.factories_people import make_token
from tests.factories_registry import make_agent_version
from tests.factories_runs import HOUR, Laboratory, dispatch, drive, launch, make_laboratory, watch
from workspaces.access import Actor, Role
from workspaces.commands.limit import set_limit
from workspaces.commands.member import create_service_account
from workspaces.models import Approval, Limit, Notification, Unit

pytestmark = pytest.mark.django_db(transaction=True)
Cause = Notification.Cause
SCORING = b"""import json
with open("../events.jsonl", "a") as lines:
    lines.write(json.dumps({"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.9134, "stderr": 0.0123}) + "\\n")
"""


def told(actor: Actor) -> list[tuple[str, str, str, str]]:
    rows = Notification.objects.filter(person=actor.user).order_by("created_at", "pk")
    return list(rows.values_list("cause", "subject_label", "outcome", "words"))


def test_a_run_that_failed_tells_why() -> None:
    laboratory = make_laboratory(code=b"raise SystemExit(3)\n")
    with laboratory.opened():
        run = launch(laboratory, name="first")
    drive(laboratory, run)
    with laboratory.opened():
        assert told(laboratory.owner) == [(Cause.RUN_ENDED, "first", "failed", "The program ended with exit code 3.")]
        again = retry_run(actor=laboratory.owner, run=Run.objects.get()).run
    drive(laboratory, again)
    with laboratory.opened():  # a retry is a run of its own
        assert set(Notification.objects.values_list("subject_id", flat=True)) == {run.pk, again.pk}


def test_a_run_that_was_scored_tells_its_score() -> None:
    laboratory = make_laboratory(code=SCORING)
    with laboratory.opened():
        run = launch(laboratory, name="scored")
    drive(laboratory, run)
    with laboratory.opened():
        assert told(laboratory.owner) == [(Cause.RUN_ENDED, "scored", "succeeded", "accuracy 0.913 ± 0.012")]


def test_a_run_of_ones_token_tells_its_person_and_one_of_a_service_nobody() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        service = create_service_account(actor=laboratory.owner, username="robot", display_name="Robot", role=Role.RESEARCHER).user
    assert service is not None
    token, _ = make_token(laboratory.workspace, laboratory.owner, "run:write")
    by_token = Actor(
        kind=laboratory.owner.kind, user=laboratory.owner.user, label="owner", token_id=token.pk, token_scopes=frozenset({"run:write"}),
        token_workspace_id=laboratory.workspace.pk,
    )  # fmt: skip
    with laboratory.opened():
        for actor in (by_token, Actor.of(service)):
            run = launch(Laboratory(laboratory.workspace, actor))
            cancel_run(actor=actor, run=run, reason="not needed")
        assert list(Notification.objects.values_list("person__username", "outcome", "words")) == [("lab-owner", "cancelled", "not needed")]


def test_a_launch_that_was_held_is_told_of_once_by_its_request() -> None:
    laboratory = make_laboratory()
    approver = make_member(laboratory.workspace, Role.APPROVER)
    with laboratory.opened():
        set_limit(
            actor=laboratory.owner,
            unit=Unit.GPU_MS,
            window=Limit.Window.RUN,
            amount=HOUR // 100,
            mode=Limit.Mode.APPROVAL,
            reason="careful",
        )
        first, second, third = (launch(laboratory, name=name, gpu_ms=HOUR) for name in ("first", "second", "third"))
        assert first.status == RunStatus.AWAITING_APPROVAL
        asked = Approval.objects.get(subject_id=first.pk)
        assert told(approver)[0] == (Cause.APPROVAL_ASKED, "Launch first", "pending", "")
        decide_approval(actor=approver, approval=asked, approves=False, comment="too much", seen_hash=asked.content_hash)
        cancel_run(actor=laboratory.owner, run=second, reason="not needed")
        asked = Approval.objects.get(subject_id=third.pk)
        decide_approval(actor=approver, approval=asked, approves=True, seen_hash=asked.content_hash)
        cancel_run(actor=laboratory.owner, run=Run.objects.get(pk=third.pk), reason="after all")
        assert told(laboratory.owner) == [
            (Cause.APPROVAL_DECIDED, "Launch first", "refused", "too much"),
            (Cause.APPROVAL_DECIDED, "Launch second", "void", "not needed"),
            (Cause.APPROVAL_DECIDED, "Launch third", "approved", ""),
            (Cause.RUN_ENDED, "third", "cancelled", "after all"),
        ]


SCHEMA = {"type": "object", "properties": {"rate": {"type": "number"}}}


def sweep_of(laboratory: Laboratory, rates: list[float], **asked: Any) -> Sweep:
    make_agent_version(laboratory.owner, slug="sweeper", parameter_schema=SCHEMA, wall_seconds=60)
    request = LaunchRequest(benchmark="accuracy", agent="sweeper", datasets=("table",), gpu_ms=HOUR // 2)
    return create_sweep(actor=laboratory.owner, name="rates", space={"kind": "grid", "axes": {"rate": rates}}, request=request, **asked)


def advance(laboratory: Laboratory) -> None:
    advance_sweep(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)


def test_a_sweep_tells_once_for_all_its_members() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        sweep = sweep_of(laboratory, [0.1, 0.2])
    deadline = time.monotonic() + 60
    while True:
        advance(laboratory)
        dispatch(laboratory)
        watch(laboratory)
        with laboratory.opened():
            if Sweep.objects.get().status != Sweep.Status.RUNNING:
                break
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with laboratory.opened():
        assert told(laboratory.owner) == [(Cause.SWEEP_ENDED, "rates", "ended", "2 of 2 members succeeded")]
        member = Run.objects.filter(sweep=sweep).earliest("number")
        again = retry_run(actor=laboratory.owner, run=member).run
        cancel_run(actor=laboratory.owner, run=again)
        assert [cause for cause, *_ in told(laboratory.owner)] == [Cause.SWEEP_ENDED, Cause.RUN_ENDED]


def test_a_sweep_that_was_stopped_tells_how_far_it_came() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        sweep_of(laboratory, [0.1, 0.2, 0.3])
    advance(laboratory)
    with laboratory.opened():
        stop_sweep(actor=laboratory.owner, sweep=Sweep.objects.get(), reason="enough seen")
        assert told(laboratory.owner) == [
            (Cause.SWEEP_ENDED, "rates", "stopped", "0 of 3 members succeeded, 3 under way. enough seen"),
        ]
