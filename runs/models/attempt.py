"""One try at a run on a pool. Its key exists before the pool is called, and is the name outside (contracts.md E)."""

from django.db import models

from runs.lifecycle import AttemptStatus
from workspaces.models.base import Owned, Telemetry, owned_key, same_workspace


class Attempt(Owned):
    prefix = "attempt"

    Status = AttemptStatus

    run = owned_key("runs.Run", related_name="attempts")
    pool = owned_key("workspaces.Pool")
    number = models.PositiveSmallIntegerField(help_text="grows with each attempt; a late report of an older one moves nothing")
    key = models.CharField(max_length=64, unique=True, help_text="lab-<epoch>-<hex of the id>")
    status = models.CharField(max_length=12, choices=[(status.value, status.value) for status in AttemptStatus])
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    cancel_asked_at = models.DateTimeField(null=True, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    exit_signal = models.IntegerField(null=True, blank=True)
    exit_reason = models.CharField(max_length=40, blank=True)
    peak_memory_bytes = models.BigIntegerField(null=True, blank=True)
    cpu_ms = models.BigIntegerField(null=True, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("attempt", "run", "pool"),
            models.UniqueConstraint(fields=["workspace", "run", "number"], name="attempt_number_once"),
            models.UniqueConstraint(
                fields=["workspace", "run"],
                condition=models.Q(status__in=[AttemptStatus.CREATED.value, AttemptStatus.RUNNING.value]),
                name="attempt_one_open",
            ),
        ]
        indexes = [models.Index(fields=["workspace", "pool", "-ended_at"], name="attempt_by_pool")]  # lab_site_shares


class Watch(Telemetry):
    """What labsite last saw of an attempt: the pool's observation, and how far each of its files has been read."""

    prefix = "watch"

    LEASE_SECONDS = 10  # a holder that was killed is replaced after it; one that lives renews it well before

    FOLDER_REMOVED = "removed"  # `observed` after the end: what was collected is gone from the pool
    FOLDER_KEPT = "kept"  # … or stays there, since not all of it could be collected yet
    FOLDER_LEFT = "left"  # … or stays there for some days, for an operator: it holds files that are never collected

    attempt = owned_key("runs.Attempt", related_name="watches")
    observed = models.CharField(max_length=8, default="pending")
    observed_reason = models.CharField(max_length=300, blank=True)
    observed_at = models.DateTimeField(null=True, blank=True)
    missing_since = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True, help_text="one worker at a time works on it, by the database's clock")
    lease_holder = models.CharField(max_length=80, blank=True, help_text="host, process and start of whoever works on it")
    lease_fence = models.BigIntegerField(default=0, help_text="grows with each take; what is written under an older number is refused")
    collecting_since = models.DateTimeField(null=True, blank=True, help_text="its end is on record, what it left is being collected")
    collect_tries = models.PositiveIntegerField(default=0)
    metrics_offset = models.BigIntegerField(default=0)
    metrics_lines = models.BigIntegerField(default=0)
    metrics_bad = models.BigIntegerField(default=0)
    events_offset = models.BigIntegerField(default=0)
    events_lines = models.BigIntegerField(default=0)
    events_bad = models.BigIntegerField(default=0)
    samples_offset = models.BigIntegerField(default=0)
    samples_lines = models.BigIntegerField(default=0)
    samples_bad = models.BigIntegerField(default=0)
    bad_lines = models.JSONField(default=list, help_text="first bad lines: file, number, reason")
    progress_done = models.FloatField(null=True, blank=True)
    progress_total = models.FloatField(null=True, blank=True)
    progress_text = models.CharField(max_length=300, blank=True)
    api_spend_micros = models.BigIntegerField(default=0)
    has_foreign_spend = models.BooleanField(default=False, help_text="it reported spend in a currency that its limits do not count")
    said_done = models.BooleanField(default=False)

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            *same_workspace("watch", "attempt"),
            models.UniqueConstraint(fields=["workspace", "attempt"], name="watch_once"),
        ]
        # What housekeeping asks each minute, of all attempts that ever were.
        indexes = [
            models.Index(fields=["workspace", "attempt"], condition=~models.Q(observed__in=["removed", "kept"]), name="watch_folder_there"),
            models.Index(fields=["workspace", "attempt"], condition=models.Q(observed="kept"), name="watch_folder_kept"),
        ]


class KeptFile(Telemetry):
    """A file of an ended attempt that lies in the store already, until all of them have become artifacts: where the next try goes on."""

    prefix = "kept"

    attempt = owned_key("runs.Attempt", related_name="kept_files")
    path = models.CharField(max_length=1024, help_text="of the artifact that it becomes")
    sha256 = models.CharField(max_length=64)
    bytes = models.BigIntegerField()
    rows = models.BigIntegerField(null=True, blank=True, help_text="counted in a table that a live dataset takes; a header is one of them")

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            *same_workspace("keptfile", "attempt"),
            models.UniqueConstraint(fields=["workspace", "attempt", "path"], name="keptfile_once"),
        ]
