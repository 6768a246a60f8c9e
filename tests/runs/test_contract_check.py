"""Contract checks: a frozen reference is measured again by ordinary runs, one at a time, and it is said whether the benchmark moved."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from runs.commands.contract_check import begin_check, run_id_of, set_contract_check, stop_contract_check
from runs.contract_check import holds, in_words
from runs.jobs.contract_check import check_contracts
from runs.jobs.tidy import tidy_workspace
from runs.models import CheckResult, ContractCheck, Evaluation, Run
from runs.queries.home_scores import boards
from runs.queries.score import RunScore, scores_of
from runs.queries.unscored import unscored
from tests.factories import make_member
from tests.factories_pages import add_artifact, client_of
from tests.factories_registry import make_agent_version
from tests.factories_runs import HOUR, Laboratory, drive, launch, make_laboratory
from workspaces.access import Actor, Permission
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.limit import set_limit
from workspaces.models import AuditEvent, Benchmark, Limit, Notification, Unit
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db(transaction=True)
HERE = "/workspaces/lab"
API = "/api/v1/workspaces/lab"

# What it measures stands in a file beside the run folders: the world may move without a new version of anything.
JUDGE = """
import json
value = json.load(open({path!r}))
with open("../events.jsonl", "a") as lines:
    if value is not None:
        lines.write(json.dumps({{"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": value, "stderr": 0.01}}) + "\\n")
