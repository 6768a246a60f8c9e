"""What may leave: set by people with a reason, inherited by what is made of it, obeyed by exports and shares."""

import json
import threading
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test.utils import override_settings
from django.utils import timezone

from runs.checks.candidate import candidate_of
from runs.checks.data import egress_known
from runs.commands import egress
from runs.commands.artifact_dataset import import_artifact
from runs.commands.egress import set_egress
from runs.commands.export import record_download, request_export
from runs.commands.failure import acknowledge_failure
from runs.jobs import export as job
from runs.jobs.export import make_export
from runs.models import Artifact, Export, FailureGroup, Run
from runs.queries import egress as egress_queries
from runs.queries.egress import runs_that_read, strictest_read_by
from runs.queries.export_files import choices
from runs.queries.export_list import folder_of
from tests.factories import make_member, make_workspace
from tests.factories_pages import client_of
from tests.factories_registry import make_dataset_version
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from tests.runs.attempts import in_threads, is_someone_waiting, until
from tests.runs.test_export import export_of, faults, rows
from workspaces.audit import Denied, Refusal
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.commands.egress import refuse_shared
from workspaces.commands.live_dataset import cut_window, make_live
from workspaces.commands.share import grant_share
from workspaces.models import AuditEvent, Dataset, ShareGrant

pytestmark = pytest.mark.django_db(transaction=True)

SAMPLE = b"patient,finding\n17,closed-canary\n"
SPILLS = b"""
import json, sys
said = "closed-" + "canary"  # what it would have read
open("../outputs/copy.txt", "w").write(said + " in an output")
open("../outputs/games.csv", "w").write("a\\n" + said + "\\n")
with open("../events.jsonl", "a") as lines:
    lines.write(json.dumps({"type": "note", "text": said + " in a note"}) + "\\n")
    lines.write(json.dumps({"type": "artifact", "path": "copy.txt", "name": "copy", "kind": "file", "metadata": {"row": said}}) + "\\n")
    lines.write(json.dumps({"type": "memory_write", "collection": "lessons", "kind": "finding", "body": said + " learnt"}) + "\\n")
    lines.write(json.dumps({"type": "dataset", "name": "grown", "path": "games.csv", "records": 1}) + "\\n")
print(said + " in the log")
print(said + " last words", file=sys.stderr)
if json.load(open("../job.json"))["params"].get("fails"):
    raise ValueError(said + " in a traceback")
"""
CANARY = b"closed-canary"


@pytest.fixture(autouse=True)
def exports(tmp_path: Path) -> Any:
    with override_settings(EXPORTS=tmp_path / "exports"):
        yield


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory(code=SPILLS)
    with made.opened():
        file = receive_file("closed-canary.csv", [SAMPLE])
        import_dataset_version(actor=made.owner, dataset=create_dataset(actor=made.owner, slug="closed"), role="train", files=[file])
        make_dataset_version(made.owner, "free", content=b"free,bytes\n1,2\n")
    return made


def classify(laboratory: Laboratory, slug: str, egress: str, reason: str = "By contract.") -> Dataset:
    with laboratory.opened():
        return set_egress(actor=laboratory.owner, dataset=Dataset.objects.find(slug), egress=egress, reason=reason)


def grown_and_read(laboratory: Laboratory) -> tuple[Dataset, Run, Run]:
    """A window of what a run made of `closed`, that run, and one that has read the window."""
    with laboratory.opened():
        make_live(actor=laboratory.owner, dataset=create_dataset(actor=laboratory.owner, slug="grown"))
        run = launch(laboratory, datasets=("closed",))
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        window = cut_window(actor=laboratory.owner, dataset=Dataset.objects.find("grown"))
        reader = launch(laboratory, datasets=(window.slug,))
    assert drive(laboratory, reader).status == "succeeded"
    return window, run, reader


def places_of(folder: Path) -> list[str]:
    """Files of an export that hold what is closed."""
    return [str(place.relative_to(folder)) for place in folder.rglob("*") if place.is_file() and CANARY in place.read_bytes()]


def test_it_is_internal_until_somebody_says_why_not(laboratory: Laboratory) -> None:
    with laboratory.opened():
        dataset = Dataset.objects.find("closed")
        assert dataset.egress == "internal"
        with pytest.raises(Refusal, match="Say why"):
            set_egress(actor=laboratory.owner, dataset=dataset, egress="restricted", reason=" ")
        with pytest.raises(Refusal, match="already"):
            set_egress(actor=laboratory.owner, dataset=dataset, egress="internal", reason="x")
    classify(laboratory, "closed", "restricted")
    with laboratory.opened():
        event = AuditEvent.objects.latest("sequence")
        assert (event.verb, event.subject_label) == ("dataset.egress_set", "closed")
    operator = make_member(laboratory.workspace, "operator")
    with laboratory.opened(), pytest.raises(Denied):
        set_egress(actor=operator, dataset=dataset, egress="public", reason="x")


