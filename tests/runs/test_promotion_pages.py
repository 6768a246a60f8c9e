"""Pages and API of promotions: the checklist, the inbox, the address that stays, who may."""

from runs.checks.eligibility import CHECKS
from runs.commands.approval import decide_approval, expire_approval, withdraw_approval
from runs.commands.promotion import withdraw_promotion
from runs.models import Artifact, Promotion
from tests.factories import make_member
from tests.factories_pages import HOSTILE, client_of
from tests.factories_people import bearer, make_token
from tests.factories_promotions import change_licence, judge, make_candidate, propose
from tests.factories_runs import Laboratory
from tests.runs.test_promotion import approver, laboratory
from workspaces.access import Actor
from workspaces.models import Approval

__all__ = ["approver", "laboratory"]  # the fixtures, by their names
W = "/workspaces/lab"
API = f"/api/v1{W}"


def candidate(laboratory: Laboratory, **values: object) -> Artifact:
    with laboratory.opened():
        return make_candidate(laboratory, **values)  # type: ignore[arg-type]  # test input


def stand(laboratory: Laboratory, approver: Actor, artifact: Artifact) -> Promotion:
    with laboratory.opened():
        promotion, approval = propose(laboratory.owner, artifact)
        decide_approval(actor=approver, approval=approval, approves=True, seen_hash=approval.content_hash)
        return promotion


def test_from_the_artifact_to_what_stands(laboratory: Laboratory, approver: Actor) -> None:
    artifact = candidate(laboratory)
    researcher = client_of(make_member(laboratory.workspace, "researcher"))
    assert f"{W}/artifacts/{artifact.public_id}/promote/" in researcher.get(f"{W}/artifacts/{artifact.public_id}/").content.decode()
    shown = researcher.get(f"{W}/artifacts/{artifact.public_id}/promote/").content.decode()
    assert "can be put forward" in shown
    assert f"{len(CHECKS)} of {len(CHECKS)} checks hold" in shown
    answer = researcher.post(f"{W}/artifacts/{artifact.public_id}/promote/", {"name": "champion", "reason": HOSTILE})
    assert answer.status_code == 303
    page = researcher.get(answer["Location"]).content.decode()
    assert "Not yet:" in page
    assert "<script>alert" not in page
    inbox = client_of(approver).get(f"{W}/approvals/").content.decode()
    assert "Promote model.pt as champion" in inbox
    assert "Licence of its data" in inbox, "the inbox shows the checklist"
    with laboratory.opened():
        approval = Approval.objects.get()
    one = client_of(approver).get(f"{W}/approvals/{approval.public_id}/").content.decode()
    assert answer["Location"].split("prom_")[1].strip("/") in one, "the request leads to the promotion"
    judged = f'<a href="{W}/datasets/table/?version=1"><bdi>table@1</bdi></a>'
    assert judged in one, "the version that was judged, not the newest"
    decided = client_of(approver).post(
        f"{W}/approvals/{approval.public_id}/decide/",
        {"decision": "approve", "seen_hash": approval.content_hash, "back": f"{W}/promotions/"},
    )
    assert decided["Location"] == f"{W}/promotions/"
    page = researcher.get(answer["Location"]).content.decode()
    assert "people may rest on" in page
    assert judged in page
    assert "/.well-known/lab-keys.json" in page
    envelope = researcher.get(f"{answer['Location']}statement/").json()
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert "1 artifact stands promoted" in researcher.get(f"{W}/promotions/").content.decode()


def test_what_cannot_be_promoted_says_why_and_is_refused(laboratory: Laboratory) -> None:
    artifact = candidate(laboratory)
    with laboratory.opened():
        change_licence(laboratory, "")
    client = client_of(laboratory.owner)
    shown = client.get(f"{W}/artifacts/{artifact.public_id}/promote/").content.decode()
    assert "cannot be promoted yet" in shown
    assert f"{len(CHECKS) - 1} of {len(CHECKS)} checks hold, 1 cannot be told" in shown
    answer = client.post(f"{W}/artifacts/{artifact.public_id}/promote/", {"name": "champion"})
    assert answer.status_code == 409
    bad = client.post(f"{W}/artifacts/{artifact.public_id}/promote/", {"name": "Not A Name"})
    assert bad.status_code == 422
    with laboratory.opened():
        assert not Promotion.objects.exists()


