"""Migrations are linear in both apps, and say everything that the models say."""

from itertools import pairwise

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddConstraint, AddField, AddIndex, CreateModel

from workspaces.create_models import CreateModels


@pytest.mark.parametrize("app", ["workspaces", "runs"])
def test_migrations_are_linear(app: str) -> None:
    """One after the other; a database that has nothing yet begins with the one that stands for the first of them."""
    loader = MigrationLoader(None, ignore_no_migrations=False)
    names = sorted(name for label, name in loader.disk_migrations if label == app)
    [squashed] = [name for name in names if loader.disk_migrations[app, name].replaces]
    names.remove(squashed)
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1)), "two migrations have one number, or one is missing"
    replaced = [name for _, name in loader.disk_migrations[app, squashed].replaces]
    assert replaced == names[: len(replaced)]
    for number, (before, name) in enumerate(pairwise(names), start=1):
        parents = [parent for parent in loader.disk_migrations[app, name].dependencies if parent[0] == app]
        assert parents == [(app, squashed if number == len(replaced) else before)], f"{name} does not follow {before}"


@pytest.mark.django_db
def test_migrations_say_what_the_models_say() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
    assert MigrationLoader(connection).detect_conflicts() == {}


@pytest.mark.parametrize("app", ["workspaces", "runs"])
def test_what_belongs_to_a_new_model_stands_inside_it(app: str) -> None:
    """Each constraint and index added by itself renders every model that is related anew, which were 25 of the 50 seconds of a first start."""
    beside = []
    for (label, name), migration in MigrationLoader(None, ignore_no_migrations=False).disk_migrations.items():
        if label != app:
            continue
        made = {operation.name_lower for operation in migration.operations if isinstance(operation, CreateModel)}
        made |= {one.name_lower for operation in migration.operations if isinstance(operation, CreateModels) for one in operation.models}
        later = {operation.model_name_lower for operation in migration.operations if isinstance(operation, AddField)}
        beside += [
            f"{name}: {operation.model_name_lower}"
            for operation in migration.operations
            if isinstance(operation, AddConstraint | AddIndex) and operation.model_name_lower in made - later
        ]
    assert beside == [], "move them into the options of CreateModel"
