"""The whole permission map, written out (contracts.md A): who changes access.py changes this table with open eyes."""

import pytest
from django.contrib.auth.models import Permission as Codename

from tests.factories import make_member, make_workspace
from workspaces import scope
from workspaces.access import ROLES, Permission, rights_of
from workspaces.models import Workspace

TABLE = """
                   viewer researcher operator approver auditor admin owner
view                  x       x         x        x        x      x     x
launch_run            .       x         x        .        .      x     x
cancel_run            .       x         x        .        .      x     x
edit_registry         .       x         x        .        .      x     x
import_data           .       x         x        .        .      x     x
write_memory          .       x         x        .        .      x     x
propose_policy        .       x         x        x        .      x     x
approve               .       .         .        x        .      x     x
promote               .       x         x        .        .      x     x
manage_queue          .       .         x        .        .      x     x
manage_pool           .       .         x        .        .      x     x
manage_secret         .       .         x        .        .      x     x
manage_workspace      .       .         .        .        .      x     x
manage_budget         .       .         .        .        .      x     x
share                 .       .         .        .        .      x     x
manage_members        .       .         .        .        .      x     x
export                .       .         x        .        .      x     x
archive               .       .         x        .        .      x     x
view_audit            .       .         x        x        x      x     x
delete                .       .         .        .        .      .     x
transfer              .       .         .        .        .      .     x
"""
_HEAD, *_ROWS = [line.split() for line in TABLE.strip().splitlines()]
EXPECTED = {role: {row[0] for row in _ROWS if row[column] == "x"} for column, role in enumerate(_HEAD, start=1)}


def test_the_table_names_every_permission_and_role() -> None:
    assert [row[0] for row in _ROWS] == [permission.value for permission in Permission]
    assert set(EXPECTED) == set(ROLES)


@pytest.mark.parametrize("role", sorted(EXPECTED))
def test_a_role_declares_exactly_its_permissions(role: str) -> None:
    assert {permission.value for permission in ROLES[role]} == EXPECTED[role]


@pytest.mark.django_db
@pytest.mark.parametrize("role", sorted(EXPECTED))
def test_a_member_holds_exactly_its_permissions(role: str) -> None:
    """As the database grants them, of every kind."""
    workspace, _ = make_workspace()
    actor = make_member(workspace, role)
    with scope.open_workspace(workspace.pk):
        rights = rights_of(actor, workspace.pk)
    assert {permission.value for permission in rights.grants} == EXPECTED[role]
    assert set(rights.grants.values()) == {None}


@pytest.mark.django_db
def test_the_database_knows_exactly_these_permissions() -> None:
    known = set(
        Codename.objects.filter(content_type__app_label="workspaces", content_type__model="workspace").values_list("codename", flat=True)
    )
    assert known == {permission.value for permission in Permission}
    assert Workspace._meta.default_permissions == ()
