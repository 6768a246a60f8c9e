"""A benchmark and the versions of its contract: what is measured, in which direction, on what, within which limits."""

from django.conf import settings
from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace, slug_field, unique_slug


class Benchmark(Owned):
    prefix = "bench"
    shared_by = {"benchmark": "id"}

    slug = slug_field()
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, max_length=20_000)
    is_public = models.BooleanField(default=False, help_text="the definition may be read by anyone; runs and data stay private")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")

    class Meta(Owned.Meta):
        constraints = [*Owned.Meta.constraints, unique_slug("benchmark_slug_once")]


class Contract(Owned):
    """One version of a benchmark's contract; never changed, only followed by the next. Only scores of the newest version compare."""

    prefix = "contract"
    shared_by = {"benchmark": "benchmark_id"}

    class Direction(models.TextChoices):
        MAXIMIZE = "maximize", "higher is better"
        MINIMIZE = "minimize", "lower is better"

    class Period(models.TextChoices):
        DAY = "day"
        WEEK = "week"
        MONTH = "month"

    benchmark = owned_key("workspaces.Benchmark", related_name="contracts")
    version = models.PositiveIntegerField()
    metric = models.CharField(max_length=250)
    unit = models.CharField(max_length=40, blank=True)
    direction = models.CharField(max_length=8, choices=Direction)
    holdout = owned_key("workspaces.DatasetVersion", null=True)
    wall_seconds = models.PositiveIntegerField(null=True, blank=True, help_text="longest time that an evaluation may take")
    runs_per_person = models.PositiveIntegerField(
        null=True, blank=True, help_text="how many runs that were or may still be scored one person may ask for in a period"
    )
    period = models.CharField(max_length=5, choices=Period, blank=True, help_text="cut at midnights of the workspace's zone")
    terms = models.TextField(blank=True, max_length=20_000, help_text="how the measurement is made, in words")
    accepts_no_isolation_reason = models.CharField(
        max_length=1000, blank=True, help_text="why an owner accepts runs without isolation although there is a holdout"
    )
    content_hash = models.CharField(max_length=64)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("contract", "benchmark", "holdout"),
            models.UniqueConstraint(fields=["workspace", "benchmark", "version"], name="contract_version_once"),
            models.CheckConstraint(
                condition=models.Q(runs_per_person=None, period="")
                | (models.Q(runs_per_person__isnull=False, runs_per_person__gte=1) & ~models.Q(period="")),
                name="contract_limit_has_period",
            ),
        ]

    @property
    def label(self) -> str:
        return f"{self.benchmark.name}, version {self.version}"
