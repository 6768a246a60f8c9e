"""What a run made, kept in the store under the workspace's prefix; and what was measured of it."""

from datetime import datetime, timedelta

from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace

GRACE = timedelta(days=7)  # from deleted to removed: its bytes count, and it can be restored


class Artifact(Owned):
    prefix = "art"

    run = owned_key("runs.Run", related_name="artifacts")
    path = models.CharField(max_length=1024)
    name = models.CharField(max_length=250)
    kind = models.CharField(max_length=40, default="file", help_text="file, model, table, log, …")
    metadata = models.JSONField(default=dict, blank=True)
    blob = owned_key("workspaces.Blob")
    keep_until = models.DateTimeField(null=True, blank=True, help_text="when it is deleted by itself; empty: as its kind says, or never")
    deleted_at = models.DateTimeField(null=True, blank=True, help_text="hidden since, and restorable until it is removed")
    deleted_reason = models.CharField(max_length=1000, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True, help_text="its file is gone for good since; the row stays, others name it")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("artifact", "run", "blob"),
            models.UniqueConstraint(fields=["workspace", "run", "path"], name="artifact_path_once"),
            models.CheckConstraint(
                condition=models.Q(removed_at=None) | models.Q(deleted_at__isnull=False), name="artifact_deleted_before_removed"
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-created_at", "-id"], name="artifact_newest"),
            models.Index(fields=["workspace", "deleted_at"], condition=models.Q(deleted_at__isnull=False), name="artifact_deleted"),
        ]

    @property
    def goes_at(self) -> datetime | None:
        """When its file is to be removed; None for one that is kept, and for one whose file is gone."""
        return self.deleted_at + GRACE if self.deleted_at is not None and self.removed_at is None else None

    @property
    def going(self) -> str:
        """What keeps it from being used, and the way out, after its name; empty for one that is kept. Nobody reads "deleted" while bytes count."""
        if self.removed_at is not None:
            return "was removed; its file is gone for good"
        return "is to be removed; restore it first" if self.deleted_at is not None else ""


class Evaluation(Owned):
    """A score: one metric of one run under one contract version, with its standard error and sample count where they are known."""

    prefix = "eval"

    run = owned_key("runs.Run", related_name="evaluations")
    benchmark = owned_key("workspaces.Benchmark", related_name="evaluations")
    contract = owned_key("workspaces.Contract")
    metric = models.CharField(max_length=250)
    value = models.FloatField(help_text="NaN and infinities are kept and rank last")
    standard_error = models.FloatField(null=True, blank=True)
    samples = models.BigIntegerField(null=True, blank=True)
    errored = models.BigIntegerField(null=True, blank=True, help_text="of `samples`, those that gave an error instead of an answer")
    abstained = models.BigIntegerField(null=True, blank=True, help_text="of `samples`, those that were not answered")
    subject_artifact = owned_key("runs.Artifact", null=True)
    samples_artifact = owned_key("runs.Artifact", null=True)
    samples_read = models.JSONField(default=dict, blank=True, help_text="path, counts and faults of the file of per-sample results")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("evaluation", "run", "benchmark", "contract", "subject_artifact", "samples_artifact"),
            models.UniqueConstraint(fields=["workspace", "run", "benchmark", "metric"], name="evaluation_once"),
        ]
        indexes = [models.Index(fields=["workspace", "benchmark", "contract", "metric", "value"], name="evaluation_board")]

    @property
    def label(self) -> str:
        return f"{self.metric} {self.value:.6g}"
