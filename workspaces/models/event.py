"""The record: one event a command, hash-chained per workspace. The serving role can add to these tables and do nothing else to them."""

from django.contrib.postgres.functions import TransactionNow
from django.db import models

from workspaces import ids
from workspaces.models.base import Telemetry, owned_key, same_workspace


class ActorKind(models.TextChoices):
    PERSON = "person"
    AGENT = "agent"
    SERVICE = "service"
    SYSTEM = "system"


class AuditEvent(Telemetry):
    prefix = "event"

    version = models.PositiveSmallIntegerField(default=1, help_text="of the hash's form")
    sequence = models.BigIntegerField()
    recorded_at = models.DateTimeField(db_default=TransactionNow(), editable=False)
    actor_kind = models.CharField(max_length=7, choices=ActorKind)
    actor_id = models.UUIDField(null=True)
    actor_label = models.CharField(max_length=200)
    behalf_id = models.UUIDField(null=True)
    behalf_label = models.CharField(max_length=200, blank=True)
    verb = models.CharField(max_length=60)
    subject_type = models.CharField(max_length=40)
    subject_id = models.UUIDField(null=True)
    subject_label = models.CharField(max_length=300, blank=True)
    command_id = models.UUIDField(unique=True)
    request_id = models.CharField(max_length=64, blank=True)
    job_id = models.CharField(max_length=128, blank=True)
    token_id = models.UUIDField(null=True)
    payload_hash = models.CharField(max_length=64)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            models.UniqueConstraint(fields=["workspace", "sequence"], name="auditevent_sequence_once"),
        ]
        indexes = [
            models.Index(fields=["workspace", "subject_id"], name="auditevent_subject"),
            # What the record is filtered by; by sequence, as it is shown.
            models.Index(fields=["workspace", "verb", "sequence"], name="auditevent_verb"),
            models.Index(fields=["workspace", "recorded_at"], name="auditevent_time"),
            models.Index(fields=["workspace", "actor_id", "sequence"], name="auditevent_actor"),
            models.Index(fields=["workspace", "actor_label", "sequence"], name="auditevent_actor_label"),
            models.Index(fields=["workspace", "behalf_id"], condition=models.Q(behalf_id__isnull=False), name="auditevent_behalf"),
            models.Index(fields=["workspace", "behalf_label"], condition=~models.Q(behalf_label=""), name="auditevent_behalf_label"),
            models.Index(fields=["workspace", "request_id"], condition=~models.Q(request_id=""), name="auditevent_request"),
            # Counted before each denial is recorded, the more often the more there are.
            models.Index(
                fields=["workspace", "actor_id", "recorded_at"], condition=models.Q(verb="access.denied"), name="auditevent_denials"
            ),
        ]


class EventPayload(Telemetry):
    """The erasable part of an event: the chain holds H(salt ‖ body) only, so that erasing it keeps the chain verifiable."""

    prefix = "payload"

    event = owned_key("workspaces.AuditEvent")
    salt = models.CharField(max_length=64)
    body = models.JSONField()

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            *same_workspace("eventpayload", "event"),
            models.UniqueConstraint(fields=["workspace", "event"], name="eventpayload_once"),
        ]


class EventSubject(Telemetry):
    """An object that the command changed, with the hash of its row before and after."""

    prefix = "subject"

    event = owned_key("workspaces.AuditEvent", related_name="subjects")
    position = models.PositiveIntegerField()
    type = models.CharField(max_length=40)
    object_id = models.UUIDField()
    label = models.CharField(max_length=300, blank=True)
    before_hash = models.CharField(max_length=64, blank=True)
    after_hash = models.CharField(max_length=64, blank=True)

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            *same_workspace("eventsubject", "event"),
            models.UniqueConstraint(fields=["workspace", "event", "position"], name="eventsubject_position_once"),
        ]
        indexes = [
            models.Index(fields=["workspace", "object_id"], name="eventsubject_object"),
            models.Index(fields=["workspace", "label"], name="eventsubject_label"),
        ]


class AuditHead(Telemetry):
    """Where the chain of a workspace ends; its row lock gives the sequence without gaps."""

    prefix = "head"

    sequence = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64, default="0" * 64)

    class Meta(Telemetry.Meta):
        constraints = [*Telemetry.Meta.constraints, models.UniqueConstraint(fields=["workspace"], name="audithead_once")]


class SiteEvent(models.Model):
    """The record of the installation: people, groups, engines. One chain, no workspace, read by site operators and auditors."""

    id = models.UUIDField(primary_key=True, default=ids.uuid7, editable=False)
    sequence = models.BigIntegerField(unique=True)
    recorded_at = models.DateTimeField(db_default=TransactionNow(), editable=False)
    actor_kind = models.CharField(max_length=7, choices=ActorKind)
    actor_id = models.UUIDField(null=True)
    actor_label = models.CharField(max_length=200)
    verb = models.CharField(max_length=60)
    subject_type = models.CharField(max_length=40)
    subject_id = models.CharField(max_length=64, blank=True)
    subject_label = models.CharField(max_length=300, blank=True)
    details = models.JSONField(default=dict)
    command_id = models.UUIDField(unique=True)
    request_id = models.CharField(max_length=64, blank=True)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)
