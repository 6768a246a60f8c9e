"""A run: one execution of an agent version, frozen when it is asked for; its inputs, its certificate and its place in the queue."""

from django.conf import settings
from django.db import models

from runs.lifecycle import ACTIVE, TERMINAL, RunStatus
from runs.models.called import CalledThen
from workspaces.models import Pool
from workspaces.models.base import Owned, owned_key, same_workspace


class Certificate(Owned):
    """One admission decision with every limit and its arithmetic, kept whether it admitted or refused (M5)."""

    prefix = "cert"

    class Verdict(models.TextChoices):
        ADMITTED = "admitted"
        APPROVAL = "approval", "needs approval"
        REFUSED = "refused"

    verdict = models.CharField(max_length=8, choices=Verdict)
    lines = models.JSONField(help_text="one entry a limit: name, unit, allowed, used, reserved, asked, mode, verdict, words, way_out")
    facts = models.JSONField(help_text="what was decided upon; deciding again gives the same verdict")
    request = models.JSONField(help_text="what was asked, with names and hashes frozen")
    request_hash = models.CharField(max_length=64)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)

    class Meta(Owned.Meta):
        constraints = [*Owned.Meta.constraints]


class Run(CalledThen, Owned):
    prefix = "run"

    Status = RunStatus

    name = models.CharField(max_length=200)
    number = models.PositiveIntegerField(help_text="counts the workspace's runs")
    status = models.CharField(max_length=20, choices=[(status.value, status.value.replace("_", " ")) for status in RunStatus])
    reason_code = models.CharField(max_length=40, blank=True)
    reason = models.CharField(max_length=1000, blank=True)
    kind = models.CharField(max_length=20)
    benchmark = owned_key("workspaces.Benchmark", related_name="runs")
    contract = owned_key("workspaces.Contract")
    agent = owned_key("workspaces.Agent", related_name="runs")
    agent_version = owned_key("workspaces.AgentVersion", related_name="runs")
    pool = owned_key("workspaces.Pool", related_name="runs")
    certificate = owned_key("runs.Certificate")
    parameters = models.JSONField(default=dict)
    seed = models.BigIntegerField(null=True, blank=True)
    trigger = models.CharField(max_length=12, default="person", help_text="person, token, sweep, policy, retry")
    trigger_reason = models.CharField(max_length=1000, blank=True, help_text="why this run was asked for")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    retry_of = owned_key("runs.Run", null=True, related_name="retries")
    sweep = owned_key("runs.Sweep", null=True, related_name="runs")
    sweep_member = models.PositiveIntegerField(null=True, blank=True, help_text="its place in the sweep's search space, from 1")
    priority = models.SmallIntegerField(default=0)
    frozen = models.JSONField(help_text="versions and hashes of everything the run rests on (decision 12)")
    content_hash = models.CharField(max_length=64)
    names = models.JSONField(default=dict, blank=True, help_text="what benchmark and agent were called when it was asked for")
    slots = models.PositiveSmallIntegerField(default=1)
    wall_seconds = models.PositiveIntegerField()
    reserved_gpu_ms = models.BigIntegerField(default=0)
    spent_gpu_ms = models.BigIntegerField(default=0)
    reserved_api_micros = models.BigIntegerField(default=0)
    spent_api_micros = models.BigIntegerField(default=0)
    budget_window_at = models.DateTimeField(null=True, blank=True, help_text="start of the window that carries the reservation")
    queued_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("run", "benchmark", "contract", "agent", "agent_version", "pool", "certificate", "retry_of", "sweep"),
            models.UniqueConstraint(fields=["workspace", "number"], name="run_number_once"),
            models.UniqueConstraint(
                fields=["workspace", "sweep", "sweep_member"], condition=models.Q(retry_of=None), name="run_sweep_member_once"
            ),
            models.CheckConstraint(
                condition=models.Q(sweep=None, sweep_member=None) | models.Q(sweep__isnull=False, sweep_member__gte=1),
                name="run_sweep_member",
            ),
            models.CheckConstraint(condition=models.Q(status__in=[status.value for status in RunStatus]), name="run_status_known"),
            models.CheckConstraint(condition=models.Q(reserved_gpu_ms__gte=0, spent_gpu_ms__gte=0), name="run_gpu_not_negative"),
            models.CheckConstraint(
                condition=models.Q(status__in=[status.value for status in sorted(TERMINAL)], ended_at__isnull=False)
                | (~models.Q(status__in=[status.value for status in sorted(TERMINAL)]) & models.Q(ended_at__isnull=True)),
                name="run_ended_when_terminal",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-created_at", "-id"], name="run_newest"),
            models.Index(fields=["workspace", "status", "-created_at"], name="run_by_status"),
            models.Index(fields=["workspace", "benchmark", "-created_at"], name="run_by_benchmark"),
            models.Index(fields=["workspace", "agent", "-created_at"], name="run_by_agent"),
            models.Index(fields=["workspace", "-ended_at", "-id"], condition=models.Q(ended_at__isnull=False), name="run_ended"),
            # Does a later run stand for this member of a sweep?
            models.Index(
                fields=["workspace", "sweep", "sweep_member"], condition=models.Q(retry_of__isnull=False), name="run_sweep_retries"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def isolation(self) -> str:
        """What the run was admitted on, whatever became of its pool since."""
        return str(self.frozen["pool"]["isolation"])

    def get_isolation_display(self) -> str:
        return str(Pool.Isolation(self.isolation).label)

    @property
    def is_terminal(self) -> bool:
        return RunStatus(self.status) in TERMINAL

    @property
    def is_active(self) -> bool:
        return RunStatus(self.status) in ACTIVE


class RunInput(Owned):
    """What a run reads: a dataset version of this workspace, an artifact of an earlier run, or something shared (grant and hash, no key)."""

    prefix = "input"

    run = owned_key("runs.Run", related_name="inputs")
    slug = models.CharField(max_length=64)
    kind = models.CharField(max_length=10, help_text="dataset, artifact")
    dataset_version = owned_key("workspaces.DatasetVersion", null=True, related_name="run_inputs")
    artifact = owned_key("runs.Artifact", null=True, related_name="run_inputs")
    grant_id = models.UUIDField(null=True, blank=True)
    sha256 = models.CharField(max_length=64)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("runinput", "run", "dataset_version", "artifact"),
            models.UniqueConstraint(fields=["workspace", "run", "slug"], name="runinput_slug_once"),
        ]


class QueueItem(Owned):
    """A run that waits for its pool. The table is the queue; RQ only rings."""

    prefix = "queue"

    run = owned_key("runs.Run", related_name="queue_items")
    pool = owned_key("workspaces.Pool", related_name="queue_items")
    priority = models.SmallIntegerField(default=0)
    position_key = models.BigIntegerField(help_text="first in, first out within a priority; smaller goes first")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("queueitem", "run", "pool"),
            models.UniqueConstraint(fields=["workspace", "run"], name="queueitem_once"),
        ]
        indexes = [
            models.Index(fields=["workspace", "pool", "-priority", "position_key"], name="queueitem_order"),
            models.Index(fields=["workspace", "-priority", "position_key"], name="queueitem_order_of_all"),
        ]
