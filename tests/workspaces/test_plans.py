"""What is asked of long tables is answered by an index, behind row security too. LABSITE_PLAN_ROWS sets how many rows each has."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.jobs.tidy import remove_folders
from runs.models import QueueItem, Watch
from runs.queries.collecting import kept_back
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from tests.walls.owner_sql import owner_connection
from workspaces.audit import Refusal
from workspaces.models import AuditEvent
from workspaces.queries.event import Filters, page_of_events
from workspaces.queries.ledger import lines
from workspaces.queries.workspace import creation_steps
from workspaces.windows import zone_names

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]

ROWS = int(os.environ.get("LABSITE_PLAN_ROWS", "20000"))
OWNED: tuple[LiteralString, ...] = ("runs_run", "runs_queueitem", "runs_attempt", "workspaces_ledgerentry")
Owner = psycopg.Connection[tuple[Any, ...]]


def many(owner: Owner, table: LiteralString, changed: LiteralString, *, like: LiteralString = "true") -> None:
    """Many rows like one of a table; `changed` says what differs in row `g`, as arguments of `jsonb_build_object`."""
    model = f"(SELECT id FROM {table} WHERE {like} ORDER BY id LIMIT 1)"
    source = f"{table} AS known, generate_series(1, %s) AS g, jsonb_populate_record(known, jsonb_build_object({changed})) AS made"
    owner.execute(f"INSERT INTO {table} SELECT made.* FROM {source} WHERE known.id = {model}", [ROWS])


EVENTS: LiteralString = """
    'id', gen_random_uuid(), 'command_id', gen_random_uuid(), 'sequence', 1000 + g, 'verb', 'run.ended', 'request_id', 'request-' || g,
    'recorded_at', now() - interval '900 days' + g * interval '1 minute',
    'actor_label', 'Person ' || mod(g, 20), 'actor_id', md5(mod(g, 20)::text)::uuid,
    'behalf_id', CASE WHEN mod(g, 100) = 0 THEN md5(mod(g, 20)::text)::uuid END,
    'behalf_label', CASE WHEN mod(g, 100) = 0 THEN 'Person ' || g ELSE '' END
