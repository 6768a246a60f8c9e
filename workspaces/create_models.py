"""A migration's operation that makes many models at once.

Django renders every model that is related to a new one anew, after each (django/db/migrations/state.py), which with a hundred models that all point
at the workspace are thousands. Where they come together, each is rendered once.
"""

from typing import Any

from django.db.migrations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class CreateModels(Operation):
    """The models of several CreateModel, in their order: what one points at stands before it."""

    def __init__(self, models: list[CreateModel]) -> None:
        self.models = models

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.__dict__.pop("apps", None)  # the models as they were rendered; asked for again, all are rendered once
        for made in self.models:
            made.state_forwards(app_label, state)

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState) -> None:
        for made in self.models:
            made.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState) -> None:
        for made in reversed(self.models):
            made.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Create {len(self.models)} models"
