"""An export: everything of the workspace but what must not leave, out of one snapshot, the same bytes for the same rows, checkable by anybody."""

import json
import os
import shutil
import subprocess
import sys
import threading
import uuid
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import override_settings
from prov.model import ProvActivity, ProvAgent, ProvDocument, ProvEntity

from labsite.owner import as_owner
from runs.commands.export import request_export
from runs.export_verify import Fault, check
from runs.jobs import export as job
from runs.jobs.export import make_export, tidy_exports, write
from runs.models import Evaluation, Export, Run
from runs.queries.closed_words import Closed
from runs.queries.export_list import folder_of
from runs.queries.export_tables import tables
from runs.queries.lineage import Node, Way, walk
from runs.queries.lineage_edges import NodeKind, Relation
from tests.factories import make_member, make_workspace
from tests.factories_people import make_operator
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from tests.runs.attempts import in_threads
from tests.walls.rows import fill
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.commands.benchmark import create_benchmark
from workspaces.commands.engine import add_engine
from workspaces.commands.invitation import invite
from workspaces.commands.pool import bind_pool, change_pool
from workspaces.commands.secret import create_secret, rotate_secret
from workspaces.commands.token import create_token
from workspaces.instant import one_instant
from workspaces.models import AuditEvent, Benchmark, Engine, Pool

pytestmark = pytest.mark.django_db(transaction=True)

SYSTEM = Actor.system(job_id="test")
WRITES = b"""
import json
open("../outputs/model.bin", "wb").write(b"weights " * 100)
with open("../metrics.jsonl", "a") as lines:
    for step in range(5):
        lines.write(json.dumps({"key": "loss", "value": 1 / (step + 1) if step else "NaN", "step": step}) + "\\n")
with open("../events.jsonl", "a") as lines:
    lines.write(json.dumps({"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.75}) + "\\n")
    lines.write(json.dumps({"type": "note", "text": "a note \\u2028 of mine"}) + "\\n")
"""


@pytest.fixture(autouse=True)
def exports(tmp_path: Path) -> Any:
    with override_settings(EXPORTS=tmp_path / "exports"):
        yield tmp_path / "exports"


@pytest.fixture
def laboratory() -> Laboratory:
    """With a run that has ended, its metrics, lines, artifacts and score."""
    made = make_laboratory(code=WRITES)
    with made.opened():
        run = launch(made, reason="for the export")
    assert drive(made, run).status == "succeeded"
    return made


def export_of(laboratory: Laboratory, *, files: str = "none", reason: str = "", actor: Actor | None = None) -> tuple[Export, Path]:
    with laboratory.opened():
        asked = request_export(actor=actor or laboratory.owner, files=files, reason=reason)
    make_export(workspace_id=laboratory.workspace.pk.hex, subject_id=asked.pk.hex)
    with laboratory.opened():
        made = Export.objects.get(pk=asked.pk)
        assert made.status == "ready", made.failure
        return made, folder_of(made)


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "tables" / f"{table}.jsonl").read_text(encoding="utf-8").splitlines() if line]


def faults(folder: Path) -> list[str]:
    try:
        return check(str(folder), lambda words: None)
    except Fault as fault:  # no longer an export at all
        return [str(fault)]


def tidy(laboratory: Laboratory) -> None:
    with laboratory.opened():
        tidy_exports(SYSTEM)


def test_everything_of_the_workspace_is_there(laboratory: Laboratory) -> None:
    export, folder = export_of(laboratory, files="internal", reason="To the archive of the institute.")
    assert faults(folder) == []
    with laboratory.opened():
        run = Run.objects.get()
        assert [row["id"] for row in rows(folder, "runs")] == [run.pk.hex]
        # Up to the event of its own beginning and the checkpoint before the snapshot.
        last = AuditEvent.objects.get(verb="workspace.export_begun").sequence
        assert len(rows(folder, "audit_events")) == last
    assert rows(folder, "workspace")[0]["slug"] == "lab"
    assert rows(folder, "evaluations")[0]["value"] == 0.75
    chunk = rows(folder, "metric_chunks")[0]["values"]
    assert chunk[0] == "NaN"
    assert chunk[1] == 0.5
    assert [row["username"] for row in rows(folder, "people")] == ["lab-owner"]
    assert set(rows(folder, "people")[0]) == {"id", "username", "display_name", "kind", "is_active"}
    assert rows(folder, "memberships")[0]["role"] == "owner"
    named = {row["path"] for row in rows(folder, "artifacts")}
    assert "model.bin" in named
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    assert {entry["path"] for entry in manifest["files"]} >= {"tables/runs.jsonl", "blobs.jsonl", "checkpoints.jsonl", "verify.py"}
    assert export.bytes == sum(place.stat().st_size for place in folder.rglob("*") if place.is_file())
    listed = [json.loads(line) for line in (folder / "blobs.jsonl").read_text().splitlines()]
    weights = next(row for row in listed if row["bytes"] == 800)["sha256"]
    assert (folder / "blobs" / weights[:2] / weights).read_bytes() == b"weights " * 100
    assert {oct(place.stat().st_mode & 0o777) for place in folder.rglob("*")} == {"0o600", "0o700"}


