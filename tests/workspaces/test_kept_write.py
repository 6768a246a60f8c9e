"""Rows are written as the ORM writes them, what the database gives included, and what is not there is not said to be saved."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from tests.factories import make_workspace
from workspaces import ids, kept_query, kept_write, scope
from workspaces.models import Notification, User, Workspace

THEN = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def person() -> Iterator[User]:
    workspace, owner = make_workspace()
    assert owner.user is not None
    with scope.open_workspace(workspace.pk):
        yield owner.user


def told(person: User, **values: Any) -> Notification:
    return Notification(person=person, cause="run_ended", subject_type="run", subject_id=ids.uuid7(), subject_label="50 % ü", **values)


def test_new_rows_are_there_with_what_the_database_gave(person: User) -> None:
    rows = [told(person), told(person, created_at=THEN, seen_at=THEN), told(person, created_at=Now())]
    kept_write.insert(rows[:2])
    kept_write.insert(rows[2:])
    kept_write.insert([])
    for row in rows[:2]:
        stored = Notification.objects.get(pk=row.pk)
        for field in Notification._meta.concrete_fields:
            assert getattr(stored, field.attname) == getattr(row, field.attname), field.name
    assert rows[1].created_at == THEN
    assert abs((Notification.objects.get(pk=rows[2].pk).created_at - rows[0].created_at).total_seconds()) < 60
    rows[0].words = "saved again"
    rows[0].save()
    assert Notification.objects.count() == 3, "a row that was inserted is saved as one that is there"


def test_many_rows_are_added_and_their_number_is_not_kept(person: User) -> None:
    kept_write.insert([told(person)])
    before = kept_write._insert_sql.cache_info().currsize
    for count in (100, 101):
        kept_write.insert([told(person) for _ in range(count)])
    assert Notification.objects.count() == 202
    assert kept_write._insert_sql.cache_info().currsize == before


def test_named_fields_are_saved_and_no_others(person: User) -> None:
    row = told(person)
    kept_write.insert([row])
    row.outcome, row.words, row.seen_at = "failed", "not this", THEN
    kept_write.update(row, ["outcome", "seen_at"])
    stored = Notification.objects.get(pk=row.pk)
    assert (stored.outcome, stored.words, stored.seen_at) == ("failed", "", THEN)
    stored.seen_at = Now()  # computed by the database, as with `save`
    kept_write.update(stored, ["seen_at"])
    assert Notification.objects.get(pk=row.pk).seen_at > THEN  # type: ignore[operator]  # it was seen


def test_what_is_gone_is_not_saved(person: User) -> None:
    row = told(person)
    with pytest.raises(DatabaseError, match=str(row.pk)):
        kept_write.update(row, ["words"])


def test_what_is_put_together_is_written_in_its_order_in_one_round_trip(person: User, django_assert_num_queries: Any) -> None:
    row, other = told(person), told(person, words="100 %s")
    writes = kept_write.Writes()
    writes.insert([row])
    writes.insert([other])
    row.words = "changed"
    writes.update(row, ["words"])
    writes.then("SET CONSTRAINTS ALL IMMEDIATE")
    with transaction.atomic(), django_assert_num_queries(1):
        writes.send()
    assert [one.words for one in Notification.objects.order_by("pk")] == ["changed", "100 %s"]
    assert row.created_at == Notification.objects.get(pk=row.pk).created_at, "what the database gave is taken from its own statement"
    with django_assert_num_queries(0):
        writes.send()


def test_what_is_asked_after_writes_sees_them_in_one_round_trip(person: User, django_assert_num_queries: Any) -> None:
    row = told(person, words="first")
    writes = kept_write.Writes()
    writes.insert([row])
    row.words = "then"
    writes.update(row, ["words"])
    asked = [kept_query.question(Notification, pk=row.pk), kept_query.question(Notification, person=person)]
    with transaction.atomic(), django_assert_num_queries(1):
        [found], all_of_them = kept_query.ask_together(asked, after=writes)
    assert (found.words, found.created_at, all_of_them) == ("then", row.created_at, [row])
    with django_assert_num_queries(1):
        assert kept_query.ask_together(asked[:1], after=writes) == [[row]], "they are written once"
    gone = kept_write.Writes()
    gone.update(told(person), ["words"])
    with pytest.raises(DatabaseError, match="to save"), transaction.atomic():
        kept_query.ask_together(asked, after=gone)


def test_nothing_of_what_is_put_together_stays_where_one_thing_fails(person: User) -> None:
    writes = kept_write.Writes()
    writes.insert([told(person)])
    writes.update(told(person), ["words"])
    with pytest.raises(DatabaseError, match="to save"), transaction.atomic():
        writes.send()
    assert not Notification.objects.exists()


def test_questions_are_answered_together_each_with_its_own(person: User, django_assert_num_queries: Any) -> None:
    row = told(person)
    kept_write.insert([row])
    questions = [kept_query.Question(_of, (), {"keys": keys}) for keys in ([row.pk], [uuid.uuid4()], [row.pk, uuid.uuid4()])]
    with django_assert_num_queries(1):
        assert kept_query.ask_together(questions) == [[row], [], [row]]
    with django_assert_num_queries(0):
        assert kept_query.ask_together([]) == []


def _of(keys: Any) -> "QuerySet[Notification]":
    return Notification.objects.filter(pk=keys)


def test_rows_are_found_by_the_values_of_their_columns(person: User) -> None:
    row, seen = told(person), told(person, seen_at=THEN)
    kept_write.insert([row, seen])
    for _ in range(2):
        assert kept_query.rows(Notification, person=person, seen_at__isnull=True) == [row]
        assert kept_query.first(Notification, person=person.pk, order_by=("-pk",)) == seen
        assert kept_query.rows(Notification, pk=uuid.uuid4()) == []
        assert kept_query.first(Notification, pk=uuid.uuid4()) is None
        assert kept_query.rows(Notification, pk__in=[seen.pk, uuid.uuid4()]) == kept_query.rows(Notification, pk__in={seen.pk}) == [seen]
        many = [uuid.uuid4() for _ in range(100)]
        assert kept_query.rows(Notification, pk__in=[*many, row.pk, seen.pk], order_by=("pk",)) == [row, seen]
        assert kept_query.rows(Notification, person__in=[person.pk], cause__in=["run_ended"], order_by=("pk",)) == [row, seen]
        assert kept_query.rows(Notification, pk__in=[]) == []
    with pytest.raises(TypeError, match="isnull"):
        kept_query.rows(Notification, seen_at=None)


def test_rows_are_locked_inside_a_transaction_alone(person: User) -> None:
    for _ in range(2):  # the first makes the query, the second sends it again
        with transaction.atomic():
            assert kept_query.rows(Workspace, pk=scope.current_id(), locks=("self",))
    with pytest.raises(transaction.TransactionManagementError):
        kept_query.rows(Workspace, pk=scope.current_id(), locks=("self",))


def test_many_rows_with_a_value_for_each_column_are_what_was_given(person: User) -> None:
    rows = [
        told(person, created_at=THEN, seen_at=None, words=f'{number} "\\ \u2028 %s {{}} \U0001f600') for number in range(kept_write.FEW + 1)
    ]
    assert kept_write._as_json(Notification, rows), "they go as one parameter"
    kept_write.insert(rows)
    stored = {row.pk: row for row in Notification.objects.all()}
    for row in rows:
        for field in Notification._meta.concrete_fields:
            assert getattr(stored[row.pk], field.attname) == getattr(row, field.attname), field.name
        assert not row._state.adding
    too_long = [told(person, created_at=THEN, outcome="x" * 1000) for _ in range(kept_write.FEW + 1)]
    with pytest.raises(DatabaseError), transaction.atomic():
        kept_write.insert(too_long)