def test_nothing_of_a_restricted_dataset_leaves(laboratory: Laboratory) -> None:
    """Neither its bytes, nor names of its files, nor what a run that read it has written anywhere."""
    with laboratory.opened():
        run = launch(laboratory, datasets=("closed",))
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        after = launch(laboratory, datasets=("table",), artifacts=(Artifact.objects.get(run=run, path="copy.txt").public_id,))
    assert drive(laboratory, after).status == "succeeded"
    with laboratory.opened():
        failed = launch(laboratory, datasets=("closed",), parameters={"fails": True})
    assert drive(laboratory, failed).status == "failed"
    with laboratory.opened():
        group = FailureGroup.objects.get()
        assert "closed-canary in a traceback" in group.title
        acknowledge_failure(actor=laboratory.owner, group=group, reason="It says closed-canary in a traceback.")
    classify(laboratory, "closed", "restricted")
    with laboratory.opened():
        assert runs_that_read("restricted") == {run.pk, after.pk, failed.pk}
        assert strictest_read_by(after.pk) == "restricted"
    export, folder = export_of(laboratory, files="internal", reason="To the partner.")
    assert faults(folder) == []
    assert places_of(folder) == []
    assert "closed" in [row["slug"] for row in rows(folder, "datasets")]
    versions = {row["dataset_id"]: row["content_hash"] for row in rows(folder, "dataset_versions")}
    with laboratory.opened():
        dataset = Dataset.objects.find("closed")
        assert versions[dataset.pk.hex] == dataset.versions.get().content_hash
        assert dataset.versions.get().pk.hex not in {row["version_id"] for row in rows(folder, "dataset_files")}
        assert {row["id"] for row in rows(folder, "runs")} == {run.pk.hex, after.pk.hex, failed.pk.hex}
    said = json.loads((folder / "MANIFEST.json").read_text())["left_out"]
    assert [entry["egress"] for entry in said if entry.get("dataset") == "closed"] == ["restricted"]
    assert [entry["runs"] for entry in said if "runs" in entry] == [3]
    assert export.contents["left_out"] == said


def test_what_grew_before_its_source_was_closed_stays_too(laboratory: Laboratory) -> None:
    """Pieces of a live dataset, its windows, and what runs made that read those."""
    _, run, reader = grown_and_read(laboratory)
    classify(laboratory, "closed", "restricted")
    with laboratory.opened():
        assert runs_that_read("restricted") == {run.pk, reader.pk}
    _, folder = export_of(laboratory, files="internal", reason="To the partner.")
    assert faults(folder) == []
    assert places_of(folder) == []


def test_what_is_read_of_a_version_that_was_frozen_from_an_artifact_stays_too(laboratory: Laboratory) -> None:
    with laboratory.opened():
        run = launch(laboratory, datasets=("closed",))
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        derived = create_dataset(actor=laboratory.owner, slug="derived")
        copy = Artifact.objects.get(run=run, path="copy.txt")
        import_artifact(actor=laboratory.owner, dataset=derived, artifact=copy, role="train")
        reader = launch(laboratory, datasets=("derived",))
    assert drive(laboratory, reader).status == "succeeded"
    classify(laboratory, "closed", "restricted")
    with laboratory.opened():
        assert runs_that_read("restricted") == {run.pk, reader.pk}
        assert strictest_read_by(reader.pk) == "restricted"
        candidate = candidate_of(Artifact.objects.select_related("run", "blob").get(run=reader, path="copy.txt"), "copy")
        assert egress_known(candidate).observed == "restricted"
    _, folder = export_of(laboratory, files="internal", reason="To the partner.")
    assert faults(folder) == []
    assert places_of(folder) == []


