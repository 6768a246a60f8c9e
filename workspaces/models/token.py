"""A bearer token of one workspace: for a person, a service account, or one run. Only the SHA-256 of its secret is kept."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from workspaces.models.base import Owned, Telemetry, owned_key, same_workspace


class Token(Owned):
    prefix = "token"

    class Kind(models.TextChoices):
        PERSON = "pat", "personal"
        SERVICE = "svc", "service account"
        RUN = "run", "run"

    kind = models.CharField(max_length=3, choices=Kind)
    holder = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    secret_hash = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=40), default=list)
    run_id = models.UUIDField(null=True, blank=True, help_text="the one run that a run token may write to")
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta(Owned.Meta):
        constraints = [*Owned.Meta.constraints]


class TokenUse(Telemetry):
    """When a token was last used, kept to the minute."""

    token = owned_key("workspaces.Token")
    used_at = models.DateTimeField(db_default=Now())
    address = models.CharField(max_length=45, blank=True)

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            *same_workspace("tokenuse", "token"),
            models.UniqueConstraint(fields=["workspace", "token"], name="tokenuse_once"),
        ]
