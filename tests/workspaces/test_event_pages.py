"""The audit page, its file and its API: what they tell, what they filter, and what they say of filters that cannot be."""

import csv
import io
import re
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from tests.factories import make_member, make_workspace
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.commands.workspace import configure_workspace
from workspaces.ids import uuid7
from workspaces.models import AuditEvent, Workspace
from workspaces.queries.chain import verify_chain
from workspaces.queries.event_words import SENTENCES, sentence
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def checkpoints(settings: Settings, tmp_path: Any) -> None:
    settings.CHECKPOINTS = tmp_path


@pytest.fixture
def lab() -> tuple[Workspace, Actor, Client]:
    workspace, owner = make_workspace()
    with scope.open_workspace(workspace.pk):
        configure_workspace(actor=owner, zone="Europe/Berlin", reason="we live <b>there</b>")
    auditor = make_member(workspace, Role.AUDITOR)
    client = Client()
    assert auditor.user is not None
    client.force_login(auditor.user)
    return workspace, owner, client


def page(client: Client, path: str = "", status: int = 200) -> str:
    response = client.get(f"/workspaces/lab/audit/{path}")
    assert response.status_code == status, response.content[:500]
    return response.content.decode()


def test_every_verb_has_a_sentence() -> None:
    assert set(SENTENCES) == set(Verb)
    for verb in Verb:
        told = sentence(AuditEvent(workspace_id=uuid7(), verb=verb, actor_label="Ada {subject}", subject_label="run {0.__class__}"))
        assert "Ada {subject}" in told or "run {0.__class__}" in told  # what people wrote is told, never read as a template


def test_what_labsite_did_by_itself_has_a_subject() -> None:
    for verb in (Verb.DATASET_VERSION_INDEXED, Verb.OVERLAP_CHECKED, Verb.RUN_OUTPUTS_COLLECTED, Verb.ATTEMPT_FOUND_ALIVE):
        event = AuditEvent(workspace_id=uuid7(), verb=verb, actor_label="labsite", subject_label="Self-play")
        assert sentence(event).startswith("labsite "), verb


def test_what_is_newer_than_the_last_verification_reads_as_newer(lab: Any) -> None:
    with scope.open_workspace(lab[0].pk):
        verify_chain()
        configure_workspace(actor=lab[1], zone="Europe/Paris", reason="we moved")
    assert "4 events, whole up to event 3 when last verified; 1 is newer" in re.sub(r"\s+", " ", page(lab[2]))


def test_the_page_tells_who_did_what_and_why(lab: Any) -> None:
    text = page(lab[2])
    assert "Lab-Owner changed settings of Lab" in text
    assert "we live &lt;b&gt;there&lt;/b&gt;" in text
    said = re.sub(r"\s+", " ", text)
    assert "3 events, not verified yet" in said
    assert "not sealed yet · those below were recomputed just now and hold" in said


def test_an_event_shows_what_changed(lab: Any) -> None:
    text = page(lab[2], "2/")
    assert "<del>" not in text.split("zone")[0]
    assert "<ins>Europe/Berlin</ins>" in text
    assert page(lab[2], "99/", 404)


def test_the_record_is_verified_on_a_page(lab: Any) -> None:
    assert "The record is whole" in page(lab[2], "verify/")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?actor=Lab-Owner", 3),
        ("?actor=lab-owner&verb=member", 1),
        ("?verb=workspace.configured", 1),
        ("?verb=workspace", 2),
        ("?subject=Lab", 2),
        ("?subject=ws_lab", 2),
        ("?from=2020-01-01&to=2020-01-02", 0),
        ("?from=2020-01-01", 3),
    ],
)
def test_filters_hold_for_page_file_and_api(lab: Any, query: str, found: int) -> None:
    client = lab[2]
    assert page(client, query).count("<li>") - page(client, "?from=2000-01-01&to=2000-01-02").count("<li>") == found
    response = client.get(f"/workspaces/lab/audit/csv/{query}")
    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))
    assert len(rows) == found
    answer = client.get(f"/api/v1/workspaces/lab/events{query}").json()
    assert [item["sequence"] for item in answer["items"]] == [int(row["sequence"]) for row in rows]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("?actor=nobody", "Nobody known as nobody"),
        ("?verb=made.up", "There is no verb made.up"),
        ("?subject=nothing", "known as nothing"),
        ("?from=yesterday", "yesterday is no day"),
        ("?from=2026-02-01&to=2026-01-01", "later than"),
        ("?request=unheard", "request unheard"),
    ],
)
def test_a_filter_that_cannot_be_says_so(lab: Any, query: str, says: str) -> None:
    assert says in page(lab[2], query, 422)
    answer = lab[2].get(f"/api/v1/workspaces/lab/events{query}")
    assert answer.status_code == 422
    assert says in answer.json()["detail"]
    assert lab[2].get(f"/workspaces/lab/audit/csv/{query}").status_code == 409


def test_pages_follow_each_other_without_gap(lab: Any) -> None:
    seen: list[int] = []
    cursor = ""
    while True:
        answer = lab[2].get(f"/api/v1/workspaces/lab/events?limit=2&cursor={cursor}").json()
        seen += [item["sequence"] for item in answer["items"]]
        cursor = answer["next"]
        if not cursor:
            break
    assert seen == [3, 2, 1]
    assert lab[2].get("/api/v1/workspaces/lab/events?cursor=abc").status_code == 422


def test_formulas_are_not_read_by_spreadsheets(lab: Any) -> None:
    workspace, owner, client = lab
    with scope.open_workspace(workspace.pk):
        configure_workspace(actor=owner, zone="UTC", reason="=1+1")
    response = client.get("/workspaces/lab/audit/csv/")
    assert "'=1+1" in b"".join(response.streaming_content).decode()


def test_who_may_not_read_the_record_does_not(lab: Any) -> None:
    viewer = make_member(lab[0], Role.VIEWER)
    client = Client()
    assert viewer.user is not None
    client.force_login(viewer.user)
    for path in ("", "csv/", "verify/", "1/"):
        page(client, path, 403)
    assert client.get("/api/v1/workspaces/lab/events").status_code == 403
