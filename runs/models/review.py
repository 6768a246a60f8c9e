"""Somebody has seen a run that deserved a person (feature 57): what was found of it then, and what came of it."""

from django.conf import settings
from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace


class Review(Owned):
    """What one person has seen of a run. It takes the run off the list for as long as nothing else is found of it, or until it is taken back."""

    prefix = "review"

    run = owned_key("runs.Run", related_name="reviews")
    findings = models.JSONField(default=list, help_text="keys of what was found (runs/review.py)")
    comment = models.CharField(max_length=1000)
    reviewed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    taken_back_at = models.DateTimeField(null=True, blank=True)
    taken_back_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("review", "run"),
        ]
        indexes = [
            models.Index(fields=["workspace", "run"], name="review_of_run"),
            models.Index(fields=["workspace", "-created_at", "-id"], name="review_newest"),
        ]

    @property
    def label(self) -> str:
        return f"review of {self.run}"
