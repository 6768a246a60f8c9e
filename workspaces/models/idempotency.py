"""Answers that are given again for the same Idempotency-Key, for 24 hours (draft-ietf-httpapi-idempotency-key-header)."""

from django.db import models
from django.db.models.functions import Now

from workspaces import ids
from workspaces.models.base import Telemetry


class IdempotencyKey(Telemetry):
    prefix = "idem"

    holder = models.CharField(max_length=80, help_text="token or person that used the key")
    route = models.CharField(max_length=300)
    key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    answer = models.TextField(blank=True)

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            models.UniqueConstraint(fields=["workspace", "holder", "route", "key"], name="idempotencykey_once"),
        ]


class SiteIdempotencyKey(models.Model):
    """The same for the site's routes, which have no workspace yet."""

    id = models.UUIDField(primary_key=True, default=ids.uuid7, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    holder = models.CharField(max_length=80)
    route = models.CharField(max_length=300)
    key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    answer = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["holder", "route", "key"], name="siteidempotencykey_once")]
