"""Thousands of new rows in one command: made, hashed and put into one parameter before the command takes its locks, under which they are written."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.postgres.functions import TransactionNow
from django.db import models

from workspaces import kept_query, kept_write, scope
from workspaces.audit import Draft, Subject
from workspaces.canonical import read_hash
from workspaces.models import Workspace


class NewRows:
    """Rows of one model with a value for each column, down to `created_at` (`kept_write.row_of`), which nobody changes before they are written."""

    def __init__(self, rows: Sequence[models.Model]) -> None:
        self._subjects = [Subject(row=row, before_hash="", after_hash=read_hash(row)) for row in rows]
        self._writes = kept_write.Writes()
        self._writes.insert(rows)

    def write(self, event: Draft) -> None:
        self._writes.send()
        event.subjects.extend(self._subjects)


def transaction_instant() -> datetime:
    """When the open transaction began, by the database's clock: what `created_at` of such rows is."""
    [(now,)] = kept_query.ask(_instant, key=scope.current_id())
    return now  # type: ignore[no-any-return]  # of the database


def _instant(key: Any) -> "models.QuerySet[Any, Any]":
    return Workspace.objects.filter(pk=key).values_list(TransactionNow())
