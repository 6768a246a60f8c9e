"""The search of memory runs with its owner's rights: raw SQL through it finds nothing of another workspace, of none, or under a share grant."""

from typing import Any

import pytest
from django.db import connection

from tests.factories import make_workspace
from tests.walls.rows import fill
from workspaces import scope

pytestmark = pytest.mark.django_db(transaction=True)


def found(text: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM lab_memory_search(%s, '', '', 100)", [text])
        return [row[0] for row in cursor.fetchall()]


def test_it_finds_nothing_of_another_workspace() -> None:
    first, second = make_workspace("first")[0], make_workspace("second")[0]
    mine, foreign = fill(first)["runs.MemoryEntry"], fill(second)["runs.MemoryEntry"]
    title: str = getattr(foreign, "title")
    with scope.open_workspace(second.pk):
        assert found(title) == [foreign.pk]
    with scope.open_workspace(first.pk):
        assert found(title) == []
        assert found(getattr(mine, "title")) == [mine.pk]
        for text in (f'"{title}"', f"{title} or {title}", "' OR 1=1 --", f"-{title[:4]}", "$$;"):
            assert foreign.pk not in found(text)
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lab.shared', 'benchmark', true) IS NOT NULL")
    assert found(title) == [], "without a workspace nothing is found"
