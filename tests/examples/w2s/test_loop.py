"""The weak-to-strong loop, closed by its policies alone: weak labels, a filter, students, their measurement, a request, a person, the next labels."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from django.conf import settings

from labsite.examples.ground import NotReady
from labsite.examples.w2s import make, plan, policies, rounds
from runs.commands.approval import decide_approval
from runs.commands.promotion import propose_promotion
from runs.commands.withdrawal import withdraw
from runs.jobs.advance import advance_sweep
from runs.jobs.decide import decide_policies
from runs.jobs.overlap import check_overlap
from runs.models import Artifact, Decision, Evaluation, Promotion, Run
from runs.queries.lineage import Node
from runs.queries.lineage_edges import NodeKind
from runs.queries.trace import find_traced, trace_of
from tests.examples.pool import linked_python
from tests.factories import make_user
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, dispatch, watch
from workspaces.access import Actor, rights_of
from workspaces.audit import Refusal
from workspaces.models import Approval, Contract, DatasetPiece, DatasetVersion, Engine, Installation, Notification, User, Workspace

pytestmark = [pytest.mark.pool, pytest.mark.django_db(transaction=True), pytest.mark.timeout(700)]
SECONDS = 240  # a bound, not a target: two processes share the machine


@pytest.fixture
def people() -> tuple[Actor, User, User]:
    Engine.objects.get_or_create(slug="local", defaults={"kind": Engine.Kind.LOCAL, "slots": 4})
    Installation.objects.get_or_create(is_current=True)
    return Actor.of(make_user("admin", User.SiteRole.CREATE_WORKSPACE)), make_user("researcher"), make_user("approver")


@pytest.fixture
def started(people: tuple[Actor, User, User], pool_python: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laboratory]:
    """The laboratory of its first start, of those runs alone that the loop begins with."""
    teacher = replace(rounds.TEACHERS[0], params=MappingProxyType({**rounds.TEACHERS[0].params, "seconds_per_epoch": 0}))
    monkeypatch.setattr(rounds, "UNTIL_FROZEN", (teacher, rounds.CEILINGS[0], rounds.FINDING))
    monkeypatch.setattr(rounds, "ONCE_FROZEN", (rounds.TEACHER_ON_DISAGREEMENT, rounds.LABELLING))
    monkeypatch.setattr(rounds, "AT_LAST", ())
    admin, researcher, approver = people
    workspace: Workspace = make.set_up(
        slug="w2s-medqa", admin=admin, researcher=researcher, approver=approver, as_root=False, say=lambda line: None
    )
    make.fill(workspace=workspace, admin=admin, python=Path(pool_python), say=lambda line: None)
    laboratory = Laboratory(workspace, admin)
    with linked_python(settings.LABSITE_RUNS, pool_python):
        deadline = time.monotonic() + SECONDS
        while not is_launched(laboratory, people):
            assert time.monotonic() < deadline, told(laboratory)
            turn(laboratory)
        yield laboratory


def is_launched(laboratory: Laboratory, people: tuple[Actor, User, User]) -> bool:
    _, researcher, approver = people
    try:
        make.start(
            workspace=laboratory.workspace, researcher=Actor.of(researcher), approver=Actor.of(approver), say=lambda line: None, seconds=0
        )
    except NotReady:
        return False
    return True


def turn(laboratory: Laboratory) -> None:
    """What labsite's own jobs do in a second."""
    key = {"workspace_id": laboratory.workspace.pk.hex, "subject_id": laboratory.workspace.pk.hex}
    decide_policies(**key)
    advance_sweep(**key)
    check_overlap(**key)
    dispatch(laboratory)
    watch(laboratory)


def until(laboratory: Laboratory, count: int) -> list[Promotion]:
    """Turns until so many promotions wait or were decided on, and nothing is under way any more."""
    deadline = time.monotonic() + SECONDS
    while True:
        turn(laboratory)
        with laboratory.opened():
            found = list(Promotion.objects.order_by("number"))
            busy = Run.objects.filter(ended_at=None).exists() or Decision.objects.filter(status="acting").exists()
            if len(found) >= count and not busy:
                return found
        assert time.monotonic() < deadline, told(laboratory)


