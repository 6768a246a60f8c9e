"""The boundary every durable row belongs to (seed 000)."""

from django.db import models
from django.db.models.functions import Now, Replace

from workspaces import ids
from workspaces.models.base import slug_field
from workspaces.walls import EventDemanded


class Workspace(models.Model):
    """Stands outside row security: rights are looked up on it before any scope is open. Changes want their event all the same."""

    prefix = "ws"

    class Status(models.TextChoices):
        CONFIGURING = "configuring", "being set up"
        ACTIVE = "active"
        ARCHIVED = "archived"

    class BoundaryKind(models.TextChoices):
        CUSTOMER = "customer"
        TEAM = "team"
        PROJECT = "project"
        SECURITY = "security_boundary", "security boundary"
        BILLING = "billing_account", "billing account"

    class Visibility(models.TextChoices):
        PRIVATE = "private", "members only"
        PUBLIC_BENCHMARKS = "public_benchmarks", "benchmark definitions may be public"

    id = models.UUIDField(primary_key=True, default=ids.uuid7, editable=False)
    slug = slug_field()
    name = models.CharField(max_length=200)
    status = models.CharField(max_length=12, choices=Status, default=Status.CONFIGURING)
    boundary_kind = models.CharField(max_length=20, choices=BoundaryKind, blank=True)
    boundary_reason = models.CharField(max_length=1000, blank=True)
    billing_account = models.CharField(max_length=200, blank=True)
    cost_centre = models.CharField(max_length=200, blank=True)
    zone = models.CharField(max_length=64, blank=True, help_text="IANA time zone in which budget windows are cut")
    week_start = models.SmallIntegerField(default=0, help_text="0 Monday … 6 Sunday")
    visibility = models.CharField(max_length=20, choices=Visibility, blank=True)
    region = models.CharField(max_length=64, blank=True, help_text="store in which every file of the workspace lies")
    priority_limit = models.SmallIntegerField(default=50, help_text="a run of a higher priority than this waits for an approver")
    artifact_days = models.JSONField(
        default=dict, blank=True, help_text="days for which artifacts of a kind are kept; kinds not named stay"
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    activated_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        # The rights of contracts.md A; django-guardian grants them to the role groups of each workspace.
        permissions = [
            ("view", "see home, benchmarks, datasets, agents, runs, memory, scoreboards"),
            ("launch_run", "launch runs"),
            ("cancel_run", "cancel own runs"),
            ("edit_registry", "edit benchmarks, datasets, agents"),
            ("import_data", "import data"),
            ("write_memory", "write memory"),
            ("propose_policy", "propose policies"),
            ("approve", "approve or refuse requests"),
            ("promote", "promote artifacts once the gate passes"),
            ("manage_queue", "cancel and reorder any run"),
            ("manage_pool", "bind and limit pools"),
            ("manage_secret", "manage secrets"),
            ("manage_workspace", "change settings and objective"),
            ("manage_budget", "change budget limits"),
            ("share", "share objects with other workspaces"),
            ("manage_members", "invite, change and remove members"),
            ("export", "export the workspace"),
            ("archive", "archive the workspace"),
            ("view_audit", "read the audit log"),
            ("delete", "delete the workspace"),
            ("transfer", "transfer the workspace"),
        ]
        constraints = [
            models.UniqueConstraint(Replace("slug", models.Value("_"), models.Value("-")), name="workspace_slug_once"),
            models.CheckConstraint(condition=models.Q(week_start__gte=0, week_start__lte=6), name="workspace_week_start"),
            EventDemanded(name="workspaces_workspace_event", column="id"),
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def public_id(self) -> str:
        return ids.canonical(self.prefix, self.slug, self.id)
