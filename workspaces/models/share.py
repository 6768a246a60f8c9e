"""A share grant: one object of the giver, one right, one receiver, until a day; both sides see it (features 101, 102)."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from workspaces.models.base import Owned
from workspaces.walls import EventDemanded, RowSecurity


class ShareGrant(Owned):
    prefix = "share"

    class Right(models.TextChoices):
        READ = "read"

    to_workspace = models.ForeignKey("workspaces.Workspace", on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    is_public = models.BooleanField(default=False, help_text="a standing grant to everyone: a public benchmark definition")
    object_type = models.CharField(max_length=40)
    object_id = models.UUIDField()
    object_label = models.CharField(max_length=300)
    right = models.CharField(max_length=8, choices=Right, default=Right.READ)
    reason = models.CharField(max_length=1000)
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "id"], name="workspaces_sharegrant_ws_id"),
            RowSecurity(name="workspaces_sharegrant_scope", also="to_workspace_id"),
            EventDemanded(name="workspaces_sharegrant_event"),
            models.CheckConstraint(
                condition=models.Q(to_workspace__isnull=False, is_public=False, expires_at__isnull=False)
                | models.Q(to_workspace__isnull=True, is_public=True, object_type="benchmark"),
                name="sharegrant_receiver",
            ),
        ]

    @property
    def label(self) -> str:
        return self.object_label

    @property
    def status(self) -> str:
        """`active`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= timezone.now() else "active"