def test_the_lineage_of_the_workspace_is_read_by_the_library(laboratory: Laboratory) -> None:
    _, folder = export_of(laboratory)
    assert faults(folder) == []
    assert "prov.json" in {entry["path"] for entry in json.loads((folder / "MANIFEST.json").read_text())["files"]}
    text = (folder / "prov.json").read_text(encoding="utf-8")
    written = json.loads(text)
    document = ProvDocument.deserialize(content=text, format="json")
    elements = {str(element.identifier) for kind in (ProvEntity, ProvActivity, ProvAgent) for element in document.get_records(kind)}
    with laboratory.opened():
        run, score, person = Run.objects.get(), Evaluation.objects.get(), laboratory.owner.user
        assert person
        found = walk([Node(NodeKind.EVALUATION, score.pk)], Way.UP)
    assert {f"item:{node.kind}_{node.id.hex}" for node in found.nodes} <= elements
    ends = {tuple(edge.values())[:2] for relation in Relation for edge in written.get(relation.value, {}).values()}
    assert {tuple(f"item:{node.kind}_{node.id.hex}" for node in (link.later, link.earlier)) for link in found.links} <= ends
    assert {name for pair in ends for name in pair} == elements
    asked = {"prov:activity": f"item:run_{run.pk.hex}", "prov:agent": f"item:person_{person.pk.hex}"}
    assert asked in written["wasAssociatedWith"].values()
    for name, kind in (("entity", "evaluation"), ("activity", "run"), ("agent", "person")):
        for item in (one for key, one in written[name].items() if key.startswith(f"item:{kind}_")):
            assert item["lab:id"] in {row["id"] for row in rows(folder, item["lab:table"])}


def test_same_rows_same_bytes(laboratory: Laboratory) -> None:
    _, first = export_of(laboratory)
    _, second = export_of(laboratory)
    differ = {
        entry["path"]
        for entry in json.loads((first / "MANIFEST.json").read_text())["files"]
        if (first / entry["path"]).read_bytes() != (second / entry["path"]).read_bytes()
    }
    assert differ == {"tables/audit_events.jsonl", "tables/event_payloads.jsonl", "tables/event_subjects.jsonl", "checkpoints.jsonl"}


