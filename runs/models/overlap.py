"""Which records of a dataset version stand in a holdout too: hashes of its records, a check of each such pair, and what people say against it."""

from django.conf import settings
from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace


class RecordIndex(Owned):
    """Hashes of the records of a version, in a file of the store (runs/overlap/sidecar.py)."""

    prefix = "index"

    version = owned_key("workspaces.DatasetVersion", related_name="record_indexes")
    method = models.PositiveSmallIntegerField(help_text="of reading and hashing; 0 once it is to be read anew")
    blob = owned_key("workspaces.Blob", null=True)
    records = models.BigIntegerField(default=0)
    whole_files = models.PositiveIntegerField(default=0, help_text="files of a kind that is not read by records: each is one")
    fault = models.CharField(
        max_length=1000, blank=True, help_text="what could not be read by its records, and why; all of it without a blob"
    )

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("recordindex", "version", "blob"),
            models.UniqueConstraint(fields=["workspace", "version"], name="recordindex_once"),
        ]

    @property
    def label(self) -> str:
        return f"records of {self.version.label}"


class OverlapCheck(Owned):
    """One version against one holdout version, as it was found last."""

    prefix = "overlap"

    class Verdict(models.TextChoices):
        CONTAMINATED = "contaminated"
        SUSPICIOUS = "suspicious"
        CLEAN = "clean"
        UNKNOWN = "unknown"

    version = owned_key("workspaces.DatasetVersion", related_name="overlap_checks")
    holdout = owned_key("workspaces.DatasetVersion", related_name="overlaps_found")
    method = models.PositiveSmallIntegerField(help_text="of reading and hashing; 0 once it is to be checked anew")
    verdict = models.CharField(max_length=12, choices=Verdict)
    exact = models.BigIntegerField(default=0, help_text="records of the version that stand in the holdout")
    near = models.BigIntegerField(default=0, help_text="records of the version that nearly do")
    is_least = models.BooleanField(default=False, help_text="there may be more near ones")
    reason = models.CharField(max_length=1000, blank=True, help_text="why it is unknown, or what was compared as a whole")
    pairs = models.JSONField(default=list, blank=True, help_text="where records stand on both sides, a hundred at most")
    checked_at = models.DateTimeField()

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("overlapcheck", "version", "holdout"),
            models.UniqueConstraint(fields=["workspace", "version", "holdout"], name="overlapcheck_once"),
            models.CheckConstraint(condition=models.Q(exact__gte=0, near__gte=0), name="overlapcheck_counts"),
        ]
        indexes = [models.Index(fields=["workspace", "holdout"], name="overlapcheck_holdout")]

    @property
    def label(self) -> str:
        return f"{self.version.label} against {self.holdout.label}"


class Ruling(Owned):
    """What a person says of a version, with the reason: of its verdict, or of whether others may use it. The newest of each holds; one on the
    verdict only as long as the checks say what they said then, of the same versions."""

    prefix = "ruling"

    class About(models.TextChoices):
        VERDICT = "verdict"
        REUSE = "reuse"

    version = owned_key("workspaces.DatasetVersion", related_name="rulings")
    number = models.PositiveIntegerField(help_text="counts the version's rulings")
    about = models.CharField(max_length=8, choices=About)
    verdict = models.CharField(max_length=12, choices=OverlapCheck.Verdict, blank=True, help_text="empty: as the checks say")
    overruled = models.CharField(max_length=12, blank=True, help_text="the verdict of the checks at that time")
    said = models.CharField(max_length=200, blank=True, help_text="what the checks had found at that time")
    is_reusable = models.BooleanField(null=True, blank=True)
    reason = models.CharField(max_length=1000)
    ruled_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("ruling", "version"),
            models.UniqueConstraint(fields=["workspace", "version", "number"], name="ruling_number_once"),
        ]

    @property
    def label(self) -> str:
        return f"ruling {self.number} on {self.version.label}"
