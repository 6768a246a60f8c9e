"""The door of share grants: what it opens is one object, read-only, while the grant holds, and both sides have it on record."""

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db import ProgrammingError, connection, transaction
from django.utils import timezone

from tests.factories import make_workspace
from tests.factories_resources import join
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.audit import Denied, Refusal
from workspaces.commands.benchmark import change_benchmark, create_benchmark
from workspaces.commands.share import grant_share, read_public, read_shared, revoke_share
from workspaces.models import Agent, AuditEvent, Benchmark, Contract, Dataset, NotFound, ShareGrant, Workspace
from workspaces.queries.share import grants_received
from workspaces.verbs import Verb

CONTRACT: dict[str, Any] = {"metric": "elo", "direction": "maximize"}


@dataclass
class Two:
    """Giver and receiver, a benchmark that is shared and one that is not."""

    giver: Workspace
    owner: Actor
    receiver: Workspace
    reader: Actor
    shared: Benchmark
    kept: Benchmark
    grant: ShareGrant


@pytest.fixture
def two() -> Two:
    giver, owner = make_workspace("giver", visibility="public_benchmarks")
    receiver, reader = make_workspace("receiver")
    with scope.open_workspace(giver.pk):
        shared = create_benchmark(actor=owner, slug="open-table", contract=CONTRACT)
        kept = create_benchmark(actor=owner, slug="own-table", contract=CONTRACT)
        until = timezone.now() + timedelta(days=3)
        grant = grant_share(
            actor=owner, object_type="benchmark", object_id=shared.public_id, to_workspace=receiver, expires_at=until, reason="compare"
        )
    return Two(giver, owner, receiver, reader, shared, kept, grant)


@pytest.mark.django_db
def test_the_receiver_reads_the_object_and_what_belongs_to_it(two: Two) -> None:
    with scope.open_workspace(two.receiver.pk):
        assert [grant.pk for grant in grants_received()] == [two.grant.pk]
        with read_shared(actor=two.reader, grant_id=two.grant.pk) as grant:
            assert grant.object_label == "open-table"
            assert Benchmark.objects.get().pk == two.shared.pk
            assert Contract.objects.get().metric == "elo"
        assert scope.current_id() == two.receiver.pk
        assert Benchmark.objects.count() == 0


@pytest.mark.django_db
def test_other_objects_of_the_giver_stay_closed(two: Two) -> None:
    with scope.open_workspace(two.receiver.pk), read_shared(actor=two.reader, grant_id=two.grant.pk):
        with pytest.raises(NotFound):
            Benchmark.objects.find("own-table")
        for model in (Dataset, Agent):
            with pytest.raises(scope.ScopeError, match="opens no"):
                model.objects.count()


@pytest.mark.django_db
def test_commands_are_refused_through_the_door(two: Two) -> None:
    with scope.open_workspace(two.receiver.pk), read_shared(actor=two.reader, grant_id=two.grant.pk):
        assert Benchmark.objects.exists()
        with pytest.raises(scope.ScopeError, match="not written"):
            change_benchmark(actor=two.owner, benchmark=two.shared, name="mine")


@pytest.mark.django_db
def test_postgresql_refuses_writes_through_the_door_by_itself(two: Two) -> None:
    table = Benchmark._meta.db_table
    with scope.open_workspace(two.receiver.pk), read_shared(actor=two.reader, grant_id=two.grant.pk), connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table} WHERE workspace_id = %s", [two.giver.pk])
        assert cursor.fetchone()[0] > 0  # the row can be seen ...
        cursor.execute(f"UPDATE {table} SET name = 'mine' WHERE workspace_id = %s", [two.giver.pk])
        assert cursor.rowcount == 0  # ... and not changed
        cursor.execute(f"DELETE FROM {table} WHERE workspace_id = %s", [two.giver.pk])
        assert cursor.rowcount == 0
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            cursor.execute(
                f"INSERT INTO {table} (id, workspace_id, slug, name, description, is_public, created_by_id)"
                " VALUES (%s, %s, 'x', 'x', '', false, %s)",
                [uuid.uuid4(), two.giver.pk, two.owner.user.pk if two.owner.user else None],
            )


