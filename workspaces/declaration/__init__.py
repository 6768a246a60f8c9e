"""A workspace declared in a file: `manage.py apply FILE` and `POST /api/v1/workspaces` read the same JSON or YAML. No database here."""

from workspaces.declaration.document import (
    Declaration,
    DeclaredAgent,
    DeclaredBinding,
    DeclaredBudget,
    DeclaredObjective,
    parse_declaration,
)
from workspaces.declaration.source import MAX_BYTES, DeclarationError, Fault

__all__ = [
    "MAX_BYTES",
    "Declaration",
    "DeclarationError",
    "DeclaredAgent",
    "DeclaredBinding",
    "DeclaredBudget",
    "DeclaredObjective",
    "Fault",
    "parse_declaration",
]
