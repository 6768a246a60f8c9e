"""What pages say of the record is true: they recompute what they show, and remember what the last look at the whole found."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from tests.factories import make_workspace
from tests.walls.owner_sql import tamper
from workspaces import scope
from workspaces.access import Actor
from workspaces.commands.workspace import configure_workspace
from workspaces.models import Workspace
from workspaces.queries.chain import last_finding, seal, verify_chain

pytestmark = pytest.mark.django_db(transaction=True)
FALSIFY = "UPDATE workspaces_auditevent SET actor_label = %s WHERE sequence = %s"
BROKEN = "the record is broken"


@pytest.fixture(autouse=True)
def checkpoints(settings: Settings, tmp_path: Path) -> Path:
    settings.CHECKPOINTS = tmp_path / "checkpoints"
    return tmp_path / "checkpoints"


@pytest.fixture
def lab() -> tuple[Workspace, Actor, Client]:
    workspace, owner = make_workspace()
    with scope.open_workspace(workspace.pk):
        for number in range(3):
            configure_workspace(actor=owner, cost_centre=f"centre {number}", reason="a reason")
    client = Client()
    assert owner.user is not None
    client.force_login(owner.user)
    return workspace, owner, client


def heading(lab: Any, path: str) -> str:
    body = lab[2].get(f"/workspaces/lab/{path}").content.decode()
    found = re.search(r"<h1.*?</h1>", body, re.DOTALL)
    assert found
    return " ".join(re.sub(r"<[^>]+>", "", found.group()).split())


def home(lab: Any) -> str:
    return str(lab[2].get("/workspaces/lab/").content.decode())


def test_nothing_is_claimed_before_anybody_has_looked(lab: Any) -> None:
    assert heading(lab, "audit/") == "4 events, not verified yet"
    assert "audit record is broken" not in home(lab)


def test_a_whole_verification_is_remembered(lab: Any) -> None:
    assert heading(lab, "audit/verify/") == "The record is whole"
    assert heading(lab, "audit/") == "4 events, whole when last verified"


def test_sealing_looks_at_the_whole_record_first(lab: Any) -> None:
    with scope.open_workspace(lab[0].pk):
        assert seal()
        found = last_finding()
    assert found is not None
    assert (found.count, found.fault) == (4, "")


def test_an_event_that_was_changed_shows_on_the_page_that_shows_it_and_at_home(lab: Any) -> None:
    with scope.open_workspace(lab[0].pk):
        seal()
    assert tamper(FALSIFY, "Somebody else", 3) == 1
    assert BROKEN in heading(lab, "audit/")
    assert "Event 3 (workspace.configured) was changed" in lab[2].get("/workspaces/lab/audit/").content.decode()
    assert "the record is broken here" in lab[2].get("/workspaces/lab/audit/3/").content.decode()
    assert "audit record is broken" in home(lab)


def test_a_fault_that_no_page_shows_is_found_by_verify_and_said_until_it_is_mended(lab: Any) -> None:
    workspace, _, client = lab
    tamper(FALSIFY, "Somebody else", 1)
    assert BROKEN not in heading(lab, "audit/?from=2030-01-01")
    with scope.open_workspace(workspace.pk):
        assert verify_chain().fault
    for path in ("audit/", "audit/?from=2030-01-01"):
        assert BROKEN in heading(lab, path)
    assert "audit record is broken" in home(lab)
    with scope.open_workspace(workspace.pk):
        assert verify_chain().fault
    tamper(FALSIFY, "Lab-Owner", 1)
    assert client.get("/workspaces/lab/audit/verify/").status_code == 200
    assert heading(lab, "audit/") == "4 events, whole when last verified"
    assert "audit record is broken" not in home(lab)


def test_a_note_that_cannot_be_read_or_written_stops_nothing(lab: Any, checkpoints: Path) -> None:
    checkpoints.mkdir()
    (checkpoints / f"{lab[0].pk.hex}.found").write_text('{"count": ')
    assert heading(lab, "audit/") == "4 events, not verified yet"
    (checkpoints / f"{lab[0].pk.hex}.found").unlink()
    (checkpoints / f"{lab[0].pk.hex}.found" / "in the way").mkdir(parents=True)
    assert heading(lab, "audit/verify/") == "The record is whole"
    assert heading(lab, "audit/") == "4 events, not verified yet"
    assert [file.name for file in checkpoints.iterdir()] == [f"{lab[0].pk.hex}.found"]