def test_the_address_stays(laboratory: Laboratory, approver: Actor) -> None:
    client = client_of(laboratory.owner)
    assert client.get(f"{W}/promoted/champion/").status_code == 404
    first = candidate(laboratory, content=b"first weights")
    stand(laboratory, approver, first)
    assert client.get(f"{W}/promoted/champion/")["Location"] == f"{W}/artifacts/{first.public_id}/"
    second = candidate(laboratory, value=0.9, content=b"second weights")
    promotion = stand(laboratory, approver, second)
    assert client.get(f"{W}/promoted/champion/")["Location"] == f"{W}/artifacts/{second.public_id}/"
    assert b"".join(client.get(f"{W}/promoted/champion/file/")) == b"second weights"
    with laboratory.opened():
        withdraw_promotion(actor=laboratory.owner, promotion=promotion, reason="Trained on the holdout.")
    gone = client.get(f"{W}/promoted/champion/", follow=True)
    assert "Trained on the holdout." in gone.content.decode(), "it says what became of it"
    assert client.get(f"{W}/promoted/champion/file/").status_code == 404


def test_withdrawing_wants_a_reason(laboratory: Laboratory, approver: Actor) -> None:
    promotion = stand(laboratory, approver, candidate(laboratory))
    client = client_of(laboratory.owner)
    page = f"{W}/promotions/{promotion.public_id}/withdraw/"
    assert client.get(page).status_code == 200
    assert client.post(page, {"reason": ""}).status_code == 422
    assert client.post(page, {"reason": "A bug in the data."}).status_code == 303
    shown = client.get(f"{W}/promotions/{promotion.public_id}/").content.decode()
    assert "was withdrawn" in shown


def test_by_token(laboratory: Laboratory, approver: Actor) -> None:
    artifact = candidate(laboratory)
    _, secret = make_token(laboratory.workspace, laboratory.owner, "artifact:write")
    client = bearer(secret)
    look = client.get(f"{API}/artifacts/{artifact.public_id}/eligibility?name=champion").json()
    assert (look["eligible"], len(look["facts"])) == (True, len(CHECKS))
    made = client.post(f"{API}/promotions", {"artifact_id": artifact.public_id, "name": "champion"}, content_type="application/json")
    assert made.status_code == 201, made.content
    body = made.json()
    assert (body["status"], body["name"], body["suspended"]) == ("proposed", "champion", "")
    assert client.get(f"{API}/promoted/champion").status_code == 404
    with laboratory.opened():
        approval = Approval.objects.find(body["approval_id"])
        decide_approval(actor=approver, approval=approval, approves=True, seen_hash=approval.content_hash)
    standing = client.get(f"{API}/promoted/champion").json()
    assert (standing["id"], standing["decided_by"]) == (body["id"], approver.label)
    assert b"".join(client.get(f"{API}/promoted/champion/content")) == b"weights"
    assert client.get(f"{API}/promotions/{body['id']}/statement").json()["signatures"]
    assert [one["id"] for one in client.get(f"{API}/promotions?status=promoted").json()["items"]] == [body["id"]]
    gone = client.post(f"{API}/promotions/{body['id']}/withdraw", {"reason": "A bug."}, content_type="application/json")
    assert (gone.status_code, gone.json()["status"]) == (200, "withdrawn")
    assert client.get(f"{API}/promoted/champion").status_code == 404


def test_a_token_of_the_approver_cannot_ask_for_their_own_word(laboratory: Laboratory) -> None:
    """The generic rule holds here too: whoever asked, or made the token that did, does not decide."""
    artifact = candidate(laboratory)
    _, secret = make_token(laboratory.workspace, laboratory.owner, "artifact:write")
    made = bearer(secret).post(f"{API}/promotions", {"artifact_id": artifact.public_id, "name": "x"}, content_type="application/json")
    with laboratory.opened():
        approval = Approval.objects.find(made.json()["approval_id"])
    answer = client_of(laboratory.owner).post(
        f"{W}/approvals/{approval.public_id}/decide/", {"decision": "approve", "seen_hash": approval.content_hash}
    )
    assert answer.status_code == 409


