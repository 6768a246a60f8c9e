"""The gates of a policy in a workspace: what was measured and what a candidate was made of, found out and frozen; a reviewer's word on top."""

import json
import math
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from runs.checks import gate_samples
from runs.checks.policy_facts import facts_for
from runs.commands.approval import decide_approval
from runs.commands.withdrawal import withdraw
from runs.jobs import decide as decide_job
from runs.jobs.decide import decide_policies
from runs.models import Artifact, Decision, Evaluation, Policy, PolicyVersion, Promotion
from runs.policy.checks import look
from runs.policy.decide import decide
from runs.policy.document import read_policy
from runs.policy.facts import Cause, Facts, facts_from
from runs.queries.withdrawal import find_subject
from tests import factories_promotions
from tests.factories import make_member
from tests.factories_pages import add_artifact, client_of
from tests.factories_promotions import check_overlaps, make_candidate, propose
from tests.factories_registry import make_agent_version, make_dataset_version
from tests.factories_runs import HOUR, Laboratory, drive, launch, make_laboratory
from tests.runs.test_policy import approved, approver
from workspaces.audit import Refusal
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Approval, Benchmark, Notification
from workspaces.store import StoreDamaged

pytestmark = pytest.mark.django_db(transaction=True)
JUDGE = b"""
import json
job = json.load(open("../job.json"))["params"]
rows = job["rows"]
with open("../outputs/samples.jsonl", "w") as file:
    for number, (score, confidence) in enumerate(rows):
        said = {"id": str(number), "truth": 1, "output": score, "score": score} | ({} if confidence is None else {"confidence": confidence})
        file.write(json.dumps(said) + "\\n")
if "pairs" in job:
    open("../outputs/pairs.json", "w").write(json.dumps(job["pairs"]))
with open("../events.jsonl", "a") as lines:
    if "pairs" in job:
        lines.write(json.dumps({"type": "artifact", "path": "outputs/pairs.json", "name": "pairs", "kind": "pairs"}) + "\\n")
    score = {"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": sum(row[0] for row in rows) / len(rows), "samples": len(rows)}
    score |= {"subject": job["subject"]} if "subject" in job else {}
    lines.write(json.dumps({**score, "samples_file": "outputs/samples.jsonl"}) + "\\n")
"""
HOLDOUT = {"check": "no_holdout_regression", "epsilon": 0.01}
GAIN = {"check": "calibrated_disagreement_gain", "benchmark": "accuracy", "ece_at_most": 0.3, "bins": 10}
ELO = {"check": "elo_sequential", "elo1": 100}
CHAIN: list[dict[str, Any]] = [
    {"check": "contamination"},
    {"check": "cost_ceiling", "gpu_hours": 5},
    {"check": "licence", "allowed": ["CC-BY-4.0"]},
    {"check": "undeclared_input"},
    {"check": "egress", "at_most": "internal"},
]
Row = tuple[float, float | None]


def promotes(*gate: dict[str, Any]) -> dict[str, Any]:
    trigger = {"on": "evaluation_scored", "benchmark": "accuracy", "agent": "judge"}
    return {"trigger": trigger, "gate": list(gate), "action": {"do": "promote", "name": "champion"}}


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory(weekly_gpu_hours=1000)
    with made.opened():
        held_out = make_dataset_version(made.owner, "unseen", role="holdout")
        publish_contract(
            actor=made.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", holdout=held_out,
            accepts_no_isolation_reason="a test",
        )  # fmt: skip
        make_agent_version(made.owner, "judge", code=JUDGE, kind="evaluate", wall_seconds=60)
    return made


def judged(laboratory: Laboratory, *models: Artifact, rows: list[Row], on: str = "unseen", **more: Any) -> Evaluation:
    with laboratory.opened():
        keys = tuple(model.pk.hex for model in models)
        run = launch(laboratory, agent="judge", gpu_ms=HOUR, datasets=(on,), artifacts=keys, parameters={"rows": rows, **more})
    ended = drive(laboratory, run)
    assert ended.status == "succeeded", ended.reason
    with laboratory.opened():
        return Evaluation.objects.select_related("run").get(run=run)


