"""Decisions, imports and people in the lineage: who asked, who decided, and where what was brought in is from."""

import json
import re

import pytest
from django.test import Client
from django.utils import timezone
from prov.model import ProvActivity, ProvDocument

from labsite.owner import as_owner
from runs.commands.approval import decide_approval
from runs.models import DatasetImport, Decision, Policy, PolicyVersion, Run, Sweep
from runs.queries.lineage import MOST_NODES, Lineage, Node, Way, walk
from runs.queries.lineage_edges import ASKED, CONTENT, DECIDED, NodeKind, Relation
from runs.queries.lineage_nodes import describe
from tests.factories import make_member, make_user
from tests.factories_pages import add_artifact, client_of, copy_runs
from tests.factories_promotions import make_candidate, propose, score_of
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.access import Actor, Kind, rights_of
from workspaces.commands.member import add_member, remove_member
from workspaces.models import Benchmark, Contract, DatasetVersion, Membership

pytestmark = pytest.mark.django_db(transaction=True)
K, R = NodeKind, Relation
HERE = "/workspaces/lab"


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory()


def person_of(actor: Actor) -> Node:
    assert actor.user
    return Node(K.PERSON, actor.user.pk)


def ends(found: Lineage, later: Node) -> set[tuple[Relation, Node, str]]:
    return {(link.relation, link.earlier, link.role) for link in found.links if link.later == later}


def test_a_promotion_names_what_was_put_forward_who_asked_and_who_decided(laboratory: Laboratory) -> None:
    approver = make_member(laboratory.workspace, "approver")
    with laboratory.opened():
        artifact = make_candidate(laboratory)
        promotion, approval = propose(laboratory.owner, artifact)
        decide_approval(actor=approver, approval=approval, approves=True, comment="", seen_hash=approval.content_hash)
        score = score_of(artifact)
        node, request = Node(K.PROMOTION, promotion.pk), Node(K.APPROVAL, approval.pk)
        below = walk([Node(K.EVALUATION, score.pk)], Way.DOWN)
        found = walk([node], Way.UP)
        content = walk([Node(K.RUN, artifact.run_id)], Way.DOWN, along=CONTENT)
        told = describe([request], rights_of(laboratory.owner, laboratory.workspace.pk), "lab")[request]
    assert approver.user is not None
    assert told.by == approver.user.label, "who decided, not who asked"
    assert ends(found, node) == {
        (R.INFLUENCED_BY, Node(K.ARTIFACT, artifact.pk), ""),
        (R.INFLUENCED_BY, Node(K.EVALUATION, score.pk), ""),
        (R.INFORMED_BY, request, ""),
        (R.ASSOCIATED_WITH, person_of(laboratory.owner), ASKED),
        (R.ASSOCIATED_WITH, person_of(approver), DECIDED),
    }
    assert ends(found, request) == {
        (R.ASSOCIATED_WITH, person_of(laboratory.owner), ASKED),
        (R.ASSOCIATED_WITH, person_of(approver), DECIDED),
    }
    assert node in below.distance
    assert node not in content.distance  # a withdrawal suspends it by its artifact, and marks nothing that was decided
    browser = client_of(laboratory.owner)
    page = browser.get(f"{HERE}/promotions/{promotion.public_id}/").content.decode()
    lineage = f"{HERE}/promotions/{promotion.public_id}/lineage/"
    assert f'href="{lineage}"' in page
    shown = browser.get(lineage).content.decode()
    assert "asked for by" not in shown  # the far end is what a row tells of
    assert f"{HERE}/approvals/{approval.public_id}/" in shown
    written = browser.get(f"/api/v1/workspaces/lab/lineage/promotion/{promotion.public_id}").json()
    document = ProvDocument.deserialize(content=json.dumps(written), format="json")
    activities = {str(activity.identifier) for activity in document.get_records(ProvActivity)}
    assert {f"item:{promotion.public_id}", f"item:{approval.public_id}"} <= activities
    roles = {edge["prov:role"] for edge in written["wasAssociatedWith"].values() if edge["prov:activity"] == f"item:{promotion.public_id}"}
    assert roles == {ASKED, DECIDED}


