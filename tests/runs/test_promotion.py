"""Promotion: put forward upon checks, decided by another person, signed; superseded, withdrawn, suspended."""

import base64
import json
from types import ModuleType
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]  # it re-exports without saying so

from runs.checks import score
from runs.checks.candidate import Place, candidate_of
from runs.checks.eligibility import CHECKS, facts_of
from runs.commands import promotion as promotions
from runs.commands.approval import decide_approval, expire_approval
from runs.commands.promotion import withdraw_promotion
from runs.commands.withdrawal import withdraw
from runs.eligibility import Fact, Verdict
from runs.models import Artifact, Promotion
from runs.queries.promotion import find_standing
from runs.queries.reading import read_back
from runs.queries.withdrawal import find_subject
from tests.factories import make_member
from tests.factories_pages import score_runs
from tests.factories_promotions import add_input, add_unsaid, check_overlaps, judge, make_candidate, propose, score_of, write_licence
from tests.factories_registry import make_dataset_version
from tests.factories_runs import Laboratory, make_laboratory
from workspaces import store
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.commands.approval_rule import set_rule
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Approval, AuditEvent, Benchmark, Dataset

Status = Promotion.Status


@pytest.fixture
def laboratory(db: None) -> Laboratory:
    return make_laboratory()


@pytest.fixture
def approver(laboratory: Laboratory) -> Actor:
    return make_member(laboratory.workspace, "approver")


def decide(actor: Actor, approval: Approval, *, approves: bool = True, comment: str = "") -> None:
    decide_approval(actor=actor, approval=approval, approves=approves, comment=comment, seen_hash=approval.content_hash)


def promote(laboratory: Laboratory, approver: Actor, artifact: Artifact, name: str = "champion") -> Promotion:
    promotion, approval = propose(laboratory.owner, artifact, name)
    decide(approver, approval)
    promotion.refresh_from_db()
    return promotion


def facts(artifact: Artifact, name: str = "champion") -> dict[str, Fact]:
    found = Artifact.objects.select_related("blob", "run__contract").get(pk=artifact.pk)
    return {fact.key: fact for fact in facts_of(candidate_of(found, name, read=read_back(found.blob)))}


