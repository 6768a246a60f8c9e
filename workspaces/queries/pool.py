"""Pools with the engines they stand on."""

from django.db.models import QuerySet

from workspaces.models import Engine, Pool


def pool_rows() -> "QuerySet[Pool]":
    """Every pool of the open workspace, the default first."""
    return Pool.objects.select_related("engine", "secret").order_by("-is_default", "-is_accepting", "slug")


def engines() -> list[Engine]:
    """Engines of the installation that take work: what a pool can be bound to."""
    return list(Engine.objects.filter(is_accepting=True).order_by("slug"))
