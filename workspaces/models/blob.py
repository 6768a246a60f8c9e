"""A stored file of a workspace, named by its content; lies under the workspace's prefix of its region."""

from django.db import models

from workspaces.models.base import Owned


class Blob(Owned):
    prefix = "blob"

    sha256 = models.CharField(max_length=64)
    bytes = models.BigIntegerField()
    region = models.CharField(max_length=64)
    removed_at = models.DateTimeField(
        null=True, blank=True, help_text="no longer stored nor counted since; until the same content comes again"
    )
    missing_at = models.DateTimeField(null=True, blank=True, help_text="since when its file was not found where it should lie")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            models.UniqueConstraint(fields=["workspace", "sha256"], name="blob_once"),
            models.CheckConstraint(condition=models.Q(bytes__gte=0), name="blob_bytes"),
        ]
