"""A name that a declaration file asked for and whose kind or engine is not there yet: kept as declared, shown as such."""

from django.db import models

from workspaces.models.base import Owned, slug_field


class DeclaredName(Owned):
    prefix = "declared"

    kind = models.CharField(max_length=20)
    slug = slug_field()
    note = models.CharField(max_length=300, blank=True)

    class Meta(Owned.Meta):
        constraints = [*Owned.Meta.constraints, models.UniqueConstraint(fields=["workspace", "kind", "slug"], name="declaredname_once")]
