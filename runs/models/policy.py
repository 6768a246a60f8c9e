"""A policy, its versions, and every decision that it took: what was known, what was weighed, what came of it (features 70-72, 124)."""

from django.conf import settings
from django.db import models

from runs.policy.decide import Outcome
from workspaces.models.base import Owned, owned_key, same_workspace, slug_field, unique_slug


class Policy(Owned):
    """A name under which versions stand; at most one version acts."""

    prefix = "policy"

    class Status(models.TextChoices):
        ACTIVE = "active", "acts once a version is approved"
        PAUSED = "paused"
        STOPPED = "stopped", "stopped by one of its own limits"
        RETIRED = "retired", "acts no more"

    slug = slug_field()
    name = models.CharField(max_length=200)
    status = models.CharField(max_length=8, choices=Status, default=Status.ACTIVE)
    status_reason = models.CharField(max_length=1000, blank=True)
    status_at = models.DateTimeField(null=True, blank=True, help_text="when it was paused, stopped, retired or let go on")
    benchmark = owned_key("workspaces.Benchmark", null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")

    class Meta(Owned.Meta):
        constraints = [*Owned.Meta.constraints, *same_workspace("policy", "benchmark"), unique_slug("policy_slug")]
        verbose_name_plural = "policies"

    @property
    def label(self) -> str:
        return self.name


class PolicyVersion(Owned):
    """One document; it acts only once a person other than whoever proposed it has approved it, under the rights of whoever proposed it."""

    prefix = "policyv"

    class Status(models.TextChoices):
        PROPOSED = "proposed", "waits for a decision"
        ACTIVE = "active", "acts"
        REFUSED = "refused"
        WITHDRAWN = "withdrawn"
        SUPERSEDED = "superseded"

    policy = owned_key("runs.Policy", related_name="versions")
    number = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status, default=Status.PROPOSED)
    document = models.JSONField(help_text="runs.policy.document")
    content_hash = models.CharField(max_length=64)
    reason = models.CharField(max_length=1000, blank=True, help_text="why it was proposed")
    proposed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    token_id = models.UUIDField(null=True, blank=True, help_text="the token that proposed it, if one did; it needs that to hold")
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("policyversion", "policy"),
            models.UniqueConstraint(fields=["workspace", "policy", "number"], name="policyversion_number_once"),
            models.UniqueConstraint(fields=["workspace", "policy"], condition=models.Q(status="active"), name="policyversion_one_acts"),
        ]

    @property
    def label(self) -> str:
        return f"{self.policy.slug}, version {self.number}"


class Decision(Owned):
    """One time that a policy was asked: by which cause, upon which facts, with which result. Never decided twice for one cause."""

    prefix = "decision"

    class Status(models.TextChoices):
        ACTING = "acting", "acts"
        DONE = "done"
        FAILED = "failed", "could not act"

    policy = owned_key("runs.Policy", related_name="decisions")
    version = owned_key("runs.PolicyVersion", related_name="decisions")
    number = models.PositiveIntegerField(help_text="counts the policy's decisions")
    cause_type = models.CharField(max_length=40)
    cause_id = models.UUIDField()
    cause_label = models.CharField(max_length=300)
    outcome = models.CharField(max_length=8, choices=[(outcome.value, outcome.value) for outcome in Outcome])
    status = models.CharField(max_length=8, choices=Status)
    words = models.CharField(max_length=2000, blank=True)
    facts = models.JSONField(help_text="runs.policy.facts: everything it was decided upon")
    checks = models.JSONField(help_text="each check with its verdict, observed, required, words")
    candidates = models.JSONField(help_text="every configuration that was looked at, chosen or not, with the reason")
    gpu_ms = models.BigIntegerField(null=True, blank=True, help_text="what its launches may reserve together; None where nobody knew")
    stops = models.BooleanField(default=False, help_text="a lasting limit was reached")
    failure = models.CharField(max_length=1000, blank=True, help_text="why what was decided could not be done")
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("decision", "policy", "version"),
            models.UniqueConstraint(fields=["workspace", "policy", "number"], name="decision_number_once"),
            models.UniqueConstraint(fields=["workspace", "policy", "cause_type", "cause_id"], name="decision_once_a_cause"),
        ]
        indexes = [
            models.Index(fields=["workspace", "policy", "-created_at"], name="decision_newest"),
            models.Index(fields=["workspace", "status"], condition=models.Q(status="acting"), name="decision_acting"),
        ]

    @property
    def label(self) -> str:
        return f"{self.policy.slug}, decision {self.number}"
