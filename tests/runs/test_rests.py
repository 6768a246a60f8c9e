"""What rests on artifacts, told one by one and as a condition."""

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from runs.commands.artifact import delete_artifact, set_artifact_days
from runs.commands.export import request_export
from runs.commands.sweep import create_sweep
from runs.jobs import tidy
from runs.models import Artifact
from runs.queries.rests import SOURCES
from tests.factories_pages import add_artifact, copy_runs, score_runs
from tests.factories_promotions import add_input, make_candidate, propose
from tests.factories_registry import make_agent_version
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.runs.test_artifact_life import SYSTEM, fresh, make, pass_days
from tests.runs.test_sweep import GRID, REQUEST, SCHEMA
from workspaces.audit import Refusal
from workspaces.models import EventPayload
from workspaces.verbs import Verb


@pytest.fixture
def opened(db: None) -> Iterator[Laboratory]:
    laboratory = make_laboratory()
    with laboratory.opened():
        yield laboratory


def test_what_anything_rests_on_does_not_stand_in_the_way_of_the_others(opened: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of thing that holds an artifact, as it is told and as a condition: the old ones that are held fill no batch."""
    scored, sampled, read, swept, parent = (make(opened, name) for name in (b"scored", b"samples", b"read", b"swept", b"parent"))
    promoted = make_candidate(opened)
    propose(opened.owner, promoted)
    add_input(actor=opened.owner, run=promoted.run, artifact=parent)  # the run has ended: what it made is promoted, and was made of this
    (judge,) = copy_runs(actor=opened.owner, pattern=scored.run, count=1, kind="evaluate")
    score_runs(actor=opened.owner, scores={judge: (0.5, None)}, subject_artifact=scored, samples_artifact=sampled)
    launch(opened, artifacts=(read.public_id,))
    make_agent_version(opened.owner, slug="sweeper", parameter_schema=SCHEMA, wall_seconds=60)
    create_sweep(actor=opened.owner, name="rates", space=GRID, request=replace(REQUEST, artifacts=(swept.public_id,)))
    plain = make(opened, b"plain")
    games = add_artifact(actor=opened.owner, run=judge, path="games.json", content=b"{}", kind="pairs")
    unscored = add_artifact(actor=opened.owner, run=scored.run, path="unscored.json", content=b"[]", kind="pairs")
    assert held_alike() >= {scored.pk, sampled.pk, read.pk, swept.pk, promoted.pk, parent.pk, games.pk}
    assert not held_alike() & {plain.pk, unscored.pk}
    with pytest.raises(Refusal, match=r"Ratings on .* rest on it: it holds games that run-"):
        delete_artifact(actor=opened.owner, artifact=games, reason="Room.")
    set_artifact_days(actor=opened.owner, days={"file": 30, "pairs": 30}, reason="Room.")
    monkeypatch.setattr(tidy, "AT_ONCE", 1)
    pass_days(monkeypatch, 31)
    for _ in range(2):
        tidy.tidy_artifacts(SYSTEM)
    assert [fresh(one).deleted_at is None for one in (scored, sampled, read, swept, parent, games)] == [True] * 6
    assert [fresh(one).deleted_at is None for one in (plain, unscored)] == [False] * 2
    request_export(actor=opened.owner, files="internal", reason="To the partner.")
    assert held_alike() == set(Artifact.objects.values_list("pk", flat=True)), "an export carries them all"


def test_what_a_score_rests_on_however_many_steps_below_stays_and_what_led_to_none_goes(
    opened: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    games, opponent, stray, dead_end = (make(opened, name) for name in (b"games", b"opponent", b"stray", b"dead end"))
    training, tuning, trial = copy_runs(actor=opened.owner, pattern=games.run, count=3)
    match, rehearsal = copy_runs(actor=opened.owner, pattern=games.run, count=2, kind="evaluate")
    add_input(actor=opened.owner, run=training, artifact=games)
    first = add_artifact(actor=opened.owner, run=training, path="first.pt", content=b"first")
    add_input(actor=opened.owner, run=tuning, artifact=first)
    second = add_artifact(actor=opened.owner, run=tuning, path="second.pt", content=b"second")
    for slug, played in (("one", second), ("other", opponent)):
        add_input(actor=opened.owner, run=match, artifact=played, slug=slug)
    add_input(actor=opened.owner, run=trial, artifact=dead_end)
    add_artifact(actor=opened.owner, run=trial, path="trial.pt", content=b"of which nothing came")
    add_input(actor=opened.owner, run=rehearsal, artifact=stray)
    score_runs(actor=opened.owner, scores={match: (0.5, None)}, subject_artifact=second)
    with pytest.raises(Refusal, match=r"A score rests on it: accuracy 0\.5"):
        delete_artifact(actor=opened.owner, artifact=games, reason="Room.")
    set_artifact_days(actor=opened.owner, days={"file": 30}, reason="Room.")
    monkeypatch.setattr(tidy, "AT_ONCE", 3)
    pass_days(monkeypatch, 31)
    for _ in range(40):  # of those that were read, three at a time by chance
        tidy.tidy_artifacts(SYSTEM)
    assert [fresh(one).deleted_at is None for one in (games, first, opponent, second)] == [True] * 4
    assert [fresh(one).deleted_at is None for one in (stray, dead_end)] == [False] * 2
    assert Artifact.objects.get(path="trial.pt").deleted_at is not None


def test_what_a_score_has_come_to_rest_on_since_it_was_deleted_is_back_and_no_other_waits_for_it(
    opened: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    games, plain = make(opened, b"games"), make(opened, b"plain")
    (training,) = copy_runs(actor=opened.owner, pattern=games.run, count=1)
    add_input(actor=opened.owner, run=training, artifact=games)
    for artifact in (games, plain):
        delete_artifact(actor=opened.owner, artifact=artifact, reason="Room.")
    model = add_artifact(actor=opened.owner, run=training, path="model.pt", content=b"model")
    (match,) = copy_runs(actor=opened.owner, pattern=games.run, count=1, kind="evaluate")
    add_input(actor=opened.owner, run=match, artifact=model)
    score_runs(actor=opened.owner, scores={match: (0.5, None)}, subject_artifact=model)
    pass_days(monkeypatch, 8)
    tidy.tidy_artifacts(SYSTEM)
    assert (fresh(games).deleted_at, fresh(games).removed_at) == (None, None)
    assert fresh(plain).removed_at is not None
    told = EventPayload.objects.get(event__verb=Verb.ARTIFACT_RESTORED, event__subject_id=games.pk)
    assert told.body["reason"].startswith("A score rests on it: accuracy 0.5")


def held_alike() -> set[uuid.UUID]:
    """Artifacts that are held, of which each source says one by one what it says as a condition."""
    artifacts = list(Artifact.objects.all())
    found: set[uuid.UUID] = set()
    for source in SOURCES:
        listed = {one.artifact_id for one in source.told(artifacts, {artifact.pk for artifact in artifacts})}
        assert set(Artifact.objects.filter(source.holds()).values_list("pk", flat=True)) == listed
        found |= listed
    return found
