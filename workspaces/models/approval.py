"""A request for a person's decision, bound to the hash of exactly what is asked; void if that changes (feature 75, M11)."""

from django.conf import settings
from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace


class Approval(Owned):
    prefix = "approval"

    class Status(models.TextChoices):
        PENDING = "pending", "waits for a decision"
        APPROVED = "approved"
        REFUSED = "refused"
        VOID = "void", "void: what was asked has changed or ended"
        EXPIRED = "expired"

    status = models.CharField(max_length=8, choices=Status, default=Status.PENDING)
    subject_type = models.CharField(max_length=40)
    subject_id = models.UUIDField()
    subject_label = models.CharField(max_length=300)
    content = models.JSONField(help_text="what is asked, as the approver sees it")
    content_hash = models.CharField(max_length=64)
    reason = models.CharField(max_length=1000, blank=True)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    quorum = models.PositiveSmallIntegerField(default=1)
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta(Owned.Meta):
        constraints = [*Owned.Meta.constraints]
        indexes = [
            models.Index(fields=["workspace", "status", "created_at"], name="approval_inbox"),
            models.Index(fields=["subject_id"], name="approval_subject"),
        ]

    @property
    def label(self) -> str:
        return self.subject_label


class ApprovalVote(Owned):
    """One person's word on one request; never overwritten."""

    prefix = "vote"

    approval = owned_key("workspaces.Approval", related_name="votes")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    approves = models.BooleanField()
    comment = models.CharField(max_length=1000, blank=True)
    content_hash = models.CharField(max_length=64)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("approvalvote", "approval"),
            models.UniqueConstraint(fields=["workspace", "approval", "person"], name="approvalvote_once"),
        ]
