"""Every invariant that an installation can check about itself; each check yields the faults it finds, as sentences."""

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import redis
from django.apps import apps
from django.conf import settings
from django.db import connection, transaction

from labsite.embedded import pool_python
from labsite.regions import missing_regions
from runs import queue
from runs.commands.attempt import start_attempt
from runs.lifecycle import OPEN_ATTEMPTS, TERMINAL
from runs.models import Attempt, PoolContact, QueueItem, Run
from runs.pools.base import PoolError
from runs.pools.isolation import Isolation, demand_way
from runs.pools.local import LocalPool
from runs.queries.pool_contact import Contact, with_contact
from runs.queries.replay import unlike_their_facts
from workspaces import scope, store
from workspaces.access import Actor
from workspaces.audit import Draft, Refusal
from workspaces.bucket import Bucket
from workspaces.models import Blob, EngineSlot, Pool, Row, Secret, Workspace
from workspaces.queries.chain import verify_chain
from workspaces.queries.installation import UNDECIDED, is_copy
from workspaces.queries.ledger import recount
from workspaces.queries.sealed import value_of
from workspaces.queries.site_chain import verify_site_chain
from workspaces.s3_store import bucket_store
from workspaces.sealing import BrokenSeal
from workspaces.units import plural
from workspaces.verbs import Verb

Check = Callable[[], Iterator[str]]
STARTS_TRIED = 200
LEFT_SECONDS = 2 * 3600  # twice as long as housekeeping waits


@dataclass(frozen=True, slots=True)
class Finding:
    """One check and what it found; `workspace` is empty for checks of the installation. `warnings` are for people to look at: nothing
    of labsite's is wrong."""

    check: str
    workspace: str
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def examine() -> Iterator[Finding]:
    """Run every check, of the installation first, then of each workspace."""
    for name, check in SITE_CHECKS.items():
        yield Finding(name, "", tuple(check()))
    for workspace in Workspace.objects.order_by("slug"):
        with scope.open_workspace(workspace.pk):
            for name, check in WORKSPACE_CHECKS.items():
                yield Finding(name, workspace.slug, tuple(check()))
            yield Finding("pools", workspace.slug, warnings=tuple(_pools()))


def _database() -> Iterator[str]:
    if is_copy():
        yield UNDECIDED


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
    left = LocalPool(settings.LABSITE_RUNS, Isolation.NONE, [], None).leftovers(older_than_seconds=LEFT_SECONDS)
    if left:
        folders = plural(len(left), "folder was", "folders were")
        yield f"{folders} left half staged or half removed, {left[0]} first; housekeeping removes such once an hour, see the log of its worker."


def _regions() -> Iterator[str]:
    regions = settings.LABSITE_REGIONS
    for name in missing_regions(regions, home=settings.LABSITE_HOME):
        place = regions[name]
        yield (
            f"The folder of the region {name} is not there: {place}."
            if isinstance(place, Path)
            else f"The region {name} has no keys: {place.keys_file}."
        )
    for name, place in regions.items():
        if isinstance(place, Bucket) and place.keys_file.is_file() and (fault := bucket_store(place, os.getpid()).probe()):
            yield f"The region {name}: {fault}"
    for slug, region in (
        Workspace.objects.exclude(region="").exclude(region__in=list(regions)).order_by("slug").values_list("slug", "region")
    ):
        yield f"The files of {slug} lie in the region {region}, which LABSITE_REGIONS does not name."


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


def _secrets() -> Iterator[str]:
    for secret in Secret.objects.filter(revoked_at=None).order_by("name"):
        try:
            value_of(secret)
        except BrokenSeal:
            yield f"The secret {secret.name} cannot be opened: its key is not in LABSITE_HOME/keys, or it was changed beside labsite."


def _files() -> Iterator[str]:
    workspace = scope.current_id()
    for blob in Blob.objects.filter(region__in=list(settings.LABSITE_REGIONS), removed_at=None).order_by("pk").iterator(chunk_size=1000):
        try:
            found = store.store_of(blob.region).size(workspace, blob.sha256)
        except store.StoreAway as error:
            yield f"The files were not all looked for: the region {blob.region} does not answer. {error}"
            return
        if found is None:
            yield f"The file {blob.sha256[:16]}… is not in the store."
        elif found != blob.bytes:
            yield f"The file {blob.sha256[:16]}… has {found} bytes, not {blob.bytes}."


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


def _starts() -> Iterator[str]:
    """Try what dispatch does with each run that waits, and take it back. What is refused waits for something; what raises waits for ever."""
    start = inspect.unwrap(start_attempt)  # within a transaction of ours, which is never committed
    for item in QueueItem.objects.select_related("run").order_by("-priority", "position_key")[:STARTS_TRIED]:
        try:
            with transaction.atomic():
                start(Draft(verb=Verb.ATTEMPT_STARTED), actor=Actor.system(job_id="doctor"), run=item.run)
                transaction.set_rollback(True)
        except Refusal:
            continue
        except Exception as fault:
            yield f"{item.run.name} ({item.run.public_id}) is queued and cannot be started: {type(fault).__name__}: {str(fault)[:200]}. Cancel it."


def _pools() -> Iterator[str]:
    """What pools said when they were asked last."""
    for pool in with_contact(Pool.objects.filter(is_accepting=True, engine__is_accepting=True)).order_by("slug"):
        contact = Contact.of(pool)
        if contact.is_silent:
            yield f"{pool.slug} does not answer: {contact.reason}"
    for row in PoolContact.objects.filter(stranger_count__gt=0).select_related("pool").order_by("pool__slug"):
        work = plural(row.stranger_count, "piece of work", "pieces of work")
        yield f"{row.pool.slug} has {work} that no run explains, {row.strangers[0]['key']} first; see its page."


SITE_CHECKS: dict[str, Check] = {
    "database": _database,
    "serving role": _serving_role,
    "row security": _row_security,
    "queue": _queue_answers,
    "run folder": _run_folder,
    "regions": _regions,
    "record of the site": _site_chain,
}
WORKSPACE_CHECKS: dict[str, Check] = {
    "record": _chain,
    "ledger": _ledger,
    "certificates": unlike_their_facts,
    "secrets": _secrets,
    "stored files": _files,
    "runs and queue": _runs,
    "starts": _starts,
}
