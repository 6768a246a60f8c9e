"""Queries that every page asks: the ORM writes their SQL once in a process, later only the values change.

Django builds and compiles a query anew each time it is asked, which costs a page more than sending it. A kept query is an ordinary queryset in
which `Key("name")` stands for every value that differs from one request to the next; the open workspace is put in by itself.
"""

import uuid
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Expression, QuerySet
from django.db.models.query import ModelIterable, ValuesIterable, get_related_populators  # type: ignore[attr-defined]  # the stubs leave it out
from django.db.models.sql.compiler import SQLCompiler

from workspaces import scope

WORKSPACE = "workspace of the open scope"


class Key(Expression):
    """A value that is given when the query is asked."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: SQLCompiler, connection: Any) -> tuple[str, list[Any]]:
        return "%s", [self]


class _Kept:
    """One query as PostgreSQL gets it, and how its rows become what the ORM would have made of them."""

    def __init__(self, queryset: "QuerySet[Any, Any]", workspace_id: uuid.UUID | None) -> None:
        self.compiler = queryset.query.get_compiler(connection=connection)
        self.sql, parameters = self.compiler.as_sql()
        self.parameters = [_named(value, workspace_id) for value in parameters]
        self.columns = [column for column, _, _ in self.compiler.select]
        self.makes_models = issubclass(queryset._iterable_class, ModelIterable)
        query = queryset.query
        named = issubclass(queryset._iterable_class, ValuesIterable)
        self.keys = [*query.values_select, *query.annotation_select] if named else []
        if self.makes_models:
            made = self.compiler.klass_info
            self.model, fields = made["model"], made["select_fields"]
            self.start, self.end = fields[0], fields[-1] + 1
            self.names = [column.target.attname for column in self.columns[self.start : self.end]]
            self.related = get_related_populators(made, self.compiler.select, connection.alias)
            self.annotations = dict(self.compiler.annotation_col_map)

    def rows(self, keys: Mapping[str, Any]) -> list[Any]:
        values = [self._value(value, keys) for value in self.parameters]
        with connection.cursor() as cursor:
            cursor.execute(self.sql, values)
            found = cursor.fetchall()
        converters = self.compiler.get_converters(self.columns)
        rows = [tuple(row) for row in self.compiler.apply_converters(found, converters)] if converters else found
        if self.keys:
            return [dict(zip(self.keys, row, strict=True)) for row in rows]
        return [self._object(row) for row in rows] if self.makes_models else rows

    def _value(self, value: Any, keys: Mapping[str, Any]) -> Any:
        if not isinstance(value, Key):
            return value
        return scope.current_id() if value.name == WORKSPACE else keys[value.name]

    def _object(self, row: tuple[Any, ...]) -> Any:
        made = self.model.from_db(connection.alias, self.names, row[self.start : self.end])
        for related in self.related:
            related.populate(row, made)
        for name, column in self.annotations.items():
            setattr(made, name, row[column])
        return made


_kept: dict[tuple[Hashable, ...], _Kept] = {}


def ask(build: Callable[..., "QuerySet[Any, Any]"], *shape: Hashable, **keys: Any) -> list[Any]:
    """Rows of `build(*shape, **keys)`: models, dicts where it ends in `values`, tuples in `values_list`.

    `build` is called once for each `shape`, with a Key for each of the values, and what it makes is sent again and again. So it has to be a
    function of a module: one that is made inside another may have taken a value of one request along, and the next asker would be answered with
    that. TypeError for such a one, and where a key or a time got into the query all the same.
    """
    if "<" in build.__qualname__:
        raise TypeError(f"{build.__qualname__} is made inside another function; a kept query is built by a function of a module.")
    opened = scope.current() if scope.is_open() else None
    if opened is not None and opened.shared is not None:
        return list(build(*shape, **keys))  # narrowed to one object by the manager
    kept = _kept.get((build, *shape))
    if kept is None:
        made = build(*shape, **{name: Key(name) for name in keys})
        kept = _kept[(build, *shape)] = _Kept(made, opened.workspace_id if opened else None)
    return kept.rows(keys)


def _named(value: Any, workspace_id: uuid.UUID | None) -> Any:
    if workspace_id is not None and value == workspace_id:
        return Key(WORKSPACE)
    if isinstance(value, uuid.UUID | datetime):
        raise TypeError(f"A kept query holds {value!r}, which belongs to one request; give it by a key.")
    return value
