"""Every table of a workspace has its walls, in the catalogue of the database and in the model."""

import json
import uuid
from typing import Any

import pytest
from django.apps import apps
from django.db import models

from tests.walls import checks
from tests.walls.owner_sql import owner_connection
from tests.walls.rows import owned_models
from workspaces import scope
from workspaces.audit import denials_of
from workspaces.ids import uuid7
from workspaces.models import AuditEvent, Row, Workspace
from workspaces.models.base import Owned
from workspaces.walls import DEFINER_FUNCTIONS

# Tables without `workspace_id`, with the reason of each (contracts.md B).
WITHOUT_WORKSPACE = {
    "workspaces.User": "people belong to the installation",
    "workspaces.Workspace": "it is the boundary; rights are looked up on it before any scope is open",
    "workspaces.WorkspaceGroupPermission": "guardian's grants, looked up before any scope is open",
    "workspaces.Engine": "a machine of the installation",
    "workspaces.EngineSlot": "a machine's slot, of the installation",
    "workspaces.EngineWeight": "a workspace's weight on shared engines, the site's to set",
    "workspaces.SiteEvent": "the installation's own record",
    "workspaces.SiteIdempotencyKey": "keys of site routes",
    "workspaces.SitePolicy": "what the installation demands of every run",
    "workspaces.SiteRules": "what the installation demands of every policy",
    "workspaces.Installation": "epoch and fingerprints of the installation",
}
THIRD_PARTY = {"auth", "contenttypes", "sessions", "account", "guardian", "django_rq"}


@pytest.mark.django_db
@pytest.mark.parametrize("model", owned_models(), ids=lambda model: model._meta.label)
def test_a_table_of_a_workspace_has_its_walls(model: type[Row]) -> None:
    checks.check_declared(model)
    with scope.open_workspace(uuid7()):
        checks.check_manager_filters(model)
    with owner_connection() as opened:
        checks.check_row_security(opened, model)
        checks.check_keys_stay(opened, model)
        if issubclass(model, Owned):
            checks.check_event_demanded(opened, model)


@pytest.mark.django_db
def test_the_workspace_itself_demands_an_event() -> None:
    with owner_connection() as opened:
        checks.check_event_demanded(opened, Workspace)


def test_every_other_table_is_on_the_list() -> None:
    for model in apps.get_models(include_auto_created=True):
        label: Any = model._meta.label
        if issubclass(model, Row) or model._meta.app_label in THIRD_PARTY or model._meta.auto_created:
            continue
        assert label in WITHOUT_WORKSPACE, f"{label} has no workspace; make it Owned, or list it with its reason"
    assert {label for label in WITHOUT_WORKSPACE if not apps.is_installed("workspaces") or not _is_model(label)} == set()


def _is_model(label: str) -> bool:
    try:
        apps.get_model(label)
    except LookupError:
        return False
    return True


def check_definer_functions(opened: Any) -> None:
    """Functions that bypass row security are exactly those that the walls list, with a search_path that no caller chooses."""
    found = opened.execute(
        "SELECT proname, coalesce(array_to_string(proconfig, ' '), '') FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace"
    ).fetchall()
    names = sorted(name for name, _ in found)
    assert names == sorted(DEFINER_FUNCTIONS), "list it in workspaces/walls.py with what it gives away, and attack it in tests/walls"
    assert [name for name, settings in found if "search_path=pg_catalog, public" not in settings] == []


@pytest.mark.django_db
def test_functions_that_bypass_row_security_are_on_the_list() -> None:
    with owner_connection() as opened:
        check_definer_functions(opened)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE FUNCTION leak() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS 'SELECT 1::bigint'",
        "ALTER FUNCTION lab_site_busy() RESET search_path",
        "ALTER FUNCTION lab_site_busy() SECURITY INVOKER",
    ],
)
def test_another_such_function_or_a_loose_one_is_missed(statement: str) -> None:
    with owner_connection() as opened:
        opened.execute(statement)
        with pytest.raises(AssertionError):
            check_definer_functions(opened)


@pytest.mark.django_db
def test_the_denials_of_an_actor_are_counted_by_their_index() -> None:
    """Among many events of a workspace, which the record's other indexes would have to walk through."""
    workspace_id = uuid7()
    with scope.open_workspace(workspace_id):
        statement, values = denials_of(uuid7()).query.sql_with_params()
    with owner_connection() as opened:
        opened.execute(
            "INSERT INTO workspaces_workspace SELECT * FROM jsonb_populate_record(null::workspaces_workspace, %s::jsonb)",
            [json.dumps(stored_row(Workspace(id=workspace_id, slug="many", name="Many")))],
        )
        event = AuditEvent(workspace_id=workspace_id, actor_kind="person", actor_id=uuid7(), verb="run.ended", payload_hash="", hash="")
        opened.execute(
            "INSERT INTO workspaces_auditevent SELECT (jsonb_populate_record(null::workspaces_auditevent, %s::jsonb || jsonb_build_object("
            "'id', gen_random_uuid(), 'command_id', gen_random_uuid(), 'sequence', number))).* FROM generate_series(1, 20000) AS number",
            [json.dumps(stored_row(event))],
        )
        opened.execute("ANALYZE workspaces_auditevent")
        plan = "\n".join(line for (line,) in opened.execute(f"EXPLAIN {statement}", values).fetchall())
    assert "auditevent_denials" in plan, plan


def stored_row(row: models.Model) -> dict[str, Any]:
    """A row as the database would have it, for SQL of a test's own; times that it sets itself are now."""
    values = {field.column: getattr(row, field.attname) for field in row._meta.concrete_fields}
    return {
        column: "2026-11-28T00:00:00Z"
        if column.endswith("_at") and value is not None
        else str(value)
        if isinstance(value, uuid.UUID)
        else value
        for column, value in values.items()
    }
