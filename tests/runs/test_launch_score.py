"""A run that has ended is scored by clicks: its page leads to a launch that is filled with evaluator, result and holdout."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import Run
from tests.factories_pages import add_artifact, client_of, score_runs, set_run
from tests.factories_registry import make_agent_version, make_dataset_version
from tests.factories_resources import join
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.access import Role
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Benchmark

ADDRESS = "/workspaces/lab/runs/launch/"


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    made = make_laboratory()
    with made.opened():
        holdout = make_dataset_version(made.owner, "unseen", role="holdout")
        publish_contract(
            actor=made.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", holdout=holdout,
            accepts_no_isolation_reason="a test",
        )  # fmt: skip
    return made


@pytest.fixture
def trained(laboratory: Laboratory) -> Run:
    with laboratory.opened():
        run = launch(laboratory, name="teacher <b>one</b>")
        set_run(actor=laboratory.owner, run=run, status="succeeded", ended_at=timezone.now())
        for path, kind in (("outputs/notes.txt", "file"), ("outputs/model.json", "model"), ("stdout.log", "log")):
            add_artifact(actor=laboratory.owner, run=run, path=path, content=path.encode(), kind=kind)
    return run


def button(client: Client, run: Run) -> str:
    body = client.get(f"/workspaces/lab/runs/{run.public_id}/").content.decode()
    found = re.search(r'href="([^"]*)">Score this run<', body)
    return found[1] if found else ""


def checked(body: str) -> list[str]:
    return re.findall(r'value="([^"]+)"[^>]* checked', body)


def test_the_launch_is_filled_and_may_start(laboratory: Laboratory, trained: Run) -> None:
    with laboratory.opened():
        make_agent_version(laboratory.owner, "judge", kind="evaluate", wall_seconds=60)
        model = trained.artifacts.get(kind="model")
    client = client_of(laboratory.owner)
    body = client.get(button(client, trained)).content.decode()
    assert '<option value="judge" selected>' in body
    assert '<option value="accuracy" selected>' in body
    assert checked(body) == ["unseen@1", model.pk.hex]
    assert "teacher &lt;b&gt;one&lt;/b&gt;" in body
    assert "it may start" in body
    assert "notes.txt" in body  # what else it left can be chosen instead
    assert "stdout.log" not in body
    asked = {"benchmark": "accuracy", "agent": "judge", "datasets": ["unseen@1"], "artifacts": [model.pk.hex], "act": "launch"}
    assert client.post(ADDRESS, asked).status_code == 303
    with laboratory.opened():
        scoring = Run.objects.get(kind="evaluate")
        assert {entry.kind for entry in scoring.inputs.all()} == {"dataset", "artifact"}
    assert button(client, scoring) == ""


def test_who_has_scored_the_benchmark_before_comes_first(laboratory: Laboratory, trained: Run) -> None:
    with laboratory.opened():
        for slug in ("any-judge", "old-judge"):
            make_agent_version(laboratory.owner, slug, kind="evaluate")
        set_run(
            actor=laboratory.owner,
            run=launch(laboratory, agent="old-judge", datasets=("unseen",)),
            status="succeeded",
            ended_at=timezone.now(),
        )
    client = client_of(laboratory.owner)
    body = client.get(button(client, trained)).content.decode()
    assert '<option value="old-judge" selected>' in body
    assert "Agents that evaluate: old-judge, any-judge." in body


def test_what_is_missing_is_said(laboratory: Laboratory, trained: Run) -> None:
    client = client_of(laboratory.owner)
    body = client.get(button(client, trained)).content.decode()
    assert "No agent here declares that it evaluates." in body
    assert 'class="errorlist"' not in body
    assert client.get(ADDRESS, {"scores": "run_" + "0" * 32}).status_code == 404
    assert client.get(ADDRESS, {"scores": "../x"}).status_code == 404


def test_only_a_run_that_can_be_scored_offers_it(laboratory: Laboratory, trained: Run) -> None:
    client = client_of(laboratory.owner)
    with laboratory.opened():
        viewer = join(laboratory.owner, "viewer", Role.VIEWER)
        empty = launch(laboratory, name="left nothing")
        set_run(actor=laboratory.owner, run=empty, status="succeeded", ended_at=timezone.now())
    assert button(client, trained)
    assert button(client_of(viewer), trained) == ""
    assert button(client, empty) == ""
    with laboratory.opened():
        score_runs(actor=laboratory.owner, scores={trained: (0.8, 0.01)})
    assert button(client, trained) == ""
    with laboratory.opened():
        set_run(actor=laboratory.owner, run=empty, status="failed", ended_at=timezone.now())
    assert button(client, empty) == ""