@pytest.mark.django_db
def test_a_read_stands_in_the_record_of_both_sides(two: Two) -> None:
    with scope.open_workspace(two.receiver.pk), read_shared(actor=two.reader, grant_id=two.grant.pk):
        pass
    for workspace in (two.giver, two.receiver):
        with scope.open_workspace(workspace.pk):
            event = AuditEvent.objects.get(verb=Verb.SHARE_READ)
            assert event.actor_label == "Receiver-Owner"


@pytest.mark.django_db
def test_a_revoked_grant_opens_nothing_from_the_very_next_read(two: Two) -> None:
    with scope.open_workspace(two.giver.pk):
        revoke_share(actor=two.owner, grant=two.grant, reason="done")
        with pytest.raises(Refusal, match="no more already"):
            revoke_share(actor=two.owner, grant=two.grant)
    refused(two.receiver, two.reader, two.grant.pk)


@pytest.mark.django_db
def test_an_expired_grant_opens_nothing(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    later = timezone.now() + timedelta(days=4)
    monkeypatch.setattr(timezone, "now", lambda: later)
    refused(two.receiver, two.reader, two.grant.pk)


@pytest.mark.django_db
def test_a_grant_to_another_workspace_opens_nothing_here(two: Two) -> None:
    third, stranger = make_workspace("third")
    refused(third, stranger, two.grant.pk)
    refused(two.receiver, two.reader, uuid.uuid4())
    with scope.open_workspace(two.receiver.pk), pytest.raises(Denied), read_shared(actor=stranger, grant_id=two.grant.pk):
        pass


@pytest.mark.django_db
def test_a_receiver_can_neither_revoke_nor_lengthen_what_it_was_given(two: Two) -> None:
    with scope.open_workspace(two.receiver.pk):
        with pytest.raises(NotFound):
            revoke_share(actor=two.reader, grant=two.grant)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE workspaces_sharegrant SET expires_at = expires_at + interval '9 years' WHERE id = %s", [two.grant.pk])
            assert cursor.rowcount == 0


@pytest.mark.django_db
def test_who_shares_says_to_whom_until_when_and_why_and_holds_the_right(two: Two) -> None:
    until = timezone.now() + timedelta(days=1)
    with scope.open_workspace(two.giver.pk):
        wanted: dict[str, Any] = {
            "object_type": "benchmark",
            "object_id": "own-table",
            "to_workspace": two.receiver,
            "expires_at": until,
            "reason": "compare",
        }
        changes: list[dict[str, Any]] = [
            {"reason": " "},
            {"expires_at": None},
            {"expires_at": timezone.now()},
            {"to_workspace": two.giver},
            {"to_workspace": None},
        ]
        for change in changes:
            with pytest.raises(Refusal):
                grant_share(actor=two.owner, **{**wanted, **change})
        with pytest.raises(NotFound):
            grant_share(actor=two.owner, **{**wanted, "object_id": "no-such"})
        with pytest.raises(Denied):
            grant_share(actor=join(two.owner, "operator", Role.OPERATOR), **wanted)


@pytest.mark.django_db
def test_the_definition_of_a_public_benchmark_opens_to_anyone_while_all_three_say_so(two: Two) -> None:
    with scope.open_workspace(two.giver.pk):
        change_benchmark(actor=two.owner, benchmark=two.shared, is_public=True)
        grant_share(
            actor=two.owner, object_type="benchmark", object_id="open-table", to_workspace=None, expires_at=None, reason="a standard"
        )
    with read_public(actor=two.reader, giver=two.giver, benchmark_id=two.shared.pk):
        assert Benchmark.objects.get().slug == "open-table"
    with pytest.raises(NotFound), read_public(actor=two.reader, giver=two.giver, benchmark_id=two.kept.pk):
        pass
    with scope.open_workspace(two.giver.pk):
        change_benchmark(actor=two.owner, benchmark=two.shared, is_public=False)
    with pytest.raises(NotFound), read_public(actor=two.reader, giver=two.giver, benchmark_id=two.shared.pk):
        pass
    assert not scope.is_open()


def refused(workspace: Workspace, actor: Actor, grant_id: uuid.UUID) -> None:
    with scope.open_workspace(workspace.pk):
        with pytest.raises(NotFound), read_shared(actor=actor, grant_id=grant_id):
            pass
        assert not AuditEvent.objects.filter(verb=Verb.SHARE_READ).exists()
        assert scope.current_id() == workspace.pk
