"""The laboratory is made by ordinary commands, once, however often it is asked for; what rests on runs waits for them."""

from typing import Any

import pytest

from labsite.examples.autogo import make, plan
from labsite.examples.ground import NotReady
from runs.models import Run, Sweep
from tests.factories import make_user
from workspaces import scope
from workspaces.access import Actor
from workspaces.models import Agent, Benchmark, Contract, Dataset, Engine, Limit, Objective, User, Workspace

COUNTED: tuple[Any, ...] = (Agent, Benchmark, Contract, Dataset, Limit, Objective, Run, Sweep)


@pytest.fixture
def people(db: None) -> tuple[Actor, User, User]:
    Engine.objects.get_or_create(slug="local", defaults={"kind": Engine.Kind.LOCAL, "slots": 4})
    return Actor.of(make_user("admin", User.SiteRole.CREATE_WORKSPACE)), make_user("researcher"), make_user("approver")


def set_up(people: tuple[Actor, User, User], said: list[str]) -> Workspace:
    admin, researcher, approver = people
    return make.set_up(slug="autogo-main", admin=admin, researcher=researcher, approver=approver, as_root=False, say=said.append)


def counts(workspace: Workspace) -> list[int]:
    with scope.open_workspace(workspace.pk):
        return [model.objects.count() for model in COUNTED]


@pytest.mark.django_db(transaction=True)
def test_setting_up_twice_is_setting_up_once(people: tuple[Actor, User, User]) -> None:
    said: list[str] = []
    workspace = set_up(people, said)
    before = counts(workspace)
    assert set_up(people, said).pk == workspace.pk
    assert counts(workspace) == before == [3, 2, 2, 1, 3, 1, 0, 0]
    assert said == ["workspace autogo-main created", "autogo-main is open for launches"]
    with scope.open_workspace(workspace.pk):
        games = Dataset.objects.get()
        assert (games.slug, games.is_live, games.window_records) == ("self-play", True, plan.SELF_PLAY.window_records)
        versions = {agent.slug: agent.versions.get() for agent in Agent.objects.all()}
        assert {slug: version.kind for slug, version in versions.items()} == {agent.slug: agent.kind for agent in plan.AGENTS}


@pytest.mark.django_db(transaction=True)
def test_the_first_games_are_launched_at_once_and_the_rest_waits_for_them(people: tuple[Actor, User, User]) -> None:
    workspace = set_up(people, [])
    for _ in range(2):
        with pytest.raises(NotReady, match="self-play-2 waits for the runs before it"):
            make.start(workspace=workspace, researcher=Actor.of(people[1]), say=lambda text: None, seconds=0)
    with scope.open_workspace(workspace.pk):
        assert list(Run.objects.values_list("name", flat=True)) == [plan.SELF_PLAY_RUNS[0].key]
        assert not Sweep.objects.exists()
