"""Withdrawing a window of games: exactly what rests on it is marked, boards are ranked anew, and undone everything is as it was (M9)."""

import csv
import io
import operator
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from runs.commands.approval import decide_approval
from runs.commands.attempt import NotYet, start_attempt
from runs.commands.withdrawal import spread, undo_withdrawal, withdraw
from runs.models import Artifact, Evaluation, Run
from runs.queries.home_scores import boards
from runs.queries.home_waiting import queued
from runs.queries.lineage import Node
from runs.queries.lineage_edges import NodeKind
from runs.queries.queue import waiting_of, waiting_runs
from runs.queries.scoreboard import scoreboard
from runs.queries.withdrawal import Radius, find_subject, radius
from tests.factories import make_member, make_user
from tests.factories_pages import client_of, copy_runs, score_runs
from tests.factories_registry import make_agent_version, make_dataset_version
from tests.factories_runs import HOUR, Laboratory, dispatch, drive, launch, watch
from tests.runs.attempts import let_go
from tests.runs.story import TELL, live_story, make_story_laboratory
from workspaces.access import Actor, Kind, Permission, Role
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.limit import set_limit
from workspaces.commands.member import add_member
from workspaces.models import (
    Approval,
    AuditEvent,
    Benchmark,
    Dataset,
    DatasetVersion,
    EventPayload,
    Limit,
    Unit,
    Withdrawal,
    WithdrawnObject,
)
from workspaces.queries.chain import verify_chain
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def laboratory() -> Laboratory:
    return make_story_laboratory()


@pytest.fixture
def runs(laboratory: Laboratory) -> dict[str, Run]:
    """The story, and a run beside it that rests on the table alone and scores the same."""
    found = live_story(laboratory)
    with laboratory.opened():
        run = launch(laboratory, agent="judge", name="beside")
    found["beside"] = drive(laboratory, run)
    return found


def of_window() -> Radius:
    node, label = find_subject("dataset_version", DatasetVersion.objects.get(dataset__slug="self-play-window-1").public_id)
    return radius(node, label)


def board_of(laboratory: Laboratory) -> bytes:
    """The board as anybody gets it, byte for byte."""
    answer = client_of(laboratory.owner).get("/workspaces/lab/benchmarks/accuracy/csv/")
    assert answer.status_code == 200
    return b"".join(answer) if answer.streaming else answer.content


def file_of(client: Client, address: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(client.get(address)).decode())))


def measure_on_holdout(laboratory: Laboratory) -> DatasetVersion:
    """A contract that measures on a holdout, from now on."""
    holdout = make_dataset_version(laboratory.owner, "unseen", role="holdout")
    contract: dict[str, Any] = {"metric": "accuracy", "direction": "maximize", "holdout": holdout, "accepts_no_isolation_reason": "A test."}
    publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), **contract)
    return holdout


def withdraw_holdout(laboratory: Laboratory, holdout: DatasetVersion) -> Withdrawal:
    node, label = find_subject("dataset_version", holdout.public_id)
    return withdraw(actor=laboratory.owner, subject=node, label=label, reason="Wrong answers.")


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def spread_now(event: Draft, /, *, actor: Actor, run: Run) -> None:
    """As the command that ends a run does."""
    spread(event, run)
    event.created(run)


def leaders() -> list[Any]:
    return [score.evaluation.run_id for score in scoreboard(Benchmark.objects.get()).scores]


