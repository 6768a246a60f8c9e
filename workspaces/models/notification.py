"""What a person is told of: a request that waits for them, a decision on theirs, work of theirs that ended. One row for each person and cause."""

from django.conf import settings
from django.db import models

from workspaces.models.base import Telemetry


class Notification(Telemetry):
    """Told once for each person, cause and subject. Follows from what the record says already, so it has no event of its own."""

    prefix = "notification"

    class Cause(models.TextChoices):
        APPROVAL_ASKED = "approval_asked", "a request waits for your decision"
        APPROVAL_DECIDED = "approval_decided", "your request was decided"
        APPROVAL_COMMENTED = "approval_commented", "somebody wrote about a request"
        APPROVAL_FORCED = "approval_forced", "an owner decided alone what needed others"
        RUN_ENDED = "run_ended", "your run ended"
        SWEEP_ENDED = "sweep_ended", "your sweep ended"
        LIMIT_CROSSED = "limit_crossed", "a threshold of a budget was reached"
        RUN_OVERRAN = "run_overran", "a run used more than was reserved for it"
        CONTRACT_CHECKED = "contract_checked", "a benchmark was checked, and it does not measure what it did"
        SOURCE_MOVED = "source_moved", "the source of a copied benchmark has changed"
        POLICY_FAILED = "policy_failed", "your policy failed, or was stopped by its limits"
        POLICY_SAYS = "policy_says", "a policy has something to say"
        LEDGER_WRONG = "ledger_wrong", "the ledger does not add up"

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    cause = models.CharField(max_length=20, choices=Cause)
    subject_type = models.CharField(max_length=40)
    subject_id = models.UUIDField()
    subject_label = models.CharField(max_length=300)
    outcome = models.CharField(max_length=40, blank=True, help_text="a status, shown with its shape and word")
    words = models.CharField(max_length=300, blank=True, help_text="what there is to say besides: a score, a reason")
    seen_at = models.DateTimeField(null=True, blank=True)

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            models.UniqueConstraint(fields=["workspace", "person", "cause", "subject_id"], name="notification_once"),
        ]
        indexes = [
            models.Index(fields=["workspace", "person", "-created_at", "-id"], name="notification_newest"),
            models.Index(fields=["workspace", "person"], condition=models.Q(seen_at=None), name="notification_unseen"),
        ]
