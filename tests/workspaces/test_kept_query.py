"""Kept queries: written by the ORM once, asked with other values, and never answered with another's rows."""

import uuid
from typing import Any

import pytest
from django.db.models import Count, QuerySet
from django.utils import timezone

from tests.factories import make_workspace
from tests.factories_registry import make_dataset_version
from workspaces import kept_query, scope
from workspaces.models import Dataset, DatasetVersion, NotFound, Workspace
from workspaces.queries.workspace import find_workspace

NOW = timezone.now()
pytestmark = pytest.mark.django_db(transaction=True)


def _named(slug: Any) -> "QuerySet[Dataset]":
    return Dataset.objects.filter(slug=slug)


def _versions(least: Any) -> "QuerySet[DatasetVersion]":
    rows = DatasetVersion.objects.filter(number__gte=least).select_related("dataset", "created_by")
    return rows.only("number", "dataset__slug", "created_by__username", "created_by__display_name").annotate(files_held=Count("files"))


def test_each_workspace_is_answered_with_its_own_rows() -> None:
    (first, owner), (second, other) = make_workspace("first", region="local"), make_workspace("second", region="local")
    with scope.open_workspace(first.pk):
        make_dataset_version(owner)
        own = [row.pk for row in kept_query.ask(_named, slug="table")]
    with scope.open_workspace(second.pk):
        assert kept_query.ask(_named, slug="table") == []
        with pytest.raises(NotFound):
            Dataset.objects.find("table")
        make_dataset_version(other)
        assert [row.pk for row in kept_query.ask(_named, slug="table")] == [Dataset.objects.get().pk] != own
    with pytest.raises(scope.ScopeError):
        kept_query.ask(_named, slug="table")


def test_rows_are_what_the_orm_makes_of_them(django_assert_num_queries: Any) -> None:
    workspace, owner = make_workspace(region="local")
    with scope.open_workspace(workspace.pk):
        make_dataset_version(owner)
        for _ in range(2):
            (asked,), plain = kept_query.ask(_versions, least=1), _versions(1).get()
            assert asked == plain
            assert asked.get_deferred_fields() == plain.get_deferred_fields()
            with django_assert_num_queries(0):
                assert (asked.dataset.slug, asked.created_by.label) == (plain.dataset.slug, plain.created_by.label)
            assert vars(asked)["files_held"] == vars(plain)["files_held"] == 1
        assert kept_query.ask(_versions, least=2) == []


def test_a_workspace_is_found_by_slug_and_key() -> None:
    workspace, _ = make_workspace("first")
    assert find_workspace("first") == find_workspace(str(workspace.pk)) == workspace
    assert find_workspace("second") is None


def _by_column(column: str, value: Any) -> "QuerySet[Workspace]":
    return Workspace.objects.filter(**{column: value})


@pytest.mark.parametrize(("column", "value"), [("pk", uuid.UUID(int=7)), ("created_at__gt", NOW)], ids=["a key", "a time"])
def test_a_value_of_one_request_is_not_kept(column: str, value: Any) -> None:
    with pytest.raises(TypeError, match="belongs to one request"):
        kept_query.ask(_by_column, column, value)


def test_a_function_that_may_have_taken_a_value_along_builds_no_kept_query() -> None:
    slug = "first"
    with pytest.raises(TypeError, match="made inside another function"):
        kept_query.ask(lambda: Workspace.objects.filter(slug=slug))


def test_a_related_manager_finds_nothing_in_the_whole_workspace() -> None:
    workspace, owner = make_workspace("first", region="local")
    with scope.open_workspace(workspace.pk):
        version = make_dataset_version(owner)
        with pytest.raises(TypeError, match="whole workspace"):
            version.dataset.versions.find(version.public_id)


def test_what_was_asked_ahead_is_answered_once_and_only_where_it_was_asked(django_assert_num_queries: Any) -> None:
    workspace, owner = make_workspace(region="local")
    table, plain = kept_query.Question(_named, (), {"slug": "table"}), kept_query.question(Dataset, slug="other")
    with scope.open_workspace(workspace.pk):
        version = make_dataset_version(owner)
        with kept_query.asking_ahead():
            with django_assert_num_queries(1):
                [none] = kept_query.ask_together([plain], ahead=[table])
                [rows] = kept_query.ask_together([table])
            assert (none, rows) == ([], [version.dataset])
            with django_assert_num_queries(1):
                assert kept_query.ask(_named, slug="table") == rows, "the next one asks anew"
            kept_query.ask_together([], ahead=[table])
            with django_assert_num_queries(1):
                assert kept_query.ask_together([plain, table, table]) == [[], rows, rows], "what was not asked ahead is asked beside it"
            with django_assert_num_queries(1):
                assert kept_query.ask(_named, slug="no such") == []
            kept_query.ask_together([], ahead=[table])
        with django_assert_num_queries(1):
            assert kept_query.ask(_named, slug="table") == rows, "nothing is left behind by a command"