def test_where_more_was_made_than_can_be_looked_at_all_of_it_is_closed(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    classify(laboratory, "closed", "restricted")
    with laboratory.opened():
        launch(laboratory, datasets=("closed",))
        other = launch(laboratory)
        monkeypatch.setattr(egress_queries, "MOST_WALKED", 1)
        assert other.pk in runs_that_read("restricted")
        assert strictest_read_by(other.pk) == "restricted"


def test_no_dataset_is_set_laxer_than_what_runs_made_it_of(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frozen from an artifact, or grown by pieces that no window has yet; its own windows, which runs that add to it read, hold nothing up."""
    with laboratory.opened():
        make_live(actor=laboratory.owner, dataset=create_dataset(actor=laboratory.owner, slug="grown"))
        run = launch(laboratory, datasets=("free",))
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        derived = create_dataset(actor=laboratory.owner, slug="derived")
        import_artifact(actor=laboratory.owner, dataset=derived, artifact=Artifact.objects.get(run=run, path="copy.txt"), role="train")
    for slug in ("derived", "grown"):
        with pytest.raises(Refusal, match=r"Runs made it of free, which is internal.*change that first"):
            classify(laboratory, slug, "public")
    with laboratory.opened():
        window = cut_window(actor=laboratory.owner, dataset=Dataset.objects.find("grown"))
        again = launch(laboratory, datasets=(window.slug,))
    assert drive(laboratory, again).status == "succeeded"
    classify(laboratory, "free", "restricted")
    for slug in ("derived", "grown"):  # they followed
        with pytest.raises(Refusal, match="Runs made it of free, which is restricted"):
            classify(laboratory, slug, "internal")
    classify(laboratory, "free", "public")
    monkeypatch.setattr(egress_queries, "MOST_WALKED", 1)
    with pytest.raises(Refusal, match="more than can be looked at"):
        classify(laboratory, "derived", "public")
    monkeypatch.undo()
    for slug in ("derived", "grown"):
        assert classify(laboratory, slug, "public").egress == "public"


def test_each_choice_carries_its_classes(laboratory: Laboratory) -> None:
    classify(laboratory, "free", "public")
    with laboratory.opened():
        run = launch(laboratory)
    assert drive(laboratory, run).status == "succeeded"
    found = {}
    for files in ("none", "public", "internal"):
        _, folder = export_of(laboratory, files=files, reason="To compare.")
        assert faults(folder) == []
        contents = [place.read_bytes() for place in (folder / "blobs").rglob("*") if place.is_file()]
        found[files] = {
            "code": SPILLS in contents,
            "free": b"free,bytes\n1,2\n" in contents,
            "table": b"a,b\n1,2\n3,4\n" in contents,
            "artifact": b"closed-canary in an output" in contents,
        }
    assert found == {
        "none": {"code": True, "free": False, "table": False, "artifact": False},
        "public": {"code": True, "free": True, "table": False, "artifact": False},
        "internal": {"code": True, "free": True, "table": True, "artifact": True},
    }
    with laboratory.opened():
        counts = [choice.files for choice in choices()]
        assert counts == sorted(counts)


def test_the_same_bytes_in_an_open_dataset_stay_too(laboratory: Laboratory) -> None:
    with laboratory.opened():
        make_dataset_version(laboratory.owner, "copy", content=SAMPLE)
    classify(laboratory, "copy", "public")
    classify(laboratory, "closed", "restricted")
    _, folder = export_of(laboratory, files="internal", reason="To try.")
    assert SAMPLE not in [place.read_bytes() for place in (folder / "blobs").rglob("*") if place.is_file()]


def test_what_is_closed_afterwards_is_not_handed_out_any_more(laboratory: Laboratory) -> None:
    export, _ = export_of(laboratory, files="internal", reason="To the partner.")
    with laboratory.opened():
        record_download(actor=laboratory.owner, export=export)
    classify(laboratory, "closed", "restricted", reason="A patient objects.")
    with laboratory.opened(), pytest.raises(Refusal, match="since this export was made"):
        record_download(actor=laboratory.owner, export=export)
    again, _ = export_of(laboratory, files="internal", reason="To the partner.")
    with laboratory.opened():
        record_download(actor=laboratory.owner, export=again)


def test_so_is_what_came_after_the_export_had_begun(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "_seal", lambda: make_dataset_version(laboratory.owner, "late", content=b"late,bytes\n5,6\n"))
    export, folder = export_of(laboratory, files="internal", reason="To the partner.")
    assert "late" in [row["slug"] for row in rows(folder, "datasets")]
    classify(laboratory, "late", "restricted")
    with laboratory.opened(), pytest.raises(Refusal, match="since this export was made"):
        record_download(actor=laboratory.owner, export=export)


def test_a_restricted_dataset_is_not_shared(laboratory: Laboratory) -> None:
    other, _ = make_workspace("other")
    tomorrow = timezone.now() + timedelta(days=1)
    with laboratory.opened():
        share: dict[str, Any] = {"object_type": "dataset", "to_workspace": other, "expires_at": tomorrow, "reason": "to read"}
        grant_share(actor=laboratory.owner, object_id="closed", **share)
        with pytest.raises(Refusal, match="end that share first"):
            set_egress(actor=laboratory.owner, dataset=Dataset.objects.find("closed"), egress="restricted", reason="x")
        set_egress(actor=laboratory.owner, dataset=Dataset.objects.find("free"), egress="restricted", reason="x")
        with pytest.raises(Refusal, match="restricted"):
            grant_share(actor=laboratory.owner, object_id="free", **share)


def test_a_share_ends_where_a_run_closes_what_is_shared(laboratory: Laboratory) -> None:
    """A run that has read something restricted cannot be kept from ending; whoever closes by hand ends the shares first, of windows too."""
    other, _ = make_workspace("other")
    share: dict[str, Any] = {
        "object_type": "dataset",
        "to_workspace": other,
        "expires_at": timezone.now() + timedelta(days=1),
        "reason": "to read",
    }
    with laboratory.opened():
        make_live(actor=laboratory.owner, dataset=create_dataset(actor=laboratory.owner, slug="grown"))
        run = launch(laboratory, datasets=("free",))
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        window = cut_window(actor=laboratory.owner, dataset=Dataset.objects.find("grown"))
        of_window = grant_share(actor=laboratory.owner, object_id=window.slug, **share)
        with pytest.raises(Refusal, match=r"window 1 is shared with Other; end that share first"):
            set_egress(actor=laboratory.owner, dataset=Dataset.objects.find("grown"), egress="restricted", reason="x")
        of_all = grant_share(actor=laboratory.owner, object_id="grown", **share)
        kept = grant_share(actor=laboratory.owner, object_id="free", **share)
    classify(laboratory, "closed", "restricted")
    with laboratory.opened():
        run = launch(laboratory, datasets=("closed",))
    assert drive(laboratory, run).status == "succeeded"
    with laboratory.opened():
        assert Dataset.objects.find("grown").egress == "restricted"
        assert set(ShareGrant.objects.filter(revoked_at=None)) == {kept}
        ended = AuditEvent.objects.get(verb="run.ended", subject_id=run.pk)
        assert {subject.object_id for subject in ended.subjects.filter(type="sharegrant")} == {of_window.pk, of_all.pk}


def test_a_share_given_while_the_class_is_set_waits_for_it(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    other, _ = make_workspace("other")
    tomorrow = timezone.now() + timedelta(days=1)
    said: list[BaseException] = []

    def give() -> None:
        with laboratory.opened(), suppress(Refusal):
            grant_share(
                actor=laboratory.owner, object_type="dataset", object_id="closed", to_workspace=other, expires_at=tomorrow, reason="to read"
            )

    giver = threading.Thread(target=lambda: said.extend(in_threads(1, give)))

    def refuse_then_give(*datasets: Dataset) -> None:
        refuse_shared(*datasets)
        giver.start()
        until(lambda: not giver.is_alive() or is_someone_waiting(), "the share is given, or waits for the dataset")

    monkeypatch.setattr(egress, "refuse_shared", refuse_then_give)
    classify(laboratory, "closed", "restricted")
    giver.join(20)
    assert not giver.is_alive()
    assert said == []
    with laboratory.opened():
        assert Dataset.objects.find("closed").egress == "restricted"
        assert not ShareGrant.objects.exists()


def test_by_page_and_by_api(laboratory: Laboratory) -> None:
    client = client_of(laboratory.owner)
    assert "internal: its files leave with a reason" in client.get("/workspaces/lab/datasets/closed/").content.decode()
    assert client.post("/workspaces/lab/datasets/closed/egress/", {"egress": "restricted", "reason": ""}).status_code == 422
    assert client.post("/workspaces/lab/datasets/closed/egress/", {"egress": "restricted", "reason": "By contract."}).status_code == 303
    assert "nothing of its content leaves" in client.get("/workspaces/lab/datasets/closed/").content.decode()
    answer = client.post(
        "/api/v1/workspaces/lab/datasets/free/egress", {"egress": "public", "reason": "Ours."}, content_type="application/json"
    )  # fmt: skip
    assert (answer.status_code, answer.json()["egress"]) == (200, "public")


def test_a_class_set_while_an_export_waits_holds_for_it(laboratory: Laboratory) -> None:
    with laboratory.opened():
        asked = request_export(actor=laboratory.owner, files="internal", reason="To the partner.")
    classify(laboratory, "closed", "restricted")
    make_export(workspace_id=laboratory.workspace.pk.hex, subject_id=asked.pk.hex)
    with laboratory.opened():
        folder = folder_of(Export.objects.get(pk=asked.pk))
        assert not Run.objects.exists()
    assert SAMPLE not in [place.read_bytes() for place in (folder / "blobs").rglob("*") if place.is_file()]
