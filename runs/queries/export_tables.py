"""What an export holds: every table of the workspace but those that are named here with a reason, column by column (docs/export.md).

Default is to take along, so that nothing is lost in silence; a rule test holds the lists below against docs/inventory.csv, so that a new table or
column is decided on before it can leave.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group
from django.db.models import BooleanField, Case, Field, Model, Q, QuerySet, When

from runs.queries.closed_words import Closed
from runs.queries.export_closed import CLOSED_COLUMNS, CLOSED_ROWS
from runs.queries.export_details import tells_what_stays
from workspaces import scope
from workspaces.models import AuditEvent, Engine, Membership, Pool, Row, User, Workspace

AT_ONCE = 1000  # rows that the server-side cursor hands over

LEFT_OUT: dict[str, str] = {
    "runs.Export": "what was exported before says nothing about the workspace; the record has it",
    "runs.KeptFile": "where collecting stands; what is collected is an artifact",
    "runs.RecordIndex": "hashes of records, made anew wherever the files are",
    "runs.PoolContact": "whether its pools answered when they were asked last",
    "runs.PoolDemand": "what its queue asked of a shared engine within the last seconds",
    "runs.Watch": "where labsite's own looking stands",
    "workspaces.Upload": "what has not become a dataset yet, and expires within a day",
    "workspaces.AuditHead": "the end of the chain stands in MANIFEST.json",
    "workspaces.DataKey": "a key, though a wrapped one",
    "workspaces.IdempotencyKey": "answers of the last day, kept for whoever asks twice",
    "workspaces.Invitation": "addresses of people who are not here, and links that open doors of this installation",
    "workspaces.Notification": "what people were told; the record holds all of it",
    "workspaces.Token": "opens doors of this installation only",
    "workspaces.TokenUse": "addresses from which people work",
}
WITHOUT: dict[str, dict[str, str]] = {
    "runs.DatasetImport": {
        "sources": "an address may carry what opens it; what was read stands in `found`, where it is from with the version"
    },
    "runs.OverlapCheck": dict.fromkeys(("pairs", "reason"), "in which files records stand, of restricted datasets too"),
    "workspaces.Pool": dict.fromkeys(
        ("login", "folder", "python", "secret_id", "partition", "account"), "how a host of this installation is entered"
    ),
    "workspaces.Secret": dict.fromkeys(("nonce", "ciphertext", "fingerprint"), "its value, and what would tell one value from another"),
    "workspaces.SecretUse": dict.fromkeys(("nonce", "ciphertext"), "its value"),
}
# Of the site's own tables, the few lines that the workspace's rows point at.
SITE_COLUMNS: dict[str, tuple[str, ...]] = {
    "workspaces.User": ("id", "username", "display_name", "kind", "is_active"),
    "workspaces.Engine": ("id", "slug", "kind", "gpu_kind"),
}
ORDERS: dict[str, tuple[str, ...]] = {
    "workspaces.AuditEvent": ("sequence",),
    "workspaces.EventPayload": ("event__sequence",),
    "workspaces.EventSubject": ("event__sequence", "position"),
}


WORDS = {
    "UUIDField": "uuid",
    "DateTimeField": "time",
    "DateField": "date",
    "FloatField": "number",
    "JSONField": "json",
    "BooleanField": "boolean",
}


@dataclass(frozen=True, slots=True)
class Table:
    """One file of the export. `closed` are columns that are emptied in the rows that `which` tells."""

    name: str
    model: type[Model]
    columns: tuple[str, ...]
    rows: "Callable[[], QuerySet[Any]]"
    order: tuple[str, ...] = ("pk",)
    which: "Callable[[], Q] | None" = None
    closed: tuple[str, ...] = ()

    def lines(self) -> Iterator[dict[str, Any]]:
        """Rows in a fixed order through a server-side cursor; to be called inside a transaction."""
        rows = self.rows().order_by(*self.order)
        names = self.columns
        if self.which is not None:
            rows = rows.annotate(is_withheld=Case(When(self.which(), then=True), default=False, output_field=BooleanField()))
            names = (*names, "is_withheld")
        for values in rows.values_list(*names).iterator(chunk_size=AT_ONCE):
            line = dict(zip(names, values, strict=True))
            if line.pop("is_withheld", False):
                line |= dict.fromkeys(self.closed)
            yield line

    def types(self) -> list[list[str]]:
        """Names and types of the columns, as the database has them."""
        return [[name, kind_of(self.model, name)] for name in self.columns]


def tables(closed: Closed) -> list[Table]:
    """Every file of rows of the open workspace's export. `closed`: what was found to hold words of closed runs."""
    found = [
        Table("workspace", Workspace, _columns(Workspace), lambda: Workspace.objects.filter(pk=scope.current_id())),
        Table("people", User, SITE_COLUMNS["workspaces.User"], _people),
        Table("groups", Group, ("id", "name"), lambda: Group.objects.filter(pk__in=Membership.objects.exclude(group=None).values("group"))),
        Table("engines", Engine, SITE_COLUMNS["workspaces.Engine"], lambda: Engine.objects.filter(pk__in=Pool.objects.values("engine"))),
    ]
    for model in owned_models():
        label = model._meta.label
        if label not in LEFT_OUT:
            order = ORDERS.get(label, ("pk",))
            which, emptied = CLOSED_COLUMNS.get(label, (None, ()))
            rows = _rows_of(model, closed)
            found.append(Table(name_of(model), model, _columns(model), rows, order, partial(which, closed) if which else None, emptied))
    return found


def owned_models() -> list[type[Row]]:
    return sorted((model for model in apps.get_models() if issubclass(model, Row)), key=lambda model: model._meta.label)


PLURALS = {"metric_seriess": "metric_series", "ledger_entrys": "ledger_entries"}  # what Django makes by adding an s


def name_of(model: type[Model]) -> str:
    plural = str(model._meta.verbose_name_plural).replace(" ", "_").lower()
    return PLURALS.get(plural, plural)


def kind_of(model: type[Model], column: str) -> str:
    field = next(field for field in model._meta.concrete_fields if column in (field.attname, field.column))
    return _spelled(field)


def _spelled(field: "Field[Any, Any]") -> str:
    base = getattr(field, "base_field", None)
    if base is not None:
        return f"list of {_spelled(base)}"
    target = field.target_field if field.is_relation else field  # type: ignore[attr-defined]  # a key is of its target's type
    name = target.get_internal_type()
    return WORDS.get(name) or ("integer" if "Integer" in name or "AutoField" in name else "text")


def _columns(model: type[Model]) -> tuple[str, ...]:
    without = WITHOUT.get(model._meta.label, {})
    return tuple(field.attname for field in model._meta.concrete_fields if field.attname not in without)


def _rows_of(model: type[Row], closed: Closed) -> "Callable[[], QuerySet[Any]]":
    """What of the table travels."""

    def rows() -> "QuerySet[Any]":
        found: QuerySet[Any] = model.objects.all()
        if model._meta.label == "workspaces.EventPayload":
            found = found.exclude(tells_what_stays(WITHOUT))
        which = CLOSED_ROWS.get(model._meta.label)
        return found.exclude(which(closed)) if which else found

    return rows


def _people() -> "QuerySet[User]":
    """Members, those of groups that are members, and whoever the record names."""
    direct = Membership.objects.exclude(user=None).values("user")
    through = Membership.objects.exclude(group=None).values("group")
    acted = AuditEvent.objects.exclude(actor_id=None).values("actor_id")
    return User.objects.filter(Q(pk__in=direct) | Q(groups__in=through) | Q(pk__in=acted)).distinct()
