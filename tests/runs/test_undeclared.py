"""What a run has read without having declared it: said by its lines, linked by its content, shown, and counted where it matters."""

import hashlib
import re

import pytest
from django.utils import timezone

from runs.checks.gate_chain import undeclared_by
from runs.commands.egress import set_egress
from runs.commands.withdrawal import withdraw
from runs.models import Evaluation, Run
from runs.queries.egress import runs_that_read, strictest_read_by
from runs.queries.lineage import Node, Way, walk
from runs.queries.lineage_edges import CONTENT, NodeKind
from runs.queries.review import findings_of
from runs.queries.undeclared import undeclared_inputs
from tests.factories_pages import client_of
from tests.factories_registry import make_agent_version, make_dataset_version, stored
from tests.factories_runs import HOUR, Laboratory, drive, launch, make_laboratory
from tests.runs.story import TELL
from workspaces.commands.dataset import import_dataset_version
from workspaces.models import Dataset, DatasetFile, DatasetVersion, EventPayload
from workspaces.queries.withdrawal import withdrawals_on

pytestmark = pytest.mark.django_db(transaction=True)
READER = (
    TELL
    + b"""
with open("../outputs/own.txt", "w") as file:
    file.write("own")
tell(type="input", uri="s3://elsewhere/corpus", what="a corpus <b>")
tell(type="input", uri="s3://elsewhere/corpus", what="a corpus <b>")
tell(type="input", sha256="HASH")
tell(type="input", sha256="OWN", what="its own")
tell(type="input", sha256="DECLARED", uri="/data/table", what="declared under another name")
tell(type="memory_read", entry="mem_ladder", trust="reviewed")
tell(type="api_spend", micros=100, currency="CURRENCY", what="a translator")
tell(type="score", benchmark="accuracy", metric="accuracy", value=0.5)
tell(type="input")
tell(type="input", sha256="not a hash")
"""
)


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory()


def lived(laboratory: Laboratory, version: DatasetVersion) -> Run:
    """A run that was given `table`, and says that it has read a file of `version` besides, and more."""
    with laboratory.opened():
        hashes = DatasetFile.objects.values_list("blob__sha256", flat=True)
        words = {
            "HASH": hashes.get(version=version),
            "OWN": hashlib.sha256(b"own").hexdigest(),
            "DECLARED": hashes.get(version__dataset__slug="table"),
            "CURRENCY": "EUR",
        }
        code = READER
        for word, value in words.items():
            code = code.replace(f'"{word}"'.encode(), f'"{value}"'.encode())
        make_agent_version(laboratory.owner, "reader", code=code, wall_seconds=60)
        run = launch(laboratory, agent="reader", gpu_ms=HOUR, name="reading <i>")
    ended = drive(laboratory, run)
    assert ended.status == "succeeded", ended.reason
    return ended


@pytest.fixture
def secret(laboratory: Laboratory) -> DatasetVersion:
    with laboratory.opened():
        return make_dataset_version(laboratory.owner, "corpus", content=b"x\n7\n")


def test_what_was_read_and_not_declared_is_kept_once_and_linked_by_its_content(laboratory: Laboratory, secret: DatasetVersion) -> None:
    run = lived(laboratory, secret)
    with laboratory.opened():
        found = undeclared_inputs(run)
        kept = {(row.kind, row.uri, row.what, row.dataset_version_id) for row in found.inputs}
    assert kept == {
        ("input", "s3://elsewhere/corpus", "a corpus <b>", None),
        ("input", "", "", secret.pk),
        ("memory", "mem_ladder", "", None),
        ("service", "a translator", "", None),
    }
    assert len(found.inputs) == 4
    assert (found.is_open, found.is_none) == (True, False)


def test_what_rests_on_the_content_is_found_through_the_undeclared_reading(laboratory: Laboratory, secret: DatasetVersion) -> None:
    run = lived(laboratory, secret)
    with laboratory.opened():
        score = Node(NodeKind.EVALUATION, Evaluation.objects.get().pk)
        below = walk([Node(NodeKind.DATASET_VERSION, secret.pk)], Way.DOWN, along=CONTENT)
        assert below.distance[Node(NodeKind.RUN, run.pk)] == 2
        assert below.distance[score] == 3
        above = walk([score], Way.UP)
    assert Node(NodeKind.DATASET_VERSION, secret.pk) in above.distance
    assert len(above.of(NodeKind.UNDECLARED)) == 4


