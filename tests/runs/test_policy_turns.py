"""What a policy does in its turn: once, within its limits, at what is on record at that moment, and never long after it was decided."""

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from labsite.owner import as_owner
from runs.checks import policy_facts
from runs.checks.policy_facts import facts_for
from runs.commands.decision import decide_now, record_asked
from runs.commands.policy import create_policy, pause_policy, propose_version, resume_policy
from runs.commands.run import cancel_run
from runs.commands.withdrawal import withdraw
from runs.jobs.decide import decide_policies
from runs.models import Decision, PolicyVersion, Run, Sweep
from runs.policy.decide import decide
from runs.policy.document import read_policy
from runs.policy.facts import Cause, Facts, facts_from
from runs.policy.starters import STARTERS
from runs.queries.withdrawal import find_subject
from tests.factories_pages import client_of, copy_runs
from tests.factories_runs import Laboratory, drive, launch, make_laboratory
from tests.runs.test_policy import DOCUMENT, LEARNER, approved, approver, tick
from workspaces.audit import Refusal
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import import_dataset_version
from workspaces.models import DatasetVersion

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory(code=LEARNER, weekly_gpu_hours=1000, at_once=4)


def test_a_policy_that_tells_of_a_score_looks_at_the_board_that_its_trigger_names(laboratory: Laboratory) -> None:
    reached = STARTERS["tell-when-reached"]
    with laboratory.opened():
        approved(laboratory, reached, slug="tell")
        first = launch(laboratory, parameters={"rate": 0.1, "epochs": 1})
    drive(laboratory, first)
    tick(laboratory)
    with laboratory.opened():
        assert Decision.objects.get().outcome == "holds", "0.55 is not 0.9"
        second = launch(laboratory, parameters={"rate": 0.3, "epochs": 4})
    drive(laboratory, second)
    tick(laboratory)
    with laboratory.opened():
        assert Decision.objects.latest("number").outcome == "acts"
        nowhere = create_policy(actor=laboratory.owner, slug="nowhere", name="nowhere")
        with pytest.raises(Refusal, match="conditions, 1: best_score looks at the results of a benchmark; name it in the trigger"):
            propose_version(actor=laboratory.owner, policy=nowhere, document=reached | {"trigger": {"on": "manual"}}, reason="x")


def test_what_was_decided_and_not_done_is_not_done_after_a_pause_or_a_day(laboratory: Laboratory) -> None:
    key = laboratory.workspace.pk.hex
    with laboratory.opened():
        policy = approved(laboratory)
        decide_now(actor=laboratory.owner, policy=policy)
        pause_policy(actor=laboratory.owner, policy=policy, reason="Wait")
    decide_policies(workspace_id=key, subject_id=key)
    with laboratory.opened():
        assert Decision.objects.get().failure == "The policy was paused before it acted."
        resume_policy(actor=approver(laboratory), policy=policy, reason="Go on")
        old = decide_now(actor=laboratory.owner, policy=policy)
        with as_owner():
            Decision.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=2))
    decide_policies(workspace_id=key, subject_id=key)
    with laboratory.opened():
        assert "things are not as they were" in Decision.objects.get(pk=old.pk).failure
        assert not Sweep.objects.exists()


