"""Who belongs to a workspace, in which role; a person or a group of people, at most one role each."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from guardian.models import GroupObjectPermissionBase

from workspaces.models.base import Owned


class WorkspaceGroupPermission(GroupObjectPermissionBase):
    """django-guardian's grants, by group, on the workspace itself: a real key, so they end with it."""

    content_object = models.ForeignKey("workspaces.Workspace", on_delete=models.CASCADE)


class Membership(Owned):
    prefix = "member"

    class Role(models.TextChoices):
        VIEWER = "viewer"
        RESEARCHER = "researcher"
        OPERATOR = "operator"
        APPROVER = "approver"
        AUDITOR = "auditor"
        ADMIN = "admin"
        OWNER = "owner"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    group = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    role = models.CharField(max_length=12, choices=Role)
    kinds = ArrayField(models.CharField(max_length=20), default=list, blank=True, help_text="narrows the role to these kinds; empty: all")

    class Meta(Owned.Meta):
        constraints = [
            *Owned.Meta.constraints,
            models.UniqueConstraint(fields=["workspace", "user"], name="membership_user_once"),
            models.UniqueConstraint(fields=["workspace", "group"], name="membership_group_once"),
            models.CheckConstraint(
                condition=models.Q(user__isnull=False, group__isnull=True) | models.Q(user__isnull=True, group__isnull=False),
                name="membership_one_principal",
            ),
        ]

    @property
    def label(self) -> str:
        return self.user.label if self.user else f"group {self.group.name}" if self.group else ""