def made_champion(laboratory: Laboratory) -> Artifact:
    with laboratory.opened():
        model = make_candidate(laboratory, content=b"the champion")
    judged(laboratory, model, rows=[(0.5, 0.5)])  # what it reports of itself is no measurement on the holdout
    with laboratory.opened():
        _, asked = propose(laboratory.owner, model)
        decide_approval(actor=approver(laboratory), approval=asked, approves=True, seen_hash=asked.content_hash)
    return model


def asked_of(laboratory: Laboratory, evaluation: Evaluation, *gate: dict[str, Any]) -> tuple[Facts, dict[str, tuple[str, str]]]:
    """What a policy with this gate would find out now; of each check its verdict and its words."""
    with laboratory.opened():
        policy = read_policy(promotes(*gate))
        version = PolicyVersion(policy=Policy(), proposed_by=laboratory.owner.user, created_at=timezone.now())
        facts = facts_for(version, policy, Cause("evaluation", evaluation.pk, "a score"), timezone.now())
        again = facts_from(json.loads(json.dumps(facts.as_json())))
        found = [look(entry, again) for entry in gate]
        return again, {fact.key: (fact.verdict.value, f"{fact.observed}. {fact.words}") for fact in found}


def quantile_of_binomial(trials: int, share: float, quantile: float) -> int:
    total, count = 0.0, -1
    while total < quantile:
        count += 1
        total += math.comb(trials, count) * share**count * (1 - share) ** (trials - count)
    return count


def test_samples_are_held_against_those_of_what_stands_and_confidence_against_what_was_right(laboratory: Laboratory) -> None:
    """Forty samples, of which the champion has thirty right and the candidate all: the bootstrap of the gain is binomial, its 5 % quantile known."""
    champion = made_champion(laboratory)
    judged(laboratory, champion, rows=[(1.0 if number < 30 else 0.0, 0.8) for number in range(40)])
    with laboratory.opened():
        candidate = make_candidate(laboratory, content=b"the candidate")
    better = judged(laboratory, candidate, rows=[(1.0, 0.8)] * 40)
    facts, said = asked_of(laboratory, better, HOLDOUT, GAIN)
    found = facts.gates["no_holdout_regression"][""]
    assert found["gain"] == pytest.approx(0.25)
    assert found["lower"] == pytest.approx(quantile_of_binomial(40, 0.25, 0.05) / 40, abs=1 / 40 + 1e-9)
    assert {key: verdict for key, (verdict, _) in said.items()} == {"no_holdout_regression": "pass", "calibrated_disagreement_gain": "pass"}
    assert "calibration error over 10 bins is 0.200" in said["calibrated_disagreement_gain"][1]
    assert asked_of(laboratory, better, HOLDOUT, GAIN)[0].gates == facts.gates, "the same files give the same figures"
    assert asked_of(laboratory, better, GAIN | {"ece_at_most": 0.19})[1]["calibrated_disagreement_gain"][0] == "fail"
    worse = judged(laboratory, candidate, rows=[(1.0 if number < 29 else 0.0, None) for number in range(40)])
    _, said = asked_of(laboratory, worse, HOLDOUT, GAIN)
    assert {key: verdict for key, (verdict, _) in said.items()} == {"no_holdout_regression": "fail", "calibrated_disagreement_gain": "fail"}
    fewer = judged(laboratory, candidate, rows=[(1.0, None)] * 39)
    assert asked_of(laboratory, fewer, HOLDOUT)[1]["no_holdout_regression"] == (
        "unknown",
        f"not comparable. They were not measured on the same samples: 0 has it alone, 1 model.pt of {champion.run.name} alone.",
    )
    silent = judged(laboratory, candidate, rows=[(1.0, None)] * 40)
    verdict, words = asked_of(laboratory, silent, GAIN)[1]["calibrated_disagreement_gain"]
    assert (verdict, "40 answers say no confidence" in words) == ("unknown", True)


