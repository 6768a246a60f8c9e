"""The page of one pool."""

from django.http import HttpResponseBase
from django.shortcuts import render

from runs.pools.isolation import Isolation, describe
from runs.queries.pool import pool_state
from workspaces.models import Pool
from workspaces.pages import PageRequest


def pool(request: PageRequest, pool: str) -> HttpResponseBase:
    found = Pool.objects.find(pool)
    return render(request, "runs/pool.html", {"state_now": pool_state(found), "isolation": describe(Isolation(found.isolation))})
