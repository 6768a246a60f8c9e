"""The record cannot be passed by: stray writes, replayed events, nested commands and the application's own role are refused."""

import uuid

import pytest
from django.conf import settings
from django.db import DatabaseError, ProgrammingError, connection, transaction

from labsite.owner import APPEND_ONLY
from tests.factories import make_member, make_workspace
from tests.walls.rows import fill, owned_models
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.audit import DENIALS_A_MINUTE, Denied, Draft, command, record_denial
from workspaces.commands.workspace import configure_workspace
from workspaces.models import AuditEvent, Membership, Workspace
from workspaces.models.base import Owned
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db(transaction=True)
OUTSIDE = "outside a command"


def test_tests_run_in_the_serving_role() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, pg_has_role(rolname, %s, 'MEMBER') "
            "FROM pg_roles WHERE rolname = current_user",
            [settings.OWNER_DATABASE["USER"]],
        )
        assert cursor.fetchone() == (settings.APP_ROLE, False, False, False, False, False)


def test_one_command_writes_one_event_in_the_chain() -> None:
    workspace, owner = make_workspace()
    with scope.open_workspace(workspace.pk):
        configure_workspace(actor=owner, zone="Europe/Berlin", reason="our clocks")
        events = list(AuditEvent.objects.order_by("sequence"))
    assert [(event.sequence, event.verb) for event in events] == [(1, "workspace.created"), (2, "workspace.configured")]
    assert events[1].previous_hash == events[0].hash
    assert events[1].actor_id == owner.user.pk if owner.user else False


def test_stray_writes_are_refused() -> None:
    workspace, _ = make_workspace()
    with scope.open_workspace(workspace.pk):
        member = Membership.objects.get()
        with pytest.raises(ProgrammingError, match=OUTSIDE), transaction.atomic():
            Membership.objects.update(role=Role.VIEWER)
        with pytest.raises(ProgrammingError, match=OUTSIDE), transaction.atomic():
            member.save()
        with pytest.raises(ProgrammingError, match=OUTSIDE), transaction.atomic():
            member.delete()
        with pytest.raises(ProgrammingError, match=OUTSIDE):
            Membership.objects.get().save()  # without a transaction around it
        with pytest.raises(ProgrammingError, match=OUTSIDE), transaction.atomic():
            Workspace.objects.filter(pk=workspace.pk).update(name="x")


def test_every_owned_table_demands_an_event() -> None:
    workspace, _ = make_workspace()
    fill(workspace)
    with scope.open_workspace(workspace.pk), connection.cursor() as cursor:
        for model in owned_models():
            if issubclass(model, Owned) and model._meta.db_table not in APPEND_ONLY:
                with pytest.raises(ProgrammingError, match=OUTSIDE), transaction.atomic():
                    cursor.execute(f'UPDATE "{model._meta.db_table}" SET created_at = created_at')


def test_an_old_command_id_opens_nothing() -> None:
    workspace, _ = make_workspace()
    with scope.open_workspace(workspace.pk):
        used = AuditEvent.objects.get().command_id
        with pytest.raises(ProgrammingError, match=OUTSIDE):
            _write_under(used)