def test_an_import_and_a_copied_benchmark_name_their_source_and_their_people(laboratory: Laboratory) -> None:
    with laboratory.opened():
        run = launch(laboratory)
        version = DatasetVersion.objects.get(dataset__slug="table")
        contract = Contract.objects.select_related("benchmark").get(pk=run.contract_id)
        benchmark = Benchmark.objects.get(pk=contract.benchmark_id)
    owner = laboratory.owner.user
    assert owner
    source = {"workspace": "Elsewhere", "benchmark": "Their <b>nch</b>", "workspace_id": "w", "benchmark_id": "b"}
    with as_owner(), laboratory.opened():
        brought = DatasetImport.objects.create(
            dataset_id=version.dataset_id, version=version, role=version.role, sources=[], source="https://data.example/<table>.csv",
            status=DatasetImport.Status.DONE, requested_by=owner,
        )  # fmt: skip
        DatasetVersion.objects.filter(pk=version.pk).update(source=brought.source)
        Benchmark.objects.filter(pk=benchmark.pk).update(source=source)
        Contract.objects.filter(pk=contract.pk).update(source_version=1, train=version)
    with laboratory.opened():
        of_run, of_contract = walk([Node(K.RUN, run.pk)], Way.UP), walk([Node(K.CONTRACT, contract.pk)], Way.UP)
        down = walk([Node(K.DATASET_SOURCE, version.pk)], Way.DOWN)
        content = walk([Node(K.DATASET_VERSION, version.pk)], Way.DOWN, along=CONTENT)
    asked, came_from = Node(K.IMPORT, brought.pk), Node(K.DATASET_SOURCE, version.pk)
    assert ends(of_run, Node(K.DATASET_VERSION, version.pk)) == {
        (R.GENERATED_BY, asked, ""),
        (R.DERIVED_FROM, came_from, ""),
        (R.ATTRIBUTED_TO, person_of(laboratory.owner), ""),
    }
    assert ends(of_run, asked) == {(R.USED, came_from, ""), (R.ASSOCIATED_WITH, person_of(laboratory.owner), ASKED)}
    assert ends(of_contract, Node(K.CONTRACT, contract.pk)) == {
        (R.DERIVED_FROM, Node(K.BENCHMARK_SOURCE, benchmark.pk), ""),
        (R.ATTRIBUTED_TO, person_of(laboratory.owner), ""),
        (R.INFLUENCED_BY, Node(K.DATASET_VERSION, version.pk), ""),
    }
    assert Node(K.RUN, run.pk) in down.distance
    assert content.of(K.CONTRACT) == []  # what a contract names to train on is not in what it measures
    browser = client_of(laboratory.owner)
    shown = browser.get(f"{HERE}/runs/{run.public_id}/lineage/").content.decode()
    assert f"{HERE}/datasets/table/imports/{brought.public_id}/" in shown
    assert "https://data.example/&lt;table&gt;.csv" in shown
    shown = browser.get(f"{HERE}/benchmarks/accuracy/contracts/{contract.version}/lineage/").content.decode()
    assert "Their &lt;b&gt;nch&lt;/b&gt; of Elsewhere" in shown


def test_a_run_that_a_policy_launched_leads_to_the_decision_its_rule_and_who_let_it_act(laboratory: Laboratory) -> None:
    approver = make_member(laboratory.workspace, "approver")
    with laboratory.opened():
        cause, run = launch(laboratory, name="cause"), launch(laboratory, name="launched")
    owner = laboratory.owner.user
    assert owner
    with as_owner(), laboratory.opened():
        policy = Policy.objects.create(slug="next", name="Next", created_by=owner)
        version = PolicyVersion.objects.create(
            policy=policy, number=1, status=PolicyVersion.Status.ACTIVE, document={}, content_hash="0" * 64, proposed_by=owner,
            decided_by=approver.user, decided_at=timezone.now(),
        )  # fmt: skip
        decision = Decision.objects.create(
            policy=policy, version=version, number=1, cause_type="run", cause_id=cause.pk, cause_label="cause", outcome="act",
            status=Decision.Status.DONE, facts={}, checks=[], candidates=[],
        )  # fmt: skip
        sweep = Sweep.objects.create(
            name="of the policy", number=1, benchmark_id=run.benchmark_id, agent_id=run.agent_id, agent_version_id=run.agent_version_id,
            pool_id=run.pool_id, space={}, request={}, members=1, gpu_ms_each=1, requested_by=owner, decision=decision,
        )  # fmt: skip
        Run.objects.filter(pk=run.pk).update(sweep=sweep, sweep_member=1)
    with laboratory.opened():
        found = walk([Node(K.RUN, run.pk)], Way.UP)
    chain = [Node(K.RUN, run.pk), Node(K.SWEEP, sweep.pk), Node(K.DECISION, decision.pk)]
    assert [found.distance[node] for node in chain] == [0, 1, 2]
    assert ends(found, chain[2]) == {
        (R.INFLUENCED_BY, Node(K.POLICY_VERSION, version.pk), ""),
        (R.INFORMED_BY, Node(K.RUN, cause.pk), ""),
    }
    assert ends(found, Node(K.POLICY_VERSION, version.pk)) == {(R.ATTRIBUTED_TO, person_of(laboratory.owner), "")}
    links = client_of(laboratory.owner).get(f"{HERE}/runs/{run.public_id}/lineage/").content.decode()
    for page in (f"sweeps/{sweep.public_id}/", f"decisions/{decision.public_id}/", "policies/next/versions/1/"):
        assert f"{HERE}/{page}" in links
    browser, page = client_of(laboratory.owner), f"{HERE}/decisions/{decision.public_id}/"
    assert {f'href="{page}lineage/"', f'href="{page}lineage/?way=down"'} <= set(re.findall(r'href="[^"]+"', text_of(browser, page)))
    assert f"{page}lineage/?way=up" in links, "from a run's lineage one goes on"
    above, below = text_of(browser, f"{page}lineage/"), text_of(browser, f"{page}lineage/?way=down")
    assert f"{HERE}/policies/next/versions/1/" in above
    assert f"{HERE}/runs/{cause.public_id}/" in above
    assert {f"{HERE}/sweeps/{sweep.public_id}/" in below, f"{HERE}/runs/{run.public_id}/" in below} == {True}
    with as_owner(), laboratory.opened():
        idle = Decision.objects.create(
            policy=policy, version=version, number=2, cause_type="run", cause_id=run.pk, cause_label="launched", outcome="waits",
            status=Decision.Status.DONE, facts={}, checks=[], candidates=[],
        )  # fmt: skip
    assert "It launched and asked nothing" in text_of(browser, f"{HERE}/decisions/{idle.public_id}/lineage/?way=down")
    document = browser.get(f"{page}lineage/prov.json?way=down").json()
    assert document == browser.get(f"/api/v1/workspaces/lab/lineage/policy_decision/{decision.public_id}?way=down").json()
    assert {f"item:{decision.public_id}", f"item:{sweep.public_id}", f"item:{run.public_id}"} <= document["activity"].keys()


