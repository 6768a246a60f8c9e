"""What is not to be rested on any more, and everything that was found to rest on it (M9). Nothing is deleted: an undone withdrawal holds no more.

The rows name what they are about by kind and key: runs and what they make are of the upper floor, which walks the lineage and writes the marks
down here.
"""

from django.conf import settings
from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace


class Withdrawal(Owned):
    prefix = "withdrawal"

    class Subject(models.TextChoices):
        DATASET_VERSION = "dataset_version", "dataset version"
        RUN = "run", "run"
        ARTIFACT = "artifact", "artifact"

    subject_kind = models.CharField(max_length=20, choices=Subject)
    subject_id = models.UUIDField()
    subject_label = models.CharField(max_length=300)
    reason = models.CharField(max_length=1000)
    withdrawn_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    undone_at = models.DateTimeField(null=True, blank=True)
    undone_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    undone_reason = models.CharField(max_length=1000, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            models.UniqueConstraint(
                fields=["workspace", "subject_kind", "subject_id"], condition=models.Q(undone_at=None), name="withdrawal_stands_once"
            ),
        ]
        indexes = [models.Index(fields=["workspace", "-created_at", "-id"], name="withdrawal_newest")]

    @property
    def label(self) -> str:
        return self.subject_label


class WithdrawnObject(Owned):
    """The mark of one withdrawal on one thing that rests on what was withdrawn, or is it."""

    prefix = "mark"

    withdrawal = owned_key("workspaces.Withdrawal", related_name="objects_marked")
    kind = models.CharField(max_length=20, help_text="run, evaluation, artifact, dataset_version, contract")
    object_id = models.UUIDField()
    distance = models.PositiveIntegerField(help_text="steps of the lineage from what was withdrawn, 0 for that itself")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("withdrawnobject", "withdrawal"),
            models.UniqueConstraint(fields=["workspace", "withdrawal", "kind", "object_id"], name="withdrawnobject_once"),
        ]
        indexes = [models.Index(fields=["workspace", "kind", "object_id"], name="withdrawnobject_found")]