def test_exactly_what_rests_on_a_window_is_withdrawn_and_comes_back(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    before = board_of(laboratory)
    with laboratory.opened():
        assert set(leaders()) == {runs["judge"].pk, runs["beside"].pk}
        found = of_window()
        assert found.counts["run"] == 2
        assert [(change.withdrawn, change.left) for change in found.boards] == [(1, 1)]
        withdrawal = withdraw(
            actor=laboratory.owner, subject=found.subject, label=found.label, reason="Bad games.", fingerprint=found.fingerprint
        )
        assert leaders() == [runs["beside"].pk]
        marks = set(WithdrawnObject.objects.values_list("kind", "object_id"))
        made = Artifact.objects.filter(run__in=[runs["trainer"], runs["judge"]]).values_list("pk", flat=True)
        assert marks == {
            ("dataset_version", found.subject.id),
            *(("run", runs[name].pk) for name in ("trainer", "judge")),
            *(("artifact", pk) for pk in made),
            ("evaluation", Evaluation.objects.get(run=runs["judge"]).pk),
        }
        event = AuditEvent.objects.get(verb="withdrawal.made")
        assert EventPayload.objects.get(event=event).body["reason"] == "Bad games."
        [board] = boards(event.created_at)
        assert board.total == 1
    during = board_of(laboratory)
    assert during != before
    with laboratory.opened():
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="They were good after all.")
        assert set(leaders()) == {runs["judge"].pk, runs["beside"].pk}
        assert verify_chain().is_whole
    assert board_of(laboratory) == before


def test_nothing_new_may_rest_on_it(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    with laboratory.opened():
        found = of_window()
        withdrawal = withdraw(actor=laboratory.owner, subject=found.subject, label=found.label, reason="Bad games.")
        with pytest.raises(Refusal, match="self-play-window-1@1 was withdrawn"):
            launch(laboratory, agent="trainer", datasets=("self-play-window-1",))
        checkpoint = Artifact.objects.get(kind="checkpoint")
        with pytest.raises(Refusal, match="checkpoint <b> of trainer <i> was withdrawn"):
            launch(laboratory, agent="judge", artifacts=(checkpoint.pk.hex,))
        with pytest.raises(Refusal, match="withdrawn already"):
            withdraw(actor=laboratory.owner, subject=found.subject, label=found.label, reason="Again.")
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="Good after all.")
        assert launch(laboratory, agent="trainer", datasets=("self-play-window-1",)).pk
        with pytest.raises(Refusal, match="undone before"):
            undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="Good after all.")


def test_what_waits_does_not_start_on_it_until_it_is_undone(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    with laboratory.opened():
        run = launch(laboratory, agent="trainer", datasets=("self-play-window-1",), gpu_ms=HOUR)
        behind = launch(laboratory, agent="trainer", gpu_ms=HOUR)
        found = of_window()
        withdrawal = withdraw(actor=laboratory.owner, subject=found.subject, label=found.label, reason="Bad games.")
        for waiting in (waiting_of(run, laboratory.workspace), waiting_runs().items[0]):
            assert waiting is not None
            assert waiting.reason == "self-play-window-1@1 was withdrawn, and it rests on that."
            assert waiting.needs_somebody
        with pytest.raises(NotYet, match="self-play-window-1@1 was withdrawn"):
            start_attempt(actor=Actor.system(job_id="test"), run=run)
        [(stuck, _, count)] = queued([], 0).stuck()
        assert ("self-play-window-1@1 was withdrawn" in stuck.reason, count) == (True, 1)
    assert drive(laboratory, behind).status == "succeeded", "one behind it may pass"
    with laboratory.opened():
        assert Run.objects.get(pk=run.pk).status == "queued"
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="Good after all.")
    assert drive(laboratory, run).status == "succeeded"


