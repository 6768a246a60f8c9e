"""What stands promoted is suspended by what is found out later: everywhere it is told, and nobody is handed it."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.checks.candidate import candidate_of
from runs.checks.data import nothing_withdrawn
from runs.commands.approval import decide_approval
from runs.commands.overlap import Finding, ask_overlap_check, overrule_verdict, record_overlap, set_reusable
from runs.commands.promotion import withdraw_promotion
from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.eligibility import Verdict
from runs.models import Artifact, Promotion
from runs.queries.promotion import told
from runs.queries.trace import Trace, find_traced, trace_of
from runs.queries.verdict import State, verdict_of
from runs.queries.withdrawal import find_subject
from tests.factories_pages import client_of
from tests.factories_promotions import add_input, check_overlaps, make_candidate, propose, score_of
from tests.factories_registry import make_dataset_version
from tests.factories_runs import Laboratory
from tests.runs.test_promotion import approver, laboratory
from workspaces.access import Actor, rights_of
from workspaces.audit import Refusal
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.models import DatasetVersion

__all__ = ["approver", "laboratory"]  # the fixtures, by their names
W = "/workspaces/lab"
API = f"/api/v1{W}"
WHY = "table@1, which it was made of, is contaminated: 1 record of it stands in 1 version held out."


@pytest.fixture
def client(laboratory: Laboratory) -> Client:
    return client_of(laboratory.owner)


def promote(laboratory: Laboratory, approver: Actor, artifact: Artifact, name: str = "champion") -> Promotion:
    promotion, approval = propose(laboratory.owner, artifact, name)
    decide_approval(actor=approver, approval=approval, approves=True, seen_hash=approval.content_hash)
    promotion.refresh_from_db()
    return promotion


def leak(laboratory: Laboratory) -> None:
    """A holdout that comes later, with a record of what everything here was trained on; `check_overlaps` compares it."""
    make_dataset_version(laboratory.owner, "unseen", role="holdout", content=b"a,b\n9,9\n3,4\n")


def table() -> DatasetVersion:
    return DatasetVersion.objects.get(dataset__slug="table")


def traced(laboratory: Laboratory, promotion: Promotion) -> Trace:
    return trace_of(find_traced(promotion.pk.hex), rights_of(laboratory.owner, laboratory.workspace.pk), "lab")


def gaps(trace: Trace) -> list[tuple[int, str]]:
    return [(number, item.label) for number, item in trace.gaps]


def broken(trace: Trace) -> list[str]:
    return [item.label for _, item in trace.gaps if "contaminated" in item.words]


def test_told_without_suspension_is_what_it_is(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        promotion = promote(laboratory, approver, make_candidate(laboratory))
        (one,) = told([promotion])
        assert (one.may_be_rested_on, one.state) == (True, "promoted")
        assert score_of(promotion.artifact).pk == promotion.evaluation_id


def test_a_withdrawal_suspends_what_stands_and_undone_it_stands_again(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        promotion = promote(laboratory, approver, make_candidate(laboratory))
        assert told([promotion])[0].may_be_rested_on
        node, label = find_subject("dataset_version", table().public_id)
        withdrawal = withdraw(actor=laboratory.owner, subject=node, label=label, reason="Wrong column.")
        assert told([promotion])[0].state == "suspended"
        artifact = Artifact.objects.select_related("blob", "run__contract").get(pk=promotion.artifact_id)
        assert nothing_withdrawn(candidate_of(artifact, "champion")).verdict is Verdict.FAIL
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="It was right.")
        assert told([promotion])[0].may_be_rested_on


def test_data_found_contaminated_later_suspends_what_was_made_of_it_until_that_is_overruled(
    laboratory: Laboratory, approver: Actor, client: Client
) -> None:
    with laboratory.opened():
        teacher = make_candidate(laboratory, content=b"teacher")
        apart = promote(laboratory, approver, teacher, "teacher")
        student = make_candidate(laboratory, content=b"student")
        add_input(actor=laboratory.owner, run=student.run, artifact=teacher)
        promotion = promote(laboratory, approver, student)
        leak(laboratory)
        assert told([promotion])[0].may_be_rested_on, "that it is not compared yet suspends nothing"
        check_overlaps()
        assert [one.state for one in told([promotion, apart])] == ["suspended", "suspended"]
        assert told([promotion])[0].suspended == WHY
        assert "table, version 1" in broken(traced(laboratory, promotion))
    page = client.get(f"{W}/promotions/{promotion.public_id}/").content.decode()
    assert "is suspended" in page
    assert WHY in page
    assert "people may rest on" not in page
    assert WHY in client.get(f"{W}/promotions/").content.decode()
    assert WHY in client.get(f"{W}/").content.decode(), "home says it where it says as what it stands"
    assert "2 artifacts stand promoted, 2 of them suspended" in client.get(f"{W}/promotions/").content.decode()
    answer = client.get(f"{API}/promoted/champion").json()
    assert (answer["status"], answer["suspended"]) == ("promoted", WHY)
    with laboratory.opened():
        overrule_verdict(actor=approver, version=table(), verdict="clean", reason="Every game has that record")
        assert [one.state for one in told([promotion, apart])] == ["promoted", "promoted"]
        assert broken(traced(laboratory, promotion)) == []
        overrule_verdict(actor=approver, version=table(), verdict="", reason="It does matter")
        assert told([promotion])[0].state == "suspended"


def test_a_persons_word_that_data_is_contaminated_suspends_and_one_that_is_only_suspicious_does_not(
    laboratory: Laboratory, approver: Actor
) -> None:
    with laboratory.opened():
        artifact = make_candidate(laboratory)
        dataset = create_dataset(actor=laboratory.owner, slug="games", licence="CC-BY-4.0")
        files = [receive_file("games.csv", [b"a,b\n5,5\n"])]
        games = import_dataset_version(actor=laboratory.owner, dataset=dataset, role="train", files=files, source="the league")
        add_input(actor=laboratory.owner, run=artifact.run, version=games)
        check_overlaps()
        promotion = promote(laboratory, approver, artifact)
        whole = gaps(traced(laboratory, promotion))
        overrule_verdict(actor=approver, version=games, verdict="contaminated", reason="I know these games")
        assert told([promotion])[0].suspended == "games@1, which it was made of, is contaminated: I know these games."
        assert "games, version 1" in broken(traced(laboratory, promotion))
        overrule_verdict(actor=approver, version=games, verdict="suspicious", reason="Or some of them")
        assert told([promotion])[0].may_be_rested_on
        trace = traced(laboratory, promotion)
        assert gaps(trace) == whole, "it breaks no trace either"
        assert [item.verdict for step in trace.steps for item in step.items if "suspicious" in item.words] == ["person"]


def test_what_is_compared_anew_stays_contaminated_until_that_is_done(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        promotion = promote(laboratory, approver, make_candidate(laboratory))
        leak(laboratory)
        check_overlaps()
        assert told([promotion])[0].suspended == WHY
        ask_overlap_check(actor=laboratory.owner, version=table())
        assert (verdict_of(table()).state, verdict_of(table()).is_promotable) == (State.UNCHECKED, False)
        assert told([promotion])[0].suspended == WHY
        assert "table, version 1" in broken(traced(laboratory, promotion))
        with pytest.raises(Refusal, match="contaminated"):
            set_reusable(actor=laboratory.owner, version=table(), is_reusable=True, reason="Public data.")
        check_overlaps()
        assert told([promotion])[0].suspended == WHY
        overrule_verdict(actor=approver, version=table(), verdict="clean", reason="Every game has that record")
        ask_overlap_check(actor=laboratory.owner, version=table())
        assert told([promotion])[0].may_be_rested_on, "a person's word holds as long"
        assert not verdict_of(table()).is_promotable
        check_overlaps()
        assert told([promotion])[0].may_be_rested_on
        overrule_verdict(actor=approver, version=table(), verdict="", reason="It does matter")
        assert told([promotion])[0].suspended == WHY
        holdout = DatasetVersion.objects.get(dataset__slug="unseen")
        record_overlap(actor=Actor.system(job_id="test"), version=table(), holdout=holdout, finding=Finding(fault="The file is gone."))
        assert told([promotion])[0].suspended == WHY, "what came to nothing refutes nothing"
        record_overlap(actor=Actor.system(job_id="test"), version=table(), holdout=holdout, finding=Finding())
        assert told([promotion])[0].may_be_rested_on, "until another verdict is there"


def test_a_persons_word_that_data_is_contaminated_holds_while_it_is_compared_anew(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        promotion = promote(laboratory, approver, make_candidate(laboratory))
        overrule_verdict(actor=approver, version=table(), verdict="contaminated", reason="I know these games")
        ask_overlap_check(actor=laboratory.owner, version=table())
        assert told([promotion])[0].suspended == "table@1, which it was made of, is contaminated: I know these games."
        make_dataset_version(laboratory.owner, "unseen", role="holdout", content=b"a,b\n9,9\n7,7\n")
        check_overlaps()
        assert told([promotion])[0].state == "suspended"


def test_a_word_on_what_was_found_makes_nothing_promotable_that_is_not_compared_with_every_holdout(
    laboratory: Laboratory, approver: Actor
) -> None:
    with laboratory.opened():
        promotion = promote(laboratory, approver, make_candidate(laboratory))
        leak(laboratory)
        check_overlaps()
        overrule_verdict(actor=approver, version=table(), verdict="clean", reason="Every game has that record")
        assert verdict_of(table()).is_promotable
        make_dataset_version(laboratory.owner, "later", role="holdout", content=b"a,b\n9,9\n7,7\n")
        assert (verdict_of(table()).state, verdict_of(table()).is_promotable) == (State.UNCHECKED, False)
        assert told([promotion])[0].may_be_rested_on
        waiting = verdict_of(table()).waiting
        assert waiting is not None and waiting.reason == "Every game has that record"
    client = client_of(laboratory.owner)
    page = client.get(f"{W}/datasets/table/").content.decode()
    assert "Overruled so far" in page and "Every game has that record" in page
    answer = client.get(f"{API}/datasets/table/versions/1/verdict").json()
    assert (answer["verdict"], answer["is_overruled"], answer["is_word_waiting"]) == ("unchecked", False, True)
    with laboratory.opened():
        check_overlaps()
        assert verdict_of(table()).is_promotable, "nothing new was found, so the word still holds"


def test_a_word_that_waits_can_be_taken_back(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        promotion = promote(laboratory, approver, make_candidate(laboratory))
        leak(laboratory)
        check_overlaps()
        overrule_verdict(actor=approver, version=table(), verdict="clean", reason="Every game has that record")
        ask_overlap_check(actor=laboratory.owner, version=table())
        assert told([promotion])[0].state == "promoted"
        overrule_verdict(actor=approver, version=table(), verdict="", reason="I was wrong")
        assert (told([promotion])[0].state, told([promotion])[0].suspended) == ("suspended", WHY)
        with pytest.raises(Refusal, match="nothing to take back"):
            overrule_verdict(actor=approver, version=table(), verdict="", reason="again")
        with pytest.raises(Refusal, match=r"It is contaminated: .* Wait for the check, or upload"):
            set_reusable(actor=laboratory.owner, version=table(), is_reusable=True, reason="x")
    client = client_of(laboratory.owner)
    for address in (f"{W}/datasets/table/", f"{W}/datasets/"):
        assert "ontaminated" in client.get(address).content.decode()
    answer = client.get(f"{API}/datasets/table/versions/1/verdict").json()
    assert (answer["verdict"], answer["contaminated_reason"]) == ("unchecked", "1 record of it stands in 1 version held out.")


def test_data_that_it_was_not_made_of_suspends_nothing(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        promotion = promote(laboratory, approver, make_candidate(laboratory))
        other = make_dataset_version(laboratory.owner, "other", content=b"a,b\n9,9\n8,8\n")
        make_dataset_version(laboratory.owner, "unseen", role="holdout", content=b"a,b\n9,9\n7,7\n")
        check_overlaps()
        overrule_verdict(actor=approver, version=other, verdict="clean", reason="A header")
        assert told([promotion])[0].may_be_rested_on
        overrule_verdict(actor=approver, version=other, verdict="", reason="No")
        assert told([promotion])[0].may_be_rested_on


def test_a_list_of_promotions_asks_no_more_than_one(laboratory: Laboratory, approver: Actor) -> None:
    with laboratory.opened():
        made = [promote(laboratory, approver, make_candidate(laboratory, content=name.encode()), name) for name in ("a", "b", "c")]
        leak(laboratory)
        check_overlaps()
        told(made)
        with CaptureQueriesContext(connection) as one:
            told(made[:1])
        with CaptureQueriesContext(connection) as several:
            assert {each.state for each in told(made)} == {"suspended"}
        assert len(several) == len(one) <= 10


def test_nobody_is_handed_what_is_suspended_at_the_address_that_stays(laboratory: Laboratory, approver: Actor, client: Client) -> None:
    with laboratory.opened():
        promotion = promote(laboratory, approver, make_candidate(laboratory))
        node, label = find_subject("dataset_version", table().public_id)
        withdrawal = withdraw(actor=laboratory.owner, subject=node, label=label, reason="Wrong column")
    for address in (f"{W}/promoted/champion/file/", f"{API}/promoted/champion/content"):
        answer = client.get(address)
        assert answer.status_code == 409, address
        said = answer.content.decode()
        assert "is suspended: table@1, which it rests on, is withdrawn: Wrong column." in said
    assert client.get(f"{API}/promoted/champion").json()["id"] == promotion.public_id, "what stands is still told"
    assert "1 artifact stands promoted, but is suspended" in client.get(f"{W}/promotions/").content.decode()
    with laboratory.opened():
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="It was right.")
    for address in (f"{W}/promoted/champion/file/", f"{API}/promoted/champion/content"):
        assert b"".join(client.get(address)) == b"weights"
    assert "1 artifact stands promoted<" in client.get(f"{W}/promotions/").content.decode()


def test_a_withdrawal_names_the_promotions_that_it_suspends_before_and_after(
    laboratory: Laboratory, approver: Actor, client: Client
) -> None:
    with laboratory.opened():
        stands, gone = (promote(laboratory, approver, make_candidate(laboratory, content=name.encode()), name) for name in ("one", "two"))
        withdraw_promotion(actor=laboratory.owner, promotion=gone, reason="No use")
        version = table().public_id
    link = f'<a href="{W}/promotions/{stands.public_id}/"><bdi>one, promotion 1</bdi></a>'
    preview = client.get(f"{W}/withdrawals/new/?kind=dataset_version&id={version}").content.decode()
    before = preview.partition("Promotions that would be suspended")[2]
    assert link in before
    assert "two, promotion 2" not in preview
    told_by_api = client.get(f"{API}/withdrawals/preview", {"kind": "dataset_version", "id": version}).json()
    assert told_by_api["promotions"] == [stands.public_id]
    with laboratory.opened():
        node, label = find_subject("dataset_version", version)
        withdrawal = withdraw(actor=laboratory.owner, subject=node, label=label, reason="Wrong column")
    page = f"{W}/withdrawals/{withdrawal.public_id}/"
    after = client.get(page).content.decode().partition("Promotions that it suspends")[2]
    assert link in after
    assert "suspended" in after.partition(link)[0]
    with laboratory.opened():
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="It was right.")
    assert "Promotions that it suspends" not in client.get(page).content.decode()
