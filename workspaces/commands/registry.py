"""What the commands on named things of the registry share: inserting a checked row once, and changing the fields that may change."""

import copy
import uuid
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import CharField, TextField

from workspaces.access import Actor
from workspaces.audit import Draft, Refusal
from workspaces.models import Agent, Benchmark, Dataset, Owned
from workspaces.text import UNSTORABLE, is_storable_json, unreadable

Named = TypeVar("Named", Benchmark, Dataset, Agent)
Row = TypeVar("Row", bound=Owned)


def insert(event: Draft, row: Row) -> Row:
    """Check a new row field by field and insert it. Refuses with the field's name what the model does not take."""
    clean(row)
    row.save(force_insert=True)
    event.created(row)
    return row


def insert_all(event: Draft, rows: Sequence[Row]) -> None:
    """`insert` of many rows of one table, in one statement."""
    for row in rows:
        clean(row)
    if rows:
        type(rows[0]).objects.bulk_create(rows)
        event.created(*rows)


def create_named(
    event: Draft,
    model: type[Named],
    *,
    actor: Actor,
    slug: str,
    name: str,
    id: uuid.UUID | None,  # noqa: A002  # the word of the column
    **fields: Any,
) -> Named:
    """Create a benchmark, dataset or agent. A slug that another one has, `-` and `_` taken as one, is refused."""
    row = model(slug=slug, name=name or slug, created_by=actor.user, **fields)
    if id is not None:
        row.pk = id
    return insert_named(event, row)


def insert_named(event: Draft, row: Row) -> Row:
    """Check a new row with a slug and insert it. A slug that another one has, `-` and `_` taken as one, is refused."""
    clean(row)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        if "_slug_once" in str(error):
            noun, slug = str(row._meta.verbose_name), getattr(row, "slug", "")
            known = f"There is {'an' if noun[0] in 'aeiou' else 'a'} {noun} named {slug} here already"
            raise Refusal(f"{known} (- and _ count as one); choose another name.", field="slug") from error
        raise
    event.created(row)
    return row


def change_fields(
    event: Draft, row: Row, changeable: Collection[str], changed: dict[str, Any], *, check: Callable[[Row], None] | None = None
) -> Row:
    """Change the given fields of a row, noting before and after. Refuses fields that may not change, a change of nothing, and whatever
    `check` refuses of the row as it would be."""
    fixed = set(changed) - set(changeable)
    if fixed:
        raise Refusal(f"{', '.join(sorted(fixed))} of a {row._meta.verbose_name} cannot be changed.", field=sorted(fixed)[0])
    locked = type(row).objects.select_for_update(no_key=True).get(pk=row.pk)
    values = {field: value for field, value in changed.items() if getattr(locked, field) != value}
    if not values:
        raise Refusal("Nothing would change.")
    event.changing(locked)
    proposed = copy.copy(locked)
    for field, value in values.items():
        setattr(proposed, field, value)
    clean(proposed)
    if check is not None:
        check(proposed)
    event.change(locked, **values)
    return locked


def clean(row: Owned) -> None:
    """Each field on its own terms, without a question to the database; keys to other rows are checked there."""
    for field in row._meta.concrete_fields:
        value = getattr(row, field.attname)
        if not is_storable_json(value):
            raise Refusal(f"This holds {UNSTORABLE}.", field=field.name)
        if isinstance(field, CharField) and value and isinstance(value, str) and (fault := unreadable(value, lines=True)):
            raise Refusal(fault, field=field.name)
        if isinstance(field, TextField) and field.max_length is not None and len(value) > field.max_length:
            raise Refusal(f"At most {field.max_length:,} characters; this has {len(value):,}.", field=field.name)
    keys = {field.name for field in row._meta.concrete_fields if field.is_relation}
    try:
        row.clean_fields(exclude=keys)
    except ValidationError as error:
        field_name, messages = next(iter(error.message_dict.items()))
        raise Refusal(*messages, field=field_name) from error
