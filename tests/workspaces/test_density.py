"""How closely rows stand: what a person chose, on every page, and by how much it matters."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.template import Context

from tests.factories import make_workspace
from tests.factories_people import signed_in
from workspaces.templatetags import lab

TOKENS = (Path(settings.BASE_DIR) / "static" / "css" / "tokens.css").read_text()
SMALLEST_TARGET = 24  # px, WCAG 2.2, 2.5.8


def row_height(density: str) -> int:
    """Of a row of one line in px, its border included."""
    blocks = re.findall(rf':root(?:\[data-density="{density}"\])?\s*\{{([^}}]*)\}}', TOKENS)
    tokens = {name: int(value) for block in blocks for name, value in re.findall(r"--([\w-]+): (\d+)px;", block)}
    return 2 * tokens["row"] + tokens["row-line"] + 1


def test_compact_shows_more_rows_and_keeps_targets_large_enough() -> None:
    assert SMALLEST_TARGET <= row_height("compact") <= 0.75 * row_height("comfortable")


@pytest.mark.parametrize(("preferred", "shown"), [("compact", "compact"), ("comfortable", "comfortable"), ("odd", "comfortable")])
def test_density_is_what_the_person_prefers(preferred: str, shown: str) -> None:
    assert lab.density(Context({"actor": SimpleNamespace(user=SimpleNamespace(density=preferred))})) == shown
    assert lab.density(Context({})) == "comfortable"


@pytest.mark.django_db
def test_pages_inside_and_outside_a_workspace_bear_it() -> None:
    _, owner = make_workspace("lab")
    client = signed_in(owner)
    assert 'data-density="comfortable"' in client.get("/workspaces/lab/runs/").content.decode()
    asked = {"display_name": "Ada", "theme": "auto", "density": "compact", "zone": ""}
    assert client.post("/preferences/", asked).status_code == 303
    for address in ("/workspaces/lab/runs/", "/workspaces/lab/", "/preferences/"):
        assert 'data-density="compact"' in client.get(address).content.decode()