def test_put_forward_decided_by_another_and_standing(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        artifact = make_candidate(laboratory)
        promotion, approval = propose(laboratory.owner, artifact, reason="Best of the week")
        assert (promotion.status, promotion.number, len(promotion.facts)) == ("proposed", 1, len(CHECKS))
        assert approval.content["asks"] == "Promote model.pt as champion"
        with pytest.raises(Refusal, match="yourself"):
            decide(laboratory.owner, approval)
        decide(approver, approval)
        promotion.refresh_from_db()
        assert (promotion.status, promotion.decided_by) == ("promoted", approver.user)
        assert find_standing("champion").pk == promotion.pk
        event = AuditEvent.objects.latest("sequence")
        assert (event.verb, event.subject_label) == ("promotion.decided", "champion, promotion 1")


def test_nobody_waits_while_the_board_is_read_for_a_note(laboratory: Laboratory, approver: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[str] = []

    def watched(module: ModuleType, name: str, said: str) -> None:
        does = getattr(module, name)

        def noted(*given: object) -> object:
            did.append(said)
            return does(*given)

        monkeypatch.setattr(module, name, noted)

    watched(promotions, "lock_ledger", "locks the ledger")
    watched(score, "_place", "reads the board")
    with laboratory.opened():
        promotion, approval = propose(laboratory.owner, make_candidate(laboratory))
        assert did == ["reads the board", "locks the ledger"]
        [measured] = [fact for fact in promotion.facts if fact["key"] == "score"]
        assert measured["note"] == "rank 1 of 1 when it was looked at"
        decide(approver, approval)
        assert did[2:] == ["locks the ledger"], "a decision notes no place"
        another = make_candidate(laboratory, value=0.9, content=b"another")
        given = candidate_of(another, "champion", place=Place(score_of(promotion.artifact).pk, "rank 1 of 1"))
        assert given.note == "", "of another score"


def test_a_rule_of_two_holds_for_a_promotion_too(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        second = make_member(laboratory.workspace, "admin")
        set_rule(actor=laboratory.owner, kind="promotion", approvers=2, role="approver", hours=24, reason="Two pairs of eyes")
        promotion, approval = propose(laboratory.owner, make_candidate(laboratory))
        decide(approver, approval)
        promotion.refresh_from_db()
        assert promotion.status == "proposed"
        decide(second, approval)
        promotion.refresh_from_db()
        assert promotion.status == "promoted"


def test_who_may_not_promote_cannot_put_forward(laboratory: Laboratory) -> None:
    viewer = make_member(laboratory.workspace, "viewer")
    with laboratory.opened(), pytest.raises(Denied):
        propose(viewer, make_candidate(laboratory))


def test_refused_with_a_reason_and_free_to_be_put_forward_again(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        artifact = make_candidate(laboratory)
        promotion, approval = propose(laboratory.owner, artifact)
        with pytest.raises(Refusal, match="waits for a decision already"):
            propose(laboratory.owner, artifact)
        decide(approver, approval, approves=False, comment="Too few samples.")
        promotion.refresh_from_db()
        assert (promotion.status, promotion.end_reason) == ("refused", "Too few samples.")
        assert promote(laboratory, approver, artifact).status == Status.PROMOTED


def test_nobody_decided_in_time(laboratory: Laboratory) -> None:
    with laboratory.opened():
        promotion, approval = propose(laboratory.owner, make_candidate(laboratory))
        expire_approval(actor=Actor.system(job_id="test"), approval=approval)
        promotion.refresh_from_db()
        assert (promotion.status, promotion.end_reason) == ("refused", "Nobody decided on it in time.")


# --- Each check can fail ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("licence", ["", "CC0 1.0", "NOASSERTION", "whatever the sender said"])
def test_a_licence_that_nobody_knows_never_passes(laboratory: Laboratory, licence: str) -> None:
    with laboratory.opened():
        artifact = make_candidate(laboratory)
        write_licence(actor=laboratory.owner, dataset=Dataset.objects.get(slug="table"), licence=licence)
        assert facts(artifact)["licence"].verdict is Verdict.UNKNOWN
        with pytest.raises(Refusal, match=r"Of table@1 .* the licence is not known"):
            propose(laboratory.owner, artifact)


def test_what_it_was_distilled_from_counts_like_what_it_read_itself(laboratory: Laboratory) -> None:
    with laboratory.opened():
        teacher, student = make_candidate(laboratory), make_candidate(laboratory, content=b"student")
        add_input(actor=laboratory.owner, run=student.run, artifact=teacher)
        assert {key: facts(student)[key].verdict for key in ("licence", "inputs")} == {"licence": Verdict.PASS, "inputs": Verdict.PASS}
        version = make_dataset_version(laboratory.owner, "scraped", content=b"x\n7\n")
        add_input(actor=laboratory.owner, run=teacher.run, version=version)
        found = facts(student)["licence"]
        assert (found.verdict, "Of scraped@1 (none given) the licence is not known" in found.words) == (Verdict.UNKNOWN, True)
        add_unsaid(actor=laboratory.owner, run=teacher.run, what="a corpus")
        found = facts(student)["inputs"]
        assert (found.verdict, "a corpus" in found.words) == (Verdict.FAIL, True)


def test_a_model_of_one_that_ran_without_isolation_is_as_uncertain(laboratory: Laboratory) -> None:
    with laboratory.opened():
        pool = {"slug": "local", "isolation": "none", "currency": "EUR"}
        teacher = make_candidate(laboratory, frozen={"pool": pool, "limits": {"gpu_ms": 1, "api_micros": 0}})
        student = make_candidate(laboratory, content=b"student")
        add_input(actor=laboratory.owner, run=student.run, artifact=teacher)
        found = facts(student)["inputs"]
        assert (found.verdict, teacher.run.name in found.words) == (Verdict.UNKNOWN, True)


def test_one_holdout_record_in_what_was_trained_on_blocks_it(laboratory: Laboratory) -> None:
    with laboratory.opened():
        artifact = make_candidate(laboratory)
        assert facts(artifact)["overlap"].verdict is Verdict.PASS
        make_dataset_version(
            laboratory.owner, "unseen", role="holdout", content=b"a,b\n9,9\n3,4\n"
        )  # its second record stands in the table
        assert facts(artifact)["overlap"].verdict is Verdict.UNKNOWN, "it is not compared with the new holdout yet"
        check_overlaps()
        found = facts(artifact)["overlap"]
        assert (found.verdict, "table@1 is contaminated: 1 record" in found.words) == (Verdict.FAIL, True)
        with pytest.raises(Refusal, match=r"Trained on no holdout: .*table@1 is contaminated"):
            propose(laboratory.owner, artifact)


def test_without_isolation_nobody_can_tell_what_it_read(laboratory: Laboratory) -> None:
    with laboratory.opened():
        pool = {"slug": "local", "isolation": "none", "currency": "EUR"}
        artifact = make_candidate(laboratory, frozen={"pool": pool, "limits": {"gpu_ms": 1, "api_micros": 0}})
        found = facts(artifact)
        assert (found["isolation"].verdict, found["inputs"].verdict) == (Verdict.FAIL, Verdict.UNKNOWN)


def test_a_run_that_failed_made_nothing_to_rest_on(laboratory: Laboratory) -> None:
    with laboratory.opened():
        artifact = make_candidate(laboratory, statuses=("failed",))
        assert facts(artifact)["run"].verdict is Verdict.FAIL


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_no_score(laboratory: Laboratory, value: float) -> None:
    with laboratory.opened():
        assert facts(make_candidate(laboratory, value=value))["score"].verdict is Verdict.FAIL


def test_a_score_of_an_older_contract_is_none(laboratory: Laboratory) -> None:
    with laboratory.opened():
        artifact = make_candidate(laboratory)
        publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="minimize")
        found = facts(artifact)
        assert (found["score"].verdict, found["score"].required) == (Verdict.UNKNOWN, "a number under contract 2 of accuracy")


def test_a_changed_or_missing_file_is_found_when_it_is_read_back(laboratory: Laboratory) -> None:
    with laboratory.opened():
        artifact = make_candidate(laboratory)
        place = store.local_path("local", laboratory.workspace.pk, artifact.blob.sha256)
        assert place
        place.write_bytes(b"weightz")
        assert facts(artifact)["file"].words.startswith("Its file was changed")
        place.unlink()
        assert facts(artifact)["file"].observed == "missing"
        with pytest.raises(Refusal, match="no such file"):
            propose(laboratory.owner, artifact)


# --- Against what stands ------------------------------------------------------------------------------------------------------------------


def test_a_better_one_supersedes_and_a_worse_one_is_refused(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        first = promote(laboratory, approver, make_candidate(laboratory, value=0.8))
        worse = make_candidate(laboratory, value=0.79, content=b"worse")
        assert facts(worse)["comparison"].observed == "\u22120.010 ± 0.014"
        with pytest.raises(Refusal, match="No worse than champion now"):
            propose(laboratory.owner, worse)
        assert facts(worse, "fallback")["comparison"].verdict is Verdict.PASS
        better = make_candidate(laboratory, value=0.83, content=b"better")
        assert "2.1 standard errors" in facts(better)["comparison"].words
        second = promote(laboratory, approver, better)
        first.refresh_from_db()
        assert (first.status, first.end_reason) == ("superseded", "champion, promotion 2 took its place.")
        assert second.supersedes_id == first.pk
        assert find_standing("champion").pk == second.pk


def test_where_less_is_better_less_is_ahead(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        contract = publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="loss", direction="minimize")

        def lost(value: float, content: bytes) -> Artifact:
            made = make_candidate(laboratory, contract_id=contract.pk, content=content)
            score_runs(actor=laboratory.owner, scores={made.run: (value, 0.01)}, metric="loss")
            return made

        promote(laboratory, approver, lost(0.5, b"one"))
        assert facts(lost(0.4, b"two"))["comparison"].verdict is Verdict.PASS
        assert facts(lost(0.6, b"three"))["comparison"].verdict is Verdict.FAIL


def test_what_stands_without_a_score_under_the_contract_cannot_be_compared(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        promote(laboratory, approver, make_candidate(laboratory))
        contract = publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="minimize")
        newer = make_candidate(laboratory, value=0.9, content=b"newer", contract_id=contract.pk)
        assert facts(newer)["comparison"].verdict is Verdict.UNKNOWN


def test_the_request_is_void_once_something_else_stands(laboratory: Laboratory, approver: Actor) -> None:
    """Two are put forward as one name: the first that is approved stands, and what the other was put forward upon no longer holds."""
    with laboratory.opened():
        one, asked_one = propose(laboratory.owner, make_candidate(laboratory, value=0.8))
        two, asked_two = propose(laboratory.owner, make_candidate(laboratory, value=0.9, content=b"two"))
        decide(approver, asked_two)
        decide(approver, asked_one)
        one.refresh_from_db()
        asked_one.refresh_from_db()
        assert (asked_one.status, one.status) == ("void", "refused")
        assert "No worse than champion now" in one.end_reason
        assert find_standing("champion").pk == two.pk


def test_other_scores_do_not_void_a_request(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        promotion, approval = propose(laboratory.owner, make_candidate(laboratory))
        make_candidate(laboratory, value=0.99, content=b"another")  # the rank is another one now, what was agreed is not
        decide(approver, approval)
        promotion.refresh_from_db()
        assert promotion.status == Status.PROMOTED


def test_the_file_changed_between_proposal_and_decision(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        artifact = make_candidate(laboratory)
        promotion, approval = propose(laboratory.owner, artifact)
        place = store.local_path("local", laboratory.workspace.pk, artifact.blob.sha256)
        assert place
        place.write_bytes(b"weightz")
        decide(approver, approval)
        promotion.refresh_from_db()
        assert (promotion.status, promotion.statement) == ("refused", None)


def test_what_was_measured_last_counts_not_the_best_of_several(laboratory: Laboratory) -> None:
    with laboratory.opened():
        artifact = make_candidate(laboratory, value=0.9)
        for value in (0.95, 0.7):
            judge(laboratory, artifact, value)
        found = facts(artifact)["score"]
        assert (found.observed, found.words.partition("measured by ")[2][:4]) == ("accuracy 0.700 ± 0.010", "run-")


def test_a_score_that_rests_on_something_withdrawn_is_neither_bar_nor_hurdle(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        champion = promote(laboratory, approver, make_candidate(laboratory, value=0.8)).artifact
        challenger = make_candidate(laboratory, value=0.85, content=b"two")
        judges = [judge(laboratory, champion, 0.99), judge(laboratory, challenger, 0.1)]
        assert facts(challenger)["comparison"].verdict is Verdict.FAIL
        for one in judges:
            node, label = find_subject("run", one.public_id)
            withdraw(actor=laboratory.owner, subject=node, label=label, reason="It measured on training data.")
        found = facts(challenger)
        assert (found["score"].observed, found["withdrawn"].verdict) == ("accuracy 0.850 ± 0.010", Verdict.PASS)
        assert found["comparison"].observed == "+0.050 ± 0.014"


def test_withdrawn_it_stands_no_more_and_what_it_superseded_does_not_come_back(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        first = promote(laboratory, approver, make_candidate(laboratory))
        second = promote(laboratory, approver, make_candidate(laboratory, value=0.9, content=b"second"))
        with pytest.raises(Refusal, match="Say why"):
            withdraw_promotion(actor=laboratory.owner, promotion=second, reason=" ")
        withdraw_promotion(actor=laboratory.owner, promotion=second, reason="It was trained on the holdout.")
        first.refresh_from_db()
        second.refresh_from_db()
        assert (first.status, second.status) == ("superseded", "withdrawn")
        with pytest.raises(LookupError):
            find_standing("champion")
        with pytest.raises(Refusal, match="withdrawn already"):
            withdraw_promotion(actor=laboratory.owner, promotion=second, reason="again")


def test_a_proposal_that_is_withdrawn_needs_no_decision(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        promotion, approval = propose(laboratory.owner, make_candidate(laboratory))
        withdraw_promotion(actor=laboratory.owner, promotion=promotion, reason="A better one comes.")
        approval.refresh_from_db()
        assert approval.status == "void"


# --- The statement ------------------------------------------------------------------------------------------------------------------------


def test_the_statement_verifies_with_the_published_key_and_one_changed_byte_fails(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        artifact = make_candidate(laboratory)
        promotion = promote(laboratory, approver, artifact)
    (published,) = Client().get("/.well-known/lab-keys.json").json()["keys"]
    raw = base64.urlsafe_b64decode(published["x"] + "=" * (-len(published["x"]) % 4))
    key = SSlibKey(published["kid"], "ed25519", "ed25519", {"public": raw.hex()})
    assert promotion.statement
    Envelope.from_dict(json.loads(json.dumps(promotion.statement))).verify([key], threshold=1)
    stated = json.loads(base64.b64decode(promotion.statement["payload"]))
    assert stated["_type"] == "https://in-toto.io/Statement/v1"
    assert stated["subject"] == [{"name": "model.pt", "digest": {"sha256": artifact.blob.sha256}}]
    predicate = stated["predicate"]
    assert (predicate["verificationResult"], predicate["verifiedLevels"]) == ("PASSED", ["LABSITE_PROMOTION_CHECKS"])
    assert [one["uri"].split(":")[2] for one in predicate["inputAttestations"]] == ["evaluation", "approval"]
    body = base64.b64decode(promotion.statement["payload"])
    for place in (0, len(body) // 2, len(body) - 1):
        forged: dict[str, Any] = json.loads(json.dumps(promotion.statement))
        forged["payload"] = base64.b64encode(body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]).decode()
        with pytest.raises(VerificationError):
            Envelope.from_dict(forged).verify([key], threshold=1)


def test_the_key_is_the_installations_own(laboratory: Laboratory) -> None:
    answer = Client().get("/.well-known/lab-keys.json")
    assert answer.status_code == 200
    assert "d" not in answer.json()["keys"][0], "a private key is never published"
    assert (settings.LABSITE_HOME / "keys" / "checkpoint.key").stat().st_mode & 0o777 == 0o600
