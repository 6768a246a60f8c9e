"""The program that travels inside an export: whatever is changed shows, also to somebody who has nothing but Python."""

import ast
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test.utils import override_settings

from runs.jobs import export as job
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from tests.runs.test_export import WRITES, export_of, faults

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def exports(tmp_path: Path) -> Any:
    with override_settings(EXPORTS=tmp_path / "exports"):
        yield


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory(code=WRITES)
    with made.opened():
        run = launch(made)
    assert drive(made, run).status == "succeeded"
    return made


def changed(path: Path, **columns: Any) -> None:
    """One column of the last row of a file of rows."""
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[-1] = json.dumps({**json.loads(lines[-1]), **columns}, separators=(",", ":"), ensure_ascii=False)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def rehash(folder: Path, path: str) -> None:
    """Write the changed file's hash into the manifest, as a careful forger would."""
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    for entry in manifest["files"]:
        if entry["path"] == path:
            content = (folder / path).read_bytes()
            entry |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    (folder / "MANIFEST.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def test_one_byte_of_any_file_shows(laboratory: Laboratory) -> None:
    _, folder = export_of(laboratory, files="internal", reason="To try it.")
    assert faults(folder) == []
    for place in sorted(place for place in folder.rglob("*") if place.is_file() and place.stat().st_size):
        whole = place.read_bytes()
        place.write_bytes(whole[:-2] + bytes([whole[-2] ^ 1]) + whole[-1:])
        assert faults(folder) != [], place.relative_to(folder)
        place.write_bytes(whole)
    (folder / "tables" / "more.jsonl").write_text("{}\n")
    assert any("not in the manifest" in fault for fault in faults(folder))


@pytest.mark.parametrize(
    ("table", "column"),
    [
        *(("audit_events", name) for name in ("verb", "actor_label", "actor_id", "recorded_at", "subject_label", "request_id")),
        ("audit_events", "payload_hash"),
        ("audit_events", "sequence"),
        ("event_subjects", "label"),
        ("event_subjects", "after_hash"),
        ("event_payloads", "body"),
        ("event_payloads", "salt"),
    ],
)  # fmt: skip
def test_one_column_of_one_event_shows_although_the_manifest_was_forged(laboratory: Laboratory, table: str, column: str) -> None:
    _, folder = export_of(laboratory)
    path = folder / "tables" / f"{table}.jsonl"
    changed(path, **{column: 99 if column == "sequence" else {"details": {}, "reason": "other"} if column == "body" else "other"})
    rehash(folder, f"tables/{table}.jsonl")
    found = faults(folder)
    assert any(fault.startswith("record:") for fault in found), found
    assert any(fault.startswith("signature:") for fault in found), found


def test_a_rewritten_record_does_not_fit_its_checkpoints(laboratory: Laboratory) -> None:
    """A forger who makes all hashes anew, manifest and all, cannot make the signatures."""
    _, folder = export_of(laboratory)
    lines = (folder / "checkpoints.jsonl").read_text().splitlines()
    assert lines
    changed(folder / "checkpoints.jsonl", head="0" * 64)
    rehash(folder, "checkpoints.jsonl")
    assert any(fault.startswith("checkpoints:") for fault in faults(folder))


def test_it_runs_alone_and_without_any_package(laboratory: Laboratory, tmp_path: Path) -> None:
    _, folder = export_of(laboratory)
    alone = shutil.copytree(folder, tmp_path / "alone")
    bare = subprocess.run([sys.executable, "-I", "-S", str(alone / "verify.py")], capture_output=True, text=True, timeout=60, check=False)
    assert bare.returncode == 0, bare.stdout + bare.stderr
    assert "signatures NOT checked" in bare.stdout
    changed(alone / "tables" / "audit_events.jsonl", verb="other.thing")
    bare = subprocess.run([sys.executable, "-I", "-S", str(alone / "verify.py")], capture_output=True, text=True, timeout=60, check=False)
    assert bare.returncode == 1
    assert "WRONG  record:" in bare.stdout
    wrong_key = subprocess.run(
        [sys.executable, str(folder / "verify.py"), "--key", "00" * 32], capture_output=True, text=True, timeout=60, check=False
    )
    assert wrong_key.returncode == 1


def test_it_is_written_for_python_3_8() -> None:
    """Its grammar, annotations that are not evaluated, and nothing of what later versions added that such a program would use."""
    program = job.TRAVELS.read_text()
    with pytest.raises(SyntaxError):
        ast.parse(f"{program}\nmatch 1:\n    case _:\n        pass\n", feature_version=(3, 8))
    nodes = list(ast.walk(ast.parse(program, feature_version=(3, 8))))
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in nodes)
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)} | {node.arg for node in nodes if isinstance(node, ast.keyword)}
    assert "hexdigest" in used
    assert not used & {"removeprefix", "removesuffix", "is_relative_to", "readlink", "file_digest", "pairwise", "UTC", "strict"}
