"""Metrics of runs: a summary row per series for tables, points in chunks of arrays for curves (facts: never one row a point)."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from workspaces.models.base import Telemetry, owned_key, same_workspace


class MetricSeries(Telemetry):
    prefix = "series"

    run = owned_key("runs.Run", related_name="series")
    key = models.CharField(max_length=250)
    count = models.BigIntegerField(default=0)
    last = models.FloatField(null=True)
    last_step = models.BigIntegerField(null=True)
    minimum = models.FloatField(null=True, help_text="of the finite values")
    maximum = models.FloatField(null=True)

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            *same_workspace("metricseries", "run"),
            models.UniqueConstraint(fields=["workspace", "run", "key"], name="metricseries_once"),
        ]


class MetricChunk(Telemetry):
    """Points of one series in the order they were written; arrays of equal length. NaN and infinities are kept as themselves."""

    prefix = "chunk"

    series = owned_key("runs.MetricSeries", related_name="chunks")
    attempt_number = models.PositiveSmallIntegerField(default=1)
    steps = ArrayField(models.BigIntegerField())
    values = ArrayField(models.FloatField())
    times = ArrayField(models.FloatField(), help_text="seconds UTC")

    class Meta(Telemetry.Meta):
        constraints = [*Telemetry.Meta.constraints, *same_workspace("metricchunk", "series")]
        indexes = [models.Index(fields=["workspace", "series", "id"], name="metricchunk_order")]


class RunLine(Telemetry):
    """A line of a run's events.jsonl, as it was written; unknown types are kept and shown."""

    prefix = "line"

    attempt = owned_key("runs.Attempt", related_name="lines")
    number = models.BigIntegerField()
    type = models.CharField(max_length=60)
    body = models.JSONField()

    class Meta(Telemetry.Meta):
        constraints = [
            *Telemetry.Meta.constraints,
            *same_workspace("runline", "attempt"),
            models.UniqueConstraint(fields=["workspace", "attempt", "number"], name="runline_once"),
        ]
        # The few among the millions that the end of a run looks up.
        indexes = [
            models.Index(fields=["workspace", "attempt"], condition=models.Q(type="score"), name="runline_scores"),
            models.Index(fields=["workspace", "attempt"], condition=models.Q(type="memory_write"), name="runline_memory"),
        ]
