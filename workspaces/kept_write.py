"""Rows written by their keys, as `bulk_create` and `save(update_fields=…)` write them, with SQL that is made once in a process.

What a command writes has always the same form: a few new rows and a few changed columns. Django makes the SQL anew for each, which costs a
command more than sending it. No signals, no parents: models here have neither. `insert` and `update` fill in what the database itself gives.
What is written in a row, with nothing read in between, goes to the database at once: `Writes`.
"""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from django.db import DatabaseError, connection, models
from django.db.models.expressions import DatabaseDefault

from workspaces import prepared, scope

R = TypeVar("R", bound=models.Model)
FEW = 8  # rows of one statement
# Of these the text in JSON is what the database makes the same value of.
PLAIN = frozenset(
    {"UUIDField", "CharField", "TextField", "DateTimeField", "BooleanField", "PositiveIntegerField", "IntegerField", "BigIntegerField"}
)

Write = tuple[str, list[Any], Callable[[Any], None]]  # a statement, its values, and who takes its answer


class Writes:
    """Statements that are sent together, in the order in which they were put in: one round trip, and so much less time under the locks of the
    transaction. Nothing is written before `send`. To the database's clock (`Now`) they are one statement: rows whose instants are their order
    are sent one by one."""

    def __init__(self) -> None:
        self.changed = 0  # rows that `change` has found, once it was sent
        self._statements: list[Write] = []

    def insert(self, rows: Sequence[models.Model]) -> None:
        """Add new rows of one model, with keys of their own, in one statement."""
        if not rows:
            return
        model = type(rows[0])
        fields = _written(model)
        # Each number of rows has an SQL of its own, and those are kept for good.
        values = [[_value(row, field, is_new=True) for field in fields] for row in rows] if len(rows) <= FEW else []
        if not values and (many := _as_json(model, rows)):
            self._put(_insert_many_sql(model), [many], lambda _: _are_there(rows))
            return
        if not values or any(hasattr(value, "resolve_expression") for one in values for value in one):  # computed by the database
            self.send()
            model._default_manager.bulk_create(rows)
            return
        given = tuple(tuple(value is _DEFAULT for value in one) for one in values)
        told = tuple(field for field in fields if field.has_db_default() and any(one[fields.index(field)] is _DEFAULT for one in values))

        def take(cursor: Any) -> None:
            answers = cursor.fetchall() if told else []
            for number, row in enumerate(rows):
                if answers:
                    for field, value in zip(told, answers[number], strict=True):
                        setattr(row, field.attname, value)
            _are_there(rows)

        self._put(_insert_sql(model, given, told), [value for one in values for value in one if value is not _DEFAULT], take)

    def update(self, row: models.Model, names: Sequence[str]) -> None:
        """Save these fields of a row that is there. `send` raises DatabaseError where it is not any more."""
        fields = tuple(row._meta.get_field(name) for name in names)
        values = [_value(row, field, is_new=False) for field in fields]
        if any(hasattr(value, "resolve_expression") for value in values):
            self.send()
            row.save(update_fields=list(names))  # computed by the database, from the row as it is there
            return

        def take(cursor: Any) -> None:
            if cursor.rowcount != 1:
                raise DatabaseError(f"There is no {row._meta.verbose_name} {row.pk} to save.")

        key = row._meta.pk
        self._put(_update_sql(type(row), fields), [*values, key.get_db_prep_save(row.pk, connection)], take)

    def change(self, model: type[models.Model], values: Mapping[str, Any], **where: Any) -> None:
        """Save values of the rows of the open workspace in which fields have the values of `where`; there may be none."""
        given = {"workspace_id": scope.current_id(), **where}
        fields: list[Any] = [model._meta.get_field(name) for name in (*values, *given)]
        prepared = [
            field.get_db_prep_save(value, connection) for field, value in zip(fields, (*values.values(), *given.values()), strict=True)
        ]
        self._put(_change_sql(model, tuple(fields[: len(values)]), tuple(fields[len(values) :])), prepared, self._count)

    def delete(self, model: type[models.Model], name: str, value: Any) -> None:
        """Remove the rows of a model that nothing points at, by the value of one field; there may be none."""
        field: Any = model._meta.get_field(name)
        self._put(_delete_sql(model, field), [field.get_db_prep_value(value, connection)], lambda _: None)

    def then(self, sql: str) -> None:
        """One more statement, without values and without an answer."""
        self._put(sql, [], lambda _: None)

    def taken(self) -> list[Write]:
        """What was put in, for one who sends it with statements of their own, and gives each the cursor at its answer."""
        statements, self._statements = self._statements, []
        return statements

    def send(self) -> None:
        """Send what was put in, all of it or, where one fails, nothing that lasts: the transaction is over then."""
        statements = self.taken()
        if not statements:
            return
        with prepared.sent([(sql, values) for sql, values, _ in statements]) as cursor:
            for place, (_, _, take) in enumerate(statements):
                if place:
                    cursor.nextset()
                take(cursor)

    def _count(self, cursor: Any) -> None:
        self.changed += cursor.rowcount

    def _put(self, sql: str, values: list[Any], take: Callable[[Any], None]) -> None:
        self._statements.append((sql, values, take))


