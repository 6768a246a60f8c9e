"""The trace of a promotion: steps in order for any laboratory, and each link that is gone is said where it was."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from labsite.owner import as_owner
from runs.checks.candidate import candidate_of
from runs.checks.data import nothing_unsaid
from runs.eligibility import Fact, Verdict
from runs.models import Artifact, Promotion, Run, RunInput
from runs.queries.trace import Trace, find_traced, trace_of
from tests.factories import make_member
from tests.factories_pages import client_of
from tests.factories_promotions import add_promotion
from tests.factories_runs import Laboratory, make_laboratory
from tests.runs.story import live_story, make_story_laboratory
from workspaces import scope
from workspaces.access import Kind, Permission, Rights, Role, rights_of
from workspaces.models import DatasetVersion

pytestmark = pytest.mark.django_db(transaction=True)
HOLDS = Fact("score", "Measured", Verdict.PASS, "0.75", "a score")


@pytest.fixture
def laboratory() -> Laboratory:
    return make_story_laboratory()


@pytest.fixture
def runs(laboratory: Laboratory) -> dict[str, Run]:
    return live_story(laboratory)


def promoted(laboratory: Laboratory, facts: list[Fact] | None = None) -> Promotion:
    with laboratory.opened():
        artifact = Artifact.objects.get(kind="checkpoint")
        made = add_promotion(
            actor=laboratory.owner, artifact=artifact, name="champion", reason="It leads", facts=[HOLDS] if facts is None else facts
        )
        return find_traced(made.pk.hex)


def traced(laboratory: Laboratory, promotion: Promotion) -> Trace:
    with laboratory.opened():
        return trace_of(promotion, rights_of(laboratory.owner, laboratory.workspace.pk), laboratory.workspace.slug)


def test_it_leads_from_a_promotion_through_runs_and_windows_to_what_nobody_made(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    trace = traced(laboratory, promoted(laboratory))
    assert [step.title for step in trace.steps] == [
        "Put forward", "Decided by", "Gates", "Measured", "Trained", "Learnt from", "Made the data", "Sources",
    ]  # fmt: skip
    steps = {step.title: step.items for step in trace.steps}
    assert [item.label for item in steps["Trained"]] == ["trainer <i>"]
    assert [item.label for item in steps["Learnt from"]] == ["Self-play, window 1, version 1"]
    assert [item.label for item in steps["Made the data"]] == ["player <i>"]
    assert [item.label for item in steps["Sources"]] == ["table, version 1"]
    assert "0.75" in steps["Measured"][0].label
    assert all(item.who and item.when for title in ("Trained", "Made the data", "Measured") for item in steps[title])


def test_a_run_that_has_lost_what_it_read_breaks_the_chain_and_nothing_of_it_is_eligible(
    laboratory: Laboratory, runs: dict[str, Run]
) -> None:
    promotion = promoted(laboratory)
    with laboratory.opened():
        assert nothing_unsaid(candidate_of(promotion.artifact, "champion")).observed != "1 link gone"
    with as_owner(), scope.open_workspace(laboratory.workspace.pk):
        RunInput.objects.filter(run=runs["trainer"], dataset_version__isnull=False).delete()
    trace = traced(laboratory, promotion)
    assert not trace.is_whole
    [(number, item)] = [(number, item) for number, item in trace.gaps if item.label == "trainer <i>"]
    assert trace.steps[number - 1].title == "Trained"
    assert "The link to what it read is gone: self-play-window-1" in item.words
    with laboratory.opened():
        fact = nothing_unsaid(candidate_of(promotion.artifact, "champion"))
    assert (fact.verdict, fact.observed) == (Verdict.FAIL, "1 link gone")
    assert "trainer <i> has lost self-play-window-1" in fact.words


def test_a_link_far_below_counts_like_one_nearby(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    with as_owner(), scope.open_workspace(laboratory.workspace.pk):
        RunInput.objects.filter(run=runs["player"]).delete()
    promotion = promoted(laboratory)
    assert "player <i>" in [item.label for _, item in traced(laboratory, promotion).gaps]
    with laboratory.opened():
        assert nothing_unsaid(candidate_of(promotion.artifact, "champion")).verdict is Verdict.FAIL


def test_what_is_not_on_record_is_said_and_not_left_out(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    whole = promoted(laboratory)
    with as_owner(), scope.open_workspace(laboratory.workspace.pk):
        DatasetVersion.objects.filter(dataset__slug="table").update(source="")
    gaps = {item.label for _, item in traced(laboratory, whole).gaps}
    assert "table, version 1" in gaps, "nobody said where it is from"
    assert "No check is on record" in {item.label for _, item in traced(laboratory, promoted(laboratory, facts=[])).gaps}
    failing = promoted(laboratory, facts=[HOLDS, replace(HOLDS, key="licence", name="Licence", verdict=Verdict.FAIL)])
    assert any(item.label.startswith("1 of 2 checks hold") for _, item in traced(laboratory, failing).gaps)


def test_a_reader_who_may_not_see_runs_is_told_that_there_are_some(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    promotion = promoted(laboratory)
    with laboratory.opened():
        narrowed = Rights({Permission.VIEW: frozenset({Kind.ARTIFACT})})
        trace = trace_of(promotion, narrowed, laboratory.workspace.slug)
    labels = [item.label for step in trace.steps for item in step.items]
    assert "a run" in labels
    assert not any("trainer" in f"{item.label} {item.words}" for step in trace.steps for item in step.items)


def test_statements_do_not_grow_with_the_chain_and_another_workspace_finds_nothing(laboratory: Laboratory, runs: dict[str, Run]) -> None:
    promotion = promoted(laboratory)
    with CaptureQueriesContext(connection) as asked:
        traced(laboratory, promotion)
    assert len(asked) < 60
    other = make_laboratory("other")
    assert client_of(other.owner).get(f"/workspaces/other/promotions/{promotion.public_id}/trace/").status_code == 404
    outsider = client_of(make_member(other.workspace, Role.OWNER))
    here = laboratory.workspace.slug
    assert outsider.get(f"/workspaces/{here}/promotions/{promotion.public_id}/trace/").status_code == 404
    page = client_of(laboratory.owner).get(f"/workspaces/{here}/promotions/{promotion.public_id}/trace/").content.decode()
    assert "trainer &lt;i&gt;" in page
