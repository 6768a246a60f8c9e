"""The record proves itself: every stored column, a removed tail and a whole rewrite are found, by an owner of the database or without."""

import json
import stat
from pathlib import Path
from typing import Any

import django_rq
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction

from labsite.clock import Clock
from runs.jobs.seal import seal_chain
from runs.queries.site import busy_workspaces
from tests.factories import make_workspace
from tests.walls.owner_sql import owner_connection, tamper
from workspaces import audit, checkpoint, scope
from workspaces.access import Actor
from workspaces.commands.workspace import configure_workspace
from workspaces.models import AuditEvent, EventSubject, SiteEvent, Workspace
from workspaces.queries.chain import Broken, Verification, badge, seal, verify_chain
from workspaces.queries.site_chain import verify_site_chain
from workspaces.scope import ScopeError
from workspaces.site_audit import SiteDraft, SiteVerb, write_site_event

pytestmark = pytest.mark.django_db(transaction=True)

# `id` and `created_at` of the two side tables are book-keeping of the row, no part of what the record says.
EVENT_COLUMNS = sorted(field.column for field in AuditEvent._meta.concrete_fields)
SUBJECT_COLUMNS = sorted({field.column for field in EventSubject._meta.concrete_fields} - {"workspace_id"})


@pytest.fixture
def recorded() -> tuple[Workspace, Actor]:
    workspace, owner = make_workspace()
    with scope.open_workspace(workspace.pk):
        for number in range(4):
            configure_workspace(actor=owner, cost_centre=f"centre {number}", reason="a reason")
    return workspace, owner


def verified(workspace: Workspace) -> Verification:
    with scope.open_workspace(workspace.pk):
        return verify_chain()


def sealed(workspace: Workspace) -> checkpoint.Checkpoint:
    with scope.open_workspace(workspace.pk):
        made = seal()
    assert made is not None
    return made


def changed_value(column: str) -> str:
    """SQL that makes another value of the column's own type."""
    if column.endswith("_id") or column == "id":
        return "gen_random_uuid()"
    if column.endswith("_at"):
        return f"\"{column}\" + interval '1 second'"
    if column in ("version", "sequence", "position"):
        return f'"{column}" + 1000'
    if column == "actor_kind":
        return "'agent'"
    return f"overlay(\"{column}\" placing 'x' from 1)"


def test_an_untouched_chain_is_whole(recorded: Any) -> None:
    workspace, _ = recorded
    result = verified(workspace)
    assert (result.is_whole, result.fault, result.events, result.sealed, result.tail) == (True, "", 5, 0, 5)
    with scope.open_workspace(workspace.pk):
        assert result.head == AuditEvent.objects.get(sequence=5).hash


@pytest.mark.parametrize("column", EVENT_COLUMNS)
def test_a_change_of_any_column_of_an_event_is_found(recorded: Any, column: str) -> None:
    workspace, _ = recorded
    check_tampering_is_found(workspace, column)


def check_tampering_is_found(workspace: Workspace, column: str) -> None:
    """Change one column of event 3 as the owner; children follow a changed key."""
    with owner_connection() as opened:
        opened.execute("SET CONSTRAINTS ALL DEFERRED")
        row = opened.execute("SELECT id FROM workspaces_auditevent WHERE workspace_id = %s AND sequence = 3", [workspace.pk]).fetchone()
        assert row is not None
        if column == "workspace_id":
            other, _ = make_workspace("other")
            opened.execute("UPDATE workspaces_auditevent SET sequence = 99 WHERE id = %s", [row[0]])
            for table, key in (("auditevent", "id"), ("eventsubject", "event_id"), ("eventpayload", "event_id")):
                opened.execute(f"UPDATE workspaces_{table} SET workspace_id = %s WHERE {key} = %s", [other.pk, row[0]])
        else:
            new = opened.execute(
                f'UPDATE workspaces_auditevent SET "{column}" = {changed_value(column)} WHERE id = %s RETURNING id',
                [row[0]],
            ).fetchone()
            assert new is not None
            for table in ("eventsubject", "eventpayload"):
                opened.execute(f"UPDATE workspaces_{table} SET event_id = %s WHERE event_id = %s", [new[0], row[0]])
        opened.commit()
    result = verified(workspace)
    assert not result.is_whole, f"a changed {column} was not found"
    assert "3" in result.fault or "1003" in result.fault


