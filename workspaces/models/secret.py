"""Secrets of a workspace: values that runs read as files and people never read back, who may read them, and which run got which when.

Envelope: a value is sealed with the workspace's data key, the data key is wrapped by a key of the installation that lies outside the database.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

from workspaces.models.base import Owned, Telemetry, owned_key, same_workspace

SECRET_NAME = r"[A-Z][A-Z0-9_]{0,63}"  # noqa: S105  # what the name of one looks like


class DataKey(Owned):
    """The one key of a workspace, wrapped. Without it nothing sealed in the workspace can be read, in a backup either."""

    prefix = "datakey"

    wrapped_by = models.CharField(max_length=16, help_text="name of the installation's key")
    nonce = models.CharField(max_length=16)
    wrapped = models.CharField(max_length=64, help_text="base64 of the sealed key")

    class Meta(Owned.Meta):
        constraints = [*Owned.Meta.constraints, models.UniqueConstraint(fields=["workspace"], name="datakey_one")]

    def __str__(self) -> str:
        return "data key"


class Secret(Owned):
    prefix = "secret"

    class Kind(models.TextChoices):
        VALUE = "value", "value"
        SSH_KEY = "ssh_key", "SSH key"

    name = models.CharField(max_length=64, validators=[RegexValidator(rf"\A{SECRET_NAME}\Z", "Capitals, digits and _, such as HF_TOKEN.")])
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.VALUE)
    description = models.CharField(max_length=1000, blank=True)
    version = models.PositiveIntegerField(default=1, help_text="counts its values")
    nonce = models.CharField(max_length=16)
    ciphertext = models.TextField(help_text="base64 of the sealed value; empty once it is revoked")
    fingerprint = models.CharField(max_length=16, help_text="keyed: it tells equal values apart from others, and nothing about them")
    public_key = models.TextField(blank=True, help_text="of an SSH key, as OpenSSH writes it")
    rotated_at = models.DateTimeField(help_text="since when this value holds")
    rotate_after_days = models.PositiveIntegerField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            models.UniqueConstraint(fields=["workspace", "name"], condition=models.Q(revoked_at=None), name="secret_name_once"),
            models.CheckConstraint(condition=models.Q(revoked_at=None) | models.Q(ciphertext=""), name="secret_revoked_is_gone"),
        ]
        indexes = [models.Index(fields=["workspace", "name"], name="secret_by_name")]

    @property
    def rotation_due_at(self) -> datetime | None:
        """When a new value is due; None where none is asked for."""
        if self.revoked_at is not None or self.rotate_after_days is None:
            return None
        return self.rotated_at + timedelta(days=self.rotate_after_days)


class SecretAgent(Owned):
    """An agent that may read a secret; a secret without any is read by none."""

    prefix = "seca"

    secret = owned_key("workspaces.Secret", related_name="agents")
    agent = owned_key("workspaces.Agent")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("secretagent", "secret", "agent"),
            models.UniqueConstraint(fields=["workspace", "secret", "agent"], name="secretagent_once"),
        ]


class SecretPool(Owned):
    """A pool on which a secret may be read; a secret without any is handed out on none."""

    prefix = "secp"

    secret = owned_key("workspaces.Secret", related_name="pools")
    pool = owned_key("workspaces.Pool")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("secretpool", "secret", "pool"),
            models.UniqueConstraint(fields=["workspace", "secret", "pool"], name="secretpool_once"),
        ]


class SecretBenchmark(Owned):
    """A benchmark for which a secret may be read; a secret without any is read for every one."""

    prefix = "secb"

    secret = owned_key("workspaces.Secret", related_name="benchmarks")
    benchmark = owned_key("workspaces.Benchmark")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("secretbenchmark", "secret", "benchmark"),
            models.UniqueConstraint(fields=["workspace", "secret", "benchmark"], name="secretbenchmark_once"),
        ]


class SecretUse(Telemetry):
    """One value handed to one attempt of a run. It stays sealed here until what the attempt left is collected, so that it is found in what the
    run prints although the secret got another value, or none, meanwhile."""

    prefix = "secuse"

    secret = owned_key("workspaces.Secret", related_name="uses")
    agent = owned_key("workspaces.Agent")
    agent_version = models.PositiveIntegerField()
    run_id = models.UUIDField()
    run_label = models.CharField(max_length=200)
    attempt_key = models.CharField(max_length=64)
    version = models.PositiveIntegerField(help_text="of the secret's values")
    nonce = models.CharField(max_length=16, blank=True)
    ciphertext = models.TextField(blank=True, help_text="empty once the attempt is collected")

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            *same_workspace("secretuse", "secret", "agent"),
            models.UniqueConstraint(fields=["workspace", "attempt_key", "secret"], name="secretuse_once"),
        ]
        indexes = [models.Index(fields=["workspace", "secret", "-created_at", "-id"], name="secretuse_newest")]
