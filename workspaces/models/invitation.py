"""An invitation: single use, expiring, bound to one workspace and role. Only the SHA-256 of its secret is kept."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from workspaces.models.base import Owned
from workspaces.models.membership import Membership


class Invitation(Owned):
    prefix = "invite"

    email = models.EmailField(max_length=254)
    role = models.CharField(max_length=12, choices=Membership.Role)
    kinds = ArrayField(models.CharField(max_length=20), default=list, blank=True)
    secret_hash = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta(Owned.Meta):
        constraints = [*Owned.Meta.constraints]
