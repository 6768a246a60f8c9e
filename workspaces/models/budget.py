"""Limits, and the double-entry ledger beneath them (contracts.md F). Integers only: GPU ms, micro-units of currency, bytes, runs."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace


class Unit(models.TextChoices):
    GPU_MS = "gpu_ms", "GPU time"
    API_MICROS = "api_micros", "API spend"
    STORAGE_BYTES = "storage_bytes", "storage"
    RUNS = "runs", "runs at once"
    WALL_SECONDS = "wall_seconds", "wall time"
    SLOTS = "slots", "slots"


def usual_thresholds() -> list[int]:
    """Percent of a window's limit at which whoever manages budgets is told, where a limit names none."""
    return [80, 100]


class Limit(Owned):
    prefix = "limit"

    class Window(models.TextChoices):
        RUN = "run", "a run"
        WEEK = "week", "a week"
        MONTH = "month", "a month"
        NOW = "now", "at any time"

    class Mode(models.TextChoices):
        STOP = "stop", "hard stop"
        APPROVAL = "approval", "needs approval"
        WARN = "warn", "warns"

    unit = models.CharField(max_length=16, choices=Unit)
    window = models.CharField(max_length=5, choices=Window)
    amount = models.BigIntegerField()
    mode = models.CharField(max_length=8, choices=Mode)
    thresholds = ArrayField(
        models.PositiveSmallIntegerField(),
        default=usual_thresholds,
        blank=True,
        help_text="percent of it, spent in a window, that are told of",
    )
    revision = models.PositiveIntegerField(default=1, help_text="counts its changes: after one, thresholds may be crossed anew")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            models.UniqueConstraint(fields=["workspace", "unit", "window", "mode"], name="limit_once"),
            models.CheckConstraint(condition=models.Q(amount__gte=0), name="limit_not_negative"),
        ]

    @property
    def label(self) -> str:
        return f"{self.get_unit_display()}, {self.get_window_display()}: {self.get_mode_display()}"


class LedgerAccount(Owned):
    """One side of a (unit, window): what the limit gives (source), is free (available), is promised to runs (reserved), is spent."""

    prefix = "account"

    class Side(models.TextChoices):
        SOURCE = "source"
        AVAILABLE = "available"
        RESERVED = "reserved"
        SPENT = "spent"

    unit = models.CharField(max_length=16, choices=Unit)
    window = models.CharField(max_length=5, choices=Limit.Window)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    side = models.CharField(max_length=9, choices=Side)
    balance = models.BigIntegerField(default=0)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            models.UniqueConstraint(fields=["workspace", "unit", "window", "starts_at", "side"], name="ledgeraccount_once"),
            models.CheckConstraint(
                condition=models.Q(side__in=["source", "available"]) | models.Q(balance__gte=0), name="ledgeraccount_sign"
            ),
            models.CheckConstraint(condition=models.Q(starts_at__lt=models.F("ends_at")), name="ledgeraccount_window"),
        ]

    @property
    def label(self) -> str:
        return f"{self.get_unit_display()}, {self.get_window_display()}, {self.side}"


class LedgerEntry(Owned):
    """One transfer between two accounts of a unit: from the debit to the credit; only ever added."""

    prefix = "entry"

    class Act(models.TextChoices):
        FUND = "fund", "limit set"
        RESERVE = "reserve"
        SPEND = "spend"
        RELEASE = "release"
        OVERRUN = "overrun", "beyond the reservation"
        MOVE = "move", "into the next window"
        EXTERNAL = "external", "entered from outside"

    debit = owned_key("workspaces.LedgerAccount")
    credit = owned_key("workspaces.LedgerAccount")
    amount = models.BigIntegerField()
    act = models.CharField(max_length=8, choices=Act)
    run_id = models.UUIDField(null=True, blank=True)
    run_label = models.CharField(max_length=200, blank=True)
    reason = models.CharField(max_length=1000, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("ledgerentry", "debit", "credit"),
            models.CheckConstraint(condition=models.Q(amount__gt=0), name="ledgerentry_positive"),
        ]
        indexes = [
            models.Index(fields=["workspace", "run_id"], name="ledgerentry_run"),
            models.Index(fields=["workspace", "-created_at", "-id"], name="ledgerentry_newest"),
        ]

    @property
    def label(self) -> str:
        return f"{self.act} {self.run_label}".strip()


class Crossing(Owned):
    """A threshold of a limit that was reached in a window: once for each window and revision of the limit, whatever comes after."""

    prefix = "crossing"

    limit_id = models.UUIDField(help_text="no key: a limit that was crossed may be removed")
    revision = models.PositiveIntegerField()
    unit = models.CharField(max_length=16, choices=Unit)
    window = models.CharField(max_length=5, choices=Limit.Window)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    percent = models.PositiveSmallIntegerField()
    amount = models.BigIntegerField(help_text="of the limit, at that moment")
    spent = models.BigIntegerField()

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            models.UniqueConstraint(fields=["workspace", "limit_id", "revision", "starts_at", "percent"], name="crossing_once"),
        ]

    @property
    def label(self) -> str:
        return f"{self.percent} % of {self.get_unit_display()}, {self.get_window_display()}"


class Recount(Owned):
    """One count of the ledger from zero: what was compared, and where a balance is not what its entries say."""

    prefix = "recount"

    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True, help_text="nobody: the clock, at night"
    )
    accounts = models.PositiveIntegerField()
    entries = models.PositiveBigIntegerField()
    wrong = models.JSONField(default=list, help_text="one object a difference: what, unit, starts_at, balance, counted")

    class Meta(Owned.Meta):
        constraints = [*Owned.Meta.constraints]
        indexes = [models.Index(fields=["workspace", "-created_at", "-id"], name="recount_newest")]

    @property
    def is_right(self) -> bool:
        return not self.wrong


class ExternalSpend(Owned):
    """API spend that labsite did not see: entered by a person or a service account, corrected by a line that takes it back."""

    prefix = "spend"

    run_id = models.UUIDField(null=True, blank=True)
    run_label = models.CharField(max_length=200, blank=True)
    amount_micros = models.BigIntegerField(help_text="below 0: takes back what another line entered")
    currency = models.CharField(max_length=3)
    what = models.CharField(max_length=300)
    spent_at = models.DateTimeField()
    entered_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    corrects = owned_key("workspaces.ExternalSpend", null=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("externalspend", "corrects"),
            models.UniqueConstraint(fields=["workspace", "corrects"], name="externalspend_corrected_once"),
            models.CheckConstraint(
                condition=models.Q(amount_micros__gt=0) | models.Q(amount_micros__lt=0, corrects__isnull=False),
                name="externalspend_sign",
            ),
        ]
        indexes = [models.Index(fields=["workspace", "-created_at", "-id"], name="externalspend_newest")]

    @property
    def label(self) -> str:
        return self.what
