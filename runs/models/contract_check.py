"""Does a benchmark still measure what it did? A frozen reference that is measured again on a schedule, and what came of it each time."""

from django.conf import settings
from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace


class ContractCheck(Owned):
    """One stands for a contract version at a time. Its reference is an evaluation: the artifact that it measured stays as it is, the run that
    measured it is asked for again, and its value is what is expected."""

    prefix = "contractcheck"

    contract = owned_key("workspaces.Contract")
    reference = owned_key("runs.Evaluation")
    tolerance = models.FloatField(help_text="how far a value may lie from the reference's, either way")
    interval_days = models.PositiveSmallIntegerField()
    set_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", help_text="whose rights and budget it uses"
    )
    token_id = models.UUIDField(null=True, blank=True)
    next_at = models.DateTimeField(help_text="when it is due again")
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=1000, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("contractcheck", "contract", "reference"),
            models.UniqueConstraint(fields=["workspace", "contract"], condition=models.Q(ended_at=None), name="contractcheck_one_stands"),
            models.CheckConstraint(condition=models.Q(interval_days__gte=1, interval_days__lte=366), name="contractcheck_interval"),
        ]
        indexes = [models.Index(fields=["workspace", "next_at"], condition=models.Q(ended_at=None), name="contractcheck_due")]

    @property
    def label(self) -> str:
        return f"the check of {self.contract.label}"


class CheckResult(Owned):
    """One time that a check was due: measured, or said why not. Two are never under way at once."""

    prefix = "check"

    class Status(models.TextChoices):
        RUNNING = "running", "being measured"
        HOLDS = "holds", "measures what it did"
        MOVED = "moved", "moved"
        REFUSED = "refused", "not launched"
        UNMEASURED = "unmeasured", "ended without a score"

    contract_check = owned_key("runs.ContractCheck", related_name="results")
    number = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status)
    run = owned_key("runs.Run", null=True)
    evaluation = owned_key("runs.Evaluation", null=True)
    words = models.CharField(max_length=1000, blank=True, help_text="what was observed, or why nothing was")
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("checkresult", "contract_check", "run", "evaluation"),
            models.UniqueConstraint(fields=["workspace", "contract_check", "number"], name="checkresult_number_once"),
            models.UniqueConstraint(
                fields=["workspace", "contract_check"], condition=models.Q(status="running"), name="checkresult_one_runs"
            ),
        ]

    @property
    def label(self) -> str:
        return f"check {self.number} of {self.contract_check.contract.label}"
