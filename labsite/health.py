"""Is it alive, and does everything serve? For load balancers and `make run`."""

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from labsite.regions import missing_regions
from runs.queue import is_answering


def livez(request: HttpRequest) -> HttpResponse:
    """200 as soon as the process lives."""
    return JsonResponse({"status": "live"})


def readyz(request: HttpRequest) -> HttpResponse:
    """200 once everything serves; 503 names the first part that does not."""
    lacking = missing()
    return JsonResponse({"status": "ready"} if not lacking else {"status": "not ready", "missing": lacking}, status=503 if lacking else 200)


def missing() -> str:
    """The first part that does not serve; empty where everything does."""
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return "migrations"
    except DatabaseError:
        connection.close()
        return "database"
    try:
        if not is_answering():
            return "queue"
    except redis.RedisError:
        return "queue"
    lacking = missing_regions(settings.LABSITE_REGIONS, home=settings.LABSITE_HOME)
    return f"store {lacking[0]}" if lacking else ""