@pytest.mark.parametrize("column", SUBJECT_COLUMNS)
def test_a_change_of_any_column_of_a_subject_is_found(recorded: Any, column: str) -> None:
    workspace, _ = recorded
    value = "(SELECT id FROM workspaces_auditevent WHERE sequence = 4)" if column == "event_id" else changed_value(column)
    changed = f'SET "{column}" = {value} WHERE event_id = (SELECT id FROM workspaces_auditevent WHERE sequence = 3)'
    if column == "event_id":
        changed = changed.replace("SET ", "SET position = 9, ", 1)
    assert tamper(f"UPDATE workspaces_eventsubject {changed}") == 1
    assert not verified(workspace).is_whole


@pytest.mark.parametrize("change", ["salt = overlay(salt placing 'x' from 1)", 'body = body || \'{"reason": "another"}\''])
def test_a_changed_payload_is_found(recorded: Any, change: str) -> None:
    workspace, _ = recorded
    assert tamper(f"UPDATE workspaces_eventpayload SET {change}") == 5
    assert "payload of event 1" in verified(workspace).fault


def test_an_erased_payload_keeps_the_chain_verifiable(recorded: Any) -> None:
    workspace, _ = recorded
    assert tamper("DELETE FROM workspaces_eventpayload") == 5
    result = verified(workspace)
    assert (result.is_whole, result.erased_payloads) == (True, 5)


def test_a_missing_event_is_found(recorded: Any) -> None:
    workspace, _ = recorded
    remove_events("sequence = 3")
    assert verified(workspace).fault == "Event 3 is missing: event 4 follows event 2."


def test_the_head_must_agree(recorded: Any) -> None:
    workspace, _ = recorded
    tamper("UPDATE workspaces_audithead SET hash = repeat('0', 64)")
    assert "does not name the hash of event 5" in verified(workspace).fault
    tamper("UPDATE workspaces_audithead SET sequence = 7")
    assert "The head counts 7 events" in verified(workspace).fault


def test_checkpoints_grow_and_are_private(recorded: Any, checkpoints: Path) -> None:
    workspace, owner = recorded
    first = sealed(workspace)
    with scope.open_workspace(workspace.pk):
        assert seal() is None  # nothing has happened since
        configure_workspace(actor=owner, zone="UTC")
    second = sealed(workspace)
    assert (first.count, second.count) == (5, 6)
    path = checkpoints / f"{workspace.pk.hex}.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    result = verified(workspace)
    assert (result.is_whole, result.checkpoints, result.sealed, result.tail) == (True, 2, 6, 0)


def test_a_removed_tail_is_found_by_its_checkpoint(recorded: Any) -> None:
    workspace, _ = recorded
    sealed(workspace)
    remove_events("sequence > 3")
    repair_head()
    result = verified(workspace)
    assert "counted 5 events, and there are 3" in result.fault
    with scope.open_workspace(workspace.pk):
        assert "counted 5 events" in badge().fault


def test_a_whole_rewrite_is_found_by_its_checkpoint(recorded: Any, checkpoints: Path) -> None:
    workspace, _ = recorded
    sealed(workspace)
    rewrite(workspace)
    assert "was rewritten" in verified(workspace).fault
    # Without the file the rewrite holds together: only the checkpoint tells.
    path = checkpoint.place(checkpoint.name_of(workspace.pk))
    line = json.loads(path.read_text())
    path.unlink()
    assert verified(workspace).is_whole
    # And who rewrites the file as well lacks the key.
    path.write_text(json.dumps({**line, "head": verified(workspace).head}) + "\n")
    assert "not signed" in verified(workspace).fault


def test_a_broken_chain_is_never_sealed(recorded: Any) -> None:
    workspace, _ = recorded
    tamper("UPDATE workspaces_auditevent SET actor_label = 'somebody else' WHERE sequence = 2")
    with scope.open_workspace(workspace.pk), pytest.raises(Broken, match="Event 2"):
        seal()
    assert checkpoint.last(checkpoint.name_of(workspace.pk)) is None


def test_a_torn_line_is_counted_and_written_around(recorded: Any) -> None:
    workspace, owner = recorded
    sealed(workspace)
    path = checkpoint.place(checkpoint.name_of(workspace.pk))
    with path.open("a") as file:
        file.write('{"count": 9, "he')
    with scope.open_workspace(workspace.pk):
        configure_workspace(actor=owner, zone="UTC")
    sealed(workspace)
    result = verified(workspace)
    assert (result.is_whole, result.checkpoints, result.unreadable_lines, result.sealed) == (True, 2, 1, 6)


