"""Which workspace are we in? Nothing that belongs to a workspace works without an answer. Three doors (contracts B):

`open_workspace` for pages, API and jobs; `open_shared` to read what a share grant opens; `open_site` for a short list of named site queries.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.backends.signals import connection_created


class ScopeError(RuntimeError):
    """Work on a workspace's rows was tried where none, or another kind of scope, is open."""


@dataclass(frozen=True, slots=True)
class SharedObject:
    """What a share grant opens: one object, by type and key, read-only."""

    grant_id: uuid.UUID
    object_type: str
    object_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class Scope:
    workspace_id: uuid.UUID | None
    shared: SharedObject | None = None
    site_reason: str = ""


_NOTHING = Scope(workspace_id=None)
_scope: ContextVar[Scope] = ContextVar("labsite_scope", default=_NOTHING)


def current() -> Scope:
    """The open scope; raises ScopeError where none is open."""
    scope = _scope.get()
    if scope is _NOTHING:
        raise ScopeError("No workspace is open. Pages, API routes and jobs open one; in a shell use `with open_workspace(workspace):`.")
    return scope


def current_id() -> uuid.UUID:
    """Key of the open workspace. Migrations name this function for ever: it is the default of every `workspace` column."""
    scope = current()
    if scope.workspace_id is None:
        raise ScopeError("A site scope is open, which reads figures of the whole installation and no workspace's rows.")
    return scope.workspace_id


def is_open() -> bool:
    return _scope.get().workspace_id is not None


@contextmanager
def open_workspace(workspace_id: uuid.UUID) -> Iterator[None]:
    """Open one workspace by its key for reading and writing."""
    with _open(Scope(workspace_id=workspace_id)):
        yield


@contextmanager
def open_shared(*, workspace_id: uuid.UUID, shared: SharedObject) -> Iterator[None]:
    """Open the giver's workspace read-only, narrowed to the object of the grant. Callers come from `workspaces/queries/share.py`."""
    with _open(Scope(workspace_id=workspace_id, shared=shared)):
        yield


@contextmanager
def open_site(reason: str) -> Iterator[None]:
    """Open no workspace but the right to ask the named site queries; the reason is a sentence and stands in the code."""
    if not reason.strip():
        raise ScopeError("A site scope wants a reason.")
    with _open(Scope(workspace_id=None, site_reason=reason)):
        yield


@contextmanager
def _open(scope: Scope) -> Iterator[None]:
    # A rollback undoes set_config, while the context variable stays: the two would disagree. (Tests wrap themselves in a transaction; Django
    # marks that one.)
    if any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks):
        raise ScopeError("A scope may not be opened inside a transaction.")
    before = _scope.get()
    token = _scope.set(scope)
    try:
        _tell(scope)
        yield
    finally:
        _scope.reset(token)
        try:
            _tell(before)
        except Exception:
            connection.close()  # better no connection than one with a stranger's scope
            raise


def _tell(scope: Scope) -> None:
    """Set the two settings that row security reads; session-level, so PgBouncer in transaction mode does not fit."""
    if connection.connection is None and scope is _NOTHING:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('lab.workspace', %s, false), set_config('lab.shared', %s, false)",
            [str(scope.workspace_id or ""), str(scope.shared.grant_id) if scope.shared else ""],
        )


def _retell(*, connection: Any, **_: Any) -> None:
    """A new connection knows no scope: tell it, or a reconnect in scope would see no rows."""
    scope = _scope.get()
    if scope is not _NOTHING and connection.alias == "default":
        _tell(scope)


connection_created.connect(_retell, dispatch_uid="labsite.scope")
