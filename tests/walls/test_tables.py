"""Every table of a workspace has its walls, in the catalogue of the database and in the model."""

from typing import Any

import pytest
from django.apps import apps

from tests.walls import checks
from tests.walls.owner_sql import owner_connection
from tests.walls.rows import owned_models
from workspaces import scope
from workspaces.ids import uuid7
from workspaces.models import Row, Workspace
from workspaces.models.base import Owned

# Tables without `workspace_id`, with the reason of each (contracts.md B).
WITHOUT_WORKSPACE = {
    "workspaces.User": "people belong to the installation",
    "workspaces.Workspace": "it is the boundary; rights are looked up on it before any scope is open",
    "workspaces.WorkspaceGroupPermission": "guardian's grants, looked up before any scope is open",
    "workspaces.Engine": "a machine of the installation",
    "workspaces.EngineSlot": "a machine's slot, of the installation",
    "workspaces.SiteEvent": "the installation's own record",
    "workspaces.SiteIdempotencyKey": "keys of site routes",
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