def test_what_was_measured_anew_is_said_before_anybody_decides(laboratory: Laboratory, approver: Actor) -> None:
    artifact = candidate(laboratory, value=0.9)
    with laboratory.opened():
        _, approval = propose(laboratory.owner, artifact)
    address = f"{W}/approvals/{approval.public_id}/"
    page = client_of(approver).get(address).content.decode()
    assert 'value="approve"' in page
    assert "This is not what was asked any more" not in page
    with laboratory.opened():
        run = judge(laboratory, artifact, 0.6)
    for actor, way_out, word in ((approver, "refuse it", 'value="refuse"'), (laboratory.owner, "withdraw it", ">Withdraw</button>")):
        page = client_of(actor).get(address).content.decode()
        assert "This is not what was asked any more" in page.partition("What exactly is asked")[0]
        assert "Facts, Measured, observed: was accuracy 0.900 ± 0.010, is accuracy 0.600 ± 0.010." in page
        assert f"measured by {run.name}" in page
        assert "evidence" not in page.partition("What exactly is asked")[0], "the words name what the links lead to"
        assert (way_out in page, word in page) == (True, True)
        assert ('value="approve"' in page, 'value="alone"' in page) == (False, False)
    client_of(approver).post(f"{address}decide/", {"decision": "approve", "seen_hash": approval.content_hash})
    with laboratory.opened():
        approval.refresh_from_db()
        assert (approval.status, "was accuracy 0.900 ± 0.010" in approval.end_reason) == ("void", True), (
            "the page told what the decision finds"
        )
    assert "This is not what was asked any more" not in client_of(approver).get(address).content.decode(), "it has ended"


def test_what_nobody_refused_is_not_called_refused(laboratory: Laboratory, approver: Actor) -> None:
    """Kept as refused, all four of them; the pages say what became of each."""
    made = [candidate(laboratory, value=0.9, content=text) for text in (b"void", b"late", b"unwanted", b"bad")]
    with laboratory.opened():
        asked = [propose(laboratory.owner, artifact) for artifact in made]
        judge(laboratory, made[0], 0.6)
        decide_approval(actor=approver, approval=asked[0][1], approves=True, seen_hash=asked[0][1].content_hash)
        expire_approval(actor=Actor.system(job_id="test"), approval=asked[1][1])
        withdraw_approval(actor=laboratory.owner, approval=asked[2][1], reason="A better one comes.")
        decide_approval(actor=approver, approval=asked[3][1], approves=False, comment="Too few.", seen_hash=asked[3][1].content_hash)
    client = client_of(laboratory.owner)
    words = ("became void", "nobody decided in time on", "is asked for no more", "was refused")
    for (promotion, _), said in zip(asked, words, strict=True):
        page = client.get(f"{W}/promotions/{promotion.public_id}/").content.decode()
        answer = page.partition("<h1>")[2].partition("</h1>")[0]
        assert [word in answer for word in words] == [word == said for word in words]
    page = client.get(f"{W}/promotions/{asked[0][0].public_id}/").content.decode()
    assert "It is not what was put forward any more." in page
    assert "Measured, observed: was accuracy 0.900 ± 0.010, is accuracy 0.600 ± 0.010." in page, "and why"
    listed = client.get(f"{W}/promotions/").content.decode()
    assert [f">{state}</span>" in listed for state in ("void", "expired", "withdrawn", "refused")] == [True] * 4
    assert [
        client.get(f"{W}/promotions/?status={status}").content.decode().count('<th scope="row">') for status in ("refused", "undecided")
    ] == [1, 3]
    _, secret = make_token(laboratory.workspace, laboratory.owner, "artifact:write")
    items = bearer(secret).get(f"{API}/promotions?status=refused").json()["items"]
    assert sorted(one["undecided"] for one in items) == ["", "expired", "void", "withdrawn"]
