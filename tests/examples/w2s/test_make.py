"""The laboratory is made by ordinary commands, once, however often it is asked for; what rests on runs waits for them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db.models import Max

from labsite.examples.ground import NotReady
from labsite.examples.w2s import bundles, make, plan, rounds
from runs.models import Run
from tests.examples.pool import linked_python
from tests.factories import make_user
from workspaces import scope
from workspaces.access import Actor
from workspaces.commands.agent import publish_agent_version
from workspaces.commands.blob import receive_file
from workspaces.models import (
    Agent,
    Benchmark,
    Contract,
    Dataset,
    DatasetVersion,
    Engine,
    Installation,
    Limit,
    Objective,
    User,
)
from workspaces.models import Workspace as WorkspaceRow

COUNTED: tuple[Any, ...] = (Agent, Benchmark, Contract, Dataset, DatasetVersion, Limit, Objective, Run)


@pytest.fixture
def people(db: None) -> tuple[Actor, User, User]:
    Engine.objects.get_or_create(slug="local", defaults={"kind": Engine.Kind.LOCAL, "slots": 4})
    Installation.objects.get_or_create(is_current=True)
    return Actor.of(make_user("admin", User.SiteRole.CREATE_WORKSPACE)), make_user("researcher"), make_user("approver")


@pytest.fixture
def python_of_runs(pool_python: str) -> Iterator[None]:
    """Runs find their Python below the folder of runs, which is this test's own."""
    with linked_python(settings.LABSITE_RUNS, pool_python):
        yield


def set_up(people: tuple[Actor, User, User], python: str, said: list[str], *, as_root: bool = False) -> WorkspaceRow:
    admin, researcher, approver = people
    workspace = make.set_up(slug="w2s-medqa", admin=admin, researcher=researcher, approver=approver, as_root=as_root, say=said.append)
    make.fill(workspace=workspace, admin=admin, python=Path(python), say=said.append)
    return workspace


def counts(workspace: WorkspaceRow) -> list[int]:
    with scope.open_workspace(workspace.pk):
        return [model.objects.count() for model in COUNTED]


@pytest.mark.django_db(transaction=True)
def test_setting_up_twice_is_setting_up_once(people: tuple[Actor, User, User], pool_python: str) -> None:
    said: list[str] = []
    workspace = set_up(people, pool_python, said)
    before = counts(workspace)
    assert set_up(people, pool_python, said).pk == workspace.pk
    assert counts(workspace) == before == [7, 5, 4, 8, 6, 3, 1, 0]
    assert len(said) == len(set(said))
    with scope.open_workspace(workspace.pk):
        roles = dict(DatasetVersion.objects.values_list("dataset__slug", "role"))
        assert roles == {entry.slug: entry.role for entry in plan.DATASETS} | dict.fromkeys((plan.RUBRIC.slug, plan.RULE.slug), "any")
        assert dict(Dataset.objects.filter(is_live=True).values_list("slug", "window_records")) == {
            "weak_labels_2026_05": 170,
            "reviewed_promotions": plan.TRUSTED_WINDOW,
        }


@pytest.mark.django_db(transaction=True)
def test_an_older_laboratory_gets_the_agents_of_today_unless_somebody_made_them_their_own(people: tuple[Actor, User, User]) -> None:
    admin, researcher, approver = people
    said: list[str] = []
    again = partial(make.set_up, slug="w2s-medqa", admin=admin, researcher=researcher, approver=approver, as_root=False, say=said.append)
    plans = plan.AGENTS
    with pytest.MonkeyPatch.context() as older:
        files = bundles.bundle_files
        older.setattr(bundles, "bundle_files", lambda name: {**files(name), "older.py": b"# what it was\n"})
        older.setattr(plan, "BENCHMARKS", tuple(entry for entry in plan.BENCHMARKS if entry is not plan.CONTROL))
        workspace = again()
    with scope.open_workspace(workspace.pk):
        own = Agent.objects.get(slug=plans[0].slug)
        publish_agent_version(actor=admin, agent=own, argv=["python", "mine.py"], files=[receive_file("mine.py", [b"pass"])], kind="train")
    for _ in range(2):
        again()
        with scope.open_workspace(workspace.pk):
            numbers = dict(Agent.objects.annotate(newest=Max("versions__number")).values_list("slug", "newest"))
            assert numbers == dict.fromkeys((agent.slug for agent in plans), 2)
            assert own.versions.get(number=2).argv == ["python", "mine.py"]
            assert Benchmark.objects.filter(slug=plan.CONTROL.slug).exists()


@pytest.mark.django_db(transaction=True)
def test_what_rests_on_nothing_is_launched_at_once_and_the_rest_waits(people: tuple[Actor, User, User], pool_python: str) -> None:
    workspace = set_up(people, pool_python, [])
    for _ in range(2):
        with pytest.raises(NotReady, match="evaluate-ceiling-a waits for the runs before it"):
            make.start(workspace=workspace, researcher=Actor.of(people[1]), approver=Actor.of(people[2]), say=lambda text: None, seconds=0)
    with scope.open_workspace(workspace.pk):
        launched = set(Run.objects.values_list("name", flat=True))
        assert launched == {run.key for run in (*rounds.TEACHERS, *rounds.CEILINGS)}
