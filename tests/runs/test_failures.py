"""Runs that fail for the same reason stand in one group, with what they said; people take note, and it comes back."""

from typing import Any

import pytest

from runs.commands.cancel_many import cancel_any_runs
from runs.commands.failure import acknowledge_failure
from runs.commands.queue import hold_queue, set_priority
from runs.commands.run import cancel
from runs.lifecycle import RunStatus
from runs.models import Failure, FailureGroup, Run
from runs.queries.failure import failure_groups, repeated_failures
from runs.queries.override import overrides
from tests.factories_pages import client_of
from tests.factories_registry import make_agent_version
from tests.factories_resources import join
from tests.factories_runs import Laboratory, dispatch, drive, launch, make_laboratory
from workspaces.access import Actor, Role
from workspaces.audit import Denied, Refusal
from workspaces.models import AuditEvent, EventSubject
from workspaces.queries.event import Filters

pytestmark = pytest.mark.django_db(transaction=True)

FAILS = b"""
import json, os, sys
job = json.load(open("../job.json"))
how = job["params"].get("how", "value")
print("step", os.getpid(), "of", job["run"], file=sys.stderr)
if how == "value":
    raise ValueError(f"loss is nan at step {os.getpid()} in {os.getcwd()}")
if how == "html":
    print("error: <script>alert(1)</script>", file=sys.stderr)
    sys.exit(3)
"""


@pytest.fixture
def lab() -> Laboratory:
    return make_laboratory(code=FAILS)


def run_all(lab: Laboratory, *asked: dict[str, Any]) -> list[Run]:
    with lab.opened():
        runs = [launch(lab, parameters=parameters) for parameters in asked]
    dispatch(lab)
    return [drive(lab, run) for run in runs]


def test_runs_that_fail_alike_are_one_group_with_what_they_said(lab: Laboratory) -> None:
    runs = run_all(lab, {"how": "value"}, {"how": "value"}, {"how": "html"}, {"how": "none"}, {"how": "value"})
    with lab.opened():
        assert [run.status for run in runs] == [RunStatus.FAILED] * 3 + [RunStatus.SUCCEEDED, RunStatus.FAILED]
        groups = {group.title: group for group in FailureGroup.objects.all()}
        alike = groups["ValueError: loss is nan at step … in … (exit code 1)"]
        assert {group.count for group in groups.values()} == {3, 1}
        members = list(Failure.objects.filter(group=alike))
        assert {member.run_id for member in members} == {runs[0].pk, runs[1].pk, runs[4].pk}
        assert all(line.startswith("ValueError: loss is nan at step ") for member in members for line in member.lines)
        assert alike.first_at < alike.last_at
        ended = AuditEvent.objects.filter(verb="run.ended", subject_id=runs[0].pk)[0]
        named = EventSubject.objects.get(event=ended, type="failuregroup")
        assert named.label == "worker: exit code", "the event of the end names the group, for ever and in no words of a run"
        assert repeated_failures(runs[0].created_at) == [alike]
        browser = client_of(lab.owner)
        home = browser.get("/workspaces/lab/").content.decode()
        assert "3 runs of worker failed for the same reason." in home
        assert alike.title in browser.get("/workspaces/lab/failures/").content.decode()
        (hostile,) = (group for title, group in groups.items() if "<script>" in title)
        page = browser.get(f"/workspaces/lab/failures/{hostile.public_id}/").content.decode()
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert alike.public_id in browser.get(f"/workspaces/lab/runs/{runs[0].public_id}/").content.decode(), "the run leads to its group"


def test_somebody_takes_note_and_it_is_open_again_when_it_comes_back(lab: Laboratory) -> None:
    run_all(lab, {"how": "value"})
    with lab.opened():
        group = FailureGroup.objects.get()
        viewer = join(lab.owner, "viewer", Role.VIEWER)
        with pytest.raises(Denied):
            acknowledge_failure(actor=viewer, group=group, reason="x")
        with pytest.raises(Refusal, match="Say what comes of it"):
            acknowledge_failure(actor=lab.owner, group=group, reason=" ")
        browser = client_of(lab.owner)
        url = f"/workspaces/lab/failures/{group.public_id}/acknowledge/"
        assert browser.post(url, {"reason": ""}).status_code == 422
        assert browser.post(url, {"reason": "The learning rate is halved"}).status_code == 303
        assert browser.post(url, {"reason": "Again"}).status_code == 409
        assert list(failure_groups(is_open=True)) == []
        shown = browser.get(f"/workspaces/lab/failures/{group.public_id}/").content.decode()
        assert "The learning rate is halved" in shown
    run_all(lab, {"how": "value"})
    with lab.opened():
        (again,) = failure_groups(is_open=True)
        assert (again.pk, again.count) == (group.pk, 2)


def test_the_api_tells_the_same(lab: Laboratory) -> None:
    (run,) = run_all(lab, {"how": "value"})
    with lab.opened():
        browser = client_of(lab.owner)
        (row,) = browser.get("/api/v1/workspaces/lab/failures").json()["items"]
        assert (row["runs"], row["is_open"], row["agent_id"]) == (1, True, "agent_worker")
        one = browser.get(f"/api/v1/workspaces/lab/failures/{row['id']}").json()
        assert [entry["run_id"] for entry in one["items"]] == [run.public_id]
        assert one["items"][0]["lines"][0].startswith("ValueError")


def test_another_agent_has_groups_of_its_own(lab: Laboratory) -> None:
    run_all(lab, {"how": "html"})
    with lab.opened():
        make_agent_version(lab.owner, "other", code=FAILS, wall_seconds=60)
        run = launch(lab, agent="other", parameters={"how": "html"})
    dispatch(lab)
    drive(lab, run)
    with lab.opened():
        assert FailureGroup.objects.count() == 2
        assert len(set(FailureGroup.objects.values_list("fingerprint", flat=True))) == 1


def test_overrides_are_told_from_the_record(lab: Laboratory) -> None:
    with lab.opened():
        operator = join(lab.owner, "operator", Role.OPERATOR)
        hold_queue(actor=operator, reason="Cooling")
        run, own = launch(lab), launch(Laboratory(lab.workspace, operator))
        set_priority(actor=operator, run=run, priority=3, reason="A deadline")
        cancel(actor=operator, run=run, reason="Not now")
        cancel(actor=operator, run=own)
        told = overrides(Filters(actor="Operator")).items
        assert [entry.sentence for entry in told] == [
            f"Operator cancelled {run.name}",
            f"Operator changed the priority of {run.name}",
            "Operator held the queue",
        ]
        assert [entry.reason for entry in overrides(Filters(), kind="priority").items] == ["A deadline"]
        body = client_of(lab.owner).get("/workspaces/lab/overrides/").content.decode()
        assert "Cooling" in body
        assert "priority 0 → 3" in body, "how much, and not only that"
        assert "amount 100 GPU-hours" in body
        own, foreign = launch(Laboratory(lab.workspace, operator)), launch(lab)  # the event is about the first, which is no override
        cancel_any_runs(actor=operator, runs=[own.pk, foreign.pk], reason="By the way")
        cancel_any_runs(actor=operator, runs=[launch(Laboratory(lab.workspace, operator)).pk], reason="Mine")
        assert [entry.reason for entry in overrides(Filters(), kind="cancelled").items] == ["By the way", "Not now"]
        researcher: Actor = join(lab.owner, "researcher")
        assert client_of(researcher).get("/workspaces/lab/overrides/").status_code == 403
