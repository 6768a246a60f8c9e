"""The list and the page of a policy say how much of its limit is used, by the count that it is held to, and what waits of it."""

import html
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from labsite.owner import as_owner
from runs.checks.policy_facts import facts_for
from runs.commands.decision import decide_now
from runs.models import Promotion
from runs.policy.document import read_policy
from runs.policy.facts import Cause
from runs.queries.policy import policy_rows, with_use
from tests.factories_pages import HOSTILE, client_of
from tests.factories_promotions import make_candidate
from tests.factories_registry import make_agent_version
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.factories_submissions import finish
from tests.runs.test_policy import DOCUMENT, approved, tick
from workspaces.models import Approval

pytestmark = pytest.mark.django_db(transaction=True)
UP = "it acts no more until a version allows more"


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory(weekly_gpu_hours=1000, at_once=4)


def pages_of(laboratory: Laboratory, slug: str) -> list[str]:
    client = client_of(laboratory.owner)
    return [html.unescape(client.get(f"/workspaces/lab/policies/{path}").content.decode()) for path in ("", f"{slug}/")]


def test_a_limit_that_is_used_up_is_told_and_is_the_one_that_it_is_held_to(laboratory: Laboratory) -> None:
    told = {"trigger": {"on": "manual"}, "action": {"do": "notify", "words": "x"}, "limits": {"decisions": 2}}
    with laboratory.opened():
        policy = approved(laboratory, told, slug="tell")
        version = policy.versions.get()
    for used in (0, 1, 2):
        for page in pages_of(laboratory, "tell"):
            assert f"{used} of 2 decisions used" in page
            assert (UP in page, "its limit is used up" in page) == (used == 2, used == 2)
        with laboratory.opened():
            facts = facts_for(version, read_policy(version.document), Cause("person", policy.pk, "Ada"), timezone.now())
            [row] = with_use(policy_rows())
            assert facts.acted == row.use.used == used
            decided = decide_now(actor=laboratory.owner, policy=policy)
        assert decided.outcome == ("limited" if used == 2 else "acts")
        tick(laboratory)


def test_what_waits_of_each_policy_is_named_with_a_link_in_one_query_for_all(laboratory: Laboratory) -> None:
    forward = {"trigger": {"on": "evaluation_scored", "benchmark": "accuracy"}, "action": {"do": "promote", "name": "champion"}}
    asks = {"trigger": {"on": "manual"}, "action": {"do": "ask", "question": f"{HOSTILE}?"}}
    with laboratory.opened():
        approved(laboratory, forward, slug="forward")
        quiet = approved(laboratory, DOCUMENT | {"conditions": []}, slug="quiet")
        make_agent_version(laboratory.owner, "judge", code=b"print('judge')\n", kind="evaluate")
        model = make_candidate(laboratory)
        for number, value in enumerate((0.8, 0.82)):
            finish(launch(laboratory, agent="judge", artifacts=(model.pk.hex,), datasets=(), name=f"judged-{number}"), value)
        asking = approved(laboratory, asks, slug="asks")
        for _ in range(4):
            decide_now(actor=laboratory.owner, policy=asking)
    tick(laboratory)
    with laboratory.opened():
        request = Approval.objects.get(subject_id=Promotion.objects.get().pk)
        with CaptureQueriesContext(
            connection,
        ) as before:
            rows = {row.policy.slug: row for row in with_use(policy_rows())}
        assert [asked.pk for asked in rows["forward"].use.requests] == [request.pk]
        assert (rows["asks"].use.waiting, len(rows["asks"].use.requests), rows["asks"].use.more) == (4, 3, 1)
        assert rows["quiet"].use.waiting == 0
        decide_now(actor=laboratory.owner, policy=quiet)
    for page in pages_of(laboratory, "forward"):
        assert "1 request waits for a person" in page
        assert f"/workspaces/lab/approvals/{request.public_id}/" in page
    listed = client_of(laboratory.owner).get("/workspaces/lab/policies/").content.decode()
    assert re.search(r"4 requests wait for a person.*1 more</a>", listed, re.DOTALL)
    assert "<script>alert" not in listed
    with laboratory.opened():
        for slug in ("other", "another"):
            approved(laboratory, asks, slug=slug)
        with CaptureQueriesContext(connection) as after:
            with_use(policy_rows())
        assert len(after) == len(before), "not one more for two policies more"
        with as_owner():
            Approval.objects.filter(pk=request.pk).update(expires_at=timezone.now())
        assert not next(row for row in with_use(policy_rows()) if row.policy.slug == "forward").use.waiting
