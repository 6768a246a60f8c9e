"""What a run has read without having declared it: by its own word, or by what its lines give away."""

from django.db import models

from workspaces.models.base import Owned, owned_key, same_workspace


class UndeclaredInput(Owned):
    """One such reading, noted as the run ends. Where its hash is that of a dataset version or an artifact of this workspace, that is named."""

    prefix = "undeclared"

    class Kind(models.TextChoices):
        INPUT = "input", "input"
        MEMORY = "memory", "memory entry"
        SERVICE = "service", "outside service"

    run = owned_key("runs.Run", related_name="undeclared_inputs")
    kind = models.CharField(max_length=7, choices=Kind)
    uri = models.CharField(
        max_length=1000, blank=True, help_text="where it lies: an address, a path, the id of a memory entry, a service's name"
    )
    what = models.CharField(max_length=250, blank=True, help_text="what it is, in the run's words")
    sha256 = models.CharField(max_length=64, blank=True)
    dataset_version = owned_key("workspaces.DatasetVersion", null=True)
    artifact = owned_key("runs.Artifact", null=True)

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            *same_workspace("undeclaredinput", "run", "dataset_version", "artifact"),
            models.CheckConstraint(condition=models.Q(kind__in=["input", "memory", "service"]), name="undeclaredinput_kind_known"),
        ]

    @property
    def label(self) -> str:
        """How the record names it: never in words of a run."""
        return f"undeclared {self.get_kind_display()}"

    @property
    def name(self) -> str:
        """How pages name it."""
        return self.what or self.uri or f"content {self.sha256[:12]}"
