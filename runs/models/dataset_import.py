"""Bringing files from other machines into a dataset: asked for by a person, read by a job, and one new version at its end or nothing."""

from django.conf import settings
from django.db import models

from workspaces.models import DatasetVersion
from workspaces.models.base import Owned, owned_key, same_workspace


class DatasetImport(Owned):
    """`sources` are {address, path, sha256, bytes}, the last two empty where nobody said them; `found` what was read: {path, sha256, bytes, etag}."""

    prefix = "imp"

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running", "being read"
        DONE = "done"
        FAILED = "failed"

    OPEN = (Status.QUEUED, Status.RUNNING)

    status = models.CharField(max_length=8, choices=Status, default=Status.QUEUED)
    dataset = owned_key("workspaces.Dataset", related_name="imports")
    role = models.CharField(max_length=10, choices=DatasetVersion.Role)
    sources = models.JSONField()
    source = models.CharField(max_length=1000, help_text="where they lie, in words that open nothing")
    endpoint = models.CharField(max_length=500, blank=True, help_text="of S3 addresses; empty: Amazon's of the region")
    region = models.CharField(max_length=40, blank=True, help_text="of S3 addresses")
    secret = owned_key("workspaces.Secret", null=True)  # opens S3 addresses; without one they are read as the public reads them
    licence = models.CharField(max_length=200, blank=True, help_text="SPDX expression")
    evidence = models.CharField(max_length=2000, blank=True)
    records = models.BigIntegerField(null=True, blank=True, help_text="as a person counted them")
    has_header = models.BooleanField(default=True, help_text="the first line of CSV files names the columns")
    reason = models.CharField(max_length=1000, blank=True)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    tries = models.PositiveSmallIntegerField(default=0, help_text="how often a worker began it")
    began_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    failure = models.CharField(max_length=1000, blank=True)
    found = models.JSONField(default=list, blank=True)
    version = owned_key("workspaces.DatasetVersion", null=True, related_name="imports")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("datasetimport", "dataset", "secret", "version"),
            models.CheckConstraint(
                condition=~models.Q(status="done") | models.Q(version__isnull=False), name="datasetimport_done_has_a_version"
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-created_at", "-id"], name="datasetimport_newest"),
            models.Index(fields=["dataset", "-created_at"], name="datasetimport_of"),
        ]

    @property
    def label(self) -> str:
        return f"import into {self.dataset.name}"
