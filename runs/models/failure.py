"""Why runs fail: runs of one agent that ended for the same reason stand in one group (feature 55)."""

from django.conf import settings
from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace


class FailureGroup(Owned):
    """One reason for which runs of an agent have failed. It is open until somebody says that they have seen it, and again once it comes back."""

    prefix = "failure"

    agent = owned_key("workspaces.Agent", related_name="failure_groups")
    fingerprint = models.CharField(
        max_length=64, help_text="SHA-256 of reason code, exit code or signal and error lines without their figures"
    )
    reason_code = models.CharField(max_length=40, blank=True)
    title = models.CharField(max_length=300, help_text="the cause in words; what differs from run to run is an ellipsis")
    count = models.PositiveIntegerField(default=0)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    acknowledged_reason = models.CharField(max_length=1000, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("failuregroup", "agent"),
            models.UniqueConstraint(fields=["workspace", "agent", "fingerprint"], name="failuregroup_once"),
        ]
        indexes = [models.Index(fields=["workspace", "-last_at", "-id"], name="failuregroup_newest")]

    @property
    def label(self) -> str:
        """How the record names it, for ever: in words of labsite, never in those of a run, as the title is."""
        return f"{self.agent.name}: {self.reason_code.replace('_', ' ') or 'failed'}"

    @property
    def is_open(self) -> bool:
        """Has nobody said that they have seen it, or has it come back since?"""
        return self.acknowledged_at is None or self.last_at > self.acknowledged_at


class Failure(Owned):
    """One run in its group, with the lines of its log that show the cause, secrets blotted out as in the log itself."""

    prefix = "failed"

    group = owned_key("runs.FailureGroup", related_name="failures")
    run = owned_key("runs.Run", related_name="failures")
    lines = models.JSONField(default=list, help_text="the error lines, in their order")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("failure", "group", "run"),
            models.UniqueConstraint(fields=["workspace", "run"], name="failure_once"),
        ]
        indexes = [models.Index(fields=["workspace", "group", "-created_at"], name="failure_newest")]

    @property
    def label(self) -> str:
        return str(self.run)
