"""Every invariant that an installation can check about itself; each check yields the faults it finds, as sentences."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import redis
from django.apps import apps
from django.conf import settings
from django.db import connection

from labsite.embedded import pool_python
from runs import queue
from runs.lifecycle import OPEN_ATTEMPTS, TERMINAL
from runs.models import Attempt, QueueItem, Run
from runs.pools.base import PoolError
from runs.pools.isolation import demand_way
from workspaces import scope, store
from workspaces.models import Blob, EngineSlot, Row, Workspace
from workspaces.queries.chain import verify_chain
from workspaces.queries.ledger import recount
from workspaces.queries.site_chain import verify_site_chain

Check = Callable[[], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check and what it found; `workspace` is empty for checks of the installation."""

    check: str
    workspace: str
    faults: tuple[str, ...]


def examine() -> Iterator[Finding]:
    """Run every check, of the installation first, then of each workspace."""
    for name, check in SITE_CHECKS.items():
        yield Finding(name, "", tuple(check()))
    for workspace in Workspace.objects.order_by("slug"):
        with scope.open_workspace(workspace.pk):
            for name, check in WORKSPACE_CHECKS.items():
                yield Finding(name, workspace.slug, tuple(check()))


def _serving_role() -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
        role, passes = cursor.fetchone()
        if passes:
            yield f"The serving role {role} passes row security; serve with one that is neither superuser nor BYPASSRLS."
        cursor.execute(
            "SELECT count(*) FROM pg_class JOIN pg_roles ON relowner = pg_roles.oid WHERE rolname = current_user AND relkind = 'r'"
        )
        (owned,) = cursor.fetchone()
        if owned:
            yield f"The serving role {role} owns {owned} tables; the owner's role must be another."


def _row_security() -> Iterator[str]:
    tables = {model._meta.db_table for model in apps.get_models() if issubclass(model, Row)}
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relrowsecurity AND relforcerowsecurity")
        walled = {name for (name,) in cursor.fetchall()}
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = 'labsite_search'")
        searched = cursor.fetchone()
    for table in sorted(tables - walled):
        yield f"{table} is not behind row security."
    if searched is None:
        yield "There is no role labsite_search: the functions of the site run as the owner."


def _queue_answers() -> Iterator[str]:
    try:
        queue.depths()
    except redis.RedisError as error:
        yield f"The queue does not answer: {error}."


def _run_folder() -> Iterator[str]:
    try:
        demand_way(settings.LABSITE_RUNS / "runs")
    except (PoolError, FileNotFoundError) as error:
        yield f"{error}."
    if not pool_python.is_ready(settings.LABSITE_RUNS):
        yield "The local pool's own Python environment is not complete; `make run` installs it."


def _site_chain() -> Iterator[str]:
    verified = verify_site_chain()
    if not verified.is_whole:
        yield verified.fault


def _chain() -> Iterator[str]:
    verified = verify_chain()
    if not verified.is_whole:
        yield verified.fault


def _ledger() -> Iterator[str]:
    yield from (f"{one.what} of {one.unit} is {one.balance}; its entries say {one.counted}." for one in recount())


def _files() -> Iterator[str]:
    workspace = scope.current_id()
    for blob in Blob.objects.order_by("pk").iterator(chunk_size=1000):
        place = store.local_path(blob.region, workspace, blob.sha256)
        if place is None:
            yield f"The file {blob.sha256[:16]}… is not in the store."
        elif place.stat().st_size != blob.bytes:
            yield f"The file {blob.sha256[:16]}… has {place.stat().st_size} bytes, not {blob.bytes}."


def _runs() -> Iterator[str]:
    ended = Run.objects.filter(status__in=sorted(TERMINAL))
    for run in ended.exclude(reserved_gpu_ms=0, reserved_api_micros=0):
        yield f"{run.name} has ended and still holds a reservation."
    for run in ended.filter(attempts__status__in=sorted(OPEN_ATTEMPTS)).distinct():
        yield f"{run.name} has ended and has an attempt that has not."
    for item in QueueItem.objects.exclude(run__status="queued").select_related("run"):
        yield f"{item.run.name} is {item.run.get_status_display()} and stands in the queue."
    for run in Run.objects.filter(status="queued", queue_items=None):
        yield f"{run.name} is queued and stands in no queue."
    closed = set(Attempt.objects.exclude(status__in=sorted(OPEN_ATTEMPTS)).values_list("pk", flat=True))
    for slot in EngineSlot.objects.filter(attempt_id__in=closed).select_related("engine"):
        yield f"{slot.engine.slug} holds a place for an attempt that has ended."


SITE_CHECKS: dict[str, Check] = {
    "serving role": _serving_role,
    "row security": _row_security,
    "queue": _queue_answers,
    "run folder": _run_folder,
    "record of the site": _site_chain,
}
WORKSPACE_CHECKS: dict[str, Check] = {"record": _chain, "ledger": _ledger, "stored files": _files, "runs and queue": _runs}
