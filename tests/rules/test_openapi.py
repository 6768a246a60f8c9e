"""The checked-in description of the API is the one that is served, and describes what callers need."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from ninja import Schema

from labsite.api import api
from labsite.management.commands.openapi import document
from tests.rules.baselines import compare

SCHEMA: dict[str, Any] = api.get_openapi_schema()
OPERATIONS = [(path, method, operation) for path, methods in SCHEMA["paths"].items() for method, operation in methods.items()]


def test_the_document_is_the_one_checked_in() -> None:
    compare(Path(settings.BASE_DIR) / "docs" / "openapi.json", document())


@pytest.mark.django_db
def test_the_document_is_public() -> None:
    answer = Client().get("/api/v1/openapi.json")
    assert answer.status_code == 200
    assert answer.json()["info"]["title"] == "Labsite"


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_an_operation_says_what_it_does(path: str, method: str, operation: dict[str, Any]) -> None:
    assert operation.get("description"), f"{method} {path} has no docstring"
    answers = [answer for status, answer in operation["responses"].items() if str(status).startswith("2")]
    assert answers, f"{method} {path} names no answer"


def test_operation_ids_are_unique() -> None:
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(ids) == len(set(ids))


def test_no_two_shapes_bear_one_name() -> None:
    """The document has room for one shape of each name: of two it would describe the last, on the routes of both."""
    named: dict[str, list[str]] = {}
    for shape in subclasses(Schema):
        if shape.__module__.split(".")[0] in ("labsite", "runs", "workspaces"):
            named.setdefault(shape.__name__, []).append(shape.__module__)
    assert len(named) > 50
    assert {name: modules for name, modules in named.items() if len(modules) > 1} == {}


def subclasses(parent: type[Schema]) -> Iterator[type[Schema]]:
    for child in parent.__subclasses__():
        yield child
        yield from subclasses(child)
