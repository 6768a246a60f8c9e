"""A request for a person's decision, bound to the hash of exactly what is asked; void if that changes (feature 75, M11)."""

from django.conf import settings
from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace


class Approval(Owned):
    prefix = "approval"

    class Role(models.TextChoices):
        """From whom an approval counts; each includes those below it."""

        APPROVER = "approver", "anyone who may approve"
        ADMIN = "admin", "admins and owners"
        OWNER = "owner", "owners"

    class Status(models.TextChoices):
        PENDING = "pending", "waits for a decision"
        APPROVED = "approved"
        REFUSED = "refused"
        VOID = "void", "void: what was asked has changed or ended"
        EXPIRED = "expired"
        WITHDRAWN = "withdrawn", "withdrawn by whoever asked"

    status = models.CharField(max_length=9, choices=Status, default=Status.PENDING)
    subject_type = models.CharField(max_length=40)
    subject_id = models.UUIDField()
    subject_label = models.CharField(max_length=300)
    content = models.JSONField(help_text="what is asked, as the approver sees it")
    content_hash = models.CharField(max_length=64)
    reason = models.CharField(max_length=1000, blank=True)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    quorum = models.PositiveSmallIntegerField(default=1)
    role = models.CharField(
        max_length=8, choices=Role, default=Role.APPROVER, help_text="whose approval counts: this role, or one above it"
    )
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=1000, blank=True, help_text="why it ended without a decision, or what had changed")

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
    """One person's word on one request; never overwritten. `behalf`: for whom, where somebody who is away named this person. `is_alone`: an owner
    broke the glass, and decided what others should have."""

    prefix = "vote"

    approval = owned_key("workspaces.Approval", related_name="votes")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    approves = models.BooleanField()
    comment = models.CharField(max_length=1000, blank=True)
    answer = models.CharField(max_length=1000, blank=True, help_text="to a question, which one of its choices or in their own words")
    content_hash = models.CharField(max_length=64)
    behalf = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    is_alone = models.BooleanField(default=False)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("approvalvote", "approval"),
            models.UniqueConstraint(fields=["workspace", "approval", "person", "is_alone"], name="approvalvote_once"),
            models.UniqueConstraint(fields=["workspace", "approval", "behalf"], name="approvalvote_behalf_once"),
        ]
        indexes = [models.Index(fields=["workspace", "created_at"], condition=models.Q(is_alone=True), name="approvalvote_alone")]


class ApprovalComment(Owned):
    """What is said about a request without deciding: a question, an answer."""

    prefix = "comment"

    approval = owned_key("workspaces.Approval", related_name="comments")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    text = models.CharField(max_length=2000)

    class Meta(Owned.Meta):
        constraints = [*Owned.Meta.constraints, *same_workspace("approvalcomment", "approval")]
        indexes = [models.Index(fields=["approval", "created_at"], name="approvalcomment_thread")]

    @property
    def label(self) -> str:
        return str(self.approval.label)


class ApprovalRule(Owned):
    """What the workspace demands of a kind of request: how many approve, of which role, and for how long one waits. Without a row: one approver."""

    prefix = "rule"

    kind = models.CharField(max_length=40, help_text="the subject type of the requests")
    approvers = models.PositiveSmallIntegerField(default=1)
    role = models.CharField(max_length=8, choices=Approval.Role, default=Approval.Role.APPROVER)
    hours = models.PositiveIntegerField(help_text="from the request on; then it expires")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            models.UniqueConstraint(fields=["workspace", "kind"], name="approvalrule_once"),
            models.CheckConstraint(condition=models.Q(approvers__gte=1, hours__gte=1), name="approvalrule_demands"),
        ]

    @property
    def label(self) -> str:
        return self.kind


class Delegation(Owned):
    """While `giver` is away, `delegate` may decide in the giver's name. It gives nothing that the giver does not hold at the moment of use."""

    prefix = "delegation"

    giver = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    delegate = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.CharField(max_length=1000, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True, help_text="taken back before its end")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            models.CheckConstraint(condition=models.Q(ends_at__gt=models.F("starts_at")), name="delegation_has_a_time"),
        ]
        indexes = [models.Index(fields=["workspace", "delegate", "ends_at"], name="delegation_used")]

    @property
    def label(self) -> str:
        return f"{self.delegate.label} for {self.giver.label}"
