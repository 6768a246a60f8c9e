"""What operators do to a queue as a whole, what a queue asks of an engine that others use too, and whether its pools answer."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from workspaces.models.base import Owned, Telemetry, owned_key, same_workspace


class QueueHold(Owned):
    """While this row stands, no queued run of the workspace starts. What runs goes on."""

    prefix = "hold"

    held_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.CharField(max_length=1000)

    class Meta(Owned.Meta):
        constraints = [*Owned.Meta.constraints, models.UniqueConstraint(fields=["workspace"], name="queuehold_once")]

    @property
    def label(self) -> str:
        return "the queue"


class PoolDemand(Telemetry):
    """The next run of a pool would start if its engine, which other workspaces use too, had the places: asked for when, and how many places.

    Said anew each time the dispatcher looks, so that a demand of which nothing is heard any more holds back nobody.
    """

    prefix = "demand"

    pool = owned_key("workspaces.Pool")
    slots = models.PositiveIntegerField()
    wanted_at = models.DateTimeField(db_default=Now())

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            *same_workspace("pooldemand", "pool"),
            models.UniqueConstraint(fields=["workspace", "pool"], name="pooldemand_once"),
        ]


class PoolContact(Telemetry):
    """When a pool last answered, when it last did not and why, and what it has at work that no row of labsite explains.

    `strangers`: of the first of them `key` and `since`, when it was first seen; `stranger_count`: of all.
    """

    prefix = "contact"

    pool = owned_key("workspaces.Pool", related_name="contacts")
    answered_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=300, blank=True)
    strangers = models.JSONField(default=list, blank=True)
    stranger_count = models.PositiveIntegerField(default=0)

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            *same_workspace("poolcontact", "pool"),
            models.UniqueConstraint(fields=["workspace", "pool"], name="poolcontact_once"),
        ]
