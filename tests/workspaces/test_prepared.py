"""Statements of one text are planned once in a connection; to whoever sends them they are as any other."""

import uuid
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet, Value
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from tests.factories import make_workspace
from workspaces import kept_query, kept_write, prepared
from workspaces.models import Workspace

SAID = "50% of 'it' %s $1 \\ %(it)s"
pytestmark = pytest.mark.django_db(transaction=True)


def _named(slug: Any) -> "QuerySet[Workspace]":
    return Workspace.objects.filter(slug=slug)


def _said(slug: Any) -> "QuerySet[Any, Any]":
    return Workspace.objects.filter(slug=slug).annotate(said=Value(SAID)).values_list("said")


def _by_name(name: Any) -> "QuerySet[Workspace]":
    return Workspace.objects.filter(name=name)


def _beyond(number: Any) -> "QuerySet[Any, Any]":
    return Workspace.objects.filter(week_start__lt=number).values_list("slug")


def times_sent(part: str) -> int:
    """How often this connection has executed prepared statements with this in their text."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(generic_plans + custom_plans), 0) FROM pg_prepared_statements WHERE statement LIKE %s", [f"%{part}%"]
        )
        return int(cursor.fetchone()[0])


def test_a_statement_is_prepared_once_and_then_named() -> None:
    make_workspace("first")
    before = times_sent('"workspaces_workspace"."slug" = ($1)')
    for _ in range(7):
        assert [row.slug for row in kept_query.ask(_named, slug="first")] == ["first"]
    assert kept_query.ask(_named, slug="second") == []
    assert times_sent('"workspaces_workspace"."slug" = ($1)') == before + 8


def test_a_new_connection_and_a_transaction_that_was_taken_back_are_answered_as_well() -> None:
    make_workspace("first")
    connection.close()
    with transaction.atomic():
        assert len(kept_query.ask(_named, slug="first")) == 1
        transaction.set_rollback(True)
    assert len(kept_query.ask(_named, slug="first")) == 1


@pytest.mark.parametrize("number", [1, 2**31, 2**62, 2**70], ids=["small", "of no integer", "large", "of no bigint"])
def test_a_number_of_any_size_may_be_asked_for(number: int) -> None:
    make_workspace("first")
    assert kept_query.ask(_beyond, number=number) == list(_beyond(number))


def test_what_always_stands_in_the_text_is_taken_as_it_is() -> None:
    make_workspace("first")
    assert kept_query.ask(_said, slug="first") == [(SAID,)]


def test_errors_are_those_of_django_and_a_broken_transaction_is_told() -> None:
    workspace, _ = make_workspace("first")
    twin = Workspace(id=workspace.pk, slug="other", name="Other", region="local")
    with transaction.atomic():
        with pytest.raises(IntegrityError, match="workspaces_workspace_pkey"), transaction.atomic():
            kept_write.insert([twin])
        assert len(kept_query.ask(_named, slug="first")) == 1  # the savepoint was rolled back
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            kept_query.ask(_by_name, name=str(workspace.pk))  # not prepared before


def test_statements_that_are_watched_are_seen_as_they_are() -> None:
    with CaptureQueriesContext(connection) as asked:
        kept_query.ask(_named, slug="first")
    assert len(asked) == 1
    assert "('first')" in asked[0]["sql"]
    assert "EXECUTE" not in asked[0]["sql"]


def test_statements_are_counted_as_one_round_trip() -> None:
    seen: list[str] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        connection.close()
        kept_query.ask_together([kept_query.Question(_named, (), {"slug": "first"}), kept_query.question(Workspace, pk=uuid.uuid4())])
    assert [sql.count("EXECUTE") for sql in seen] == [2]


def test_types_belong_to_a_statement() -> None:
    with prepared.sent([("SELECT %s, %s", [[uuid.UUID(int=1)], [1, 2]]), ("SELECT %s", [True])]) as cursor:
        assert cursor.fetchone() == ([uuid.UUID(int=1)], [1, 2])
        assert cursor.nextset()
        assert cursor.fetchone() == (True,)


def test_a_job_that_is_cut_off_while_it_prepares_spoils_no_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL has the statement by then, and labsite has not heard so."""
    real = prepared._prepare

    def cut_off(*asked: Any) -> Any:
        real(*asked)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(prepared, "_prepare", cut_off)
        with pytest.raises(KeyboardInterrupt), prepared.sent([("SELECT %s + 1234", [1])]):
            pass
    with prepared.sent([("SELECT %s + 1234", [1])]) as cursor:
        assert cursor.fetchone() == (1235,)