def test_pages_and_the_document_say_that_it_was_not_declared(laboratory: Laboratory, secret: DatasetVersion) -> None:
    run = lived(laboratory, secret)
    browser = client_of(laboratory.owner)
    page = browser.get(f"/workspaces/lab/runs/{run.public_id}/lineage/").content.decode()
    assert page.count("graph-doubtful") == 1  # four alike are one box
    assert "4 undeclared inputs" in page
    assert "a corpus &lt;b&gt;" in page
    row = next(row for row in re.findall(r"<tr>.*?</tr>", page, re.DOTALL) if "mem_ladder" in row)
    assert "not declared" in row
    files = browser.get(f"/workspaces/lab/runs/{run.public_id}/?tab=files").content.decode()
    assert "Read, and not declared" in files
    assert "/workspaces/lab/datasets/corpus/?version=1" in files
    assert "what else it read is not known" in files
    document = browser.get(f"/workspaces/lab/runs/{run.public_id}/lineage/prov.json").json()
    readings = {edge["prov:entity"]: edge.get("lab:declared") for edge in document["used"].values()}
    assert sorted(readings.values(), key=str) == [False] * 4 + [None] * 2


def test_a_run_that_read_something_withdrawn_is_withdrawn_as_it_ends(laboratory: Laboratory, secret: DatasetVersion) -> None:
    with laboratory.opened():
        withdraw(actor=laboratory.owner, subject=Node(NodeKind.DATASET_VERSION, secret.pk), label="corpus@1", reason="wrong licence")
    run = lived(laboratory, secret)
    with laboratory.opened():
        assert withdrawals_on("run", run.pk)
        assert withdrawals_on("evaluation", Evaluation.objects.get().pk)


def test_the_oldest_of_many_versions_with_the_content_reaches_the_run_too(laboratory: Laboratory, secret: DatasetVersion) -> None:
    """Six versions after it hold the same file: withdrawn, the first reaches the run; the run is as closed as any dataset that holds it."""
    with laboratory.opened():
        for number in range(6):
            parts = [stored("rows.csv", b"x\n7\n"), stored("more.csv", b"x\n%d\n" % number)]
            import_dataset_version(actor=laboratory.owner, dataset=secret.dataset, role="train", files=parts)
        sealed = make_dataset_version(laboratory.owner, "sealed", content=b"x\n7\n")
        for number in range(6):
            make_dataset_version(laboratory.owner, f"later-{number}", content=b"x\n7\n")
        set_egress(actor=laboratory.owner, dataset=sealed.dataset, egress="restricted", reason="patients")
    run = lived(laboratory, secret)
    with laboratory.opened():
        read = [row.dataset_version_id for row in undeclared_inputs(run).inputs if row.dataset_version_id]
        assert len(read) == len(set(read)) == 14
        assert strictest_read_by(run.pk) == Dataset.Egress.RESTRICTED
        subject = Node(NodeKind.DATASET_VERSION, secret.pk)
        withdraw(actor=laboratory.owner, subject=subject, label="corpus@1", reason="wrong licence")
        assert withdrawals_on("run", run.pk)
        assert {thing.more for thing in undeclared_inputs(run).things} == {9, 0}
        assert undeclared_by([run])["count"] == 4, "one thing, whoever holds it"
        told = [str(finding) for finding in findings_of(run, timezone.now(), may_see=lambda kind: True)]
    assert any("4 things that it had not declared" in words for words in told)
    files = client_of(laboratory.owner).get(f"/workspaces/lab/runs/{run.public_id}/?tab=files").content.decode()
    assert files.count("Read, and not declared") == 1
    assert "and 9 other versions" in files


def test_where_too_many_hold_it_the_newest_of_each_content_are_linked_and_that_is_said(
    laboratory: Laboratory, secret: DatasetVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.commands.undeclared.MOST_LINKS", 5)
    with laboratory.opened():
        for number in range(6):
            newest = make_dataset_version(laboratory.owner, f"later-{number}", content=b"x\n7\n")
    run = lived(laboratory, secret)
    with laboratory.opened():
        found = undeclared_inputs(run)
        assert (len(found.inputs), len(found.things), newest.pk in {row.dataset_version_id for row in found.inputs}) == (5, 4, True)
        [details] = [one.body["details"] for one in EventPayload.objects.all() if "undeclared_inputs" in one.body.get("details", {})]
        assert (details["undeclared_inputs"], details["undeclared_links_at_most"]) == (4, 5)


def test_a_run_that_read_something_restricted_is_as_closed(laboratory: Laboratory, secret: DatasetVersion) -> None:
    run = lived(laboratory, secret)
    with laboratory.opened():
        assert strictest_read_by(run.pk) == Dataset.Egress.INTERNAL
        set_egress(actor=laboratory.owner, dataset=secret.dataset, egress="restricted", reason="patients")
        assert run.pk in runs_that_read(Dataset.Egress.RESTRICTED)
        assert strictest_read_by(run.pk) == Dataset.Egress.RESTRICTED