def test_verify_says_where_and_exits_with_one(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    workspace, _ = recorded
    other, _ = make_workspace("other")
    sealed(other)
    call_command("verify")
    assert "3 of 3 chains are whole" in capsys.readouterr().out
    tamper("UPDATE workspaces_auditevent SET verb = 'run.ended' WHERE workspace_id = %s AND sequence = 2", workspace.pk)
    with pytest.raises(SystemExit) as ended:
        call_command("verify", "--json")
    assert ended.value.code == 1
    answer = json.loads(capsys.readouterr().out)
    assert [(chain["chain"], chain["whole"]) for chain in answer["chains"]] == [("(site)", True), ("lab", False), ("other", True)]
    call_command("verify", "--workspace", "other")


def test_the_seal_job_seals(recorded: Any) -> None:
    workspace, _ = recorded
    seal_chain(workspace_id=workspace.pk.hex, subject_id=workspace.pk.hex)
    newest = checkpoint.last(checkpoint.name_of(workspace.pk))
    assert newest is not None
    assert newest.count == 5


def test_the_clock_asks_for_a_seal_until_it_is_there(recorded: Any) -> None:
    workspace, _ = recorded
    with pytest.raises(ScopeError):
        busy_workspaces()
    with scope.open_site("a test"):
        (busy,) = busy_workspaces()
    assert (busy.workspace_id, busy.open_attempts, busy.queued, busy.events) == (workspace.pk, 0, 0, 5)
    clock = Clock()
    assert clock.is_ours()
    for name in settings.QUEUES:  # other tests have rung here too, and a queue that is behind is left alone
        django_rq.get_queue(name).empty()  # type: ignore[no-untyped-call]  # rq carries no types here
    assert ("seal_chain", workspace.pk) in clock.tick()
    sealed(workspace)
    assert clock.tick() == []


SITE_COLUMNS = sorted(field.column for field in SiteEvent._meta.concrete_fields)


@pytest.mark.parametrize("column", SITE_COLUMNS)
def test_a_change_of_any_column_of_a_site_event_is_found(column: str) -> None:
    for _ in range(3):
        write(SiteDraft(verb=SiteVerb.SIGNED_IN, details={"from": "here"}))
    assert verify_site_chain().is_whole
    value = "'{}'" if column == "details" else "'x'" if column == "subject_id" else changed_value(column)
    assert tamper(f'UPDATE workspaces_siteevent SET "{column}" = {value} WHERE sequence = 2') == 1
    assert not verify_site_chain().is_whole


def test_a_removed_tail_of_the_site_chain_is_found() -> None:
    for _ in range(3):
        write(SiteDraft(verb=SiteVerb.SIGNED_IN))
    Clock().tick()
    tamper("DELETE FROM workspaces_siteevent WHERE sequence = 3")
    assert "counted 3 events, and there are 2" in verify_site_chain().fault


def write(draft: SiteDraft) -> None:
    with transaction.atomic():
        write_site_event(draft, actor=Actor.system(job_id="test"))


def remove_events(where: str) -> None:
    with owner_connection() as opened:
        for table in ("eventsubject", "eventpayload"):
            opened.execute(f"DELETE FROM workspaces_{table} WHERE event_id IN (SELECT id FROM workspaces_auditevent WHERE {where})")
        opened.execute(f"DELETE FROM workspaces_auditevent WHERE {where}")
        opened.commit()


def repair_head() -> None:
    tamper(
        "UPDATE workspaces_audithead SET (sequence, hash) = (SELECT sequence, hash FROM workspaces_auditevent ORDER BY sequence DESC LIMIT 1)"
    )


def rewrite(workspace: Workspace) -> None:
    """What an owner of the database who knows the form of the hash would do: change event 2 and chain everything after it anew."""
    previous = audit.NOTHING_YET
    with scope.open_workspace(workspace.pk):
        events = [(event, list(event.subjects.order_by("position"))) for event in AuditEvent.objects.order_by("sequence")]
    for event, subjects in events:
        if event.sequence == 2:
            event.actor_label = "somebody else"
        event.previous_hash = previous
        event.hash = previous = audit.event_hash(event, subjects)
        tamper(
            "UPDATE workspaces_auditevent SET actor_label = %s, previous_hash = %s, hash = %s WHERE id = %s",
            event.actor_label, event.previous_hash, event.hash, event.pk,
        )  # fmt: skip
    repair_head()
    connection.close()
