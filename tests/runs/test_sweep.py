"""A sweep: asked for with the arithmetic of all members, launched member by member, stopped where one is refused or its asker may no longer."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from runs.commands.launch import launch_run, retry_run
from runs.commands.run import cancel_run
from runs.commands.sweep import create_sweep, end_sweep, member_request, stop_any_sweep, stop_sweep
from runs.jobs import advance
from runs.jobs.advance import advance_sweep
from runs.launch import LaunchRequest
from runs.lifecycle import RunStatus
from runs.models import Run, Sweep
from tests.factories import make_member
from tests.factories_registry import make_agent_version, stored
from tests.factories_runs import HOUR, Laboratory, dispatch, make_laboratory, watch
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.commands.agent import publish_agent_version
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.dataset import import_dataset_version
from workspaces.commands.limit import set_limit
from workspaces.commands.member import change_member
from workspaces.models import Agent, AuditEvent, Benchmark, Dataset, Limit, Membership, Unit

pytestmark = pytest.mark.django_db(transaction=True)

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"rate": {"type": "number", "minimum": 0}, "width": {"type": "integer", "maximum": 64}},
}
GRID = {"kind": "grid", "axes": {"rate": [0.1, 0.01], "width": [32, 64]}}
REQUEST = LaunchRequest(benchmark="accuracy", agent="sweeper", datasets=("table",), gpu_ms=HOUR // 2)


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory()
    with made.opened():
        make_agent_version(made.owner, slug="sweeper", parameter_schema=SCHEMA, wall_seconds=60)
    return made


def advance_all(laboratory: Laboratory) -> None:
    advance_sweep(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)


def ask(laboratory: Laboratory, actor: Actor | None = None, space: Any = GRID, **asked: Any) -> Sweep:
    return create_sweep(actor=actor or laboratory.owner, name="first", space=space, request=asked.pop("request", REQUEST), **asked)


def test_every_member_is_an_ordinary_run_and_the_sweep_ends_with_the_last(laboratory: Laboratory) -> None:
    with laboratory.opened():
        sweep = ask(laboratory, purpose="which step learns")
        assert AuditEvent.objects.latest("sequence").verb == "sweep.created"
    advance_all(laboratory)
    advance_all(laboratory)  # a bell that rings twice launches nothing twice
    with laboratory.opened():
        runs = list(Run.objects.filter(sweep=sweep).order_by("sweep_member"))
        assert [(run.parameters["rate"], run.parameters["width"]) for run in runs] == [(0.1, 32), (0.1, 64), (0.01, 32), (0.01, 64)]
        assert {(run.trigger, run.reserved_gpu_ms > 0, run.requested_by_id) for run in runs} == {("sweep", True, laboratory.owner.user.pk)}  # type: ignore[union-attr]  # a person
        assert runs[0].trigger_reason == "Member 1 of 4 of the sweep first: which step learns"
        assert Sweep.objects.get().status == Sweep.Status.RUNNING
    deadline = time.monotonic() + 60
    while True:
        dispatch(laboratory)
        watch(laboratory)
        advance_all(laboratory)
        with laboratory.opened():
            sweep = Sweep.objects.get()
        if sweep.status != Sweep.Status.RUNNING:
            break
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with laboratory.opened():
        assert {run.status for run in Run.objects.all()} == {RunStatus.SUCCEEDED}
        assert (sweep.status, sweep.ended_at is not None) == (Sweep.Status.ENDED, True)


def test_members_rest_on_what_the_first_rested_on(laboratory: Laboratory) -> None:
    with laboratory.opened():
        sweep = ask(laboratory)
        newer = [stored("main.py", b"print('newer')\n")]
        publish_agent_version(actor=laboratory.owner, agent=Agent.objects.get(slug="sweeper"), argv=["python", "main.py"], files=newer)
        other = [stored("table.csv", b"other,content\n5,6\n")]
        import_dataset_version(actor=laboratory.owner, dataset=Dataset.objects.get(), role="train", files=other)
    advance_all(laboratory)
    with laboratory.opened():
        runs = Run.objects.filter(sweep=sweep).select_related("agent_version")
        assert {run.agent_version.number for run in runs} == {1}
        assert {entry["label"] for run in runs for entry in run.frozen["inputs"]} == {"table@1"}


def test_only_a_few_members_wait_at_once(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advance, "AHEAD", 3)
    with laboratory.opened():
        sweep = ask(laboratory, space={"kind": "grid", "axes": {"width": [*range(10)]}})
    advance_all(laboratory)
    with laboratory.opened():
        waiting = list(Run.objects.filter(sweep=sweep).order_by("sweep_member"))
        assert [run.sweep_member for run in waiting] == [1, 2, 3]
        cancel_run(actor=laboratory.owner, run=waiting[1])
    advance_all(laboratory)
    with laboratory.opened():
        assert [run.sweep_member for run in Run.objects.filter(sweep=sweep).order_by("sweep_member")] == [1, 2, 3, 4]


def test_a_sweep_that_does_not_fit_is_refused_with_the_arithmetic(laboratory: Laboratory) -> None:
    with (
        laboratory.opened(),
        pytest.raises(
            Refusal, match=r"300 width = 300 members × 0\.50 GPU-hours = 150 GPU-hours, and 100 GPU-hours are free.*At most 200 members fit"
        ),
    ):
        ask(laboratory, space={"kind": "grid", "axes": {"width": [*range(-236, 64)]}})
    with laboratory.opened():
        assert not Sweep.objects.exists()


def test_ten_thousand_members_are_refused_with_the_arithmetic_or_launched_a_few_at_a_time() -> None:
    small, large = make_laboratory("small"), make_laboratory("large", weekly_gpu_hours=5_001)
    space = {"kind": "grid", "axes": {"width": [*range(10)]}, "seeds": [*range(1_000)]}
    for laboratory in (small, large):
        with laboratory.opened():
            make_agent_version(laboratory.owner, slug="sweeper", parameter_schema=SCHEMA, wall_seconds=60)
    with small.opened():
        with pytest.raises(Refusal, match=r"= 10,000 members × 0\.50 GPU-hours = 5,000 GPU-hours, and 100 GPU-hours are free.*At most 200"):
            ask(small, space=space)
        with pytest.raises(Refusal, match="at most 10,000"):  # one value more than may be asked for at all
            ask(small, space=space | {"axes": {"width": [*range(11)]}})
    with large.opened():
        sweep = ask(large, space=space)
        assert sweep.members == 10_000
    advance_all(large)
    with large.opened():
        assert list(Run.objects.order_by("sweep_member").values_list("sweep_member", flat=True)) == [*range(1, advance.AHEAD + 1)]
        assert Sweep.objects.get().status == Sweep.Status.RUNNING


def test_a_sweep_of_none_is_refused_and_names_the_axis(laboratory: Laboratory) -> None:
    with laboratory.opened(), pytest.raises(Refusal, match="no value") as refused:
        ask(laboratory, space={"kind": "grid", "axes": {"width": []}})
    assert refused.value.field == "space.width"


def test_values_that_the_agent_does_not_take_are_refused_before_anything_is_launched(laboratory: Laboratory) -> None:
    with laboratory.opened():
        for axes in ({"width": [32, 65]}, {"depth": [1]}, {"rate": ["fast"]}):
            with pytest.raises(Refusal) as refused:
                ask(laboratory, space={"kind": "grid", "axes": axes})
            assert refused.value.field == "parameters"
        assert not Sweep.objects.exists()


def test_a_refused_member_breaks_the_sweep_off_with_its_reason(laboratory: Laboratory) -> None:
    with laboratory.opened():
        sweep = ask(laboratory)
        set_limit(actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=HOUR, mode=Limit.Mode.STOP, reason="less")
    advance_all(laboratory)
    with laboratory.opened():
        sweep.refresh_from_db()
        assert sweep.status == Sweep.Status.STOPPED
        assert sweep.reason.startswith("Member 3 of 4 was not launched: ")
        assert Run.objects.filter(sweep=sweep).count() == 2


def test_a_stopped_sweep_launches_no_more_and_only_who_may_stops_it(laboratory: Laboratory) -> None:
    researcher, other = (make_member(laboratory.workspace, "researcher", name) for name in ("rosalind", "maurice"))
    with laboratory.opened():
        sweep = ask(laboratory, researcher)
        with pytest.raises(Denied):
            stop_sweep(actor=other, sweep=sweep)
        with pytest.raises(Denied):
            stop_any_sweep(actor=other, sweep=sweep, reason="mine first")
        with pytest.raises(Refusal, match="Say why"):
            stop_any_sweep(actor=laboratory.owner, sweep=sweep)
        stop_sweep(actor=researcher, sweep=sweep, reason="wrong table")
        with pytest.raises(Refusal, match="stopped already"):
            stop_any_sweep(actor=laboratory.owner, sweep=sweep, reason="wrong table")
    advance_all(laboratory)
    with laboratory.opened():
        sweep.refresh_from_db()
        assert (sweep.status, sweep.reason, Run.objects.count()) == (Sweep.Status.STOPPED, "wrong table", 0)


def test_a_sweep_that_labsite_stumbles_over_keeps_no_other_waiting(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    with laboratory.opened():
        bad, good = ask(laboratory), ask(laboratory)

    def stumbles(sweep: Sweep, number: int) -> LaunchRequest:
        if sweep.pk == bad.pk:
            raise KeyError("space")
        return member_request(sweep, number)

    monkeypatch.setattr("runs.jobs.advance.member_request", stumbles)
    advance_all(laboratory)
    with laboratory.opened():
        assert Run.objects.filter(sweep=good).count() == good.members
        assert Sweep.objects.get(pk=bad.pk).status == Sweep.Status.RUNNING, "nothing is said of it that nobody knows"


def test_a_member_of_the_workspace_who_loses_the_right_launches_no_more(laboratory: Laboratory) -> None:
    researcher = make_member(laboratory.workspace, "researcher", "rosalind")
    with laboratory.opened():
        sweep = ask(laboratory, researcher)
        change_member(actor=laboratory.owner, member=Membership.objects.get(user=researcher.user).public_id, role="viewer")
    advance_all(laboratory)
    with laboratory.opened():
        sweep.refresh_from_db()
        assert (sweep.status, Run.objects.count()) == (Sweep.Status.STOPPED, 0)
        assert "launch run" in sweep.reason


def test_a_sweep_that_is_asked_for_twice_at_once_is_one(laboratory: Laboratory) -> None:
    chosen = uuid.uuid4()

    def asking(_: int) -> str:
        try:
            with laboratory.opened():
                return ask(laboratory, sweep_id=chosen).public_id
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(asking, range(8))) == {f"sweep_{chosen.hex}"}
    with laboratory.opened():
        assert Sweep.objects.count() == 1


def test_a_sweep_whose_members_cannot_start_is_refused_at_once(laboratory: Laboratory) -> None:
    with laboratory.opened():
        set_limit(actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=HOUR // 4, mode=Limit.Mode.STOP, reason="small")
        with pytest.raises(Refusal, match="a run"):
            ask(laboratory)
        assert not Sweep.objects.exists()


def test_a_member_is_not_launched_of_a_sweep_that_has_stopped_this_moment(laboratory: Laboratory) -> None:
    with laboratory.opened():
        sweep = ask(laboratory)
        stop_sweep(actor=laboratory.owner, sweep=Sweep.objects.get())
        with pytest.raises(Refusal, match="launches no more members"):
            launch_run(actor=laboratory.owner, request=member_request(sweep, 1), sweep=sweep, sweep_member=1)
        assert not Run.objects.exists()


def test_a_sweep_ends_only_once_all_its_members_have(laboratory: Laboratory) -> None:
    with laboratory.opened():
        sweep = ask(laboratory)
        with pytest.raises(Refusal, match="to launch, or under way"):
            end_sweep(actor=Actor.system(job_id="test"), sweep=sweep)


def test_members_and_their_retries_are_measured_by_the_contract_that_the_sweep_was_asked_for_under(laboratory: Laboratory) -> None:
    with laboratory.opened():
        sweep = ask(laboratory)
        publish_contract(
            actor=laboratory.owner,
            benchmark=Benchmark.objects.get(),
            metric="accuracy",
            direction="maximize",
            reason="other terms",
            terms="other",
        )
    advance_all(laboratory)
    with laboratory.opened():
        runs = list(Run.objects.select_related("contract"))
        assert [run.contract.version for run in runs] == [1] * 4
        cancelled = cancel_run(actor=laboratory.owner, run=runs[0])
        assert retry_run(actor=laboratory.owner, run=cancelled).run.contract.version == 1
        assert launch_run(actor=laboratory.owner, request=replace(REQUEST, parameters={"rate": 0.1})).run.contract.version == 2
        assert sweep.members == 4
