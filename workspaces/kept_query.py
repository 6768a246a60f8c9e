"""Queries that every page asks: the ORM writes their SQL once in a process, later only the values change.

Django builds and compiles a query anew each time it is asked, which costs a page more than sending it. A kept query is an ordinary queryset in
which `Key("name")` stands for every value that differs from one request to the next; the open workspace is put in by itself.
"""

import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Expression, Model, QuerySet, Value
from django.db.models.query import ModelIterable, ValuesIterable, get_related_populators  # type: ignore[attr-defined]  # the stubs leave it out
from django.db.models.sql.compiler import SQLCompiler
from django.db.transaction import TransactionManagementError

from workspaces import kept_write, prepared, scope

M = TypeVar("M", bound=Model)

WORKSPACE = "workspace of the open scope"


class Key(Expression):
    """A value that is given when the query is asked."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: SQLCompiler, connection: Any) -> tuple[str, list[Any]]:
        return "%s", [self]


class Keys(Value):
    """Several values, any of which a column may have: `filter(pk=keys)`. PostgreSQL gets them as one array, so that a query is the same for any
    number of them. A `Value`, since the ORM sets any other expression in parentheses, where ANY may not stand."""

    def __init__(self, name: str = "", values: Sequence[Any] = ()) -> None:
        super().__init__(values)
        self.name = name

    def as_sql(self, compiler: SQLCompiler, connection: Any) -> tuple[str, list[Any]]:
        return "ANY(%s)", [self if self.name else self.value]


class _Kept:
    """One query as PostgreSQL gets it, and how its rows become what the ORM would have made of them."""

    def __init__(self, queryset: "QuerySet[Any, Any]", workspace_id: uuid.UUID | None) -> None:
        self.compiler = queryset.query.get_compiler(connection=connection)
        sql, parameters = self.compiler.as_sql()
        self.parameters: list[Key | Keys] = []
        self.sql = sql.replace("%%", "%%%%") % tuple(self._place(_named(value, workspace_id)) for value in parameters)
        self.columns = [column for column, _, _ in self.compiler.select]
        self.converters = self.compiler.get_converters(self.columns)
        self.makes_models = issubclass(queryset._iterable_class, ModelIterable)
        query = queryset.query
        self.locks = query.select_for_update
        named = issubclass(queryset._iterable_class, ValuesIterable)
        self.keys = [*query.values_select, *query.annotation_select] if named else []
        if self.makes_models:
            made = self.compiler.klass_info
            self.model, fields = made["model"], made["select_fields"]
            self.start, self.end = fields[0], fields[-1] + 1
            self.names = [column.target.attname for column in self.columns[self.start : self.end]]
            self.related = get_related_populators(made, self.compiler.select, connection.alias)
            self.annotations = dict(self.compiler.annotation_col_map)

    def _place(self, value: Any) -> str:
        """Where a key's value is put in; what is always the same stands in the text, where PostgreSQL can plan with it."""
        if isinstance(value, Key | Keys):
            self.parameters.append(value)
            return "%s"
        return str(connection.ops.compose_sql("%s", [value])).replace("%", "%%")  # type: ignore[attr-defined]  # PostgreSQL's

    def values(self, keys: Mapping[str, Any]) -> list[Any]:
        if self.locks and not connection.in_atomic_block:
            raise TransactionManagementError("Rows are locked inside a transaction.")  # as the ORM has it
        return [scope.current_id() if key.name == WORKSPACE else keys[key.name] for key in self.parameters]

    def rows(self, found: list[tuple[Any, ...]]) -> list[Any]:
        rows = [tuple(row) for row in self.compiler.apply_converters(found, self.converters)] if self.converters else found
        if self.keys:
            return [dict(zip(self.keys, row, strict=True)) for row in rows]
        return [self._object(row) for row in rows] if self.makes_models else rows

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

    `build` is called once for each `shape` and set of keys, with a Key for each of the values, or Keys for a list, and what it makes is sent
    again and again. So it has to be a function of a module: one that is made inside another may have taken a value of one request along, and
    the next asker would be answered with that. TypeError for such a one, and where a key or a time got into the query all the same.
    """
    if "<" in build.__qualname__:
        raise TypeError(f"{build.__qualname__} is made inside another function; a kept query is built by a function of a module.")
    [rows] = ask_together([Question(build, shape, keys)])
    return rows


@dataclass(frozen=True, slots=True)
class Question:
    """A query for `ask_together`, with what `ask` wants."""

    build: Callable[..., "QuerySet[Any, Any]"]
    shape: tuple[Hashable, ...]
    keys: Mapping[str, Any]


_answers: ContextVar[dict[Hashable, list[Any]] | None] = ContextVar("answers to what was asked ahead", default=None)


@contextmanager
def asking_ahead() -> Iterator[None]:
    """Within, `ask_together` may ask ahead: a command is carried out inside one, and what it left unused is forgotten with it."""
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def ask_together(
    questions: Sequence[Question], *, ahead: Sequence[Question] = (), after: kept_write.Writes | None = None
) -> list[list[Any]]:
    """The rows of each, as `ask` gives them, asked one after the other in one round trip: a later one sees what is there once an earlier one
    has its locks. What is to be written `after` which they are asked goes before them in the same round trip.

    `ahead` is asked in the same round trip for whoever in this command asks it later: the first to do so has the answer at once, the next asks
    anew. It must be nothing that the command changes in between.
    """
    for question in (*questions, *ahead):
        if "<" in question.build.__qualname__:
            name = question.build.__qualname__
            raise TypeError(f"{name} is made inside another function; a kept query is built by a function of a module.")
    opened = scope.current() if scope.is_open() else None
    if opened is not None and opened.shared is not None:  # narrowed to one object by the manager
        return [
            list(one.build(*one.shape, **dict(one.keys) | {name: Keys(values=one.keys[name]) for name in _several(one)}))
            for one in questions
        ]
    answers = _answers.get()
    if answers is None:
        return _asked(questions, opened, after)
    known = {place: answers.pop(form) for place, one in enumerate(questions) if (form := _form_of(one)) in answers} if answers else {}
    found = _asked([*(one for place, one in enumerate(questions) if place not in known), *ahead], opened, after)
    here = iter(found[: len(questions) - len(known)])
    answers |= {_form_of(one): rows for one, rows in zip(ahead, found[len(questions) - len(known) :], strict=True)}
    return [known[place] if place in known else next(here) for place in range(len(questions))]


def _form_of(question: Question) -> Hashable:
    values = ((name, tuple(value) if isinstance(value, list) else value) for name, value in question.keys.items())
    return question.build, question.shape, frozenset(values)


def _asked(questions: Sequence[Question], opened: scope.Scope | None, after: kept_write.Writes | None = None) -> list[list[Any]]:
    written = after.taken() if after is not None else []
    if not questions and not written:
        return []
    kept = [_kept_of(question, opened.workspace_id if opened else None) for question in questions]
    statements = [(one.sql, one.values(question.keys)) for one, question in zip(kept, questions, strict=True)]
    found = []
    with prepared.sent([*((sql, values) for sql, values, _ in written), *statements]) as cursor:
        for place in range(len(written) + len(kept)):
            if place:
                cursor.nextset()
            if place < len(written):
                written[place][2](cursor)
            else:
                found.append(cursor.fetchall())
    return [one.rows(rows) for one, rows in zip(kept, found, strict=True)]


def _kept_of(question: Question, workspace_id: uuid.UUID | None) -> _Kept:
    several = _several(question)
    form = (question.build, question.shape, *question.keys, several)
    kept = _kept.get(form)
    if kept is None:
        keys = {name: Keys(name) if name in several else Key(name) for name in question.keys}
        kept = _kept[form] = _Kept(question.build(*question.shape, **keys), workspace_id)
    return kept


def _several(question: Question) -> tuple[str, ...]:
    return tuple(name for name, value in question.keys.items() if isinstance(value, list))


@dataclass(frozen=True, slots=True)
class _Form:
    """What is the same each time `rows` is asked so."""

    related: tuple[str, ...]
    order_by: tuple[str, ...]
    locks: tuple[str, ...]
    limit: int | None
    fixed: tuple[tuple[str, Any], ...] = ()


def rows(
    model: "type[M]", *, related: tuple[str, ...] = (), order_by: tuple[str, ...] = (), locks: tuple[str, ...] = (), limit: int | None = None,
    **lookups: Any,
) -> "list[M]":  # fmt: skip
    """Rows of a model whose columns have these values, as `filter(**lookups)` finds them: a kept query without a function of its own. Rows are
    given as rows or as keys; nothing is looked for by None (`…__isnull` is a look-up like any). `locks` names what is locked, "self" and
    related rows."""
    found: list[M] = ask_together([question(model, related=related, order_by=order_by, locks=locks, limit=limit, **lookups)])[0]
    return found


def question(
    model: "type[Model]", *, related: tuple[str, ...] = (), order_by: tuple[str, ...] = (), locks: tuple[str, ...] = (),
    limit: int | None = None, **lookups: Any,
) -> Question:  # fmt: skip
    """What `rows` asks, for `ask_together`."""
    fixed = tuple((name, value) for name, value in lookups.items() if name.endswith("__isnull"))
    values = {
        name.removesuffix("__in"): [*value] if name.endswith("__in") else getattr(value, "pk", value)
        for name, value in lookups.items()
        if not name.endswith("__isnull")
    }
    if None in values.values():
        raise TypeError("Nothing equals NULL; look for `…__isnull`.")
    return Question(_filtered, (model, _Form(related, order_by, locks, limit, fixed)), values)


def first(
    model: "type[M]", *, related: tuple[str, ...] = (), order_by: tuple[str, ...] = (), locks: tuple[str, ...] = (), **lookups: Any
) -> "M | None":  # fmt: skip
    """The first of `rows`, None where there is none."""
    return next(iter(rows(model, related=related, order_by=order_by, locks=locks, limit=1, **lookups)), None)


def _filtered(model: Any, form: _Form, **values: Any) -> "QuerySet[Any, Any]":
    found: QuerySet[Any, Any] = model.objects.filter(**values, **dict(form.fixed))
    if form.related:
        found = found.select_related(*form.related)
    if form.order_by:
        found = found.order_by(*form.order_by)
    if form.locks:
        found = found.select_for_update(of=form.locks, no_key=True)
    return found[: form.limit]


def _named(value: Any, workspace_id: uuid.UUID | None) -> Any:
    if workspace_id is not None and value == workspace_id:
        return Key(WORKSPACE)
    if isinstance(value, uuid.UUID | datetime):
        raise TypeError(f"A kept query holds {value!r}, which belongs to one request; give it by a key.")
    return value
