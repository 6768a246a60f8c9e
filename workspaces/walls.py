"""Walls of the database, as constraints that migrations carry: row security, the demand for an event, keys that stay in one workspace.

Each is a `BaseConstraint` with SQL of its own, so that a new model gets them from its base class and `makemigrations --check` stays clean.
"""

from typing import Any

from django.db import models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement

SCOPE = "nullif(current_setting('lab.workspace', true), '')::uuid"
WRITABLE = "coalesce(current_setting('lab.shared', true), '') = ''"

# A change of a workspace's row must have its event in the same transaction. The time ties the event to the transaction: an old command id
# cannot be replayed. The table's owner (migrations) passes.
DEMAND_EVENT = """
CREATE FUNCTION lab_demand_event() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE
    row_workspace uuid;
BEGIN
    IF (SELECT relowner FROM pg_class WHERE oid = TG_RELID) = (SELECT oid FROM pg_roles WHERE rolname = current_user) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'DELETE' THEN
        row_workspace := (to_jsonb(OLD) ->> TG_ARGV[0])::uuid;
    ELSE
        row_workspace := (to_jsonb(NEW) ->> TG_ARGV[0])::uuid;
    END IF;
    IF NOT EXISTS (
        SELECT 1 FROM public.workspaces_auditevent
        WHERE command_id = nullif(current_setting('lab.command', true), '')::uuid
          AND workspace_id = row_workspace
          AND recorded_at = transaction_timestamp()
    ) THEN
        RAISE EXCEPTION 'a row of % was changed outside a command', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;
"""
DROP_DEMAND_EVENT = "DROP FUNCTION lab_demand_event()"

# Functions that run with the rights of their owner, who bypasses row security: the complete list, each with what it gives away (contracts.md
# B). A rule test holds it against the database, and that each has a pinned search_path; tests/walls attacks them.
DEFINER_FUNCTIONS = {
    "lab_memory_search": "keys and ranks of memory entries of the open workspace, and of no other",
    "lab_site_busy": "which workspaces have something to do: their keys and counts",
    "lab_site_known": "which of the keys that are asked for are of attempts, of whichever workspace; nothing of whose they are",
    "lab_site_shares": "how much of an engine each workspace had and asks for: their keys, slot-time, weights and places",
}


class Wall(models.BaseConstraint):
    """SQL of our own, run once the table and the unique keys of its parents exist."""

    def sql(self, table: str, quote: Any) -> str:
        raise TypeError(f"{type(self).__name__} has no SQL")

    def undo(self, table: str, quote: Any) -> str:
        raise TypeError(f"{type(self).__name__} has no SQL to undo it")

    def constraint_sql(self, model: type[models.Model] | None, schema_editor: BaseDatabaseSchemaEditor | None) -> str | None:  # type: ignore[override]  # put off: no part of CREATE TABLE
        assert model is not None and schema_editor is not None
        schema_editor.deferred_sql.append(self.statement(model, schema_editor))
        return None

    def statement(self, model: type[models.Model], schema_editor: BaseDatabaseSchemaEditor) -> Statement:
        return Statement(self.sql(schema_editor.quote_name(model._meta.db_table), schema_editor.quote_name))

    def create_sql(  # type: ignore[override]  # put off as well: the parent's unique key may come later in the same migration
        self, model: type[models.Model] | None, schema_editor: BaseDatabaseSchemaEditor | None
    ) -> Statement | None:
        assert model is not None and schema_editor is not None
        schema_editor.deferred_sql.append(self.statement(model, schema_editor))
        return None

    def remove_sql(self, model: type[models.Model] | None, schema_editor: BaseDatabaseSchemaEditor | None) -> Statement:  # type: ignore[override]  # Django takes both
        assert model is not None and schema_editor is not None
        return Statement(self.undo(schema_editor.quote_name(model._meta.db_table), schema_editor.quote_name))

    def validate(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to say before the database does."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Wall) and self.deconstruct() == other.deconstruct()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.name))


class RowSecurity(Wall):
    """Rows of the open workspace only; what a share grant opened can be read and not written.

    `also` names a second column that may match for reading.
    """

    def __init__(self, *, name: str, also: str = "") -> None:
        super().__init__(name=name)
        self.also = also

    def deconstruct(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        path, args, kwargs = super().deconstruct()
        return path, tuple(args), {**kwargs, **({"also": self.also} if self.also else {})}

    def sql(self, table: str, quote: Any) -> str:
        match = f"workspace_id = {SCOPE}"
        readable = f"({match} OR {quote(self.also)} = {SCOPE})" if self.also else match
        return f"""
            ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
            ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
            CREATE POLICY scope_read ON {table} FOR SELECT USING ({readable});
            CREATE POLICY scope_insert ON {table} FOR INSERT WITH CHECK ({match} AND {WRITABLE});
            CREATE POLICY scope_update ON {table} FOR UPDATE USING ({match} AND {WRITABLE});
            CREATE POLICY scope_delete ON {table} FOR DELETE USING ({match} AND {WRITABLE})"""

    def undo(self, table: str, quote: Any) -> str:
        return f"""
            DROP POLICY scope_read ON {table}; DROP POLICY scope_insert ON {table};
            DROP POLICY scope_update ON {table}; DROP POLICY scope_delete ON {table};
            ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY; ALTER TABLE {table} DISABLE ROW LEVEL SECURITY"""


class EventDemanded(Wall):
    """No change without its audit event, checked before the commit. `column` holds the workspace's key."""

    def __init__(self, *, name: str, column: str = "workspace_id") -> None:
        super().__init__(name=name)
        self.column = column

    def deconstruct(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        path, args, kwargs = super().deconstruct()
        return path, tuple(args), {**kwargs, **({"column": self.column} if self.column != "workspace_id" else {})}

    def sql(self, table: str, quote: Any) -> str:
        return f"""
            CREATE CONSTRAINT TRIGGER {quote(self.name)} AFTER INSERT OR UPDATE OR DELETE ON {table}
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lab_demand_event('{self.column}')"""

    def undo(self, table: str, quote: Any) -> str:
        return f"DROP TRIGGER {quote(self.name)} ON {table}"


class SameWorkspace(Wall):
    """The row that `field` points at belongs to this row's workspace: a composite foreign key, which binds raw SQL too."""

    def __init__(self, *, field: str, name: str) -> None:
        super().__init__(name=name)
        self.field = field

    def deconstruct(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        path, args, kwargs = super().deconstruct()
        return path, tuple(args), {**kwargs, "field": self.field}

    def statement(self, model: type[models.Model], schema_editor: BaseDatabaseSchemaEditor) -> Statement:
        field = model._meta.get_field(self.field)
        parent = field.related_model
        assert isinstance(parent, type) and issubclass(parent, models.Model)
        quote = schema_editor.quote_name
        return Statement(
            f"ALTER TABLE {quote(model._meta.db_table)} ADD CONSTRAINT {quote(self.name)} FOREIGN KEY (workspace_id, {quote(f'{self.field}_id')}) "
            f"REFERENCES {quote(parent._meta.db_table)} (workspace_id, id) DEFERRABLE INITIALLY DEFERRED"
        )

    def undo(self, table: str, quote: Any) -> str:
        return f"ALTER TABLE {table} DROP CONSTRAINT {quote(self.name)}"