@transaction.atomic
def _write_under(command_id: uuid.UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lab.command', %s, true)", [str(command_id)])
    Membership.objects.update(role=Role.VIEWER)


def test_an_event_of_one_workspace_covers_no_other() -> None:
    first, owner = make_workspace("first")
    second, _ = make_workspace("second")

    @command(Verb.WORKSPACE_CONFIGURED, needs=None, public_reason="a test")
    def reach_over(event: Draft, *, actor: Actor) -> None:
        Workspace.objects.filter(pk=second.pk).update(name="taken")

    with scope.open_workspace(first.pk), pytest.raises(ProgrammingError, match=OUTSIDE):
        reach_over(actor=owner)
    assert Workspace.objects.get(pk=second.pk).name == "Second"


def test_commands_do_not_nest() -> None:
    workspace, owner = make_workspace()

    @command(Verb.WORKSPACE_CONFIGURED, needs=None, public_reason="a test")
    def outer(event: Draft, *, actor: Actor) -> None:
        configure_workspace(actor=actor, zone="UTC")

    with scope.open_workspace(workspace.pk):
        with pytest.raises(RuntimeError, match="durable"):
            outer(actor=owner)
        with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
            configure_workspace(actor=owner, zone="UTC")
        assert AuditEvent.objects.count() == 1


def test_a_failed_command_leaves_neither_event_nor_gap() -> None:
    workspace, owner = make_workspace()

    @command(Verb.WORKSPACE_CONFIGURED, needs=None, public_reason="a test")
    def stumble(event: Draft, *, actor: Actor) -> None:
        Workspace.objects.filter(pk=scope.current_id()).update(name="half")
        raise ZeroDivisionError

    with scope.open_workspace(workspace.pk):
        with pytest.raises(ZeroDivisionError):
            stumble(actor=owner)
        configure_workspace(actor=owner, zone="UTC")
        assert list(AuditEvent.objects.order_by("sequence").values_list("sequence", flat=True)) == [1, 2]
    assert Workspace.objects.get(pk=workspace.pk).name == "Lab"


@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize(
    "statement", ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {} CASCADE", "ALTER TABLE {} DISABLE TRIGGER ALL", "DROP TABLE {}"]
)
def test_the_serving_role_can_only_add_to_the_record(table: str, statement: str) -> None:
    workspace, _ = make_workspace()
    refused = pytest.raises(ProgrammingError, match=r"permission denied|must be owner")
    with scope.open_workspace(workspace.pk), connection.cursor() as cursor, refused:
        cursor.execute(statement.format(f'"{table}"'))


@pytest.mark.parametrize(
    "statement",
    [
        "SET ROLE labsite_owner",
        "SET ROLE labsite_search",
        "SET SESSION AUTHORIZATION labsite_owner",
        "SET session_replication_role = replica",
        "ALTER TABLE workspaces_membership DISABLE TRIGGER ALL",
        "ALTER TABLE workspaces_membership DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE workspaces_membership NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY scope_read ON workspaces_membership",
        "CREATE POLICY all_of_it ON workspaces_membership USING (true)",
        "DROP TRIGGER workspaces_membership_event ON workspaces_membership",
        "CREATE OR REPLACE FUNCTION lab_demand_event() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TABLE public.mine (id int)",
        "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "ALTER ROLE labsite_app BYPASSRLS",
        "GRANT labsite_owner TO labsite_app",
        "TRUNCATE workspaces_membership",
        "COPY workspaces_membership TO PROGRAM 'true'",
        "DELETE FROM django_migrations",
    ],
)
def test_the_serving_role_cannot_take_a_wall_down(statement: str) -> None:
    workspace, _ = make_workspace()
    with scope.open_workspace(workspace.pk), connection.cursor() as cursor, pytest.raises(DatabaseError):
        cursor.execute(statement)


def test_row_security_cannot_be_switched_off_to_see_more() -> None:
    make_workspace()
    with connection.cursor() as cursor:
        cursor.execute("SET row_security = off")
        try:
            with pytest.raises(ProgrammingError, match="row-level security"):
                cursor.execute("SELECT count(*) FROM workspaces_auditevent")
        finally:
            cursor.execute("SET row_security = on")


def test_denials_are_recorded_and_limited() -> None:
    workspace, _ = make_workspace()
    viewer = make_member(workspace, Role.VIEWER)
    with scope.open_workspace(workspace.pk):
        with pytest.raises(Denied):
            configure_workspace(actor=viewer, zone="UTC")
        for _ in range(DENIALS_A_MINUTE + 5):
            record_denial(actor=viewer, permission="manage_workspace", kind="workspace", where="/somewhere")
        denials = AuditEvent.objects.filter(verb=Verb.ACCESS_DENIED, actor_id=viewer.user.pk if viewer.user else uuid.uuid4())
        assert denials.count() == DENIALS_A_MINUTE
