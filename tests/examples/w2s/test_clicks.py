"""From the best score of the laboratory to everything under it: tables, holdout, code, people; over the first runs of its first round."""

import os
import time
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from django.conf import settings

from labsite.examples.ground import NotReady
from labsite.examples.w2s import make, plan, rounds
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
    teacher = replace(rounds.TEACHERS[0], params=MappingProxyType({**rounds.TEACHERS[0].params, "seconds_per_epoch": 0}))
    measured = next(run for run in rounds.UNTIL_FROZEN if run.key == f"evaluate-{teacher.key}")
    monkeypatch.setattr(rounds, "UNTIL_FROZEN", (teacher, measured))
    workspace = make.set_up(
        slug="w2s-medqa", admin=admin, researcher=researcher, approver=approver, as_root=os.geteuid() == 0, say=lambda text: None
    )
    make.fill(workspace=workspace, admin=admin, python=Path(pool_python), say=lambda text: None)
    laboratory, deadline = Laboratory(workspace, admin), time.monotonic() + SECONDS
    with linked_python(settings.LABSITE_RUNS, pool_python):
        while (score := best(laboratory)) is None:
            assert time.monotonic() < deadline, "no score in time"
            with pytest.raises(NotReady):
                make.start(
                    workspace=workspace, researcher=Actor.of(researcher), approver=Actor.of(approver), say=lambda text: None, seconds=0
                )
            dispatch(laboratory)
            watch(laboratory)
    with laboratory.opened():
        wanted = under(laboratory, score)
    assert {page.split("/")[3] for page in wanted} == {"runs", "datasets", "agents"}
    assert any(plan.HOLDOUT in page for page in wanted)
    assert wanted - clicked_from_the_best(laboratory, plan.ACCURACY.slug) == set()


def best(laboratory: Laboratory) -> Evaluation | None:
    with laboratory.opened():
        scores = Evaluation.objects.filter(benchmark__slug=plan.ACCURACY.slug, contract__metric=plan.ACCURACY.metric)
        return scores.select_related("contract", "subject_artifact").order_by("-value", "created_at").first()