def row_of(model: type[R], **columns: Any) -> R:
    """A new row with a value for each column: a third of the time that a model takes which fills in what is not given."""
    return model(*[columns[name] for name in _column_names(model)])


@cache
def _column_names(model: type[models.Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in model._meta.concrete_fields)


def insert(rows: Sequence[models.Model]) -> None:
    """Add new rows of one model, with keys of their own, in one statement."""
    writes = Writes()
    writes.insert(rows)
    writes.send()


def update(row: models.Model, names: Sequence[str]) -> None:
    """Save these fields of a row that is there. DatabaseError where it is not any more."""
    writes = Writes()
    writes.update(row, names)
    writes.send()


_DEFAULT = object()


def _value(row: models.Model, field: Any, *, is_new: bool) -> Any:
    value = field.pre_save(row, is_new)
    if isinstance(value, DatabaseDefault):
        return _DEFAULT
    return value if hasattr(value, "resolve_expression") else field.get_db_prep_save(value, connection=connection)


@cache
def _written(model: type[models.Model]) -> tuple[Any, ...]:
    return tuple(field for field in model._meta.local_concrete_fields if not field.generated)


def _as_json(model: type[models.Model], rows: Sequence[models.Model]) -> str:
    """Many rows as one parameter, which the database takes apart: a hundredth of the time that a parameter for each value takes. Empty where
    the database is to fill something in, or a field is none of PLAIN."""
    get = _all_of(model)
    if get is None:
        return ""
    names = [field.column for field in _written(model)]
    try:
        return json.dumps([dict(zip(names, get(row), strict=True)) for row in rows], default=_text, ensure_ascii=False)
    except TypeError:
        return ""


def _text(value: Any) -> str:
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, datetime):
        return str(value)
    raise TypeError(f"{value!r} is filled in by the database")


@cache
def _all_of(model: type[models.Model]) -> Callable[[models.Model], tuple[Any, ...]] | None:
    """Reads what is written of a row; None where that is more than to read it."""
    fields = _written(model)
    if any(_type_of(field) not in PLAIN or getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False) for field in fields):
        return None
    return attrgetter(*(field.attname for field in fields))


def _are_there(rows: Sequence[models.Model]) -> None:
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias


def _type_of(field: Any) -> str:
    return str((field.target_field if field.is_relation else field).get_internal_type())


@cache
def _insert_many_sql(model: type[models.Model]) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in _written(model))
    types = ", ".join(f"{quote(field.column)} {field.db_type(connection)}" for field in _written(model))
    return f"INSERT INTO {quote(model._meta.db_table)} ({columns}) SELECT {columns} FROM json_to_recordset(%s::json) AS one ({types})"  # noqa: S608  # names of ours


@cache
def _insert_sql(model: type[models.Model], given: tuple[tuple[bool, ...], ...], told: tuple[Any, ...]) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in _written(model))
    rows = ", ".join(f"({', '.join('DEFAULT' if is_default else '%s' for is_default in one)})" for one in given)
    answer = f" RETURNING {', '.join(quote(field.column) for field in told)}" if told else ""
    return f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES {rows}{answer}"  # noqa: S608  # names of ours


@cache
def _change_sql(model: type[models.Model], fields: tuple[Any, ...], where: tuple[Any, ...]) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(f"{quote(field.column)} = %s" for field in fields)
    those = " AND ".join(f"{quote(field.column)} = %s" for field in where)
    return f"UPDATE {quote(model._meta.db_table)} SET {columns} WHERE {those}"  # noqa: S608  # names of ours


@cache
def _delete_sql(model: type[models.Model], field: Any) -> str:
    quote = connection.ops.quote_name
    return f"DELETE FROM {quote(model._meta.db_table)} WHERE {quote(field.column)} = %s"  # noqa: S608  # names of ours


@cache
def _update_sql(model: type[models.Model], fields: tuple[Any, ...]) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(f"{quote(field.column)} = %s" for field in fields)
    return f"UPDATE {quote(model._meta.db_table)} SET {columns} WHERE {quote(model._meta.pk.column)} = %s"  # noqa: S608  # names of ours
