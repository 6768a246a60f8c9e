"""Each wall of a table as one check that fails by AssertionError; tests/rules/test_walls_can_fail.py takes the walls away in turn."""

from typing import Any

from django.db import models

from workspaces.models import Row
from workspaces.models.base import Owned
from workspaces.walls import EventDemanded, SameWorkspace

SCOPED = "(workspace_id = (NULLIF(current_setting('lab.workspace'::text, true), ''::text))::uuid)"


def check_manager_filters(model: type[Row]) -> None:
    """Wall 2: the manager says `workspace_id = …` in every query, so that the index on it serves and a forgotten filter cannot be."""
    assert f'"{model._meta.db_table}"."workspace_id" = ' in str(model.objects.all().query), f"{model._meta.label}.objects does not filter"


def check_row_security(connection: Any, model: type[Row]) -> None:
    """Wall 4: row security is on and forced, and each of the four policies compares with the open workspace."""
    table = model._meta.db_table
    flags = connection.execute("SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = %s::regclass", [table]).fetchone()
    assert flags == (True, True), f"{table}: row security is {flags}"
    found = [
        (command, using or "", checked or "")
        for command, using, checked in connection.execute(
            "SELECT polcmd::text, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid) "
            "FROM pg_policy WHERE polrelid = %s::regclass",
            [table],
        ).fetchall()
    ]
    assert sorted(command for command, _, _ in found) == ["a", "d", "r", "w"], f"{table} has policies for {[one[0] for one in found]}"
    for command, using, checked in found:
        says = checked if command == "a" else using
        assert SCOPED in says, f"{table}: the policy {command} does not compare with the open workspace"
        assert command == "r" or "lab.shared" in says, f"{table}: the policy {command} lets a share grant write"
        assert " OR " not in says or (command == "r" and table == "workspaces_sharegrant"), (
            f"{table}: the policy {command} has another way in"
        )


def check_event_demanded(connection: Any, model: type[models.Model]) -> None:
    """No change without its event: the deferred trigger is there for all three ways to write, and enabled."""
    table = model._meta.db_table
    triggers = connection.execute(
        "SELECT tgenabled::text, tgdeferrable, tginitdeferred, tgtype FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
        "WHERE tgrelid = %s::regclass AND p.proname = 'lab_demand_event'",
        [table],
    ).fetchall()
    # tgtype: row 1, insert 4, delete 8, update 16 (src/include/catalog/pg_trigger.h)
    assert triggers == [("O", True, True, 1 | 4 | 8 | 16)], f"{table}: the trigger that demands an event is {triggers}"


def check_keys_stay(connection: Any, model: type[Row]) -> None:
    """Wall 3: every key to a workspace's row is a composite one, and the parents can be pointed at."""
    table = model._meta.db_table
    keys = {
        (tuple(columns), target, tuple(target_columns), validated)
        for columns, target, target_columns, validated in connection.execute(
            """
            SELECT (SELECT array_agg(attname::text ORDER BY n) FROM unnest(conkey) WITH ORDINALITY AS k (number, n)
                    JOIN pg_attribute ON attrelid = conrelid AND attnum = k.number),
                   confrelid::regclass::text,
                   (SELECT array_agg(attname::text ORDER BY n) FROM unnest(confkey) WITH ORDINALITY AS k (number, n)
                    JOIN pg_attribute ON attrelid = confrelid AND attnum = k.number),
                   convalidated
            FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'f'
            """,
            [table],
        ).fetchall()
    }
    for field in owned_keys(model):
        parent = field.related_model
        assert isinstance(parent, type)
        wanted = (("workspace_id", f"{field.name}_id"), parent._meta.db_table, ("workspace_id", "id"), True)
        assert wanted in keys, f"{model._meta.label}.{field.name} has no composite key; name it in same_workspace(...)"


def owned_keys(model: type[models.Model]) -> "list[models.ForeignKey[Any, Any]]":
    """Fields of the model that point at a workspace's row."""
    return [
        field
        for field in model._meta.concrete_fields
        if isinstance(field, models.ForeignKey) and isinstance(field.related_model, type) and issubclass(field.related_model, Row)
    ]


def check_declared(model: type[Row]) -> None:
    """The walls stand in the model as well, so that migrations keep them."""
    constraints = model._meta.constraints
    assert not issubclass(model, Owned) or any(isinstance(one, EventDemanded) for one in constraints), (
        f"{model._meta.label} inherits no Meta"
    )
    declared = {one.field for one in constraints if isinstance(one, SameWorkspace)}
    assert declared == {field.name for field in owned_keys(model)}, f"{model._meta.label}: same_workspace names {sorted(declared)}"