def test_what_waits_to_be_measured_on_a_withdrawn_holdout_does_not_start(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    with laboratory.opened():
        holdout = measure_on_holdout(laboratory)
        run = launch(laboratory, agent="judge")
        withdraw_holdout(laboratory, holdout)
        waiting = waiting_of(run, laboratory.workspace)
        assert waiting is not None
        assert "was withdrawn, and it rests on that" in waiting.reason


def test_an_approval_of_what_rests_on_it_admits_nothing(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    with laboratory.opened():
        set_limit(
            actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=1, mode=Limit.Mode.APPROVAL, reason="Ask before."
        )
        run = launch(laboratory, agent="trainer", datasets=("self-play-window-1",), gpu_ms=HOUR)
        asked = Approval.objects.get(subject_id=run.pk)
        found = of_window()
        assert run.pk in found.reached.of(NodeKind.RUN)
        withdraw(actor=laboratory.owner, subject=found.subject, label=found.label, reason="Bad games.")
        approver = make_member(laboratory.workspace, Role.APPROVER)
        with pytest.raises(Refusal, match="self-play-window-1@1 was withdrawn"):
            decide_approval(actor=approver, approval=asked, approves=True, seen_hash=asked.content_hash)
        asked.refresh_from_db()
        assert asked.status == "pending", "who asked may cancel, and the approver refuse"
        assert Run.objects.get(pk=run.pk).status == "awaiting_approval"


def test_who_confirms_confirms_what_was_looked_at(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    with laboratory.opened():
        found = of_window()
        launch(laboratory, agent="trainer", datasets=("self-play-window-1",))
        with pytest.raises(Refusal, match="Something else rests on it"):
            withdraw(actor=laboratory.owner, subject=found.subject, label=found.label, reason="Bad games.", fingerprint=found.fingerprint)
        assert not Withdrawal.objects.exists()
        for kind in (NodeKind.PERSON, NodeKind.CONTRACT):
            with pytest.raises(Refusal, match="can be withdrawn"):
                withdraw(actor=laboratory.owner, subject=Node(kind, found.subject.id), label="x", reason="y")
        with pytest.raises(Refusal, match="Say why"):
            withdraw(actor=laboratory.owner, subject=found.subject, label=found.label, reason=" ")


def test_what_a_run_makes_of_withdrawn_data_is_withdrawn_when_it_ends(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    code = TELL + b"import pathlib, time\nwhile not pathlib.Path('../go').exists():\n    time.sleep(0.02)\n"
    code += b"tell(type='score', benchmark='accuracy', metric='accuracy', value=0.99)\n"
    code += (
        b"open('../outputs/late.sgf', 'w').write('(;GM[1])')\ntell(type='dataset', path='outputs/late.sgf', name='self-play', records=4)\n"
    )
    with laboratory.opened():
        make_agent_version(laboratory.owner, "late", code=code, wall_seconds=60)
        run = launch(laboratory, agent="late", datasets=("self-play-window-1",), gpu_ms=HOUR)
    dispatch(laboratory)
    with laboratory.opened():
        found = of_window()
        assert [at_work.pk for at_work in found.at_work] == [run.pk]
        withdrawal = withdraw(actor=laboratory.owner, subject=found.subject, label=found.label, reason="Bad games.")
    let_go(laboratory, run)
    watch(laboratory)
    done = drive(laboratory, run)
    assert done.status == "succeeded", done.reason
    with laboratory.opened():
        late = Evaluation.objects.get(run=run)
        assert WithdrawnObject.objects.filter(kind="evaluation", object_id=late.pk, withdrawal=withdrawal).exists()
        assert run.pk not in leaders()
        window = Dataset.objects.filter(window_of__slug="self-play").order_by("-window_number").first()
        assert window is not None
        assert window.slug == "self-play-window-1", "games of a withdrawn run were cut into a window"
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="Good after all.")
        assert run.pk in leaders()


def test_what_is_measured_on_a_withdrawn_holdout_leads_nothing(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    code = TELL + b"import pathlib, time\nwhile not pathlib.Path('../go').exists():\n    time.sleep(0.02)\n"
    code += b"tell(type='score', benchmark='accuracy', metric='accuracy', value=0.99)\n"
    with laboratory.opened():
        make_agent_version(laboratory.owner, "late", code=code, kind="evaluate", wall_seconds=60)
        holdout = measure_on_holdout(laboratory)
        run = launch(laboratory, agent="late", gpu_ms=HOUR)
    dispatch(laboratory)
    with laboratory.opened():
        withdrawal = withdraw_holdout(laboratory, holdout)
        assert leaders() == []
    let_go(laboratory, run)
    done = drive(laboratory, run)
    assert done.status == "succeeded", done.reason
    with laboratory.opened():
        late = WithdrawnObject.objects.get(kind="evaluation", object_id=Evaluation.objects.get(run=run).pk)
        assert (late.withdrawal, late.distance) == (withdrawal, 2)
        assert not WithdrawnObject.objects.filter(kind="run", object_id=run.pk).exists(), "it has read nothing of it"
        assert leaders() == []
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="They were right.")
        assert run.pk in leaders()


def test_what_is_measured_under_a_contract_that_came_after_its_holdout_was_withdrawn_is_marked(
    laboratory: Laboratory, runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a copy of a public benchmark once could, before copying asked."""
    with laboratory.opened():
        holdout = make_dataset_version(laboratory.owner, "unseen", role="holdout")
        withdrawal = withdraw_holdout(laboratory, holdout)
        with monkeypatch.context() as before:
            before.setattr("workspaces.commands.benchmark.withdrawals_on", lambda *_: [])
            contract = publish_contract(
                actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", holdout=holdout,
                accepts_no_isolation_reason="A test.",
            )  # fmt: skip
        assert not WithdrawnObject.objects.filter(kind="contract", object_id=contract.pk).exists()
        (run,) = copy_runs(actor=laboratory.owner, pattern=runs["beside"], count=1, contract_id=contract.pk)
        score_runs(actor=laboratory.owner, scores={run: (0.99, None)})
        spread_now(actor=laboratory.owner, run=run)
        late = WithdrawnObject.objects.get(kind="evaluation", object_id=Evaluation.objects.get(run=run).pk)
        assert (late.withdrawal, late.distance) == (withdrawal, 2)


def test_a_run_or_an_artifact_is_withdrawn_in_the_same_way(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    with laboratory.opened():
        node, label = find_subject("run", runs["judge"].pk.hex)
        withdraw(actor=laboratory.owner, subject=node, label=label, reason="Wrong judge.")
        assert leaders() == [runs["beside"].pk]
        node, label = find_subject("artifact", Artifact.objects.get(kind="checkpoint").public_id)
        assert radius(node, label).counts["run"] == 1


def test_a_file_that_a_run_added_to_a_dataset_reaches_what_rests_on_its_window(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    with laboratory.opened():
        before = board_of(laboratory)
        game = Artifact.objects.get(run=runs["player"], path="game-0.sgf")
        node, label = find_subject("artifact", game.public_id)
        window = DatasetVersion.objects.get(dataset__slug="self-play-window-1")
        assert (
            set(radius(node, label).reached.distance) - {node}
            == set(of_window().reached.distance)
            >= {Node(NodeKind.DATASET_VERSION, window.pk)}
        )
        withdrawal = withdraw(actor=laboratory.owner, subject=node, label=label, reason="A bad game.")
        assert leaders() == [runs["beside"].pk]
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="It was good.")
    assert board_of(laboratory) == before


def test_who_may_see_datasets_alone_is_told_how_many_and_not_which(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    user = make_user("narrowed")
    with laboratory.opened():
        add_member(actor=laboratory.owner, user=user, role="researcher", kinds=[Kind.DATASET])
        window = DatasetVersion.objects.get(dataset__slug="self-play-window-1").public_id
    subject, owner, reader = {"kind": "dataset_version", "id": window}, client_of(laboratory.owner), client_of(Actor.of(user))

    def names(client: Client, address: str, **asked: str) -> set[str]:
        page = client.get(f"/{address}", asked).content.decode()
        assert re.search(r'<dt>Runs</dt>\s*<dd>\d|"run": \d', page)
        return {name for name, run in runs.items() if run.public_id in page or f"{name} &lt;i" in page}

    for address in ("workspaces/lab/withdrawals/new/", "api/v1/workspaces/lab/withdrawals/preview"):
        assert names(owner, address, **subject) == {"judge", "beside"}, "who leads, and would lead"
        assert names(reader, address, **subject) == set()
    with laboratory.opened():
        node, label = find_subject("run", runs["trainer"].pk.hex)
        page = f"workspaces/lab/withdrawals/{withdraw(actor=laboratory.owner, subject=node, label=label, reason='Bad.').public_id}/"
    assert names(owner, page) == {"trainer", "judge"}
    assert names(reader, page) == {"trainer"}, "the heading names what it is about"
    assert {row["name"] for row in file_of(owner, f"/{page}csv/") if row["kind"] == "run"} == {runs["trainer"].name, runs["judge"].name}
    hidden = [row for row in file_of(reader, f"/{page}csv/") if row["kind"] != "dataset"]
    assert {(row["id"], row["uuid"], row["name"], row["address"]) for row in hidden if row["kind"] == "run"} == {("", "", "a run", "")}
    objects = reader.get(f"/api/v1/{page}objects").json()["items"]
    assert {(row["uuid"], row["label"]) for row in objects if row["kind"] == "run"} == {(None, None)}


def test_by_page_what_is_shown_is_confirmed_and_undone(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    client = client_of(laboratory.owner)
    dataset = client.get("/workspaces/lab/datasets/self-play-window-1/").content.decode()
    [address] = re.findall(r'href="(/workspaces/lab/withdrawals/new/[^"]*)"', dataset)
    address = unescape(address)
    preview = client.get(address).content.decode()
    assert re.search(r"<dt>Runs</dt>\s*<dd>2</dd>", preview)
    [fingerprint] = re.findall(r'name="fingerprint" value="(\w+)"', preview)
    before = file_of(client, address.replace("/new/", "/new/csv/"))
    assert (before[0]["name"], before[0]["steps from what is withdrawn"]) == ("Self-play, window 1, version 1", "0")
    assert client.post(address, {"reason": "", "fingerprint": fingerprint}).status_code == 422
    assert client.post(address, {"reason": "Bad", "fingerprint": "0" * 64}).status_code == 409
    assert client.post(address, {"reason": "Bad <b>games</b>", "fingerprint": fingerprint}).status_code == 303
    with laboratory.opened():
        withdrawal = Withdrawal.objects.get()
    page = f"/workspaces/lab/withdrawals/{withdrawal.public_id}/"
    trainer, window = f"/workspaces/lab/runs/{runs['trainer'].public_id}/", "/workspaces/lab/datasets/self-play-window-1/"
    for shown in (page, "/workspaces/lab/withdrawals/", trainer, window):
        body = client.get(shown).content.decode()
        assert ("Bad &lt;b&gt;games" in body, page in body or shown == page) == (True, True), shown
    assert "rests on what was" in client.get("/workspaces/lab/benchmarks/accuracy/").content.decode()
    by_name = operator.itemgetter("kind", "uuid")
    assert sorted(file_of(client, f"{page}csv/"), key=by_name) == sorted(before, key=by_name), "what was shown is what was done"
    assert client.post(f"{page}undo/", {"reason": "Good"}).status_code == 303
    assert client.post(f"{page}undo/", {"reason": "Good"}).status_code == 409
    assert "Undone by" in client.get(page).content.decode()
    assert "Not to be rested on" not in client.get(trainer).content.decode()


def test_by_api(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    client = client_of(laboratory.owner)
    base = "/api/v1/workspaces/lab/withdrawals"
    with laboratory.opened():
        version = DatasetVersion.objects.get(dataset__slug="self-play-window-1").public_id
    preview = client.get(f"{base}/preview", {"kind": "dataset_version", "id": version}).json()
    assert (preview["reached"]["run"], preview["boards"][0]["scores_that_go"]) == (2, 1)
    body = {"kind": "dataset_version", "id": version, "reason": "Bad games.", "fingerprint": preview["fingerprint"]}
    made = client.post(base, body, content_type="application/json")
    assert (made.status_code, made.json()["status"]) == (201, "withdrawn")
    assert client.post(base, body, content_type="application/json").status_code == 409
    whole, rows = f"{base}/{made.json()['id']}", list[dict[str, Any]]()
    cursor: str | None = ""
    while cursor is not None:
        page = client.get(f"{whole}/objects", {"cursor": cursor or "", "limit": "2"}).json()
        rows, cursor = rows + page["items"], page["next"]
    with laboratory.opened():
        marks = WithdrawnObject.objects.values_list("kind", "object_id", "distance")
        assert sorted((row["kind"], row["uuid"], row["steps"]) for row in rows) == sorted((kind, str(pk), far) for kind, pk, far in marks)
    assert {row["label"] for row in rows if row["kind"] == "run"} == {runs["trainer"].name, runs["judge"].name}
    assert client.get(whole).json()["promotions"] == []
    undone = client.post(f"{base}/{made.json()['id']}/undo", {"reason": "Good."}, content_type="application/json").json()
    assert (undone["status"], undone["reached"]["run"]) == ("undone", 2)
    assert client.post(base, {**body, "id": "dsv_x"}, content_type="application/json").status_code == 404
