"""The page of one pool."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from runs.place import isolation_words, probe_of
from runs.pools.base import PoolError
from runs.queries.pool import pool_state
from runs.queries.pool_hour import pool_hour
from runs.queries.utilisation import pool_uses
from workspaces.models import Pool
from workspaces.pages import PageRequest, redirect


def pool(request: PageRequest, pool: str) -> HttpResponseBase:
    found = Pool.objects.find(pool, "engine", "secret", "closed_by")
    (use,) = pool_uses([found])
    context = {
        "state_now": pool_state(found),
        "isolation": isolation_words(found),
        "use": use,
        "hour": pool_hour(found, timezone.now()),
    }
    return render(request, "runs/pool.html", context)


def pool_test(request: PageRequest, pool: str) -> HttpResponseBase:
    """Go to the pool's engine once, and say what it is and what stood in the way. Nothing of it is kept."""
    found = Pool.objects.find(pool, "engine")
    try:
        seen = probe_of(found)
    except PoolError as error:
        messages.error(request, f"{found.slug} cannot be reached: {error.reason}.")
    else:
        messages.success(request, seen.words)
        for warning in seen.warnings:
            messages.warning(request, warning)
    return redirect("pool", request.workspace.slug, found.slug)
