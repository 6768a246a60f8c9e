"""The page of one pool."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from runs.place import place_in
from runs.pools.base import PoolError
from runs.pools.isolation import Isolation, describe
from runs.pools.ssh import FarHost, SSHPool, describe_far
from runs.queries.pool import pool_state
from runs.queries.pool_hour import pool_hour
from runs.queries.utilisation import pool_uses
from workspaces.models import Pool
from workspaces.pages import PageRequest, redirect
from workspaces.units import plural, size


def pool(request: PageRequest, pool: str) -> HttpResponseBase:
    found = Pool.objects.find(pool, "engine", "secret")
    (use,) = pool_uses([found])
    context = {
        "state_now": pool_state(found),
        "isolation": (describe_far if found.engine.host else describe)(Isolation(found.isolation)),
        "use": use,
        "hour": pool_hour(found, timezone.now()),
    }
    return render(request, "runs/pool.html", context)


def pool_test(request: PageRequest, pool: str) -> HttpResponseBase:
    """Go to the pool's host once, and say what it is and what stood in the way. Nothing of it is kept."""
    found = Pool.objects.find(pool, "engine")
    try:
        place = place_in(found, found.isolation)
        host = place.probe() if isinstance(place, SSHPool) else None
    except PoolError as error:
        messages.error(request, f"{found.slug} cannot be reached: {error.reason}.")
    else:
        messages.success(request, _answers(found, host) if host else f"{found.slug} is on this machine.")
    return redirect("pool", request.workspace.slug, found.slug)


def _answers(pool: Pool, host: FarHost) -> str:
    kept = ", ".join(isolation.value for isolation in host.isolations)
    lacks = (
        "" if Isolation(pool.isolation) in host.isolations else f" It cannot keep what this pool promises: {pool.get_isolation_display()}."
    )
    clock = f" Its clock is {abs(host.clock_offset_seconds):.0f} s {'ahead' if host.clock_offset_seconds > 0 else 'behind'}."
    return (
        f"{pool.engine.address} answers as {host.user}: Python {host.python}, {plural(host.cores, 'core', 'cores')}, "
        f"{size(host.memory_bytes)} of memory, {size(host.free_bytes)} free on disk; isolation: {kept}."
        f"{clock if host.clock_offset_seconds else ''}{lacks}"
    )
