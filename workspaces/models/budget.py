"""Limits, and the double-entry ledger beneath them (contracts.md F). Integers only: GPU ms, micro-units of currency, bytes, runs."""

from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace


class Unit(models.TextChoices):
    GPU_MS = "gpu_ms", "GPU time"
    API_MICROS = "api_micros", "API spend"
    STORAGE_BYTES = "storage_bytes", "storage"
    RUNS = "runs", "runs at once"


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
