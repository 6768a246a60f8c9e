"""What search names leads to a page whose door lets the same readers in."""

import pytest
from django.urls import resolve

from runs.queries.search import PAGES
from tests.factories import make_workspace
from tests.rules.routes import routes
from tests.walls.rows import fill
from workspaces import scope

DOORS = {route.name: route.door for route in routes() if route.method == "GET" and not route.is_api and route.door is not None}


@pytest.mark.django_db(transaction=True)
def test_whoever_is_led_to_a_page_by_its_id_may_enter_it() -> None:
    workspace, _ = make_workspace()
    rows = fill(workspace)
    with scope.open_workspace(workspace.pk):
        for model, permission, kind, url in PAGES:
            match = resolve(url(rows[model._meta.label], workspace.slug).partition("?")[0])
            door = DOORS[str(match.url_name)]
            assert door["needs"] == permission, model
            assert door["kind"] == kind, f"{model.__name__}: {door['kind']} is not {kind}"
