"""Every template compiles, and none is named that is not there."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template import TemplateDoesNotExist, engines
from django.template.loader import get_template

LINES = 180  # about 120 before djlint spreads lists over lines
FOLDER = Path(settings.BASE_DIR) / "templates"
TEMPLATES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.html"))
SOURCES = sorted(path for app in ("labsite", "workspaces", "runs") for path in (Path(settings.BASE_DIR) / app).rglob("*.py"))


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_compiles(name: str) -> None:
    get_template(name)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_has_no_script_and_no_style_of_its_own(name: str) -> None:
    """The content security policy lets none of it run; safe filters would pass what people wrote."""
    text = (FOLDER / name).read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", text), "an inline script"
    assert not re.search(r"<style\b|\sstyle=|\son[a-z]+=\"", text), "an inline style or handler"
    assert not re.search(r"\|\s*safe\b|autoescape off", text), "escaping is switched off"
    assert len(text.splitlines()) <= LINES, f"longer than {LINES} lines"


def test_every_template_that_python_names_is_there() -> None:
    for path in SOURCES:
        for name in re.findall(r"\"((?:workspaces|runs|console|parts|account)/[\w/]+\.html)", path.read_text()):
            try:
                get_template(name)
            except TemplateDoesNotExist:
                pytest.fail(f"{path.name} names {name}, which is not there")


def test_a_variable_that_nobody_gives_fails() -> None:
    """The strictness of tests/conftest.py is on, or the pages' tests would pass over a misspelt name."""
    engine = engines["django"]
    assert engine.from_string("{% if nothing %}x{% endif %}").render({}) == ""
    with pytest.raises(LookupError, match=r"nothing\.here"):
        engine.from_string("{{ nothing.here }}").render({})
