import pytest
from django.db import ProgrammingError, connection, transaction

from tests.factories import make_workspace
from workspaces import scope
from workspaces.commands.workspace import configure_workspace
from workspaces.models import AuditEvent, Workspace


@pytest.mark.django_db
def test_command_writes_one_event() -> None:
    workspace, owner = make_workspace()
    with scope.open_workspace(workspace.pk):
        configure_workspace(actor=owner, zone="Europe/Berlin")
        events = list(AuditEvent.objects.order_by("sequence"))
    assert [event.verb for event in events] == ["workspace.created", "workspace.configured"]
    assert events[1].previous_hash == events[0].hash


@pytest.mark.django_db(transaction=True)
def test_stray_write_is_refused() -> None:
    workspace, _ = make_workspace()
    with pytest.raises(ProgrammingError, match="outside a command"), transaction.atomic():
        Workspace.objects.filter(pk=workspace.pk).update(name="x")
    with connection.cursor() as cursor:
        cursor.execute("select current_user")
        assert cursor.fetchone() == ("labsite_app",)
