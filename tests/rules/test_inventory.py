"""Every stored column is accounted for in docs/inventory.csv: exported? erased how? secret? audited how?

`erase`, when the workspace or the person goes: delete (with the workspace), anonymise (the name goes, the row stays), erase (the value goes,
its hash stays), expire (by itself, within a day), retain (the record and the site's own tables).
"""

import csv
import re
from pathlib import Path

from django.apps import apps
from django.conf import settings

from workspaces.models.base import Owned, Telemetry

PATH = Path(settings.BASE_DIR) / "docs" / "inventory.csv"
HEAD = ["model", "column", "export", "erase", "secret", "audited"]
LISTED = list(csv.DictReader(PATH.read_text().splitlines()))
MODELS = {model._meta.label: model for model in apps.get_models() if model._meta.app_label in ("workspaces", "runs")}
NAMED_LIKE_A_SECRET = re.compile(r"(^|_)(secret(?!_id$)|password|salt)(_|$)")  # `secret_id` names a row, and tells nothing of its value


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


def test_how_a_table_is_audited_is_how_it_is_built() -> None:
    for line in LISTED:
        model = MODELS[line["model"]]
        if issubclass(model, Owned):
            assert line["audited"] == "event", line
        elif issubclass(model, Telemetry):
            assert line["audited"] in ("telemetry", "record"), line
        elif line["model"] != "workspaces.Workspace":
            assert line["audited"] in ("site", "record"), line
