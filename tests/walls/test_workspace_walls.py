"""Two workspaces, every table filled in both, the application's own role: raw SQL finds nothing of the other one."""

import threading
import uuid
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, ProgrammingError, connection, transaction

from tests.factories import make_workspace
from tests.walls.checks import owned_keys
from tests.walls.owner_sql import owner_connection
from tests.walls.rows import fill, owned_models
from workspaces import scope
from workspaces.models import AuditEvent, Benchmark, Row, Workspace
from workspaces.scope import ScopeError, SharedObject

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def two() -> "tuple[Workspace, Workspace, dict[str, Row], dict[str, Row]]":
    first, _ = make_workspace("first")
    second, _ = make_workspace("second")
    return first, second, fill(first), fill(second)


def count(table: str, where: str = "", *values: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT count(*) FROM "{table}" {where}', list(values))
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def test_raw_sql_sees_the_open_workspace_only(two: Any) -> None:
    first, second, _, _ = two
    for model in owned_models():
        table = model._meta.db_table
        assert count(table) == 0, f"{table} shows rows although no workspace is open"
        with scope.open_workspace(first.pk):
            own, foreign = count(table, "WHERE workspace_id = %s", first.pk), count(table, "WHERE workspace_id = %s", second.pk)
        assert own >= 1, f"{table} hides the open workspace's rows; rows.py made none"
        assert foreign == 0, f"{table} shows {foreign} rows of another workspace"


def touched(statement: str, *values: Any) -> int:
    """Rows that a statement touched; none where the serving role may not run it at all, as on the record's tables."""
    with connection.cursor() as cursor:
        try:
            with transaction.atomic():
                cursor.execute(statement, list(values))
                return int(cursor.rowcount)
        except ProgrammingError as error:
            if "permission denied" in str(error):
                return 0
            raise


def test_raw_sql_changes_the_open_workspace_only(two: Any) -> None:
    first, second, _, _ = two
    with scope.open_workspace(first.pk):
        for model in owned_models():
            table = model._meta.db_table
            assert touched(f'UPDATE "{table}" SET created_at = now() WHERE workspace_id = %s', second.pk) == 0, table
            assert touched(f'DELETE FROM "{table}" WHERE workspace_id = %s', second.pk) == 0, table


def test_rows_cannot_be_put_into_or_moved_to_another_workspace(two: Any) -> None:
    first, second, _, _ = two
    with scope.open_workspace(first.pk), connection.cursor() as cursor:
        for model in owned_models():
            table = model._meta.db_table
            columns = [field.column for field in model._meta.concrete_fields]
            new = {"id": "gen_random_uuid()", "workspace_id": "%s::uuid"}
            names, values = ", ".join(f'"{name}"' for name in columns), ", ".join(new.get(name, f'"{name}"') for name in columns)
            with pytest.raises(DatabaseError, match="row-level security"), transaction.atomic():
                cursor.execute(f'INSERT INTO "{table}" ({names}) SELECT {values} FROM "{table}"', [second.pk])
            with pytest.raises(DatabaseError, match=r"row-level security|permission denied"), transaction.atomic():
                cursor.execute(f'UPDATE "{table}" SET workspace_id = %s', [second.pk])


# Rows that name exactly one of these, which a check of their table says before a key has its say.
ONE_OF = {"runs.MemoryEvidence": ("run", "evaluation", "artifact", "dataset_version")}


def test_every_composite_key_refuses_a_parent_of_another_workspace(two: Any) -> None:
    """As the owner, whom row security and triggers let pass: only the key itself is left to refuse."""
    _, _, own, foreign = two
    tried = 0
    with owner_connection() as opened:
        for model in owned_models():
            for field in owned_keys(model):
                parent = field.related_model
                assert isinstance(parent, type)
                one_of = ONE_OF.get(model._meta.label, ())
                others = "".join(f', "{name}_id" = NULL' for name in one_of if field.name in one_of and name != field.name)
                statement = f'UPDATE "{model._meta.db_table}" SET "{field.column}" = %s{others} WHERE id = %s'
                with pytest.raises(psycopg.errors.ForeignKeyViolation):
                    _at_once(opened, statement, foreign[parent._meta.label].pk, own[model._meta.label].pk)
                tried += 1
    assert tried > 20


def _at_once(opened: "psycopg.Connection[Any]", statement: str, *values: Any) -> None:
    with opened.transaction():
        opened.execute("SET CONSTRAINTS ALL IMMEDIATE")
        opened.execute(statement, values)


def test_a_share_grant_reads_and_never_writes(two: Any) -> None:
    first, _, rows, _ = two
    shared = SharedObject(grant_id=uuid.uuid4(), object_type="benchmark", object_id=rows["workspaces.Benchmark"].pk)
    with scope.open_shared(workspace_id=first.pk, shared=shared):
        for model in owned_models():
            assert touched(f'UPDATE "{model._meta.db_table}" SET created_at = now()') == 0, f"{model._meta.db_table} can be written"
            assert touched(f'DELETE FROM "{model._meta.db_table}"') == 0, f"{model._meta.db_table} can be deleted from"


def test_manager_raises_where_nothing_is_open() -> None:
    for model in owned_models():
        with pytest.raises(ScopeError):
            model.objects.count()
    with scope.open_site("a test"), pytest.raises(ScopeError):
        Benchmark.objects.count()


def test_scope_refuses_inside_a_transaction() -> None:
    workspace, _ = make_workspace()
    with transaction.atomic(), pytest.raises(ScopeError, match="inside a transaction"), scope.open_workspace(workspace.pk):
        pass


def test_scope_is_undone_by_an_exception_and_told_to_a_new_connection() -> None:
    workspace, _ = make_workspace()
    with pytest.raises(ZeroDivisionError), scope.open_workspace(workspace.pk):
        raise ZeroDivisionError
    assert not scope.is_open()
    assert count("workspaces_auditevent") == 0
    with scope.open_workspace(workspace.pk):
        connection.close()
        assert count("workspaces_auditevent") == 1
    assert count("workspaces_auditevent") == 0


def test_a_thread_has_no_scope() -> None:
    workspace, _ = make_workspace()
    seen: list[Any] = []

    def look() -> None:
        try:
            Benchmark.objects.count()
        except ScopeError as error:
            seen.append(error)
        finally:
            connection.close()

    with scope.open_workspace(workspace.pk):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join(10)
    assert len(seen) == 1


def test_unknown_workspace_of_a_row_is_refused() -> None:
    """A scope with an id that no workspace has sees nothing and can write nothing."""
    with scope.open_workspace(uuid.uuid4()):
        assert not AuditEvent.objects.exists()
        with pytest.raises((IntegrityError, ProgrammingError)):
            Benchmark.objects.create(slug="stray", name="Stray")