def test_it_is_one_snapshot(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written while the export is under way is in none of its files."""
    late: list[BaseException] = []
    told = job._tell

    def tell(export: Export, place: int, count: int, name: str) -> None:
        told(export, place, count, name)
        if name == "benchmarks":
            late.extend(in_threads(1, add))

    def add() -> None:
        with laboratory.opened():
            create_benchmark(actor=laboratory.owner, slug="late")

    monkeypatch.setattr(job, "_tell", tell)
    _, folder = export_of(laboratory)
    assert late == []
    with laboratory.opened():
        assert Benchmark.objects.filter(slug="late").exists()
    assert "late" not in [row["slug"] for row in rows(folder, "benchmarks")]
    assert faults(folder) == []


def test_no_secret_no_key_no_stranger_leaves(laboratory: Laboratory) -> None:
    canary = f"canary{uuid.uuid4().hex}"
    other, stranger = make_workspace("other", cost_centre=f"of others {canary}")
    fill(other)
    add_engine(actor=make_operator(), slug="cluster", kind=Engine.Kind.SLURM, slots=4)
    with laboratory.opened():
        create_secret(actor=laboratory.owner, name="HF_TOKEN", value=canary)
        secret = create_secret(actor=laboratory.owner, name="OTHER_TOKEN", value=f"before-{canary}")
        fingerprints = [secret.fingerprint, rotate_secret(actor=laboratory.owner, secret=secret, value=canary).fingerprint]
        _, token = create_token(actor=laboratory.owner, name="ci", scopes=["run:write"])
        invite(actor=laboratory.owner, email="guest@canary.example", role="viewer")
        bind_pool(actor=laboratory.owner, engine="cluster", slug="cluster", slots=2, isolation="none", account=f"first-{canary}"[:64])
        change_pool(actor=laboratory.owner, pool=Pool.objects.find("cluster"), account=canary, reason="Another one pays.")
        change_pool(actor=laboratory.owner, pool=Pool.objects.find("local"), slots=2, reason="Fewer.")
    user = laboratory.owner.user
    assert user is not None
    user.set_password(canary)
    user.save()
    fill(laboratory.workspace)
    _, folder = export_of(laboratory, files="internal", reason="All of it.")
    key = settings.CHECKPOINT_KEY().private_bytes_raw()
    needles = [
        canary.encode(),
        token.encode(),
        token.rsplit("_", 1)[-1].encode(),
        user.password.encode(),
        other.pk.hex.encode(),
        key.hex().encode(),
        b"guest@canary.example",
        *(fingerprint.encode() for fingerprint in fingerprints),
    ]
    with as_owner(), laboratory.opened(), connection.cursor() as cursor:
        for table, column in (
            ("workspaces_secret", "ciphertext"),
            ("workspaces_datakey", "wrapped"),
            ("workspaces_token", "secret_hash"),
            ("workspaces_invitation", "secret_hash"),
        ):
            cursor.execute(f"SELECT {column} FROM {table} WHERE workspace_id = %s", [laboratory.workspace.pk])
            found = cursor.fetchall()
            assert found, table
            needles += [bytes(value) if not isinstance(value, str) else value.encode() for (value,) in found]
    assert stranger.user is not None
    needles.append(stranger.user.pk.hex.encode())
    changed = [row["body"]["details"]["changed"] for row in rows(folder, "event_payloads") if "changed" in row["body"]["details"]]
    assert [entry["slots"] for details in changed for name, entry in details.items() if name.startswith("pool ")] == [[4, 2]]
    for place in folder.rglob("*"):
        if place.is_file():
            content = place.read_bytes()
            for needle in needles:
                assert needle not in content, f"{place.relative_to(folder)} holds {needle[:20]!r}"
                assert needle.hex().encode() not in content


def test_who_may_see_everything_may_take_it(laboratory: Laboratory) -> None:
    for role, may in (("operator", True), ("researcher", False), ("auditor", False), ("approver", False)):
        actor = make_member(laboratory.workspace, role)
        with laboratory.opened():
            if may:
                request_export(actor=actor)
            else:
                with pytest.raises(Denied):
                    request_export(actor=actor)


def test_one_at_a_time_and_with_a_reason_for_what_is_internal(laboratory: Laboratory) -> None:
    with laboratory.opened():
        with pytest.raises(Refusal, match="with a reason"):
            request_export(actor=laboratory.owner, files="internal")
        request_export(actor=laboratory.owner)
        with pytest.raises(Refusal, match="being made"):
            request_export(actor=laboratory.owner)


def test_a_full_disk_is_said_before(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.commands.export.free_bytes", lambda: 1000)
    with laboratory.opened(), pytest.raises(Refusal, match="the disk has"):
        request_export(actor=laboratory.owner)


KILLED = """
import os, signal, sys
import django
django.setup()
from runs.jobs import export as job
told = job._tell
def tell(export, place, count, name):
    told(export, place, count, name)
    if name == "runs":
        os.kill(os.getpid(), signal.SIGKILL)
job._tell = tell
job.make_export(workspace_id=sys.argv[1], subject_id=sys.argv[2])
"""


def test_a_writer_that_is_killed_is_replaced_and_leaves_nothing(laboratory: Laboratory, exports: Path) -> None:
    with laboratory.opened():
        asked = request_export(actor=laboratory.owner)
        place = folder_of(asked)
    for _ in range(3):
        done = _in_process(laboratory, asked, exports)
        assert done.returncode == -9, done.stderr[-500:]
        assert place.with_name(f"{place.name}.part").is_dir()
        assert not place.exists()
    make_export(workspace_id=laboratory.workspace.pk.hex, subject_id=asked.pk.hex)
    with laboratory.opened():
        given_up = Export.objects.get(pk=asked.pk)
        assert given_up.status == "failed"
        assert "3 times" in given_up.failure
    tidy(laboratory)
    assert not list(place.parent.iterdir())
    _, folder = export_of(laboratory)
    assert faults(folder) == []


def test_killed_once_it_is_made_anew(laboratory: Laboratory, exports: Path) -> None:
    with laboratory.opened():
        asked = request_export(actor=laboratory.owner)
    assert _in_process(laboratory, asked, exports).returncode == -9
    make_export(workspace_id=laboratory.workspace.pk.hex, subject_id=asked.pk.hex)
    with laboratory.opened():
        made = Export.objects.get(pk=asked.pk)
        assert (made.status, made.tries) == ("ready", 2)
        assert faults(folder_of(made)) == []
        assert not folder_of(made).with_name(f"{made.pk.hex}.part").exists()


def _in_process(laboratory: Laboratory, export: Export, exports: Path) -> "subprocess.CompletedProcess[str]":
    settled = settings.DATABASES["default"]
    program = f"from django.conf import settings\nsettings.DATABASES['default']['NAME'] = {settled['NAME']!r}\n"
    program += (
        f"from pathlib import Path\nsettings.EXPORTS = Path({str(exports)!r})\nsettings.CHECKPOINTS = Path({str(settings.CHECKPOINTS)!r})\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program + KILLED, laboratory.workspace.pk.hex, export.pk.hex],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "labsite.settings", "PYTHONWARNINGS": "default"},
        cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_two_workers_write_it_once(laboratory: Laboratory) -> None:
    with laboratory.opened():
        asked = request_export(actor=laboratory.owner)
    ready = threading.Barrier(2)

    def work() -> None:
        ready.wait(10)
        make_export(workspace_id=laboratory.workspace.pk.hex, subject_id=asked.pk.hex)

    assert in_threads(2, work) == []
    with laboratory.opened():
        made = Export.objects.get(pk=asked.pk)
        assert (made.status, made.tries) == ("ready", 1)


def test_it_expires_and_its_folder_goes(laboratory: Laboratory) -> None:
    with override_settings(EXPORT_DAYS=0):
        export, folder = export_of(laboratory)
    assert folder.is_dir()
    tidy(laboratory)
    tidy(laboratory)
    assert not folder.exists()
    with laboratory.opened():
        assert Export.objects.get(pk=export.pk).status == "removed"
        assert AuditEvent.objects.latest("sequence").verb == "workspace.export_removed"


def test_a_row_is_written_within_bounded_memory(laboratory: Laboratory) -> None:
    """Rows come through a server-side cursor, never all at once."""
    with laboratory.opened(), one_instant():
        table = next(table for table in tables(Closed()) if table.name == "audit_events")
        lines = table.lines()
        next(lines)
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_cursors WHERE name LIKE '_django%%'")
            assert cursor.fetchone() == (1,)


def test_from_the_command_line(laboratory: Laboratory, tmp_path: Path) -> None:
    place, said = tmp_path / "taken", StringIO()
    call_command(
        "export_workspace", "lab", "--to", str(place), "--as", "lab-owner", "--files", "internal", "--reason", "Moving", stdout=said
    )
    assert "Check it anywhere" in said.getvalue()
    call_command("verify", "--export", str(place), stdout=said)
    assert "The export is whole." in said.getvalue()
    with laboratory.opened():
        assert Export.objects.get().status == "taken"
    with pytest.raises(CommandError, match="there already"):
        call_command("export_workspace", "lab", "--to", str(place), "--as", "lab-owner")
    (place / "tables" / "runs.jsonl").write_text("{}\n")
    with pytest.raises(SystemExit):
        call_command("verify", "--export", str(place), stdout=said)


def test_a_folder_of_somebody_else_is_not_touched(laboratory: Laboratory, tmp_path: Path) -> None:
    """It came into being while the export was written: the export fails, and what lies there stays."""
    place = tmp_path / "taken"
    with laboratory.opened():
        asked = request_export(actor=laboratory.owner, is_kept=False)
        (tmp_path / "taken.part").mkdir()
        (tmp_path / "taken.part" / "mine").write_text("mine")
        assert write(SYSTEM, asked, place).status == "failed"
        assert (tmp_path / "taken.part" / "mine").read_text() == "mine"
        shutil.rmtree(tmp_path / "taken.part")
        asked = request_export(actor=laboratory.owner, is_kept=False)
        place.mkdir()
        (place / "mine").write_text("mine")
        assert write(SYSTEM, asked, place).status == "failed"
        assert [path.name for path in tmp_path.glob("taken*")] == ["taken"]
        assert (place / "mine").read_text() == "mine"