def test_two_who_ask_at_once_are_one_act_under_a_limit_of_one(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = approved(laboratory, DOCUMENT | {"limits": {"decisions": 1}, "conditions": []})
        [version] = policy.versions.all()
        read = read_policy(version.document)
        causes = [Cause("person", uuid.UUID(int=number), "Ada") for number in (1, 2)]
        seen = [facts_for(version, read, cause, timezone.now()) for cause in causes]  # both look before either is on record
        record_asked(actor=laboratory.owner, version=version, cause=causes[0], facts=seen[0], decided=decide(read, seen[0]))
        with pytest.raises(Refusal, match="has acted this moment"):
            record_asked(actor=laboratory.owner, version=version, cause=causes[1], facts=seen[1], decided=decide(read, seen[1]))
        assert Decision.objects.count() == 1


def test_a_form_that_is_sent_twice_asks_once(laboratory: Laboratory) -> None:
    with laboratory.opened():
        approved(laboratory, DOCUMENT | {"conditions": []})
    client, address = client_of(laboratory.owner), "/workspaces/lab/policies/next-sweep/decide/"
    key = re.search(r'name="once" value="([0-9a-f]{32})"', client.get(address).content.decode())
    assert key is not None
    answers = [client.post(address, {"once": key[1]}) for _ in range(2)]
    assert answers[0]["Location"] == answers[1]["Location"]
    with laboratory.opened():
        assert Decision.objects.count() == 1


def test_a_policy_reads_the_newest_version_that_nobody_has_withdrawn(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = approved(laboratory, DOCUMENT | {"conditions": []})
        [version] = policy.versions.all()
        cause, read = Cause("person", uuid.uuid4(), "Ada"), read_policy(version.document)
        [first] = DatasetVersion.objects.filter(dataset__slug="table")
        files = [receive_file("table.csv", [b"other,rows\n1,2\n"])]
        second = import_dataset_version(actor=laboratory.owner, dataset=first.dataset, role="train", files=files)
        assert facts_for(version, read, cause, timezone.now()).datasets[0]["id"] == second.pk.hex
        node, label = find_subject("dataset_version", second.public_id)
        withdraw(actor=laboratory.owner, subject=node, label=label, reason="Mislabelled")
        assert facts_for(version, read, cause, timezone.now()).datasets[0]["id"] == first.pk.hex


def test_no_more_runs_of_a_policy_are_under_way_than_it_may_have_at_once(laboratory: Laboratory) -> None:
    with laboratory.opened():
        decide_now(
            actor=laboratory.owner,
            policy=approved(laboratory, DOCUMENT | {"limits": {"runs_at_once": 3, "decisions": 5}, "conditions": []}),
        )
    tick(laboratory)
    with laboratory.opened():
        assert Run.objects.count() == 3, "of 4"
        address = f"/workspaces/lab/sweeps/{Sweep.objects.get().public_id}/"
        waits = "1 member of 4 is still to be launched. Its policy may have 3 runs under way at once (version 1) and has 3."
        assert waits in client_of(laboratory.owner).get(address).content.decode()
        cancel_run(actor=laboratory.owner, run=Run.objects.earliest("number"))
    tick(laboratory)
    with laboratory.opened():
        assert Run.objects.count() == 4
        assert Run.objects.exclude(status="cancelled").count() == 3
    assert "still to be launched" not in client_of(laboratory.owner).get(address).content.decode()


def test_what_a_sweep_has_still_to_launch_counts_as_spent(laboratory: Laboratory) -> None:
    with laboratory.opened():
        policy = approved(laboratory, DOCUMENT | {"action": {**DOCUMENT["action"], "gpu_hours_each": 2}, "conditions": []})
        decide_now(actor=laboratory.owner, policy=policy)
        [version] = policy.versions.all()
    key = laboratory.workspace.pk.hex
    decide_policies(workspace_id=key, subject_id=key)
    with laboratory.opened():
        assert not Run.objects.exists()
        known = facts_for(version, read_policy(version.document), Cause("person", uuid.uuid4(), "Ada"), timezone.now())
        assert known.spent_gpu_ms == known.spent_week_gpu_ms == 4 * 2 * 3_600_000


def test_one_bad_row_keeps_no_other_policy_from_its_turn(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    tells = {"trigger": {"on": "run_ended"}, "conditions": [], "action": {"do": "notify", "words": "A run has ended."}}
    with laboratory.opened():
        broken, _ = approved(laboratory, tells, slug="broken"), approved(laboratory, tells, slug="tell")
        run = launch(laboratory, parameters={"rate": 0.1, "epochs": 1})
    drive(laboratory, run)

    def falls(version: PolicyVersion, *rest: Any) -> Facts:
        if version.policy_id == broken.pk:
            raise RuntimeError("a row that nobody can read")
        return facts_for(version, *rest)

    monkeypatch.setattr("runs.jobs.decide.facts_for", falls)
    tick(laboratory)
    with laboratory.opened():
        assert Decision.objects.get().policy.slug == "tell"


def test_a_decision_says_that_it_weighed_the_newest_results_alone(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    with laboratory.opened():
        policy = approved(laboratory, DOCUMENT | {"conditions": []})
        pattern = launch(laboratory, parameters={"rate": 0.1, "epochs": 1})
        copy_runs(actor=laboratory.owner, pattern=pattern, count=2)
        monkeypatch.setattr(policy_facts, "MOST_RESULTS", 3)
        assert "newest" not in decide_now(actor=laboratory.owner, policy=policy).words
        monkeypatch.setattr(policy_facts, "MOST_RESULTS", 2)
        decision = decide_now(actor=laboratory.owner, policy=policy)
        assert "It weighed the newest 2 results alone" in decision.words
        assert len(decision.facts["results"]) == 2
        again = decide(read_policy(decision.version.document), facts_from(decision.facts))
        assert again.words == decision.words
