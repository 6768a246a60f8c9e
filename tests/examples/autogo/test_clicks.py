"""From the best score of the laboratory to everything under it: windows of games, code, people, the sweep; over real, small runs."""

import os
import time
from dataclasses import replace
from types import MappingProxyType

import pytest
from django.conf import settings

from labsite.examples.autogo import make, plan
from labsite.examples.ground import NotReady
from runs.jobs.advance import advance_sweep
from runs.models import Evaluation
from tests.examples.clicks import clicked_from_the_best, under
from tests.examples.pool import linked_python
from tests.factories import make_user
from tests.factories_runs import Laboratory, dispatch, watch
from workspaces.access import Actor
from workspaces.models import Engine, Installation, User

SECONDS = 100


@pytest.mark.pool
@pytest.mark.django_db(transaction=True)
def test_from_the_best_score_everything_under_it_is_clicked(pool_python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Engine.objects.get_or_create(slug="local", defaults={"kind": Engine.Kind.LOCAL, "slots": 4})
    Installation.objects.get_or_create(is_current=True)
    admin = Actor.of(make_user("admin", User.SiteRole.CREATE_WORKSPACE))
    researcher, approver = make_user("researcher"), make_user("approver")
    few = {"games": 8, "games_per_piece": 4, "simulations": 2, "replay": "never"}
    games = replace(plan.SELF_PLAY_RUNS[0], params=MappingProxyType(few))
    shared = replace(plan.SWEEP.shared, params=MappingProxyType({"epochs": 1, "match_games": 2, "simulations": 2}))
    space = MappingProxyType({"kind": "grid", "axes": {"learning_rate": [0.001]}, "seeds": [1]})
    monkeypatch.setattr(plan, "SELF_PLAY", replace(plan.SELF_PLAY, window_records=4))
    monkeypatch.setattr(plan, "SELF_PLAY_RUNS", (games, replace(games, key="self-play-2", seed=2)))
    monkeypatch.setattr(plan, "SWEEP", replace(plan.SWEEP, shared=shared, space=space))
    workspace = make.set_up(
        slug="autogo-main", admin=admin, researcher=researcher, approver=approver, as_root=os.geteuid() == 0, say=lambda text: None
    )
    laboratory, deadline = Laboratory(workspace, admin), time.monotonic() + SECONDS
    with linked_python(settings.LABSITE_RUNS, pool_python):
        while (score := best(laboratory)) is None:
            assert time.monotonic() < deadline, "no score in time"
            try:
                make.start(workspace=workspace, researcher=Actor.of(researcher), say=lambda text: None, seconds=0)
            except NotReady:
                advance_sweep(workspace_id=workspace.pk.hex, subject_id=workspace.pk.hex)
                dispatch(laboratory)
                watch(laboratory)
    with laboratory.opened():
        wanted = under(laboratory, score)
    assert {page.split("/")[3] for page in wanted} == {"runs", "datasets", "agents", "sweeps"}
    assert any("self-play-window-1" in page for page in wanted)
    assert wanted - clicked_from_the_best(laboratory, plan.FAST_LEARNING.slug) == set()


def best(laboratory: Laboratory) -> Evaluation | None:
    with laboratory.opened():
        scores = Evaluation.objects.filter(benchmark__slug=plan.FAST_LEARNING.slug, metric=plan.FAST_LEARNING.metric)
        return scores.select_related("contract", "subject_artifact").order_by("-value", "created_at").first()