def test_a_set_that_was_frozen_after_the_training_was_asked_for_gains_nothing(laboratory: Laboratory) -> None:
    champion = made_champion(laboratory)
    with laboratory.opened():
        candidate = make_candidate(laboratory, content=b"the candidate")
        later = make_dataset_version(laboratory.owner, "chosen-later", role="holdout", content=b"a,b\n7,8\n")
        publish_contract(
            actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", holdout=later,
            accepts_no_isolation_reason="a test",
        )  # fmt: skip
    judged(laboratory, champion, rows=[(0.0, 0.5)] * 20, on="chosen-later")
    better = judged(laboratory, candidate, rows=[(1.0, 1.0)] * 20, on="chosen-later")
    _, said = asked_of(laboratory, better, HOLDOUT, GAIN)
    assert said["no_holdout_regression"][0] == "pass"
    verdict, words = said["calibrated_disagreement_gain"]
    assert (verdict, "frozen too late" in words) == ("fail", True)


def test_a_student_is_held_against_its_own_teacher_and_a_store_that_does_not_answer_shuts_the_gate(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = GAIN | {"over": "worker"}
    with laboratory.opened():
        teacher, stranger = make_candidate(laboratory, content=b"the teacher"), make_candidate(laboratory, content=b"somebody else's")
        learning = launch(laboratory, artifacts=(teacher.pk.hex,))
        student = add_artifact(actor=laboratory.owner, run=learning, path="student.pt", content=b"the student", kind="model")
    alone = judged(laboratory, student, rows=[(1.0, 0.9)] * 20)
    judged(laboratory, stranger, rows=[(1.0, 0.9)] * 20)
    verdict, words = asked_of(laboratory, alone, over)[1]["calibrated_disagreement_gain"]
    assert (verdict, "worker was measured by nothing but the run that made it" in words) == ("unknown", True), words
    judged(laboratory, teacher, rows=[(0.0, 0.9)] * 20)
    verdict, words = asked_of(laboratory, alone, over)[1]["calibrated_disagreement_gain"]
    assert (verdict, "It gains 1 over worker on 20 samples of unseen@1" in words) == ("pass", True), words

    def damaged(*_: object) -> None:
        raise StoreDamaged("other bytes")

    monkeypatch.setattr(gate_samples, "compare", damaged)
    verdict, words = asked_of(laboratory, alone, over)[1]["calibrated_disagreement_gain"]
    assert (verdict, "cannot be read from the store now" in words) == ("unknown", True)


def test_games_count_where_labsite_gave_a_run_both_files(laboratory: Laboratory) -> None:
    champion = made_champion(laboratory)
    with laboratory.opened():
        trained = make_candidate(laboratory, content=b"another file").run
        candidate = add_artifact(actor=laboratory.owner, run=trained, path="next.pt", content=b"the candidate", kind="model")
        files = candidate.blob.sha256, champion.blob.sha256
    measured: list[Evaluation] = []

    def played(*pairs: int, by: tuple[Artifact, ...] = (candidate, champion), turned: bool = False) -> tuple[str, str]:
        first, second = files[::-1] if turned else files
        document = {"schema": "labsite.pairs.v1", "matches": [{"first": first, "second": second, "pairs": list(pairs)}]}
        measured.append(judged(laboratory, *by, rows=[(1.0, None)], pairs=document, subject="next-pt"))
        return asked_of(laboratory, measured[-1], ELO)[1]["elo_sequential"]

    verdict, words = played(0, 0, 0, 0, 40, by=(candidate,))
    assert (verdict, "has played pairs of games" in words) == ("unknown", True), (
        "a run that was not given the champion cannot have played it"
    )
    verdict, words = played(0, 1, 2, 1, 1)
    assert (verdict, "After 5 pairs" in words) == ("unknown", True)
    verdict, words = played(20, 12, 6, 0, 0, turned=True)
    assert (verdict, "After 43 pairs" in words) == ("pass", True), words
    with laboratory.opened():
        subject, label = find_subject("run", measured[-1].run.public_id)
        withdraw(actor=laboratory.owner, subject=subject, label=label, reason="the engine cheated")
    verdict, words = asked_of(laboratory, measured[1], ELO)[1]["elo_sequential"]
    assert (verdict, "After 5 pairs" in words) == ("unknown", True), "games that were withdrawn do not count"


def test_what_a_candidate_was_made_of(laboratory: Laboratory) -> None:
    with laboratory.opened():
        candidate = make_candidate(laboratory)
    evaluation = judged(laboratory, candidate, rows=[(1.0, 0.5)])
    facts, said = asked_of(laboratory, evaluation, *CHAIN, HOLDOUT, ELO)
    assert {key: verdict for key, (verdict, _) in said.items()} == {
        "contamination": "pass", "cost_ceiling": "pass", "licence": "pass", "undeclared_input": "pass", "egress": "pass",
        "no_holdout_regression": "pass", "elo_sequential": "pass",
    }  # fmt: skip
    assert [entry["label"] for entry in facts.gates["chain"]["datasets"]] == ["table@1"]
    assert len(json.dumps(facts.gates)) < 4_000
    with laboratory.opened():
        make_dataset_version(laboratory.owner, "another-holdout", role="holdout", content=b"a,b\n9,9\n")
    _, said = asked_of(laboratory, evaluation, *CHAIN)
    assert said["contamination"][0] == "unknown", "nobody has held the data against the new holdout yet"


# --- A reviewer ---------------------------------------------------------------------------------------------------------------------------


def bell(laboratory: Laboratory) -> None:
    key = laboratory.workspace.pk.hex
    decide_policies(workspace_id=key, subject_id=key)


def test_a_policy_asks_its_reviewers_and_what_it_puts_forward_is_promoted_by_their_word_alone(laboratory: Laboratory) -> None:
    author = None
    with laboratory.opened():
        approved(
            laboratory,
            promotes({"check": "licence", "allowed": ["CC-BY-4.0"]}, {"check": "reviewer_approval", "people": 2}),
            slug="put-forward",
        )
        author = make_member(laboratory.workspace, "admin")
        candidate = make_candidate(laboratory, requested_by_id=author.user.pk if author.user else None)
    judged(laboratory, candidate, rows=[(1.0, 0.5)])
    bell(laboratory)
    with laboratory.opened():
        decision = Decision.objects.get()
        assert (decision.outcome, decision.status) == ("acts", "done"), decision.failure
        assert "2 reviewers other than its author decide" in decision.words
        promotion = Promotion.objects.get()
        asked = Approval.objects.get(subject_id=promotion.pk)
        assert (promotion.status, asked.quorum) == ("proposed", 2)
        assert [entry["key"] for entry in asked.content["gate"]] == ["licence", "reviewer_approval"]
        assert "gate" not in json.dumps(promotion.facts), "the checks of a promotion stay as they are"
        with pytest.raises(Refusal, match="You asked for the run that made it"):
            decide_approval(actor=author, approval=asked, approves=True, seen_hash=asked.content_hash)
        with pytest.raises(Refusal, match="You asked for this yourself"):
            decide_approval(actor=laboratory.owner, approval=asked, approves=True, seen_hash=asked.content_hash)
        decide_approval(actor=approver(laboratory), approval=asked, approves=True, seen_hash=asked.content_hash)
        promotion.refresh_from_db()
        assert promotion.status == "proposed", "one of two"
        second = make_member(laboratory.workspace, "approver", "second-approver")
    request = client_of(second).get(f"/workspaces/lab/approvals/{asked.public_id}/").content.decode()
    assert "A reviewer’s approval" in request or "A reviewer&#x27;s approval" in request
    assert "Licences allowed" in request
    base = "/workspaces/lab"
    said = " ".join(request.partition("<h1>")[2].partition('class="grid"')[0].split())
    by = f'asked by policy <a href="{base}/policies/put-forward/"><bdi>put-forward</bdi></a>'
    assert f'{by}, <a href="{base}/decisions/{decision.public_id}/">decision {decision.number}</a>, in the name of' in said
    for address in (f"artifacts/{candidate.public_id}/", f"runs/{candidate.run.public_id}/", f"decisions/{decision.public_id}/"):
        assert f'<a href="{base}/{address}"><bdi>' in request.partition("What exactly is asked")[2].partition("Bound to")[0]
    assert "asked by policy <bdi>put-forward, decision" in client_of(second).get(f"{base}/approvals/").content.decode()
    with laboratory.opened():
        decide_approval(actor=second, approval=asked, approves=True, seen_hash=asked.content_hash)
        promotion.refresh_from_db()
        assert promotion.status == "promoted"
    page = client_of(second).get(f"/workspaces/lab/promotions/{promotion.public_id}/").content.decode()
    assert "The policy’s gate" in page
    assert "approved exactly this." in page
    assert f"/workspaces/lab/decisions/{decision.pk.hex}/" in page
    told = client_of(second).get(f"/workspaces/lab/decisions/{decision.public_id}/").content.decode()
    assert "waits for a person" in told


def test_a_gate_that_shuts_before_the_reviewer_decides_makes_the_request_void(laboratory: Laboratory) -> None:
    champion = made_champion(laboratory)
    judged(laboratory, champion, rows=[(1.0 if number < 30 else 0.0, 0.8) for number in range(40)])
    with laboratory.opened():
        approved(laboratory, promotes(HOLDOUT, {"check": "reviewer_approval"}), slug="put-forward")
        candidate = make_candidate(laboratory, content=b"the candidate")
    judged(laboratory, candidate, rows=[(1.0 if number < 35 else 0.0, 0.8) for number in range(40)])
    bell(laboratory)
    judged(laboratory, champion, rows=[(1.0, 0.8)] * 40)
    with laboratory.opened():
        asked = Approval.objects.get(status="pending", subject_type="promotion")
        decide_approval(actor=approver(laboratory), approval=asked, approves=True, seen_hash=asked.content_hash)
        asked.refresh_from_db()
        assert asked.status == "void"
        refused = Promotion.objects.get(pk=asked.subject_id)
        assert (refused.status, "No step back on the holdout" in refused.end_reason) == ("refused", True)
        told = Notification.objects.filter(cause=Notification.Cause.APPROVAL_DECIDED, subject_id=asked.pk).latest("created_at")
        assert "Gate, No step back on the holdout, verdict: was pass, is fail." in told.words


def test_what_is_measured_anew_is_asked_no_more_and_the_policy_puts_it_forward_again_by_the_new_score(laboratory: Laboratory) -> None:
    with laboratory.opened():
        another = make_candidate(laboratory, content=b"another")
    judged(laboratory, another, rows=[(0.5, 0.5)])
    with laboratory.opened():
        approved(laboratory, promotes({"check": "reviewer_approval"}), slug="put-forward")
        candidate = make_candidate(laboratory)
        other, asked_other = propose(laboratory.owner, another, "other")
    judged(laboratory, candidate, rows=[(1.0, 0.5)] * 4)
    bell(laboratory)
    with laboratory.opened():
        first = Approval.objects.get(status="pending", subject_type="promotion", subject_label__startswith="champion")
    again = judged(laboratory, candidate, rows=[(1.0 if number < 3 else 0.0, 0.5) for number in range(4)])
    with laboratory.opened():
        first.refresh_from_db()
        promotion = Promotion.objects.get(pk=first.subject_id)
        assert first.status == "void", "before anybody has pressed anything"
        assert f"{again.run.name} has measured it anew: accuracy 0.75" in first.end_reason
        assert (promotion.end_reason, promotion.decided_by) == (first.end_reason, None)
        told = Notification.objects.get(cause=Notification.Cause.APPROVAL_DECIDED, subject_id=first.pk)
        assert (told.person_id, told.words) == (first.requested_by_id, first.end_reason)
        other.refresh_from_db()
        asked_other.refresh_from_db()
        assert (other.status, asked_other.status) == ("proposed", "pending"), "of another artifact"
    bell(laboratory)
    with laboratory.opened():
        second = Approval.objects.get(status="pending", subject_type="promotion", subject_label__startswith="champion")
        assert "accuracy 0.75" in next(fact["observed"] for fact in second.content["facts"] if fact["key"] == "score")
        assert [row.status for row in Decision.objects.order_by("number")] == ["done", "done"]


def test_what_a_reviewer_refused_is_not_put_forward_again_and_whoever_may_no_longer_decide_counts_for_nothing(
    laboratory: Laboratory,
) -> None:
    review = {"check": "reviewer_approval"}
    with laboratory.opened():
        approved(laboratory, promotes(review), slug="put-forward")
        candidate = make_candidate(laboratory)
    first = judged(laboratory, candidate, rows=[(1.0, 0.5)])
    bell(laboratory)
    with laboratory.opened():
        asked = Approval.objects.get(status="pending", subject_type="promotion")
        decide_approval(actor=approver(laboratory), approval=asked, approves=False, comment="Not yet", seen_hash=asked.content_hash)
    assert asked_of(laboratory, first, review)[1]["reviewer_approval"][0] == "fail"
    judged(laboratory, candidate, rows=[(1.0, 0.6)])
    bell(laboratory)
    with laboratory.opened():
        assert [row.outcome for row in Decision.objects.order_by("number")] == ["acts", "barred"]
        for decision in Decision.objects.select_related("version"):
            again = decide(read_policy(decision.version.document), facts_from(decision.facts))
            assert (again.outcome, [fact.stored for fact in again.checks]) == (decision.outcome, decision.checks)


def test_what_is_put_forward_waits_a_while_for_data_that_is_still_being_read(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window that was cut a moment ago is not yet held against the holdouts: no failure of the policy, which two in a row would stop."""
    with laboratory.opened():
        policy = approved(laboratory, promotes(), slug="put-forward")
        with monkeypatch.context() as unread:
            unread.setattr(factories_promotions, "check_overlaps", lambda: None)
            candidate = make_candidate(laboratory)
    judged(laboratory, candidate, rows=[(1.0, 0.5)])
    bell(laboratory)
    with laboratory.opened():
        decision = Decision.objects.get(policy=policy)
        assert (decision.outcome, decision.status, Promotion.objects.count()) == ("acts", "acting", 0), decision.failure
        check_overlaps()
    bell(laboratory)
    with laboratory.opened():
        decision.refresh_from_db()
        assert (decision.status, Promotion.objects.get().status) == ("done", "proposed"), decision.failure
        with monkeypatch.context() as unread:
            unread.setattr(factories_promotions, "check_overlaps", lambda: None)
            make_dataset_version(laboratory.owner, "later", role="holdout")
            other = make_candidate(laboratory, content=b"another")
    judged(laboratory, other, rows=[(1.0, 0.5)])
    monkeypatch.setattr(decide_job, "PATIENCE", timedelta(0))
    bell(laboratory)
    with laboratory.opened():
        last = Decision.objects.filter(policy=policy).latest("number")
        assert (last.status, "unchecked" in last.failure) == ("failed", True), "and not for ever"
