"""Exports by page and by API: asked for, watched, taken away by a POST that is on record, removed; and for nobody else."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test.utils import override_settings

from runs.commands.export import begin_export
from runs.jobs.export import make_export
from runs.models import Export
from runs.queries.export_list import progress_key
from tests.factories import make_member
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.test_export import SYSTEM, faults, tidy
from workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db(transaction=True)
PAGES = "/workspaces/lab/exports/"
API = "/api/v1/workspaces/lab/exports"


@pytest.fixture(autouse=True)
def exports(tmp_path: Path) -> Any:
    with override_settings(EXPORTS=tmp_path / "exports"):
        yield


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory()


def the(laboratory: Laboratory) -> Export:
    with laboratory.opened():
        return Export.objects.latest("number")


def make(laboratory: Laboratory) -> Export:
    make_export(workspace_id=laboratory.workspace.pk.hex, subject_id=the(laboratory).pk.hex)
    return the(laboratory)


def body(answer: Any) -> bytes:
    return b"".join(answer.streaming_content)


def verbs(laboratory: Laboratory) -> list[str]:
    with laboratory.opened():
        return list(AuditEvent.objects.filter(verb__contains="export").order_by("sequence").values_list("verb", flat=True))


def test_asked_for_watched_and_taken_away_by_page(laboratory: Laboratory, tmp_path: Path) -> None:
    client = client_of(laboratory.owner)
    assert "Nothing has been exported yet" in client.get(PAGES).content.decode()
    assert "and artifacts (2 files" in client.get(f"{PAGES}new/").content.decode()
    refused = client.post(f"{PAGES}new/", {"carries": "internal", "reason": ""})
    assert refused.status_code == 409
    assert "leave with a reason" in refused.content.decode()
    asked = client.post(f"{PAGES}new/", {"carries": "internal", "reason": "To the institute."})
    assert asked.status_code == 303
    page = asked["Location"]
    assert "waits for a worker" in client.get(page).content.decode()
    assert the(laboratory).reason == "To the institute."
    make(laboratory)
    text = client.get(page).content.decode()
    assert "tables/runs.jsonl" in text
    assert "is ready: " in text
    assert client.get(f"{page}download/").status_code == 405
    before = verbs(laboratory)
    answer = client.post(f"{page}download/")
    assert answer["Content-Disposition"] == 'attachment; filename="lab-export-1.tar"'
    content = body(answer)
    assert len(content) == int(answer["Content-Length"])
    assert verbs(laboratory) == [*before, "workspace.export_downloaded"]
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        tar.extractall(tmp_path / "out", filter="data")
    assert faults(tmp_path / "out" / "lab-export-1") == []
    again = body(client.post(f"{page}download/"))
    assert again == content
    assert client.post(f"{page}remove/").status_code == 303
    assert client.post(f"{page}download/").status_code == 409
    tidy(laboratory)
    assert "is removed" in client.get(page).content.decode()


def test_how_far_it_is(laboratory: Laboratory) -> None:
    client = client_of(laboratory.owner)
    page = client.post(f"{PAGES}new/", {"carries": "none"})["Location"]
    with laboratory.opened():
        begun = begin_export(actor=SYSTEM, export=the(laboratory))
    cache.set(progress_key(begun), {"place": 7, "count": 40, "name": "runs"}, 60)
    assert "Writing Runs: 7 of 40." in client.get(f"{page}?part=live").content.decode()
    assert client.get(f"{API}/{begun.public_id}").json()["progress"] == {"place": 7, "count": 40, "name": "runs"}
    make(laboratory)
    assert client.get(f"{page}?part=live")["HX-Refresh"] == "true"


def test_by_api(laboratory: Laboratory, tmp_path: Path) -> None:
    client = client_of(laboratory.owner)
    sent: Any = {"content_type": "application/json", "headers": {"Idempotency-Key": "k1"}}
    asked = client.post(API, {"files": "none"}, **sent)
    assert (asked.status_code, asked.json()["status"]) == (201, "queued")
    assert client.post(API, {"files": "none"}, **sent).json()["id"] == asked.json()["id"]
    assert client.post(API, {"files": "none"}, content_type="application/json").status_code == 409
    assert client.post(API, {"files": "restricted"}, content_type="application/json").status_code == 422
    make(laboratory)
    found = client.get(f"{API}/{asked.json()['id']}").json()
    assert (found["status"], found["number"]) == ("ready", 1)
    assert found["manifest_sha256"]
    assert [item["id"] for item in client.get(API).json()["items"]] == [found["id"]]
    content = body(client.post(f"{API}/{found['id']}/download"))
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        file = tar.extractfile("lab-export-1/MANIFEST.json")
        assert file is not None
        manifest = json.load(file)
    assert manifest["workspace"]["slug"] == "lab"
    removed = client.post(f"{API}/{found['id']}/remove", content_type="application/json")
    assert removed.json()["status"] == "removed"


def test_nobody_else_sees_or_takes_one(laboratory: Laboratory) -> None:
    page = client_of(laboratory.owner).post(f"{PAGES}new/", {"carries": "none"})["Location"]
    make(laboratory)
    for role in ("viewer", "researcher", "approver", "auditor"):
        client = client_of(make_member(laboratory.workspace, role))
        assert client.get(PAGES).status_code == 403
        assert client.get(page).status_code == 403
        assert client.post(f"{page}download/").status_code == 403
        assert client.get(f"{API}/{the(laboratory).public_id}").status_code == 403


def test_an_archive_can_be_taken_along(laboratory: Laboratory) -> None:
    client = client_of(laboratory.owner)
    client.post("/workspaces/lab/archive/", {"running": "go_on", "reason": "over"})
    page = client.post(f"{PAGES}new/", {"carries": "none"})["Location"]
    assert make(laboratory).status == "ready"
    assert client.post(f"{page}download/").status_code == 200


def test_a_folder_that_is_gone_is_not_found(laboratory: Laboratory, tmp_path: Path) -> None:
    """A copy of the database without its home has rows that say ready, and no folder."""
    client = client_of(laboratory.owner)
    page = client.post(f"{PAGES}new/", {"carries": "none"})["Location"]
    make(laboratory)
    with override_settings(EXPORTS=tmp_path / "elsewhere"):
        assert client.post(f"{page}download/").status_code == 404