def test_a_lineage_begins_with_whoever_has_a_part_here_and_with_nobody_else(laboratory: Laboratory) -> None:
    helper, stranger = make_member(laboratory.workspace, "researcher", "helper"), make_user("stranger")
    browser, place = client_of(laboratory.owner), f"{HERE}/people/helper/lineage/"
    assert "Nothing rests on what they did" in text_of(browser, f"{place}?way=down")
    with laboratory.opened():
        (run,) = copy_runs(actor=laboratory.owner, pattern=launch(laboratory), count=1, requested_by_id=helper.user.pk)  # type: ignore[union-attr]  # a person
        made = add_artifact(actor=laboratory.owner, run=run, path="made.bin", content=b"made")
        member = Membership.objects.get(user=helper.user)
    assert f'href="{place}?way=down"' in text_of(browser, f"{HERE}/members/")
    assert f'href="{place}?way=down"' in text_of(browser, f"{HERE}/members/{member.public_id}/")
    below = text_of(browser, f"{place}?way=down")
    assert "2 things rest on what they did" in below
    assert {f"{HERE}/{one}/" in below for one in (f"runs/{run.public_id}", f"artifacts/{made.public_id}")} == {True}
    assert "A lineage begins with people" in text_of(browser, place)
    document = browser.get(f"{place}prov.json?way=down").json()
    assert document == browser.get("/api/v1/workspaces/lab/lineage/person/helper?way=down").json()
    assert [agent["prov:label"] for agent in document["agent"].values()] == [helper.label]
    with laboratory.opened():
        remove_member(actor=laboratory.owner, member=member.public_id, reason="moved on")
    assert f"{HERE}/runs/{run.public_id}/" in text_of(browser, f"{place}?way=down"), "what somebody did stays"
    for username in (stranger.username, "nobody"):
        assert browser.get(f"{HERE}/people/{username}/lineage/").status_code == 404
        assert browser.get(f"/api/v1/workspaces/lab/lineage/person/{username}").status_code == 404
    with laboratory.opened():
        add_member(actor=laboratory.owner, user=stranger, role="viewer", kinds=[Kind.RUN, Kind.POLICY])
    narrowed = client_of(Actor.of(stranger))
    assert narrowed.get(place).status_code == 403, "who may not see members"


def test_of_what_somebody_did_the_nearest_is_shown_and_that_there_is_more_is_said(laboratory: Laboratory) -> None:
    with laboratory.opened():
        copy_runs(actor=laboratory.owner, pattern=launch(laboratory), count=MOST_NODES)
    browser, place = client_of(laboratory.owner), f"{HERE}/people/{laboratory.owner.user}/lineage/"
    assert "There is more: go on from one of the last" in text_of(browser, f"{place}?way=down")
    document = browser.get(f"{place}prov.json?way=down").json()
    assert [agent["lab:complete"] for agent in document["agent"].values()] == [False]


def text_of(browser: Client, address: str) -> str:
    answer = browser.get(address)
    assert answer.status_code == 200, address
    return str(answer.content.decode())
