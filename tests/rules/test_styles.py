"""No style without a use: every class of the sheets stands in a template, in Python that writes markup, or in a script."""

import re
from pathlib import Path

from django.conf import settings

ROOT = Path(settings.BASE_DIR)
SHEETS = sorted((ROOT / "static" / "css").glob("*.css"))
FOREIGN = re.compile(r"htmx-(swapping|added|settling|request|indicator)|errorlist")  # htmx sets them while it swaps, Django on forms


def classes(sheet: str) -> set[str]:
    """Class names in the selectors of a sheet; what stands inside braces and comments is none."""
    bare = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    selectors = re.findall(r"([^{};]+)\{", bare)
    return {name for selector in selectors if not selector.strip().startswith("@") for name in re.findall(r"\.([a-zA-Z][\w-]*)", selector)}


def borne(markup: str) -> set[str]:
    """What the class attributes of a template, or of markup in Python, hold; a name that a value completes ends with a brace: `tone-{`."""
    plain = re.sub(r"\{%.*?%\}", " ", re.sub(r"\{\{.*?\}\}|\{[^{}%]*\}", "{", markup, flags=re.DOTALL), flags=re.DOTALL)
    return {name for value in re.findall(r"\bclass\"?[=:] ?\"([^\"]*)\"", plain) for name in value.split()}


def used() -> set[str]:
    templates = [path.read_text() for path in (ROOT / "templates").rglob("*.html")]
    python = [path.read_text() for app in ("labsite", "workspaces", "runs") for path in (ROOT / app).rglob("*.py")]
    scripts = [path.read_text() for path in (ROOT / "static" / "js").glob("*.js")]
    markup = {name for text in (*templates, *python) for name in borne(text)}
    attributes = {name for text in python for value in re.findall(r"\"class\": \"([^\"]+)\"", text) for name in value.split()}
    spelled = {name for text in python for name in re.findall(r"\"([a-z]+-(?:[a-z]+(?=\")|\{))", text)}  # ansi-{colour}
    return markup | attributes | spelled | {name for text in scripts for name in re.findall(r"[a-zA-Z][\w-]*", text)}


def test_every_class_of_the_sheets_is_used() -> None:
    names = used()
    beginnings = tuple(name.partition("{")[0] for name in names if name.partition("{")[0].endswith("-"))
    for sheet in SHEETS:
        rest = classes(sheet.read_text()) - names
        unused = {name for name in rest if not name.startswith(beginnings) and not FOREIGN.fullmatch(name)}
        assert not unused, f"{sheet.name} styles what nothing bears"


def test_what_counts_as_a_class_and_as_its_use() -> None:
    sheet = "/* .not */ .one > a:hover, p.two[x] { margin: 0 } @media (min-width: 1.5px) { .three { top: .5em } }"
    assert classes(sheet) == {"one", "two", "three"}
    assert borne('<b class="a{% if x == "q" %} b{% endif %} c-{{ d }}">e</b>') == {"a", "b", "c-{"}
    assert borne("f'<i class=\"f tone-{tone}\">'") == {"f", "tone-{"}
