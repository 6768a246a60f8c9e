"""What the operators of an installation demand of every run, whichever workspace asks for it. No workspace."""

from django.conf import settings
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


class SiteRules(models.Model):
    """One version of what the installation demands of every policy in every workspace. At most one holds; one operator proposes it, another approves
    it. To stop all policies at once one is enough (`is_stop`)."""

    class Status(models.TextChoices):
        PROPOSED = "proposed", "waits for another operator"
        ACTIVE = "active", "holds"
        REFUSED = "refused"
        WITHDRAWN = "withdrawn"
        SUPERSEDED = "superseded"

    id = models.UUIDField(primary_key=True, default=ids.uuid7, editable=False)
    number = models.PositiveIntegerField(unique=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.PROPOSED)
    document = models.JSONField(help_text="runs.policy.site")
    content_hash = models.CharField(max_length=64)
    reason = models.CharField(max_length=1000)
    forecast = models.JSONField(
        help_text="counts alone: which policies it touches, and how many decisions would have been others, by workspace"
    )
    is_stop = models.BooleanField(default=False, help_text="it stops every policy, and held at one operator's word")
    proposed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["status"], condition=models.Q(status="active"), name="siterules_one_holds"),
            models.UniqueConstraint(fields=["status"], condition=models.Q(status="proposed"), name="siterules_one_waits"),
            models.CheckConstraint(
                condition=models.Q(decided_by=None) | models.Q(is_stop=True) | ~models.Q(decided_by=models.F("proposed_by")),
                name="siterules_four_eyes",
            ),
        ]

    def __str__(self) -> str:
        return f"site rules, version {self.number}"
