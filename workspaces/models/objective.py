"""What a workspace tries to improve: benchmark, target, date."""

from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace


class Objective(Owned):
    prefix = "objective"

    statement = models.CharField(max_length=300)
    benchmark = owned_key("workspaces.Benchmark", null=True)
    target = models.FloatField(null=True, blank=True)
    due_on = models.DateField(null=True, blank=True)
    is_current = models.BooleanField(default=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("objective", "benchmark"),
            models.UniqueConstraint(fields=["workspace"], condition=models.Q(is_current=True), name="objective_one_current"),
        ]

    @property
    def label(self) -> str:
        return self.statement