"""
SUBJECTS: LiteralString = "'id', gen_random_uuid(), 'position', 1000 + g, 'object_id', gen_random_uuid(), 'label', 'thing ' || g"
ENTRIES: LiteralString = "'id', gen_random_uuid(), 'run_id', gen_random_uuid(), 'created_at', now() - g * interval '1 minute'"
RUNS: LiteralString = "'id', md5('run' || g)::uuid, 'number', 1000 + g, 'created_at', now() - g * interval '1 minute'"
ATTEMPTS: LiteralString = "'id', md5('attempt' || g)::uuid, 'run_id', md5('run' || g)::uuid, 'key', 'key-' || g"
WATCHES: LiteralString = "'id', gen_random_uuid(), 'attempt_id', md5('attempt' || g)::uuid, 'observed', 'removed'"
ITEMS: LiteralString = "'id', gen_random_uuid(), 'run_id', md5('run' || g)::uuid, 'position_key', 1000 + g"


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    """A laboratory with a long past: one run that went through, and many rows like its own."""
    made = make_laboratory()
    with made.opened():
        run = launch(made)
    drive(made, run)
    with made.opened():
        launch(made)
    with owner_connection() as owner:
        owner.execute("SELECT set_config('lab.workspace', %s, false)", [str(made.workspace.pk)])
        for table in OWNED:
            owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        many(owner, "workspaces_auditevent", EVENTS)
        many(owner, "workspaces_eventsubject", SUBJECTS)
        many(owner, "workspaces_ledgerentry", ENTRIES, like="act = 'reserve'")
        many(owner, "runs_run", RUNS, like="status = 'succeeded'")
        many(owner, "runs_attempt", ATTEMPTS)
        many(owner, "runs_watch", WATCHES)
        many(owner, "runs_queueitem", ITEMS)
        owner.execute("ANALYZE")  # or the keys are checked by plans for the few rows that there were
        owner.commit()
        for table in OWNED:
            owner.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        owner.commit()
        owner.autocommit = True
        if dropped := os.environ.get("LABSITE_PLAN_DROP"):  # to see what each is good for
            for name in dropped.split():
                owner.execute(f"DROP INDEX {name}")
        owner.execute("ANALYZE")
    with made.opened():
        yield made


def indexes(node: dict[str, Any]) -> set[str]:
    found = {node["Index Name"]} if "Index Name" in node else set()
    return found.union(*(indexes(part) for part in node.get("Plans", ())))


def plans(ask: Callable[[], object], table: str) -> tuple[set[str], float]:
    """The indexes that the statements on a table use, and how many milliseconds they take together."""
    with CaptureQueriesContext(connection) as asked:
        ask()
    used: set[str] = set()
    spent = 0.0
    for query in asked:
        if query["sql"].startswith("SELECT") and f'"{table}"' in query["sql"]:
            with connection.cursor() as cursor:
                cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + query["sql"].replace("%", "%%"), None)
                (((plan,),),) = cursor.fetchall()
            used |= indexes(plan["Plan"])
            spent += plan["Execution Time"]
    return used, spent


def shown(filters: Filters) -> None:
    with suppress(Refusal):  # nothing is known by that name
        page_of_events(filters)


def day() -> Filters:
    begins = datetime.now(UTC) - timedelta(days=899)
    return Filters(since=begins, until=begins + timedelta(days=1))


CASES: dict[str, tuple[str, str, Callable[[], object]]] = {
    "a verb": ("auditevent_verb", "workspaces_auditevent", lambda: shown(Filters(verb="pool.bound"))),
    "a noun": ("auditevent_verb", "workspaces_auditevent", lambda: shown(Filters(verb="pool"))),
    "days": ("auditevent_time", "workspaces_auditevent", lambda: shown(day())),
    "a person": ("auditevent_actor_label", "workspaces_auditevent", lambda: shown(Filters(actor="Lab-Owner"))),
    "a key": ("auditevent_actor", "workspaces_auditevent", lambda: shown(Filters(actor="01890000-0000-7000-8000-000000000001"))),
    "on behalf": ("auditevent_behalf_label", "workspaces_auditevent", lambda: shown(Filters(actor="Person 100"))),
    "a request": ("auditevent_request", "workspaces_auditevent", lambda: shown(Filters(request="request-7"))),
    "a thing": ("eventsubject_label", "workspaces_eventsubject", lambda: shown(Filters(subject="thing 7"))),
    "the ledger": ("ledgerentry_newest", "workspaces_ledgerentry", lines),
    "the queue": (
        "queueitem_order_of_all", "runs_queueitem", lambda: QueueItem.objects.order_by("-priority", "position_key").first()
    ),
    "folders": ("watch_folder_there", "runs_watch", remove_folders),
    "folders kept back": ("watch_folder_kept", "runs_watch", lambda: list(kept_back()[:200])),
}  # fmt: skip


def test_the_questions_to_long_tables_are_answered_by_indexes(laboratory: Laboratory) -> None:
    assert AuditEvent.objects.count() > ROWS
    assert Watch.objects.count() > ROWS
    found = {name: plans(ask, table) for name, (_, table, ask) in CASES.items()}
    for name, (used, spent) in found.items():
        print(f"{name}: {spent:.1f} ms, {', '.join(sorted(used))}")
    assert {name for name, (index, _, _) in CASES.items() if index not in found[name][0]} == set()


def test_the_names_of_time_zones_are_read_from_the_disk_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every launch and every estimate asks, with the ledger locked."""
    laboratory = make_laboratory()
    zone_names()
    walked: list[object] = []

    def walk(top: object, **_: object) -> list[object]:  # how the standard library looks for them
        walked.append(top)
        return []

    monkeypatch.setattr(os, "walk", walk)
    with laboratory.opened():
        assert all(step.is_done for step in creation_steps(laboratory.workspace))
    assert walked == []
