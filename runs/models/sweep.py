"""A sweep: a search space over an agent's parameters, what all its members share, and how far it has come. Its members are ordinary runs."""

from django.conf import settings
from django.db import models

from runs.models.called import CalledThen
from workspaces.models.base import Owned, owned_key, same_workspace


class Sweep(CalledThen, Owned):
    prefix = "sweep"

    class Status(models.TextChoices):
        RUNNING = "running"  # members are launched, or under way
        ENDED = "ended"  # every member has ended
        STOPPED = "stopped"  # no more members are launched, with a reason

    name = models.CharField(max_length=200)
    number = models.PositiveIntegerField(help_text="counts the workspace's sweeps")
    status = models.CharField(max_length=8, choices=Status, default=Status.RUNNING)
    reason = models.CharField(max_length=1000, blank=True, help_text="why it stopped")
    purpose = models.CharField(max_length=1000, blank=True, help_text="why it was asked for")
    benchmark = owned_key("workspaces.Benchmark", related_name="sweeps")
    agent = owned_key("workspaces.Agent", related_name="sweeps")
    agent_version = owned_key("workspaces.AgentVersion")
    pool = owned_key("workspaces.Pool")
    space = models.JSONField(help_text="runs.search_space")
    request = models.JSONField(help_text="what every member asks for, versions fixed: runs.launch.LaunchRequest")
    names = models.JSONField(default=dict, blank=True, help_text="what benchmark and agent were called when it was asked for")
    members = models.PositiveIntegerField()
    gpu_ms_each = models.BigIntegerField(help_text="reserved for each member, at most")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    token_id = models.UUIDField(null=True, blank=True, help_text="the token that asked, if one did; its members need it to hold")
    decision = owned_key("runs.Decision", null=True, related_name="sweeps")
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("sweep", "benchmark", "agent", "agent_version", "pool", "decision"),
            models.UniqueConstraint(fields=["workspace", "number"], name="sweep_number_once"),
            models.UniqueConstraint(fields=["workspace", "decision"], name="sweep_once_a_decision"),
            models.CheckConstraint(condition=models.Q(members__gte=1), name="sweep_has_members"),
        ]
        indexes = [models.Index(fields=["workspace", "-created_at", "-id"], name="sweep_newest")]

    @property
    def gpu_ms_at_most(self) -> int:
        return self.gpu_ms_each * self.members

    def __str__(self) -> str:
        return self.name
