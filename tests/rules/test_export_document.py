"""docs/export.md names every file and column of an export; `make baselines` writes that part anew."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Model

from runs.queries.closed_words import Closed
from runs.queries.export_tables import LEFT_OUT, WITHOUT, Table, name_of, tables
from tests.rules.baselines import compare
from workspaces.models import User

PATH = Path(settings.BASE_DIR) / "docs" / "export.md"
MARK = "<!-- written by `make baselines` from here on -->\n"


def test_the_document_names_every_file_and_column() -> None:
    head, mark, _ = PATH.read_text().partition(MARK)
    assert mark, "docs/export.md has lost its mark"
    compare(PATH, head + mark + "\n" + "\n".join(section(table) for table in tables(Closed())) + left_out())


def section(table: Table) -> str:
    order = ", ".join(name.replace("__", "'s ") for name in table.order).replace("pk", "id")
    lines = [f"### tables/{table.name}.jsonl", "", f"{about(table.model)}By {order}.", "", "| column | type | |", "|---|---|---|"]
    for name, kind in table.types():
        field = next(field for field in table.model._meta.concrete_fields if field.attname == name)
        words = meaning(field)
        if name in table.closed:
            words = f"{words + '; ' if words else ''}null where it is closed"
        lines.append(f"| `{name}` | {kind} | {words} |")
    return "\n".join([*lines, ""])


def meaning(field: Any) -> str:
    """What the model says of a column: its help, the values that it takes, the rows that it names. Django's words about people are left out."""
    said = [] if field.model is User or not field.help_text else [str(field.help_text)]
    if field.choices and len(field.choices) < 16:
        said.append(", ".join(f"`{value}`" for value, _ in field.choices if value != ""))
    if field.is_relation:
        said.append(f"names one of {name_of(field.related_model)}")
    return "; ".join(said).replace("|", "\\|")


def about(model: type[Model]) -> str:
    first = (model.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
    return "" if not first or first.startswith(f"{model.__name__}(") or "django" in model.__module__ else " ".join(first.split()) + " "


def left_out() -> str:
    lines = [
        "",
        "### Tables that stay",
        "",
        "| table | why |",
        "|---|---|",
        *(f"| {label} | {why} |" for label, why in sorted(LEFT_OUT.items())),
    ]
    lines += ["", "### Columns that stay", "", "| column | why |", "|---|---|"]
    lines += [f"| {label}.{column} | {why} |" for label, columns in WITHOUT.items() for column, why in columns.items()]
    return "\n".join(lines) + "\n"
