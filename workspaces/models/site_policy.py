"""What the operators of an installation demand of every run, whichever workspace asks for it. No workspace."""

from django.db import models
from django.db.models.functions import Now

from workspaces import ids


class SitePolicy(models.Model):
    """One row; without it, or where a field is empty, nothing is demanded."""

    id = models.UUIDField(primary_key=True, default=ids.uuid7, editable=False)
    is_current = models.BooleanField(default=True, unique=True)
    max_wall_seconds = models.PositiveIntegerField(null=True, blank=True, help_text="longest wall limit that a run may ask for")
    forbids_no_isolation = models.BooleanField(default=False, help_text="no run starts on a pool without isolation")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(max_wall_seconds=None) | models.Q(max_wall_seconds__gte=1), name="sitepolicy_wall")
        ]

    def __str__(self) -> str:
        return "site policy"