def test_the_loop_runs_by_itself_to_a_request_and_on_from_the_persons_decision(
    started: Laboratory, people: tuple[Actor, User, User]
) -> None:
    approver = Actor.of(people[2])
    asked_for = until(started, 1)
    with started.opened():
        assert [(row.status, row.artifact.run.agent.slug) for row in asked_for] == [("proposed", plan.STRONG_B.slug)], (
            "A is badly calibrated"
        )
        by_people = set(Run.objects.filter(trigger="person").values_list("name", flat=True))
        started_by_hand = (rounds.TEACHERS[0], rounds.CEILINGS[0], rounds.FINDING, rounds.TEACHER_ON_DISAGREEMENT, rounds.LABELLING)
        assert by_people == {run.key for run in started_by_hand}
        frozen = DatasetVersion.objects.get(dataset__slug=plan.DISAGREEMENT.slug)
        assert (frozen.role, frozen.number) == (DatasetVersion.Role.HOLDOUT, 1)
        assert frozen.source_artifact_id is not None
        assert Artifact.objects.get(pk=frozen.source_artifact_id).run.name == plan.DISAGREEMENT.made_by
        assert Contract.objects.get(benchmark__slug=plan.ON_DISAGREEMENT.slug).holdout_id == frozen.pk
        piece = DatasetPiece.objects.get(dataset__slug=plan.WEAK_LABELS.slug)
        assert piece.made_by_run_id == Run.objects.get(name=rounds.LABELLING.key).pk
        assert piece.window is not None
        assert piece.window.slug == plan.WEAK_LABELS.first_window
        students = Run.objects.filter(agent__slug__startswith="strong-candidate", trigger="policy")
        assert {run.agent.slug for run in students} == {plan.STRONG_A.slug, plan.STRONG_B.slug}
        assert all(run.created_at > frozen.created_at and run.parameters["frozen_set"] == frozen.content_hash for run in students)
        judged = Run.objects.get(agent__slug=plan.JUDGE.slug)
        read = {entry.dataset_version.dataset.slug for entry in judged.inputs.all() if entry.dataset_version is not None}
        assert {plan.RUBRIC.slug, plan.RULE.slug, plan.HOLDOUT, plan.DISAGREEMENT.slug} < read
        verdicts = Artifact.objects.get(run=judged, kind="verdicts").metadata
        rule = DatasetVersion.objects.get(dataset__slug=plan.RULE.slug)
        assert sum(int(verdicts[name]) for name in ("trusted", "waits", "held_out")) == plan.STUDENT_RECORDS
        assert int(verdicts["waits"]) > 0
        assert verdicts["rule_sha256"] == rule.content_hash
        assert Notification.objects.filter(words__contains="wait for a person").exists(), "and a person hears of what is left"
        best = max(asked_for, key=lambda row: row.evaluation.value if row.evaluation else 0)
        assert best.evaluation is not None
        asked = Approval.objects.get(subject_id=best.pk)
        decide_approval(actor=approver, approval=asked, approves=True, comment="It passes every check", seen_hash=asked.content_hash)
    with started.opened():
        assert Promotion.objects.get(pk=best.pk).decided_by == approver.user
    deadline = time.monotonic() + SECONDS
    while not second_round(started):
        assert time.monotonic() < deadline, told(started)
        turn(started)
    until(started, 1)
    with started.opened():
        assert Promotion.objects.count() == 1, "none of the second round is better, so nobody is asked and the loop has ended"
        barred = Decision.objects.filter(policy__slug=policies.PROMOTE.slug).latest("number")
        assert barred.outcome == "barred"
        assert {entry["key"] for entry in barred.checks} == {entry["check"] for entry in policies.GATE}
        labelled = Run.objects.get(agent__slug=plan.WEAK_LABELER.slug, trigger="policy")
        assert [entry.artifact for entry in labelled.inputs.exclude(artifact=None)] == [best.artifact]
        assert not Run.objects.exclude(status="succeeded").exclude(ended_at=None).exists(), told(started)

    leads_from_people_to_sources(started, people, best)
    without_one_link_it_is_refused(started, people)


