"""A withdrawal that reaches many things: each mark and each hash exact, whoever comes in between, and nothing at all where it breaks off."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import DatabaseError, connection

from labsite.owner import as_owner
from runs.commands import withdrawal as commands
from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.models import Artifact, Run, RunInput
from runs.queries.withdrawal import find_subject, fingerprint_now, fingerprint_of, radius, reached_by
from tests.factories_pages import add_artifact
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.runs.story import chain_of
from workspaces import accounts, audit
from workspaces.audit import Refusal, row_hashes
from workspaces.models import AuditEvent, DatasetVersion, EventSubject, Withdrawal, WithdrawnObject
from workspaces.queries.chain import verify_chain

LENGTH = 30
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def laboratory() -> Laboratory:
    """A run on the table, and a chain of thirty behind it, each of which has read what the one before it made."""
    made = make_laboratory()
    with made.opened():
        first = launch(made)
        add_artifact(actor=made.owner, run=first, path="x", content=b"x")
    keys = chain_of(made, first, LENGTH)
    with made.opened():
        feed(made, keys[0], Artifact.objects.get(run=first))
    return made


def feed(laboratory: Laboratory, run: uuid.UUID, artifact: Artifact) -> None:
    with as_owner(), laboratory.opened():
        RunInput.objects.create(run_id=run, slug="x", kind="artifact", artifact=artifact, sha256="0" * 64)


def test_every_mark_is_exact_and_hashed_as_it_is_stored(laboratory: Laboratory) -> None:
    with laboratory.opened():
        node, label = find_subject("dataset_version", DatasetVersion.objects.get(dataset__slug="table").public_id)
        reached = reached_by(node)
        assert fingerprint_now(node) == fingerprint_of(reached)
        withdrawal = withdraw(actor=laboratory.owner, subject=node, label=label, reason="Bad.", fingerprint=fingerprint_now(node))
        runs, artifacts = Run.objects.count(), Artifact.objects.count()
        assert (runs, artifacts) == (LENGTH + 1, LENGTH + 1)
        marks = {(mark.kind, mark.object_id): mark for mark in WithdrawnObject.objects.filter(withdrawal=withdrawal)}
        assert {key: mark.distance for key, mark in marks.items()} == {
            (one.kind.value, one.id): far for one, far in reached.distance.items()
        }
        assert len(marks) == 1 + runs + artifacts
        assert max(mark.distance for mark in marks.values()) == 2 * (LENGTH + 1), "to the end of the chain"
        event = AuditEvent.objects.get(verb="withdrawal.made")
        assert (event.subject_type, event.subject_id) == ("withdrawal", withdrawal.pk)
        said = dict(EventSubject.objects.filter(event=event).values_list("object_id", "after_hash"))
        assert said == row_hashes([withdrawal, *marks.values()])
        assert verify_chain().is_whole


def test_who_comes_in_between_is_reached_or_the_confirmation_is_refused(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    with laboratory.opened():
        node, label = find_subject("dataset_version", DatasetVersion.objects.get(dataset__slug="table").public_id)
        seen = radius(node, label).fingerprint
        let_in = before_the_lock(monkeypatch, lambda: launched.append(elsewhere(laboratory)))
        launched: list[Run] = []
        with pytest.raises(Refusal, match="Something else rests on it"):
            withdraw(actor=laboratory.owner, subject=node, label=label, reason="Bad.", fingerprint=seen)
        assert (len(launched), Withdrawal.objects.count()) == (1, 0)
        let_in()
        withdraw(actor=laboratory.owner, subject=node, label=label, reason="Bad.")
        assert len(launched) == 2
        marked = set(WithdrawnObject.objects.filter(kind="run").values_list("object_id", flat=True))
        assert marked == set(Run.objects.values_list("pk", flat=True))


def test_broken_off_at_its_last_step_it_has_done_nothing_and_can_be_done_again(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = audit.write_event

    def breaks(*given: object, **more: object) -> AuditEvent:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")  # what a killed process leaves: a line that is cut
        raise AssertionError("unreachable")

    with laboratory.opened():
        node, label = find_subject("dataset_version", DatasetVersion.objects.get(dataset__slug="table").public_id)
    with monkeypatch.context() as patched:
        patched.setattr(audit, "write_event", breaks)
        with pytest.raises(DatabaseError), laboratory.opened():
            withdraw(actor=laboratory.owner, subject=node, label=label, reason="Bad.")
    connection.close()
    assert audit.write_event is write
    with laboratory.opened():
        assert not Withdrawal.objects.exists()
        assert not WithdrawnObject.objects.exists()
        withdrawal = withdraw(actor=laboratory.owner, subject=node, label=label, reason="Bad.")
        assert WithdrawnObject.objects.count() == 1 + 2 * (LENGTH + 1)
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="Good.")
        assert verify_chain().is_whole


def test_a_circle_which_only_a_broken_record_holds_is_marked_once_and_ends(laboratory: Laboratory) -> None:
    with laboratory.opened():
        first, last = Run.objects.earliest("number"), Run.objects.latest("number")
        feed(laboratory, first.pk, Artifact.objects.get(run=last))
        for kind, start in (("run", last), ("dataset_version", DatasetVersion.objects.get(dataset__slug="table"))):
            node, label = find_subject(kind, start.public_id)
            withdrawal = withdraw(actor=laboratory.owner, subject=node, label=label, reason="Bad.")
            assert withdrawal.objects_marked.filter(kind="run").count() == LENGTH + 1
            assert withdrawal.objects_marked.filter(kind="artifact").count() == LENGTH + 1


def before_the_lock(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> Callable[[], None]:
    """`act` is done once, after the withdrawal has looked and before it has the lock; again after a call of what is returned."""
    lock, waiting = accounts.lock_ledger, [True]

    def acts_first(*given: object) -> object:
        if waiting:
            waiting.clear()
            act()
        return lock(*given)  # type: ignore[arg-type]  # as it was given

    monkeypatch.setattr(commands, "lock_ledger", acts_first)
    return lambda: waiting.append(True)


def elsewhere(laboratory: Laboratory) -> Run:
    """A run launched on a line of its own, as another process would."""

    def ask() -> Run:
        try:
            with laboratory.opened():
                return launch(laboratory)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ask).result()