"""


@command(Verb.CONTRACT_CHECK_BEGUN, needs=Permission.EDIT_REGISTRY)
def advance(event: Draft, /, *, actor: Actor, check: ContractCheck) -> None:
    event.change(check, next_at=timezone.now())


class World:
    """A laboratory whose judge measures whatever `says` was given last."""

    def __init__(self, laboratory: Laboratory, path: Any) -> None:
        self.laboratory, self.path = laboratory, path
        self.says(0.8)
        with laboratory.opened():
            make_agent_version(laboratory.owner, "judge", code=JUDGE.format(path=str(path)).encode(), kind="evaluate", wall_seconds=60)
            self.model = add_artifact(actor=laboratory.owner, run=launch(laboratory), path="outputs/model.json", content=b"{}")
            run = launch(laboratory, agent="judge", artifacts=(self.model.pk.hex,), gpu_ms=HOUR, seed=7, name="the reference")
        drive(laboratory, run)
        with laboratory.opened():
            self.reference = Evaluation.objects.select_related("run", "subject_artifact").get(run=run)

    def says(self, value: float | None) -> None:
        self.path.write_text(json.dumps(value))
        self.path.chmod(0o644)

    def look(self) -> None:
        """What the clock brings about once a minute."""
        key = self.laboratory.workspace.pk.hex
        check_contracts(workspace_id=key, subject_id=key)

    def check(self, **more: Any) -> ContractCheck:
        with self.laboratory.opened():
            asked = {"actor": self.laboratory.owner, "tolerance": 0.02, "interval_days": 7, **more}
            return set_contract_check(evaluation=self.reference, **asked)

    def measure(self) -> CheckResult:
        """One check from its launch to its result."""
        self.look()
        with self.laboratory.opened():
            run = Run.objects.latest("number")
        drive(self.laboratory, run)
        self.look()
        with self.laboratory.opened():
            return CheckResult.objects.latest("number")

    def come_due(self) -> None:
        """As if the interval were over."""
        with self.laboratory.opened():
            advance(actor=self.laboratory.owner, check=ContractCheck.objects.get(ended_at=None))


@pytest.fixture
def world(tmp_path: Any) -> World:
    tmp_path.chmod(0o755)
    return World(make_laboratory(), tmp_path / "value.json")


def test_it_is_measured_again_and_holds(world: World) -> None:
    world.check()
    world.says(0.81)
    result = world.measure()
    assert (result.status, result.number) == ("holds", 1)
    assert result.words == "Observed 0.81, expected 0.8: 0.01 apart, 0.02 allowed."
    with world.laboratory.opened():
        assert result.run is not None
        run = Run.objects.select_related("contract").get(pk=result.run.pk)
        assert (run.kind, run.seed, run.contract_id, run.requested_by) == (
            "evaluate", 7, world.reference.contract_id, world.laboratory.owner.user,
        )  # fmt: skip
        assert run.inputs.get(kind="artifact").artifact_id == world.model.pk
        check = ContractCheck.objects.get()
        assert timedelta(days=6) < check.next_at - timezone.now() <= timedelta(days=7)
        assert not Notification.objects.filter(cause="contract_checked").exists()
    page = client_of(world.laboratory.owner).get(f"{HERE}/benchmarks/accuracy/").content.decode()
    assert "The benchmark still measures what it did." in page
    world.look()
    with world.laboratory.opened():
        assert CheckResult.objects.count() == 1


def test_it_moved_is_said_on_the_page_and_told(world: World) -> None:
    world.check()
    world.says(0.7)
    result = world.measure()
    assert (result.status, result.words) == ("moved", "Observed 0.7, expected 0.8: 0.1 apart, 0.02 allowed.")
    client = client_of(world.laboratory.owner)
    assert "The benchmark moved." in client.get(f"{HERE}/benchmarks/accuracy/").content.decode()
    told = client.get(f"{HERE}/notifications/").content.decode()
    assert f"{HERE}/checks/{result.public_id}/" in told
    page = client.get(f"{HERE}/checks/{result.public_id}/").content.decode()
    assert "moved" in page
    assert "Observed 0.7, expected 0.8" in page
    answer = client.get(f"{API}/benchmarks/accuracy/contract-check").json()
    assert (answer["expected"], answer["results"][0]["status"], answer["results"][0]["observed"]) == (0.8, "moved", 0.7)


def test_what_a_check_measures_ranks_nowhere_and_is_listed_under_its_evaluation(world: World) -> None:
    client = client_of(world.laboratory.owner)
    board, csv = f"{API}/benchmarks/accuracy/scoreboard", f"{HERE}/benchmarks/accuracy/csv/"
    before = (client.get(board).json(), client.get(csv).getvalue())
    world.check()
    world.says(0.9)
    result = world.measure()
    with world.laboratory.opened():
        assert result.evaluation is not None
        made = Evaluation.objects.select_related("run").get(pk=result.evaluation.pk)
        assert made.value == 0.9
        [shown] = boards(timezone.now() - timedelta(days=1))
        assert (shown.leader, shown.total) == (world.reference, 1)
        assert [run.run.name for run in unscored(made.contract).rows] == []
        assert scores_of([world.model.run]) == {world.model.run.pk: RunScore(0.8, 0.01, world.reference.run.pk)}
    assert (client.get(board).json(), client.get(csv).getvalue()) == before
    page = client.get(f"{HERE}/benchmarks/accuracy/").content.decode()
    assert f"{HERE}/evaluations/{made.public_id}/" not in page
    assert f"{HERE}/runs/{made.run.public_id}/" in client.get(f"{HERE}/checks/{result.public_id}/").content.decode()
    assert f"{HERE}/evaluations/{made.public_id}/" in client.get(f"{HERE}/evaluations/{world.reference.public_id}/").content.decode()


def test_a_launch_that_is_refused_is_said_and_tried_again(world: World) -> None:
    world.check()
    with world.laboratory.opened():
        set_limit(
            actor=world.laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=1, mode=Limit.Mode.STOP, reason="nothing left"
        )
        runs = Run.objects.count()
    world.look()
    with world.laboratory.opened():
        result = CheckResult.objects.get()
        assert (result.status, result.run_id, Run.objects.count()) == ("refused", None, runs)
        assert result.words.startswith("It was not launched: ")
        assert AuditEvent.objects.filter(verb="launch.refused").exists()
        assert ContractCheck.objects.get().next_at - timezone.now() <= timedelta(days=1)
        assert Notification.objects.get(cause="contract_checked").subject_id == result.pk
    page = client_of(world.laboratory.owner).get(f"{HERE}/benchmarks/accuracy/").content.decode()
    assert "It could not be checked." in page
    world.look()
    with world.laboratory.opened():
        assert CheckResult.objects.count() == 1, "not again before it is due"
        set_limit(
            actor=world.laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=100 * HOUR, mode=Limit.Mode.STOP, reason="more"
        )
    world.come_due()
    again = world.measure()
    assert (again.status, again.number) == ("holds", 2)


def test_two_are_never_under_way(world: World) -> None:
    check = world.check()
    world.look()
    world.come_due()
    world.look()
    world.look()
    with world.laboratory.opened():
        result = CheckResult.objects.get()
        assert result.run_id == run_id_of(check, 1)
        with pytest.raises(Refusal, match="being measured already"):
            begin_check(actor=Actor.system(job_id="test"), check=check, run=None, words="again")
    with world.laboratory.opened(), pytest.raises(IntegrityError), transaction.atomic():
        CheckResult.objects.create(contract_check=check, number=2, status="running")


def test_a_job_that_dies_after_the_launch_launches_nothing_twice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    check = world.check()
    with monkeypatch.context() as patched:

        def killed(**_: Any) -> None:
            raise KeyboardInterrupt

        patched.setattr("runs.jobs.contract_check.begin_check", killed)
        with pytest.raises(KeyboardInterrupt):
            world.look()
    with world.laboratory.opened():
        runs = Run.objects.count()
        assert not CheckResult.objects.exists()
    world.look()
    with world.laboratory.opened():
        assert (Run.objects.count(), CheckResult.objects.get().run_id) == (runs, run_id_of(check, 1))


def test_a_run_without_a_score_says_nothing_of_the_benchmark(world: World) -> None:
    world.check()
    world.says(None)
    result = world.measure()
    assert result.status == "unmeasured"
    assert "without a score of accuracy" in result.words


def test_a_new_contract_version_ends_it(world: World) -> None:
    world.check()
    with world.laboratory.opened():
        publish_contract(actor=world.laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="minimize")
    world.look()
    with world.laboratory.opened():
        check = ContractCheck.objects.get()
        assert (check.ended_at is not None, check.end_reason) == (True, "Its contract version has been followed by another.")
        assert not CheckResult.objects.exists()


def test_the_tidying_rings_what_is_due(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.check()
    rung: list[str] = []
    monkeypatch.setattr("runs.jobs.tidy.ring", lambda name, **_: rung.append(name))
    key = world.laboratory.workspace.pk.hex
    tidy_workspace(workspace_id=key, subject_id=key)
    assert "check_contracts" in rung


def test_set_up_and_stopped_by_clicks(world: World) -> None:
    client = client_of(world.laboratory.owner)
    address = f"{HERE}/evaluations/{world.reference.public_id}/check/"
    assert address in client.get(f"{HERE}/evaluations/{world.reference.public_id}/").content.decode()
    form = client.get(address).content.decode()
    assert re.search(r'name="tolerance"[^>]*value="0.02"', form)
    assert client.post(address, {"tolerance": "-1", "interval_days": "7"}).status_code == 422
    assert client.post(address, {"tolerance": "nan", "interval_days": "7"}).status_code == 422
    assert client.post(address, {"tolerance": "0.05", "interval_days": "30"}).status_code == 303
    page = client.get(f"{HERE}/benchmarks/accuracy/").content.decode()
    assert "Every 30 days" in page
    stop = f"{HERE}/benchmarks/accuracy/check/stop/"
    assert stop in page
    assert client.post(stop, {"reason": "The benchmark is retired"}).status_code == 303
    assert "Contract check" not in client.get(f"{HERE}/benchmarks/accuracy/").content.decode()
    assert client.get(stop).status_code == 404
    made = client.post(
        f"{API}/evaluations/{world.reference.public_id}/contract-check", {"tolerance": 0.1, "interval_days": 1}, "application/json"
    )
    assert (made.status_code, made.json()["expected"]) == (201, 0.8)
    stopped = client.post(f"{API}/benchmarks/accuracy/contract-check/stop", {"reason": "enough"}, "application/json")
    assert stopped.json()["end_reason"] == "enough"


def test_one_stands_and_what_is_unfit_is_refused(world: World) -> None:
    first, second = world.check(), world.check(tolerance=0.5)
    with world.laboratory.opened():
        first.refresh_from_db()
        assert (first.end_reason, second.ended_at) == ("Another reference took its place.", None)
        own = Evaluation.objects.get()
        for asked, words in (
            ({"tolerance": float("nan")}, "finite"),
            ({"interval_days": 0}, "1 to 366"),
            ({"tolerance": -1.0}, "0 or more"),
        ):
            with pytest.raises(Refusal, match=words):
                world.check(**asked)
        own.run.kind = "train"
        with pytest.raises(Refusal, match="by a run that evaluates"):
            set_contract_check(actor=world.laboratory.owner, evaluation=own, tolerance=0.1, interval_days=1)
        viewer = make_member(world.laboratory.workspace, "viewer")
        with pytest.raises(Denied):
            stop_contract_check(actor=viewer, check=second, reason="no")


def test_whoever_may_launch_no_more_is_said(world: World) -> None:
    researcher = make_member(world.laboratory.workspace, "researcher")
    world.check(actor=researcher)
    assert researcher.user is not None
    researcher.user.is_active = False
    researcher.user.save()
    world.look()
    with world.laboratory.opened():
        result = CheckResult.objects.get()
        assert (result.status, Run.objects.count()) == ("refused", 2)
        assert "the right “launch run”" in result.words


def test_the_judgement_with_its_arithmetic() -> None:
    assert holds(0.8, 0.01, 0.81)
    assert holds(0.8, 0.01, 0.79)
    assert not holds(0.8, 0.01, 0.8101)
    assert not holds(0.8, 10, float("nan"))
    assert not holds(0.8, 10, float("inf"))
    assert holds(1500.0, 0.0, 1500.0)
    assert in_words(0.8, 0.01, float("nan")).startswith("Observed nan, expected 0.8: no finite number")
