"""What every row of a workspace has: a UUIDv7, its workspace, a manager that cannot forget it, and the walls of the database."""

import uuid
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, Self, TypeVar

from django.db import models
from django.db.models.functions import Now, Replace

from workspaces import ids, kept_query, scope
from workspaces.walls import EventDemanded, RowSecurity, SameWorkspace


class NotFound(LookupError):
    """No such thing in this workspace; a foreign thing looks the same."""

    def __init__(self, noun: str) -> None:
        super().__init__(f"No such {noun} in this workspace.")
        self.noun = noun


M = TypeVar("M", bound="Row")


class ScopedManager(models.Manager[M], Generic[M]):
    """Rows of the open workspace; raises ScopeError where none is open. The filter stays although row security stands behind it: with it
    the index on (workspace, …) serves, without it PostgreSQL loses the order."""

    def get_queryset(self) -> models.QuerySet[M]:
        queryset = super().get_queryset().filter(workspace_id=scope.current_id())
        shared = scope.current().shared
        if shared is None:
            return queryset
        lookup = self.model.shared_by.get(shared.object_type)
        if lookup is None:
            raise scope.ScopeError(f"A share grant of one {shared.object_type} opens no {self.model._meta.verbose_name_plural}.")
        return queryset.filter(**{lookup: shared.object_id})

    def find(self, text: str, *related: str) -> M:
        """The row that `text` names, as canonical id, bare slug or UUID, with `related` rows; NotFound where there is none here."""
        if self is not self.model.objects:
            raise TypeError("`find` looks in the whole workspace; filter what belongs to one row.")
        return self.found(kept_query.ask_together(self.finding(text, *related)))

    def finding(self, text: str, *related: str) -> list[kept_query.Question]:
        """What `find` asks, for one who asks for more in the same round trip; `found` reads the answers."""
        pk, slugs = ids.spellings(self.model.prefix, text)
        shape = (self.model, related)
        by_key = [kept_query.Question(_by_key, shape, {"pk": pk})] if pk is not None else []
        return by_key + [kept_query.Question(_by_slug, shape, {"name": name}) for name in (slugs if self.model.has_slug() else ())]

    def found(self, answers: "Iterable[list[Any]]") -> M:
        row: M | None = next((rows[0] for rows in answers if rows), None)
        if row is None:
            raise NotFound(str(self.model._meta.verbose_name))
        return row


def _by_key(model: "type[Row]", related: tuple[str, ...], pk: Any) -> "models.QuerySet[Any]":
    return _rows(model, related).filter(pk=pk)


def _by_slug(model: "type[Row]", related: tuple[str, ...], name: Any) -> "models.QuerySet[Any]":
    named: models.QuerySet[Any] = _rows(model, related).alias(_name=Replace("slug", models.Value("_"), models.Value("-")))
    return named.filter(_name=name)


def _rows(model: "type[Row]", related: tuple[str, ...]) -> "models.QuerySet[Any]":
    rows: models.QuerySet[Any] = model.objects.select_related(*related) if related else model.objects.all()
    return rows


class Row(models.Model):
    """A row of a workspace. Subclass `Owned` (changed by commands) or `Telemetry` (measurements, no events)."""

    prefix: ClassVar[str] = ""
    shared_by: ClassVar[dict[str, str]] = {}  # type of a shared object -> look-up from this model to its key

    id = models.UUIDField(primary_key=True, default=ids.uuid7, editable=False)
    workspace = models.ForeignKey(
        "workspaces.Workspace", on_delete=models.PROTECT, default=scope.current_id, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    workspace_id: uuid.UUID

    objects: ClassVar[ScopedManager[Self]] = ScopedManager()

    class Meta:
        abstract = True
        constraints = [
            models.UniqueConstraint(fields=["workspace", "id"], name="%(app_label)s_%(class)s_ws_id"),
            RowSecurity(name="%(app_label)s_%(class)s_scope"),
        ]

    @classmethod
    def has_slug(cls) -> bool:
        return any(field.name == "slug" for field in cls._meta.concrete_fields)

    @property
    def public_id(self) -> str:
        """The canonical id that people and scripts use."""
        return ids.canonical(self.prefix, getattr(self, "slug", None), self.pk)

    def __str__(self) -> str:
        return str(getattr(self, "slug", None) or self.public_id)


class Owned(Row):
    """A row that only a command may change: the database demands its event."""

    class Meta(Row.Meta):
        abstract = True
        constraints = [*Row.Meta.constraints, EventDemanded(name="%(app_label)s_%(class)s_event")]


class Telemetry(Row):
    """Measurements and positions: in a workspace, behind row security, without events by design (ARCHITECTURE.md, "Not audited")."""

    class Meta(Row.Meta):
        abstract = True
        constraints = [*Row.Meta.constraints]


def slug_field() -> "models.CharField[str, str]":
    return models.CharField(max_length=64, validators=[ids.validate_slug])


def unique_slug(name: str) -> models.UniqueConstraint:
    """One slug a workspace, `-` and `_` taken as one character."""
    return models.UniqueConstraint(models.F("workspace"), Replace("slug", models.Value("_"), models.Value("-")), name=name)


def owned_key(to: str, *, related_name: str = "+", null: bool = False, on_delete: Any = models.PROTECT) -> "models.ForeignKey[Any, Any]":
    """A key to another row of the same workspace; name a `same_workspace(...)` for it among the constraints, a rule test looks."""
    return models.ForeignKey(to, on_delete=on_delete, db_constraint=False, related_name=related_name, null=null, blank=null)


def same_workspace(model: str, *fields: str) -> list[SameWorkspace]:
    """The composite keys of `fields`; `model` is the lower-case name, which makes the constraints' names."""
    return [SameWorkspace(field=field, name=f"{model}_{field}_ws") for field in fields]
