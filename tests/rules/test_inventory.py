"""Every stored column is accounted for in docs/inventory.csv: exported? erased how? secret? audited how? in whose words?

`erase`, when the workspace or the person goes: delete (with the workspace), anonymise (the name goes, the row stays), erase (the value goes,
its hash stays), expire (by itself, within a day), retain (the record and the site's own tables).

`words`, what its text may hold that nobody typed in: run (what a run said, wherever it was copied to), files (names of a dataset's files, or where
they came from), both; names (only names that a run gave to artifacts and metrics, which leave); no. Persons' own words are not looked through.
"""

import csv
import re
from pathlib import Path

from django.apps import apps
from django.conf import settings

from runs.queries.closed_words import Closed
from runs.queries.export_closed import CLOSED_COLUMNS, CLOSED_ROWS, ONLY_TOLD
from runs.queries.export_tables import LEFT_OUT, WITHOUT, owned_models, tables
from workspaces.models.base import Owned, Telemetry

PATH = Path(settings.BASE_DIR) / "docs" / "inventory.csv"
HEAD = ["model", "column", "export", "erase", "secret", "audited", "words"]
LISTED = list(csv.DictReader(PATH.read_text().splitlines()))
WITHHELD = ("run", "files", "both")
MODELS = {model._meta.label: model for model in apps.get_models() if model._meta.app_label in ("workspaces", "runs")}
# `secret_id` names a row, and tells nothing of its value. A payload's salt keeps an erased payload from being guessed, and is erased with it; while
# the payload is there it hides nothing, and whoever checks an exported record needs it.
NAMED_LIKE_A_SECRET = re.compile(r"(^|_)(secret(?!_id$)|password)(_|$)")


def test_every_column_is_listed_once() -> None:
    stored = sorted((label, field.column) for label, model in MODELS.items() for field in model._meta.concrete_fields)
    listed = sorted((line["model"], line["column"]) for line in LISTED)
    missing = [f"{label},{column}" for label, column in stored if (label, column) not in listed]
    gone = [f"{label},{column}" for label, column in listed if (label, column) not in stored]
    assert (missing, gone) == ([], []), "add lines for new columns to docs/inventory.csv, and decide what they say; take gone ones out"
    assert len(listed) == len(set(listed))


def test_lines_say_one_of_few_words() -> None:
    words = {
        "export": {"yes", "no"},
        "erase": {"delete", "anonymise", "erase", "expire", "retain"},
        "secret": {"yes", "no"},
        "audited": {"event", "record", "telemetry", "site"},
        "words": {"no", "names", "run", "files", "both"},
    }
    for line in LISTED:
        assert list(line) == HEAD
        for name, allowed in words.items():
            assert line[name] in allowed, f"{line['model']}.{line['column']}: {name} is {line[name]!r}"


def test_a_secret_is_never_exported() -> None:
    for line in LISTED:
        if NAMED_LIKE_A_SECRET.search(line["column"]):
            assert line["secret"] == "yes", f"{line['model']}.{line['column']} is named like a secret"
        if line["secret"] == "yes":
            assert (line["export"], line["erase"]) == ("no", "erase"), f"{line['model']}.{line['column']} is a secret"


def test_an_export_takes_what_is_listed() -> None:
    """What the code takes along is what this list says, column by column; a new table is in the export or left out with a reason."""
    taken = {
        (table.model._meta.label, column) for table in tables(Closed()) for column in table.columns if table.model._meta.label in MODELS
    }
    listed = {(line["model"], line["column"]) for line in LISTED if line["export"] == "yes"}
    assert (sorted(listed - taken), sorted(taken - listed)) == ([], []), (
        "say in runs/queries/export_tables.py what is left out and why (LEFT_OUT, WITHOUT), and in docs/inventory.csv the same"
    )


def test_what_an_export_leaves_out_is_there_and_has_a_reason() -> None:
    labels = {model._meta.label for model in owned_models()}
    assert set(LEFT_OUT) <= labels
    assert set(WITHOUT) <= labels
    assert all(len(why) > 5 for why in [*LEFT_OUT.values(), *(why for columns in WITHOUT.values() for why in columns.values())])
    columns = {label: {field.attname for field in MODELS[label]._meta.concrete_fields} for label in WITHOUT}
    assert {label: set(without) - columns[label] for label, without in WITHOUT.items()} == {label: set() for label in WITHOUT}
    names = [table.name for table in tables(Closed())]
    assert len(names) == len(set(names))


def test_what_may_hold_words_of_a_run_or_names_of_files_is_withheld() -> None:
    """Where something restricted was read: the row, or this column of it, is closed by a condition of its own."""
    listed = {(line["model"], line["column"]) for line in LISTED if line["words"] in WITHHELD}
    exported = {(line["model"], line["column"]) for line in LISTED if line["export"] == "yes"}
    emptied = {(label, column) for label, (_, columns) in CLOSED_COLUMNS.items() for column in columns}
    leaves = sorted((label, column) for label, column in (listed & exported) - emptied if label not in CLOSED_ROWS)
    assert leaves == [], "say in runs/queries/export_closed.py in which rows it is withheld"
    assert sorted(emptied - (listed & exported)) == [], "say in docs/inventory.csv what these may hold"
    assert set(CLOSED_ROWS) <= {label for label, _ in listed & exported}
    told = {line["model"] for line in LISTED if line["words"] in WITHHELD and line["audited"] == "event"}
    assert sorted(told - {*CLOSED_ROWS, *CLOSED_COLUMNS, *ONLY_TOLD}) == [], (
        "events note how its columns change: say which of them are withheld"
    )


def test_only_text_holds_words() -> None:
    """A key, a figure, a time or one of few values holds none; a label of the record none but names, since it always leaves."""
    for line in LISTED:
        field = next(field for field in MODELS[line["model"]]._meta.concrete_fields if field.column == line["column"])
        if line["words"] != "no":
            assert not field.is_relation
            assert not field.choices
            assert field.get_internal_type() in ("CharField", "TextField", "JSONField"), line
        if line["model"] in ("workspaces.AuditEvent", "workspaces.EventSubject"):
            assert line["words"] in ("no", "names"), line


def test_how_a_table_is_audited_is_how_it_is_built() -> None:
    for line in LISTED:
        model = MODELS[line["model"]]
        if issubclass(model, Owned):
            assert line["audited"] == "event", line
        elif issubclass(model, Telemetry):
            assert line["audited"] in ("telemetry", "record"), line
        elif line["model"] != "workspaces.Workspace":
            assert line["audited"] in ("site", "record"), line
