"""A benchmark and the versions of its contract: what is measured, in which direction, on what, within which limits."""

from django.conf import settings
from django.db import models

from workspaces.contract_metrics import Metric, metrics_from
from workspaces.models.base import Owned, owned_key, same_workspace, slug_field, unique_slug
from workspaces.models.dataset import DatasetVersion

TIE_WORDS = {
    "shared_rank": "Equal whole values share a rank; the earliest stands first",
    "earlier_first": "Of equal whole values the earlier one has the better rank; no rank is shared",
}


class Benchmark(Owned):
    prefix = "bench"
    shared_by = {"benchmark": "id"}

    class SourceState(models.TextChoices):
        CURRENT = "current", "the source says the same"
        NEWER = "newer", "the source has moved on"
        WITHDRAWN = "withdrawn", "the source is public no more"

    slug = slug_field()
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, max_length=20_000)
    is_public = models.BooleanField(default=False, help_text="the definition may be read by anyone; runs and data stay private")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    source = models.JSONField(
        default=dict,
        blank=True,
        help_text="of a frozen copy: {workspace, workspace_slug, workspace_id, benchmark, benchmark_slug, benchmark_id}",
    )
    source_state = models.CharField(max_length=9, choices=SourceState, blank=True, help_text="of a frozen copy, as it was seen last")
    source_version = models.PositiveIntegerField(
        null=True, blank=True, help_text="newest contract version of the source, as it was seen last"
    )

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

    class OverSeeds(models.TextChoices):
        MEAN = "mean", "mean over seeds"
        MEDIAN = "median", "median over seeds"

    class TieRule(models.TextChoices):
        SHARED_RANK = "shared_rank", "equal values share a rank"
        EARLIER_FIRST = "earlier_first", "of equal values the earlier one has the better rank"

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
    metrics = models.JSONField(default=list, blank=True, help_text="beside `metric`, which leads: [{metric, unit, direction}]")
    over_seeds = models.CharField(
        max_length=6, choices=OverSeeds, blank=True, help_text="how runs that are alike but for the seed are ranked"
    )
    tie_rule = models.CharField(
        max_length=13, choices=TieRule, default=TieRule.SHARED_RANK, help_text="which ranks equal values have; compared are whole values"
    )
    opens_at = models.DateTimeField(null=True, blank=True, help_text="from when on runs are measured by it")
    closes_at = models.DateTimeField(null=True, blank=True, help_text="until when runs may be asked for")
    memory_bytes = models.PositiveBigIntegerField(null=True, blank=True, help_text="most memory that an evaluation may take")
    counts_all_samples = models.BooleanField(default=False, help_text="samples that erred or were abstained from stay in the denominator")
    evaluator = owned_key("workspaces.AgentVersion", null=True)
    train = owned_key("workspaces.DatasetVersion", null=True)
    validation = owned_key("workspaces.DatasetVersion", null=True)
    source_version = models.PositiveIntegerField(null=True, blank=True, help_text="of a frozen copy: the version of the source's contract")
    content = models.JSONField(
        default=dict, blank=True, help_text="what `content_hash` is the hash of; empty where published before it was kept"
    )
    content_hash = models.CharField(max_length=64)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("contract", "benchmark", "holdout", "evaluator", "train", "validation"),
            models.UniqueConstraint(fields=["workspace", "benchmark", "version"], name="contract_version_once"),
            models.CheckConstraint(
                condition=models.Q(runs_per_person=None, period="")
                | (models.Q(runs_per_person__isnull=False, runs_per_person__gte=1) & ~models.Q(period="")),
                name="contract_limit_has_period",
            ),
            models.CheckConstraint(
                condition=models.Q(opens_at=None) | models.Q(closes_at=None) | models.Q(opens_at__lt=models.F("closes_at")),
                name="contract_opens_before_it_closes",
            ),
        ]

    @property
    def label(self) -> str:
        return f"{self.benchmark.name}, version {self.version}"

    @property
    def data_by_role(self) -> "list[tuple[str, DatasetVersion]]":
        """What it names beside the holdout: (role in words, version)."""
        return [
            (role, version)
            for role, version in (("Training data", self.train), ("Validation data", self.validation))
            if version is not None
        ]

    @property
    def not_here(self) -> list[tuple[str, str]]:
        """What a frozen copy names and this workspace has no version of: (name, hash of its content)."""
        names = ("holdout", "train", "validation", "evaluator")
        return [(name, str(self.content[name])) for name in names if self.content.get(name) and getattr(self, f"{name}_id") is None]

    @property
    def names_holdout(self) -> bool:
        """Also where a frozen copy names one that this workspace has no version of."""
        return self.holdout_id is not None or bool(self.content.get("holdout"))

    @property
    def tie_words(self) -> str:
        """What becomes of equal scores, in a sentence."""
        return TIE_WORDS[self.tie_rule]

    @property
    def primary(self) -> Metric:
        """The metric that ranks."""
        return Metric(self.metric, self.unit, self.direction)

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """The metric that ranks, then those that stand beside it."""
        return (self.primary, *metrics_from(self.metrics))
