"""An export of the workspace: a folder of JSON lines with hashes, made by a job from one snapshot, kept for some days."""

from django.conf import settings
from django.db import models

from workspaces.models.base import Owned


class Export(Owned):
    prefix = "exp"

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running", "being written"
        READY = "ready"
        TAKEN = "taken", "written to a folder"  # by `manage.py export_workspace`: labsite has none of it
        FAILED = "failed"
        REMOVED = "removed"

    class Files(models.TextChoices):
        """Whose content travels. Rows always do, and the code of agents, which is part of what they are."""

        NONE = "none", "code of agents"
        PUBLIC = "public", "code of agents, and files of public datasets"
        INTERNAL = "internal", "code of agents, files of public and internal datasets, and artifacts"

    OPEN = (Status.QUEUED, Status.RUNNING)

    number = models.PositiveIntegerField(help_text="counts the workspace's exports")
    status = models.CharField(max_length=8, choices=Status, default=Status.QUEUED)
    files = models.CharField(max_length=8, choices=Files, default=Files.NONE)
    reason = models.CharField(max_length=1000, blank=True, help_text="why it was asked for")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    is_kept = models.BooleanField(default=True, help_text="here for downloading; else written to a folder by whoever asked on this machine")
    tries = models.PositiveSmallIntegerField(default=0, help_text="how often a worker began it")
    began_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    failure = models.CharField(max_length=1000, blank=True)
    bytes = models.BigIntegerField(null=True, blank=True)
    manifest_sha256 = models.CharField(max_length=64, blank=True)
    contents = models.JSONField(default=dict, blank=True, help_text="files with rows, bytes and hash; and what was left out, and why")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            models.UniqueConstraint(fields=["workspace", "number"], name="export_number_once"),
            models.UniqueConstraint(
                fields=["workspace"], condition=models.Q(status__in=["queued", "running"]), name="export_one_at_a_time"
            ),
        ]
        indexes = [models.Index(fields=["workspace", "-created_at", "-id"], name="export_newest")]

    @property
    def label(self) -> str:
        return f"export {self.number}"
