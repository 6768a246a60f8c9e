"""Where words of a run that read something restricted go besides its own lines, and names of a restricted dataset's files: none of it leaves."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from runs.commands.dataset_import import WantedFile, request_import
from runs.commands.decision import decide_now
from runs.commands.memory import Said, review_memory, revise_memory, write_memory
from runs.commands.memory_reading import read_run_memory
from runs.jobs.dataset_import import read_import
from runs.models import CheckResult, ContractCheck, DatasetImport, Decision, MemoryEntry, MemoryRead, Promotion, RecordIndex, Run
from runs.queries.memory_recall import Wanted
from tests.factories import make_user
from tests.factories_pages import client_of
from tests.factories_promotions import add_unsaid, check_overlaps, make_candidate, propose, score_of
from tests.factories_runs import Laboratory, dispatch, drive, launch, make_laboratory
from tests.runs.file_server import FileServer
from tests.runs.test_egress import CANARY, SAMPLE, classify, exports, places_of
from tests.runs.test_export import export_of, faults, rows
from tests.runs.test_policy import DOCUMENT, approved, approver, tick
from tests.runs.test_promotion import decide
from workspaces.access import Actor, Permission
from workspaces.audit import Draft, command
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import change_dataset, create_dataset, import_dataset_version
from workspaces.models import ActorKind, Approval, AuditEvent, Dataset, EventPayload
from workspaces.verbs import Verb

__all__ = ["exports"]  # the fixture, by its name
pytestmark = pytest.mark.django_db(transaction=True)

SAYS = b"""
import json
said = "closed-" + "canary"  # what it would have read
known = {"text": said + " in memory", "configuration": {"rate": 0.3, "note": said}}
with open("../events.jsonl", "a") as lines:
    for collection in ("lessons", said):
        lines.write(json.dumps({"type": "memory_write", "collection": collection, "kind": "finding", "body": known}) + "\\n")
    lines.write(json.dumps({"type": "input", "uri": "table:" + said, "what": said + " read unsaid"}) + "\\n")
    lines.write(json.dumps({"type": "artifact", "path": "copy.txt", "name": "copy", "kind": "file"}) + "\\n")
    score = {"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.5, "samples_file": said + ".jsonl"}
    lines.write(json.dumps(score) + "\\n")
open("../outputs/copy.txt", "w").write(said)
"""
WORDS = CANARY.decode()
AVOIDS: dict[str, Any] = DOCUMENT | {"trigger": {"on": "manual"}, "conditions": []}
AVOIDS |= {"action": DOCUMENT["action"] | {"memory": {"avoid": "lessons"}}}
ASKS: dict[str, Any] = {
    "trigger": {"on": "memory_reviewed", "collection": "lessons"},
    "action": {"do": "ask", "question": "Is that so?", "choices": ["yes", "no"]},
}
ECHOES: dict[str, Any] = {
    "trigger": {"on": "memory_reviewed", "collection": "lessons"},
    "action": {"do": "write_memory", "kind": "note", "collection": "echoes", "title": "It was vouched for."},
}
GOES_ON: dict[str, Any] = {
    "trigger": {"on": "run_ended", "agent": "worker"},
    "conditions": [{"check": "undeclared_input"}],
    "action": {"do": "launch_run", "agent": "worker", "benchmark": "accuracy", "inputs": [{"dataset": "table"}, {"made_by_cause": "file"}]},
    "limits": {"decisions": 1},
}


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory(code=SAYS, weekly_gpu_hours=1000)
    with made.opened():
        dataset = create_dataset(actor=made.owner, slug="closed", licence="CC0-1.0")
        import_dataset_version(actor=made.owner, dataset=dataset, role="train", files=[receive_file("closed-canary.csv", [SAMPLE])])
    return made


def told(laboratory: Laboratory, path: str = "") -> Path:
    """An export that is whole, and says nothing of what is closed."""
    _, folder = export_of(laboratory, files="internal", reason="To the partner.")
    assert faults(folder) == []
    assert places_of(folder) == []
    return folder


def payloads(laboratory: Laboratory) -> list[str]:
    """Verbs of events whose details hold what is closed: that there is something to withhold."""
    with laboratory.opened():
        found = EventPayload.objects.select_related("event").order_by("event__sequence")
        return [row.event.verb for row in found if WORDS in json.dumps(row.body)]


def test_what_a_run_wrote_into_memory_and_what_policies_knew_of_it_stay(laboratory: Laboratory) -> None:
    with laboratory.opened():
        for slug, document in (("asks", ASKS), ("echoes", ECHOES), ("goes-on", GOES_ON)):
            approved(laboratory, document, slug)
        avoids, open_one = (
            approved(laboratory, AVOIDS, "avoids"),
            write_memory(
                actor=laboratory.owner,
                said=Said(kind="finding", collection="others", title="Wide nets learn faster", configuration={"rate": 0.1}),
            ),
        )
        before = decide_now(actor=laboratory.owner, policy=avoids)
        run = launch(laboratory, datasets=("closed",))
    dispatch(laboratory)
    with laboratory.opened():
        agent = Actor(ActorKind.PERSON, laboratory.owner.user, run_id=run.pk)
        read_run_memory(actor=agent, run=run, wanted=Wanted(collection="lessons", text=f"{WORDS} asked for"))
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        written = MemoryEntry.objects.get(run=run, collection="lessons")
        reviewed = review_memory(
            actor=approver(laboratory), entry=written, trust="confirmed", seen_hash=written.content_hash, comment=f"{WORDS}, I saw it too"
        )
    tick(laboratory)
    with laboratory.opened():
        echo = MemoryEntry.objects.get(collection="echoes")
        knowing = decide_now(actor=laboratory.owner, policy=avoids)
        said = Said(kind="finding", collection="lessons", title=f"{WORDS}, said better")
        later = revise_memory(actor=laboratory.owner, entry=reviewed, said=said)
        labelled = {row.policy.slug: row for row in Decision.objects.select_related("policy").exclude(policy=avoids)}
        closed = {row.pk.hex for row in (knowing, *labelled.values())}
        assert set(labelled) == {"asks", "echoes", "goes-on"}
        assert MemoryRead.objects.filter(decision=knowing).exists()
        assert WORDS in echo.text
        assert all(WORDS in json.dumps([row.cause_label, row.facts]) for row in (knowing, *labelled.values()))
        assert WORDS in json.dumps(Approval.objects.get(subject_type="question").content)
    assert {"memory.read", "memory.reviewed", "policy.decided"} <= set(payloads(laboratory))
    classify(laboratory, "closed", "restricted")
    folder = told(laboratory)
    entries = {row["id"]: row for row in rows(folder, "memory_entries")}
    assert set(entries) == {one.hex for one in (open_one.pk, written.pk, later.pk, echo.pk)} | {
        row["id"] for row in entries.values() if row["run_id"] == run.pk.hex
    }
    assert {key for key, row in entries.items() if row["title"]} == {open_one.pk.hex}
    assert entries[open_one.pk.hex]["configuration"] == {"rate": 0.1}
    assert (entries[written.pk.hex]["trust"], entries[written.pk.hex]["text"]) == ("confirmed", None)
    decisions = {row["id"]: row for row in rows(folder, "decisions")}
    assert {key for key, row in decisions.items() if row["facts"] is None} == closed
    assert decisions[before.pk.hex]["facts"]["memory"]["entries"] == []
    assert decisions[knowing.pk.hex]["outcome"] == knowing.outcome
    withheld = json.loads((folder / "MANIFEST.json").read_text())["left_out"]
    assert any("memory" in entry["what"] for entry in withheld if "runs" in entry)


@command(Verb.CONTRACT_CHECKED, needs=Permission.EDIT_REGISTRY)
def say_of(event: Draft, /, *, actor: Actor, run: Run, promotion: Promotion) -> None:
    """As a check says of a run without a score, which repeats that run's last words."""
    assert promotion.evaluation is not None
    assert actor.user is not None
    check = ContractCheck.objects.create(
        contract=promotion.evaluation.contract, reference=promotion.evaluation, tolerance=0.1, interval_days=1, set_by=actor.user,
        next_at=run.created_at,
    )  # fmt: skip
    result = CheckResult.objects.create(contract_check=check, number=1, status="running", run=run)
    event.created(check, result)
    event.change(result, status="unmeasured", words=f"It failed without a score. {WORDS}", ended_at=run.created_at)
    event.reason = result.words


@command(Verb.DATASET_VERSION_INDEXED, needs=Permission.EDIT_REGISTRY)
def could_not_read(event: Draft, /, *, actor: Actor, index: RecordIndex) -> None:
    event.change(index, fault="closed-canary.csv is no CSV file.")


def test_why_a_promotion_of_what_it_made_came_to_nothing_stays(laboratory: Laboratory) -> None:
    """And what a contract check repeats of the run, and which of its files could not be read by records."""
    with laboratory.opened():
        launch(laboratory, datasets=("closed",))  # whose inputs the run of the candidate gets
        artifact = make_candidate(laboratory)
        promotion, asked = propose(laboratory.owner, artifact)
        add_unsaid(actor=laboratory.owner, run=artifact.run, what=f"{WORDS} read unsaid")
        decide(approver(laboratory), asked)
        promotion.refresh_from_db()
        asked.refresh_from_db()
        assert (promotion.status, WORDS in promotion.end_reason, WORDS in asked.end_reason) == ("refused", True, True)
        assert score_of(artifact) == promotion.evaluation
        say_of(actor=laboratory.owner, run=artifact.run, promotion=promotion)
        could_not_read(actor=laboratory.owner, index=RecordIndex.objects.get(version__dataset__slug="closed"))
    assert {"approval.voided", "contract.checked", "dataset_version.indexed"} <= set(payloads(laboratory))
    classify(laboratory, "closed", "restricted")
    folder = told(laboratory)
    [row] = rows(folder, "promotions")
    assert (row["status"], row["end_reason"]) == ("refused", None)
    assert [entry["verdict"] for entry in row["facts"]]
    [row] = rows(folder, "check_results")
    assert (row["status"], row["words"]) == ("unmeasured", None)


def test_names_of_files_that_were_read_from_elsewhere_stay(
    laboratory: Laboratory, server: FileServer, settings: Any, tmp_path: Path
) -> None:
    """What was found, where it came from, what the events say of it, and why an import of more failed; of another dataset all of it leaves."""
    settings.IMPORTS = tmp_path / "imports"
    settings.IMPORT_HOSTS = [f"127.0.0.1:{server.port}"]
    server.files |= {"/closed-canary-2.csv": b"a,b\n1,2\n", "/free.csv": b"a,b\n3,4\n"}
    with laboratory.opened():
        free = create_dataset(actor=laboratory.owner, slug="free", origin="external", licence="CC0-1.0")
        closed = Dataset.objects.find("closed")
        for dataset, name in ((closed, "closed-canary-2"), (closed, "closed-canary-missing"), (free, "free")):
            file = WantedFile(f"{server.base}/{name}.csv")
            asked = request_import(actor=laboratory.owner, dataset=dataset, role="train", files=[file])
            inspect.unwrap(read_import)(Actor.system(job_id="read_import"), asked.pk)
        change_dataset(actor=laboratory.owner, dataset=closed, description="What the hospital gave us.")
        check_overlaps()
        run = launch(laboratory, datasets=("closed",))
        failed = DatasetImport.objects.get(status="failed")
        assert WORDS in failed.failure
    stranger = Actor.of(make_user("stranger"))
    assert client_of(stranger).get("/workspaces/lab/datasets/closed/versions/1/files/closed-canary.csv").status_code == 404
    assert {"dataset_import.asked", "dataset_version.imported", "dataset_import.failed", "access.denied"} <= set(payloads(laboratory))
    classify(laboratory, "closed", "restricted")
    folder = told(laboratory)
    imports = {row["id"]: row for row in rows(folder, "dataset_imports")}
    assert {(row["source"], row["found"]) for row in imports.values() if row["dataset_id"] == closed.pk.hex} == {(None, None)}
    [of_free] = [row for row in imports.values() if row["dataset_id"] == free.pk.hex]
    assert (of_free["source"], of_free["found"][0]["path"]) == (f"{server.base}/free.csv", "free.csv")
    versions = {row["dataset_id"]: row for row in rows(folder, "dataset_versions")}
    assert (versions[closed.pk.hex]["source"], versions[free.pk.hex]["source"]) == (None, f"{server.base}/free.csv")
    assert [row["description"] for row in rows(folder, "datasets") if row["slug"] == "closed"] == ["What the hospital gave us."]
    told_of = {row["event_id"] for row in rows(folder, "event_payloads")}
    with laboratory.opened():
        events = {row.pk.hex: row.verb for row in AuditEvent.objects.filter(subject_id__in=(run.pk, closed.pk))}
    assert "launch.admitted" in {events[key] for key in told_of & set(events)}, "what was asked of it, and what it is, is told"
    assert "dataset.egress_set" in {events[key] for key in told_of & set(events)}
