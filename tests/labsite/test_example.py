"""`manage.py example`: a laboratory in a workspace of any name, made once however often it is asked for."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.factories import make_user
from workspaces import scope
from workspaces.models import Agent, Benchmark, Engine, Installation, User, Workspace


@pytest.fixture
def people(db: None) -> None:
    Engine.objects.get_or_create(slug="local", defaults={"kind": Engine.Kind.LOCAL, "slots": 4})
    Installation.objects.get_or_create(is_current=True)
    make_user("admin", User.SiteRole.CREATE_WORKSPACE)
    make_user("researcher")
    make_user("approver")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(("name", "benchmark"), [("w2s", "medqa-holdout-accuracy"), ("autogo", "go-fast-learning")])
def test_it_is_made_in_another_workspace_and_twice_is_once(name: str, benchmark: str) -> None:
    made, told = [], []
    for _ in range(2):
        said = StringIO()
        call_command("example", name, "--workspace", "other", "--set-up-only", "--as", "admin", stdout=said)
        told.append(said.getvalue())
        workspace = Workspace.objects.get()
        with scope.open_workspace(workspace.pk):
            assert Benchmark.objects.filter(slug=benchmark).exists()
            made.append((workspace.slug, Benchmark.objects.count(), Agent.objects.count()))
    assert made[0] == made[1]
    assert made[0][0] == "other"
    assert "workspace other created" in told[0]
    assert "created" not in told[1]


@pytest.mark.usefixtures("people")
def test_people_who_are_not_there_or_may_not_are_named() -> None:
    with pytest.raises(CommandError, match="no active person named nobody"):
        call_command("example", "w2s", "--as", "nobody", "--set-up-only")
    with pytest.raises(CommandError, match="researcher may not create workspaces"):
        call_command("example", "w2s", "--as", "researcher", "--set-up-only")
    assert not Workspace.objects.exists()
