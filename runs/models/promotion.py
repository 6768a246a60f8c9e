"""An artifact that people may rest on: put forward under a name with the facts of that moment, decided by another person, signed."""

from django.conf import settings
from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace


class Promotion(Owned):
    prefix = "prom"

    class Status(models.TextChoices):
        PROPOSED = "proposed", "waits for a decision"
        PROMOTED = "promoted"
        REFUSED = "refused"
        WITHDRAWN = "withdrawn"
        SUPERSEDED = "superseded"

    HOLDING = (Status.PROPOSED, Status.PROMOTED)  # while it is one of these, its artifact stays

    number = models.PositiveIntegerField(help_text="counts the workspace's promotions")
    name = models.CharField(max_length=64, help_text="what the artifact is promoted as, in the form in which slugs are compared")
    status = models.CharField(max_length=10, choices=Status, default=Status.PROPOSED)
    artifact = owned_key("runs.Artifact", related_name="promotions")
    evaluation = owned_key("runs.Evaluation", null=True)
    supersedes = owned_key("runs.Promotion", null=True)
    facts = models.JSONField(
        help_text="each check as it stood when it was proposed: key, name, verdict, observed, required, words, evidence"
    )
    content_hash = models.CharField(max_length=64, help_text="of everything that an approver agrees to")
    reason = models.CharField(max_length=1000, blank=True, help_text="why it was put forward")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True, help_text="when it was refused, withdrawn or superseded")
    end_reason = models.CharField(max_length=1000, blank=True)
    statement = models.JSONField(null=True, blank=True, help_text="DSSE envelope of the in-toto statement, once promoted")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("promotion", "artifact", "evaluation", "supersedes"),
            models.UniqueConstraint(fields=["workspace", "number"], name="promotion_number_once"),
            models.UniqueConstraint(fields=["workspace", "name"], condition=models.Q(status="promoted"), name="promotion_one_stands"),
            models.UniqueConstraint(
                fields=["workspace", "name", "artifact"], condition=models.Q(status="proposed"), name="promotion_proposed_once"
            ),
            models.CheckConstraint(
                condition=~models.Q(status="promoted") | models.Q(statement__isnull=False, decided_at__isnull=False),
                name="promotion_is_signed",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-created_at", "-id"], name="promotion_newest"),
            models.Index(fields=["workspace", "name", "-created_at"], name="promotion_by_name"),
        ]

    @property
    def label(self) -> str:
        return f"{self.name}, promotion {self.number}"
