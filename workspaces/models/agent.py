"""An agent and its versions: argv, parameter schema, content-addressed code bundle, allowed pools, secrets and tools (contracts.md G)."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace, slug_field, unique_slug


class Agent(Owned):
    prefix = "agent"

    slug = slug_field()
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, max_length=20_000)
    part = models.CharField(max_length=40, blank=True, help_text="its part in the laboratory: teacher, student, judge, worker, …")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")

    class Meta(Owned.Meta):
        constraints = [*Owned.Meta.constraints, unique_slug("agent_slug_once")]


class AgentVersion(Owned):
    prefix = "agv"

    class Completion(models.TextChoices):
        EXIT = "exit", "exit code 0"
        DONE = "done", "exit code 0 and a done line"

    agent = owned_key("workspaces.Agent", related_name="versions")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=20, default="train", help_text="train, evaluate, selfplay, …")
    argv = ArrayField(models.CharField(max_length=1000))
    environment = models.JSONField(default=dict, blank=True)
    parameter_schema = models.JSONField(default=dict, blank=True)
    outputs = models.JSONField(default=list, blank=True, help_text="[{glob, name, kind}]")
    inputs = models.JSONField(default=list, blank=True, help_text="what a run must be given, or may be: workspaces.agent_inputs")
    slots = models.PositiveSmallIntegerField(default=1)
    wall_seconds = models.PositiveIntegerField(default=3600)
    memory_bytes = models.BigIntegerField(null=True, blank=True)
    secrets = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    tools = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    completion = models.CharField(max_length=4, choices=Completion, default=Completion.EXIT)
    bundle_hash = models.CharField(max_length=64)
    content_hash = models.CharField(max_length=64)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("agentversion", "agent"),
            models.UniqueConstraint(fields=["workspace", "agent", "number"], name="agentversion_number_once"),
        ]

    @property
    def label(self) -> str:
        return f"{self.agent.name}, version {self.number}"


class AgentFile(Owned):
    """One file of a version's code bundle."""

    prefix = "agf"

    version = owned_key("workspaces.AgentVersion", related_name="files")
    path = models.CharField(max_length=1024)
    blob = owned_key("workspaces.Blob")
    is_executable = models.BooleanField(default=False)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("agentfile", "version", "blob"),
            models.UniqueConstraint(fields=["workspace", "version", "path"], name="agentfile_path_once"),
        ]


class AgentPool(Owned):
    """A pool that a version may run on; a version without any may run on every pool of the workspace."""

    prefix = "agp"

    version = owned_key("workspaces.AgentVersion", related_name="allowed_pools")
    pool = owned_key("workspaces.Pool")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("agentpool", "version", "pool"),
            models.UniqueConstraint(fields=["workspace", "version", "pool"], name="agentpool_once"),
        ]
