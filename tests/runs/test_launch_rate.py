"""One account asks for so many runs a minute, through whichever token; the next one is told when."""

from datetime import timedelta

import pytest
from django.test import override_settings
from django.utils import timezone

from runs.models import Run
from tests.factories_pages import client_of
from tests.factories_resources import join
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.audit import Refusal, TooMany
from workspaces.ids import first_at, uuid7

pytestmark = pytest.mark.django_db(transaction=True)
BODY = {"benchmark_id": "accuracy", "agent_id": "worker", "dataset_ids": ["table"]}


def test_more_than_the_limit_waits_and_says_how_long() -> None:
    lab = make_laboratory()
    with lab.opened(), override_settings(LAUNCHES_A_MINUTE=3):
        launch(lab)
        launch(lab)
        with pytest.raises(Refusal):
            launch(lab, gpu_ms=10**12)  # refused ones count: each costs a decision
        with pytest.raises(TooMany, match=r"has asked for 3 runs within a minute, and may ask for 3\. Wait \d+ s"):
            launch(lab)
        answer = client_of(lab.owner).post("/api/v1/workspaces/lab/runs", BODY, content_type="application/json")
        assert answer.status_code == 429
        assert 1 <= int(answer["Retry-After"]) <= 60
        assert Run.objects.count() == 2
        other = Laboratory(lab.workspace, join(lab.owner, "other"))
        launch(other)


def test_the_smallest_key_of_a_moment_is_smaller_than_those_made_then() -> None:
    now = timezone.now()
    assert first_at(now - timedelta(seconds=1)) < uuid7() < first_at(now + timedelta(minutes=1))
