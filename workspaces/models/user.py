"""A person, a service account or an agent that signs in or holds a token; of the site, not of a workspace."""

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models

from workspaces import ids


class User(AbstractUser):
    class Kind(models.TextChoices):
        PERSON = "person"
        SERVICE = "service"
        AGENT = "agent"

    class SiteRole(models.TextChoices):
        CREATE_WORKSPACE = "create_workspace", "may create workspaces"
        SITE_OPERATOR = "site_operator", "runs the installation, reads no workspace"
        SITE_AUDITOR = "site_auditor", "reads the audit of every workspace"

    class Theme(models.TextChoices):
        AUTO = "auto"
        LIGHT = "light"
        DARK = "dark"

    class Density(models.TextChoices):
        COMFORTABLE = "comfortable"
        COMPACT = "compact"

    id = models.UUIDField(primary_key=True, default=ids.uuid7, editable=False)
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.PERSON)
    display_name = models.CharField(max_length=120, blank=True)
    site_roles = ArrayField(models.CharField(max_length=20, choices=SiteRole), default=list, blank=True)
    theme = models.CharField(max_length=5, choices=Theme, default=Theme.AUTO)
    density = models.CharField(max_length=11, choices=Density, default=Density.COMFORTABLE)
    zone = models.CharField(max_length=64, blank=True)
    has_shortcuts = models.BooleanField(default=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(is_superuser=False), name="user_no_superuser")]

    @property
    def label(self) -> str:
        """How the record and the pages name this person."""
        return self.display_name or self.username
