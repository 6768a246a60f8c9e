"""A test that cannot fail is a defect: each wall is taken away in turn, and its check must go red. What the database is told is rolled back."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import models

from tests.factories import make_workspace
from tests.rules.routes import Route, routes
from tests.rules.test_commands import COMMANDS, check_command
from tests.rules.test_routes import check_door
from tests.walls import checks
from tests.walls.owner_sql import owner_connection
from tests.walls.test_chain import check_tampering_is_found
from workspaces import audit, scope
from workspaces.commands.workspace import configure_workspace
from workspaces.ids import uuid7
from workspaces.models import Membership, Objective, ShareGrant
from workspaces.models.base import ScopedManager


@pytest.fixture
def owner(db: None) -> "Iterator[psycopg.Connection[Any]]":
    with owner_connection() as opened:
        yield opened


@pytest.mark.parametrize(
    "without",
    [
        "ALTER TABLE workspaces_membership DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE workspaces_membership NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY scope_read ON workspaces_membership",
        "DROP POLICY scope_delete ON workspaces_membership",
        "ALTER POLICY scope_read ON workspaces_membership USING (true)",
        "ALTER POLICY scope_insert ON workspaces_membership WITH CHECK (true)",
        "CREATE POLICY more ON workspaces_membership FOR SELECT USING (true)",
    ],
)
def test_row_security_is_missed(owner: Any, without: str) -> None:
    checks.check_row_security(owner, Membership)
    owner.execute(without)
    with pytest.raises(AssertionError):
        checks.check_row_security(owner, Membership)


def test_a_second_way_in_through_a_policy_is_missed(owner: Any) -> None:
    """Only share grants may be read by a second column."""
    checks.check_row_security(owner, ShareGrant)
    owner.execute(f"ALTER POLICY scope_read ON workspaces_membership USING (workspace_id = {scoped()} OR user_id = {scoped()})")
    with pytest.raises(AssertionError, match="another way in"):
        checks.check_row_security(owner, Membership)


def scoped() -> str:
    return "nullif(current_setting('lab.workspace', true), '')::uuid"


@pytest.mark.parametrize(
    "without",
    [
        "DROP TRIGGER workspaces_membership_event ON workspaces_membership",
        "ALTER TABLE workspaces_membership DISABLE TRIGGER workspaces_membership_event",
    ],
)
def test_the_demand_for_an_event_is_missed(owner: Any, without: str) -> None:
    checks.check_event_demanded(owner, Membership)
    owner.execute(without)
    with pytest.raises(AssertionError):
        checks.check_event_demanded(owner, Membership)


def test_a_composite_key_is_missed(owner: Any) -> None:
    checks.check_keys_stay(owner, Objective)
    key = owner.execute(
        "SELECT conname FROM pg_constraint WHERE conrelid = 'workspaces_objective'::regclass AND contype = 'f' AND array_length(conkey, 1) = 2"
    ).fetchone()[0]
    owner.execute(f'ALTER TABLE workspaces_objective DROP CONSTRAINT "{key}"')
    with pytest.raises(AssertionError, match="composite key"):
        checks.check_keys_stay(owner, Objective)


def test_a_model_that_forgets_its_walls_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_declared(Objective)
    monkeypatch.setattr(Objective._meta, "constraints", [])
    with pytest.raises(AssertionError):
        checks.check_declared(Objective)


@pytest.mark.django_db
def test_the_filter_of_the_manager_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    with scope.open_workspace(uuid7()):
        checks.check_manager_filters(Membership)
        monkeypatch.setattr(ScopedManager, "get_queryset", lambda manager: models.QuerySet(manager.model))
        with pytest.raises(AssertionError, match="does not filter"):
            checks.check_manager_filters(Membership)


def _a_route(needs: Any) -> Route:
    found = next(route for route in routes() if route.name == "event-list")
    assert found.door is not None
    return dataclasses.replace(found, door={**found.door, "needs": needs})


def test_a_route_without_its_permission_is_missed() -> None:
    check_door(next(route for route in routes() if route.name == "event-list"))
    for needs in (None, "signed_in", "view"):
        with pytest.raises(AssertionError):
            check_door(_a_route(needs))
    with pytest.raises(AssertionError, match="no door"):
        check_door(dataclasses.replace(_a_route(None), door=None))


def test_a_command_without_its_permission_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "workspaces.commands.workspace.configure_workspace"
    check_command(name, COMMANDS[name])
    declared = configure_workspace.command  # type: ignore[attr-defined]  # set by the decorator
    monkeypatch.setattr(configure_workspace, "command", {**declared, "needs": None})
    with pytest.raises(AssertionError, match="without a reason"):
        check_command(name, configure_workspace)


@pytest.mark.django_db(transaction=True)
def test_a_column_outside_the_hash_is_missed(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Any) -> None:
    settings.CHECKPOINTS = tmp_path
    monkeypatch.setattr(audit, "HASHED", {1: tuple(name for name in audit.HASHED[1] if name != "actor_label")})
    workspace, owner = make_workspace()
    with scope.open_workspace(workspace.pk):
        for number in range(3):
            configure_workspace(actor=owner, cost_centre=str(number))
    with pytest.raises(AssertionError, match="a changed actor_label was not found"):
        check_tampering_is_found(workspace, "actor_label")