def leads_from_people_to_sources(laboratory: Laboratory, people: tuple[Actor, User, User], promoted: Promotion) -> None:
    """The trace of what was promoted, as API and page tell it."""
    reader = people[2]
    told = client_of(Actor.of(reader)).get(f"/api/v1/workspaces/w2s-medqa/promotions/{promoted.public_id}/trace").json()
    assert (told["whole"], told["gaps"]) == (True, 0), told
    titles = [step["title"] for step in told["steps"]]
    assert titles == [
        "Promoted", "Decided by", "Gates", "Measured", "Trained", "Learnt from", "Filtered", "Chosen from", "Made with a model",
        "The model", "Trained",
        "Sources",
    ]  # fmt: skip
    said = {
        step["title"]: " ".join(f"{item['label']} {item['url']} {item['who']} {item['words']}" for item in step["items"])
        for step in told["steps"][:9]
    }
    assert "Approver approved it" in said["Decided by"]
    assert policies.PROMOTE.name in said["Gates"]
    assert plan.ACCURACY.name in said["Measured"]
    assert plan.ON_DISAGREEMENT.name in said["Measured"]
    assert plan.PROMOTIONS.first_window in said["Learnt from"]
    assert "wait for a person" in said["Filtered"]
    assert plan.DISAGREEMENT.name in said["Filtered"]
    sources = {item["url"].split("/")[4] for item in told["steps"][-1]["items"]}
    assert sources == {plan.TRAIN, plan.VALIDATION, plan.STUDENT_TRAIN, plan.RUBRIC.slug, plan.RULE.slug}
    page = client_of(Actor.of(reader)).get(f"/workspaces/w2s-medqa/promotions/{promoted.public_id}/trace/")
    text = page.content.decode()
    assert page.status_code == 200
    for step in told["steps"]:
        for item in step["items"]:
            assert item["url"] in text
    for address in {item["url"] for step in told["steps"] for item in step["items"] if item["url"]}:
        assert client_of(Actor.of(reader)).get(address).status_code == 200, address


def without_one_link_it_is_refused(laboratory: Laboratory, people: tuple[Actor, User, User]) -> None:
    """The weak labels are withdrawn: what rests on them is suspended, its trace says where it broke, and nothing of it is put forward."""
    admin, approver = people[0], Actor.of(people[2])
    with laboratory.opened():
        version = DatasetVersion.objects.get(dataset__slug=plan.WEAK_LABELS.first_window)
        subject = Node(NodeKind.DATASET_VERSION, version.pk)
        withdraw(actor=admin, subject=subject, label=version.label, reason="The teacher had read the wrong column")
        standing = Promotion.objects.get(status="promoted")
        trace = trace_of(find_traced(standing.pk.hex), rights_of(approver, laboratory.workspace.pk), "w2s-medqa")
        assert not trace.is_whole
        assert any(plan.WEAK_LABELS.first_window in item.url and "wrong column" in item.words for _, item in trace.gaps)
        rejected = Artifact.objects.filter(run__agent__slug=plan.STRONG_A.slug, run__trigger="policy", kind="model").earliest("created_at")
        with pytest.raises(Refusal, match="withdrawn: The teacher had read the wrong column"):
            propose_promotion(actor=admin, artifact=rejected, name="another", reason="All the same")
    assert "Broken:" in client_of(approver).get(f"/workspaces/w2s-medqa/promotions/{standing.public_id}/trace/").content.decode()


def second_round(laboratory: Laboratory) -> bool:
    """Whether students of the second round are measured, too."""
    with laboratory.opened():
        return Evaluation.objects.filter(benchmark__slug=plan.ACCURACY.slug, run__trigger="policy").count() >= 4


def told(laboratory: Laboratory) -> str:
    with laboratory.opened():
        runs = [(run.name, run.status, run.reason[:300]) for run in Run.objects.order_by("number")]
        decisions = [
            (str(row.policy), row.number, row.outcome, row.status, row.words[:300], row.failure[:300])
            for row in Decision.objects.select_related("policy")
        ]
    return f"{runs}\n{decisions}"
