"""What a workspace has learnt: entries, what each rests on, and who read it at which trust (features 65-69).

An entry's words never change: an edit is a further revision, which begins unreviewed and takes the place of the one before.
"""

import uuid

from django.conf import settings
from django.db import models

from workspaces import ids
from workspaces.models.base import Owned, owned_key, same_workspace


class Trust(models.TextChoices):
    """In the order in which lists show them. No writer sets any but the first; the rest are a reviewer's word."""

    UNREVIEWED = "unreviewed"
    OBSERVED = "observed", "observed once"
    CONFIRMED = "confirmed", "confirmed by others"
    DURABLE = "durable", "durable guidance"
    WITHDRAWN = "withdrawn"


class MemoryEntry(Owned):
    """One revision of one entry; `superseded_at` is None for the one that stands."""

    prefix = "memory"

    class Scope(models.TextChoices):
        WORKSPACE = "workspace"
        BENCHMARK = "benchmark"
        AGENT = "agent"

    class EntryKind(models.TextChoices):
        FAILED_ATTEMPT = "failed_attempt", "failed attempt"
        FINDING = "finding"
        GUIDANCE = "guidance"
        NOTE = "note"

    class Author(models.TextChoices):
        PERSON = "person"
        RUN = "run", "an agent's run"
        POLICY = "policy"
        IMPORT = "import"

    thread = models.UUIDField(default=uuid.uuid4, editable=False, help_text="names the entry over all its revisions")
    revision = models.PositiveIntegerField(default=1)
    superseded_at = models.DateTimeField(null=True, blank=True)
    scope = models.CharField(max_length=9, choices=Scope, default=Scope.WORKSPACE)
    benchmark = owned_key("workspaces.Benchmark", null=True)
    agent = owned_key("workspaces.Agent", null=True)
    kind = models.CharField(max_length=14, choices=EntryKind)
    collection = models.CharField(max_length=64, validators=[ids.validate_slug])
    title = models.CharField(max_length=200)
    text = models.TextField(max_length=8000, blank=True)
    configuration = models.JSONField(null=True, blank=True, help_text="names and plain values, compared when looking for similar ones")
    content_hash = models.CharField(max_length=64, help_text="of everything that a reviewer vouches for")
    trust = models.CharField(max_length=10, choices=Trust, default=Trust.UNREVIEWED)
    author_kind = models.CharField(max_length=6, choices=Author)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="+",
        null=True,
        blank=True,
        help_text="who wrote it, or answers for the run or policy that did",
    )
    run = owned_key("runs.Run", related_name="memory_written", null=True)
    policy = owned_key("runs.Policy", null=True)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_until = models.DateTimeField(null=True, blank=True)
    review_due = models.DateTimeField(null=True, blank=True)
    reviewed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    reviewed_at = models.DateTimeField(null=True, blank=True)
    review_comment = models.CharField(max_length=1000, blank=True)
    withdrawn_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawn_reason = models.CharField(max_length=1000, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("memoryentry", "benchmark", "agent", "run", "policy"),
            models.UniqueConstraint(fields=["workspace", "thread", "revision"], name="memoryentry_revision_once"),
            models.UniqueConstraint(fields=["workspace", "thread"], condition=models.Q(superseded_at=None), name="memoryentry_one_stands"),
            models.CheckConstraint(
                condition=models.Q(trust__in=(Trust.UNREVIEWED, Trust.WITHDRAWN)) | models.Q(reviewed_at__isnull=False),
                name="memoryentry_trust_is_reviewed",
            ),
        ]
        indexes = [
            models.Index(
                fields=["workspace", "trust", "-created_at", "-id"], condition=models.Q(superseded_at=None), name="memoryentry_newest"
            ),
            models.Index(
                fields=["workspace", "collection", "trust", "-created_at"],
                condition=models.Q(superseded_at=None),
                name="memoryentry_collected",
            ),
            # What a configuration is held against: the newest that have one.
            models.Index(
                fields=["workspace", "-created_at", "-id"],
                condition=models.Q(superseded_at=None, configuration__isnull=False),
                name="memoryentry_configured",
            ),
        ]
        verbose_name_plural = "memory entries"

    @property
    def label(self) -> str:
        """How the record names it, for ever: never in its own words, which a run may have written."""
        return f"{self.get_kind_display()} in memory, revision {self.revision}"


class MemoryEvidence(Owned):
    """One thing that an entry rests on: exactly one of the four keys is set."""

    prefix = "evidence"
    KINDS = ("run", "evaluation", "artifact", "dataset_version")

    entry = owned_key("runs.MemoryEntry", related_name="evidence")
    run = owned_key("runs.Run", null=True)
    evaluation = owned_key("runs.Evaluation", null=True)
    artifact = owned_key("runs.Artifact", null=True)
    dataset_version = owned_key("workspaces.DatasetVersion", null=True)
    named = models.CharField(max_length=300, help_text="as it was called when the entry was written")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("memoryevidence", "entry", "run", "evaluation", "artifact", "dataset_version"),
            models.CheckConstraint(
                condition=models.Q(run__isnull=False, evaluation=None, artifact=None, dataset_version=None)
                | models.Q(run=None, evaluation__isnull=False, artifact=None, dataset_version=None)
                | models.Q(run=None, evaluation=None, artifact__isnull=False, dataset_version=None)
                | models.Q(run=None, evaluation=None, artifact=None, dataset_version__isnull=False),
                name="memoryevidence_is_one_thing",
            ),
        ]

    @property
    def label(self) -> str:
        return self.named

    @property
    def kind(self) -> str:
        return next(kind for kind in self.KINDS if getattr(self, f"{kind}_id") is not None)

    @property
    def subject_id(self) -> uuid.UUID:
        found: uuid.UUID = getattr(self, f"{self.kind}_id")
        return found


class MemoryRead(Owned):
    """That a revision was read, at which trust: by a run, for a policy's decision, or by a person who launches."""

    prefix = "read"

    entry = owned_key("runs.MemoryEntry", related_name="reads")
    trust = models.CharField(max_length=10, choices=Trust, help_text="of the entry when it was read")
    run = owned_key("runs.Run", related_name="memory_read", null=True)
    decision = owned_key("runs.Decision", related_name="memory_read", null=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("memoryread", "entry", "run", "decision"),
            models.CheckConstraint(
                condition=models.Q(run__isnull=False) | models.Q(decision__isnull=False) | models.Q(person__isnull=False),
                name="memoryread_has_a_reader",
            ),
        ]
        indexes = [models.Index(fields=["workspace", "-created_at", "-id"], name="memoryread_newest")]

    @property
    def label(self) -> str:
        return f"{self.entry.label}, read at {self.trust}"
