"""This installation: its epoch stands in the names of everything it starts outside, so that a restored copy touches nothing of the old one.

A dump that was restored says of its database what the old one was called, by which it is known (`workspaces/queries/installation.py`).
"""

import secrets

from django.db import models
from django.db.models.functions import Now

from workspaces import ids


class ThisDatabase(models.Func):
    """Which database answers: the cluster's system identifier, the database's oid and that of this table, each made anew where a dump is restored
    elsewhere, beside, or over what was there."""

    function = "lab_database"
    output_field = models.CharField()


def fresh_epoch() -> str:
    return secrets.token_hex(4)


class Installation(models.Model):
    id = models.UUIDField(primary_key=True, default=ids.uuid7, editable=False)
    is_current = models.BooleanField(default=True, unique=True)
    epoch = models.CharField(max_length=8, default=fresh_epoch)
    database = models.CharField(max_length=80, db_default=ThisDatabase(), help_text="which database it was in when that was last decided")
    checkpoint_key = models.CharField(max_length=64, blank=True, help_text="public key that signs audit checkpoints, hex")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return f"installation {self.epoch}"
