"""What an event keeps of changes: each row under its own name, first before and last after; and how pages tell it, old events too."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.factories import make_workspace
from tests.factories_resources import in_one
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Draft
from workspaces.commands.benchmark import change_benchmark, create_benchmark
from workspaces.commands.limit import remove_limit, set_limit
from workspaces.commands.pool import bind_pool, change_pool
from workspaces.commands.workspace import configure_workspace
from workspaces.models import AuditEvent, Engine, EventPayload, EventSubject, Limit, Pool, Unit
from workspaces.queries.change_words import changes_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> Iterator[Actor]:
    Engine.objects.create(slug="local", kind=Engine.Kind.LOCAL, slots=8)
    workspace, actor = make_workspace("lab")
    with scope.open_workspace(workspace.pk):
        yield actor


def last() -> tuple[AuditEvent, Any]:
    event = AuditEvent.objects.order_by("-sequence")[0]
    return event, EventPayload.objects.get(event=event).body["details"].get("changed")


def told(zone: str = "UTC") -> list[tuple[str, str, str]]:
    event, changed = last()
    return [(change.label, change.before, change.after) for change in changes_of(event, changed, zone)]


def test_every_command_notes_changes_in_one_shape(owner: Actor) -> None:
    configure_workspace(actor=owner, cost_centre="cc-7")
    assert last()[1] == {"workspace ws_lab": {"cost_centre": ["", "cc-7"]}}
    benchmark = create_benchmark(actor=owner, slug="accuracy", name="Accuracy")
    change_benchmark(actor=owner, benchmark=benchmark, name="Accuracy of all")
    assert last()[1] == {"benchmark bench_accuracy": {"name": ["Accuracy", "Accuracy of all"]}}
    limit = set_limit(actor=owner, unit=Unit.RUNS, window=Limit.Window.NOW, amount=4, mode=Limit.Mode.WARN)
    assert last()[1] == {f"limit limit_{limit.pk.hex}": {"amount": [None, 4]}}
    set_limit(actor=owner, unit=Unit.RUNS, window=Limit.Window.NOW, amount=5, mode=Limit.Mode.STOP)
    remove_limit(actor=owner, unit=Unit.RUNS, window=Limit.Window.NOW, mode=Limit.Mode.WARN, reason="only stop")
    assert last()[1] == {f"limit limit_{limit.pk.hex}": {"amount": [4, None]}}
    assert told() == [("amount", "4 runs", "")]


def test_two_rows_of_one_type_keep_what_each_was(owner: Actor) -> None:
    first, second = (
        bind_pool(actor=owner, engine="local", slug=slug, slots=2, isolation=Pool.Isolation.USER) for slug in ("first", "second")
    )
    assert (first.is_default, second.is_default) == (True, False)
    change_pool(actor=owner, pool=second, is_default=True, slots=3)
    event, changed = last()
    assert changed == {
        "pool pool_first": {"is_default": [True, False]},
        "pool pool_second": {"is_default": [False, True], "slots": [2, 3]},
    }
    assert event.subject_label == "second"
    assert ("pool pool_first: is default", "true", "false") in told()


def test_a_row_that_changes_twice_is_one_subject_from_first_to_last(owner: Actor) -> None:
    bind_pool(actor=owner, engine="local", slug="first", slots=2, isolation=Pool.Isolation.USER)
    before = EventSubject.objects.get(type="pool").after_hash

    def twice(event: Draft) -> None:
        event.change(Pool.objects.get(), slots=3, currency="USD")
        event.change(Pool.objects.get(), slots=4, currency="EUR")  # another instance of the same row

    in_one(actor=owner, body=twice)
    event, changed = last()
    assert changed == {"pool pool_first": {"slots": [2, 4]}}
    subject = EventSubject.objects.get(event=event)
    assert subject.before_hash == before
    assert subject.after_hash not in ("", before)


def test_what_is_made_changed_and_deleted_in_one_command_is_gone(owner: Actor) -> None:
    limit = set_limit(actor=owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=5, mode=Limit.Mode.WARN)
    before = EventSubject.objects.filter(object_id=limit.pk).get().after_hash

    def away(event: Draft) -> None:
        row = Limit.objects.get()
        event.change(row, amount=6)
        event.deleting(row)
        Limit.objects.filter(pk=row.pk).delete()

    in_one(actor=owner, body=away)
    subject = EventSubject.objects.get(event=last()[0])
    assert (subject.object_id, subject.before_hash, subject.after_hash) == (limit.pk, before, "")


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({"name": ["A", "B"], "slots": [1, 2]}, [("name", "A", "B"), ("slots", "1", "2")]),
        ({"run": {"status": ["queued", "starting"]}, "token": {"revoked_at": [None, None]}}, [("run: status", "queued", "starting")]),
        ({"pool before": {"slots": [1, 2]}, "pool": {"slots": [3, 4]}}, [("pool before: slots", "1", "2"), ("pool: slots", "3", "4")]),
        (None, []),
    ],
    ids=["no row named", "nouns", "two pools", "nothing"],
)
def test_the_first_events_on_record_are_told_as_well(owner: Actor, changed: Any, lines: list[tuple[str, str, str]]) -> None:
    found = changes_of(AuditEvent(subject_type="run", subject_label=""), changed, "UTC")
    assert [(change.label, change.before, change.after) for change in found if change.before or change.after] == lines
