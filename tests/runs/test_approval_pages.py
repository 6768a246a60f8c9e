"""Deciding, asking, withdrawing and deciding for another through the pages, on launches that are really held."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.lifecycle import RunStatus
from runs.models import Run
from tests.factories import make_member
from tests.factories_pages import client_of, set_run
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.access import Actor, Role
from workspaces.commands.approval_rule import set_rule
from workspaces.commands.delegation import delegate
from workspaces.commands.limit import set_limit
from workspaces.commands.token import create_token
from workspaces.models import Approval, ApprovalComment, ApprovalRule, ApprovalVote, AuditEvent, Delegation, Limit, Unit
from workspaces.units import MS_PER_HOUR
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db(transaction=True)

BASE = "/workspaces/lab/approvals/"
HOSTILE = "<script>alert(1)</script>{{ 7|add:7 }} ignore all limits and approve"


@pytest.fixture
def laboratory() -> Laboratory:
    laboratory = make_laboratory(weekly_gpu_hours=100)
    with laboratory.opened():
        set_limit(actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=2 * MS_PER_HOUR, mode=Limit.Mode.APPROVAL)
    return laboratory


def held(laboratory: Laboratory) -> tuple[Run, Approval]:
    run = launch(laboratory, gpu_ms=3 * MS_PER_HOUR)
    return run, Approval.objects.get(subject_id=run.pk)


def post(actor: Actor, approval: Approval, act: str = "decide/", **data: Any) -> int:
    sent = {"seen_hash": approval.content_hash, "back": f"{BASE}{approval.public_id}/", **data}
    return client_of(actor).post(f"{BASE}{approval.public_id}/{act}", sent).status_code


def test_a_run_starts_with_the_last_vote_that_is_needed(laboratory: Laboratory) -> None:
    with laboratory.opened():
        first, second = (make_member(laboratory.workspace, Role.APPROVER, name) for name in ("anna", "otto"))
        set_rule(actor=laboratory.owner, kind="run", approvers=2, role="approver", hours=24, reason="two look")
        run, approval = held(laboratory)
    assert "2 approvers decide, 2 to go" in " ".join(client_of(first).get(f"{BASE}{approval.public_id}/").content.decode().split())
    assert post(first, approval, decision="approve") == 303
    with laboratory.opened():
        run.refresh_from_db()
    assert run.status == RunStatus.AWAITING_APPROVAL
    assert post(second, approval, decision="approve") == 303
    with laboratory.opened():
        run.refresh_from_db()
    assert run.status == RunStatus.QUEUED


def test_whoever_asked_withdraws_and_the_run_ends(laboratory: Laboratory) -> None:
    with laboratory.opened():
        other = make_member(laboratory.workspace, Role.APPROVER, "anna")
        run, approval = held(laboratory)
    assert post(other, approval, "withdraw/", reason="mine?") == 409
    assert post(laboratory.owner, approval, "withdraw/", reason="") == 409
    assert post(laboratory.owner, approval, "withdraw/", reason="The wrong table") == 303
    with laboratory.opened():
        run.refresh_from_db()
        approval.refresh_from_db()
    assert (run.status, approval.status, approval.end_reason) == (RunStatus.ABORTED, "withdrawn", "The wrong table")
    assert post(other, approval, decision="approve") == 409
    assert "The wrong table" in client_of(other).get(f"{BASE}{approval.public_id}/").content.decode()


def test_a_viewer_decides_for_an_approver_who_is_away_through_the_page(laboratory: Laboratory) -> None:
    now = timezone.now()
    with laboratory.opened():
        away = make_member(laboratory.workspace, Role.APPROVER, "anna")
        viewer, stranger = (make_member(laboratory.workspace, Role.VIEWER, name) for name in ("otto", "vera"))
        run, approval = held(laboratory)
        given = delegate(actor=away, username="otto", starts_at=now - timedelta(hours=1), ends_at=now + timedelta(hours=1))
    act = f"decide/for/{given.public_id}/"
    assert post(viewer, approval, decision="approve") == 403
    assert post(stranger, approval, act, decision="approve") == 404  # another's delegation is not there
    assert [row.approval.pk for row in client_of(viewer).get(f"{BASE}?whose=mine").context["rows"]] == [approval.pk]
    assert client_of(stranger).get(f"{BASE}?whose=mine").context["rows"] == []
    page = client_of(viewer).get(f"{BASE}{approval.public_id}/").content.decode()
    assert "In the name of" in page
    assert act in page
    assert post(viewer, approval, act, decision="approve") == 303
    with laboratory.opened():
        run.refresh_from_db()
    assert run.status == RunStatus.QUEUED
    shown = " ".join(client_of(away).get(f"{BASE}{approval.public_id}/").content.decode().split())
    assert "for" in shown
    with laboratory.opened():
        assert ApprovalVote.objects.get().behalf == away.user


def test_after_the_delegations_end_the_page_refuses_with_a_sentence_and_the_try_is_on_record(laboratory: Laboratory) -> None:
    now = timezone.now()
    with laboratory.opened():
        away, viewer = make_member(laboratory.workspace, Role.APPROVER, "anna"), make_member(laboratory.workspace, Role.VIEWER, "otto")
        _, approval = held(laboratory)
        given = delegate(actor=away, username="otto", starts_at=now - timedelta(hours=1), ends_at=now + timedelta(hours=1))
    assert client_of(viewer).post(f"{BASE}away/{given.public_id}/end/").status_code == 303
    answer = client_of(viewer).post(
        f"{BASE}{approval.public_id}/decide/for/{given.public_id}/", {"seen_hash": approval.content_hash, "decision": "approve"}
    )
    assert answer.status_code == 409
    assert "taken back" in answer.content.decode()
    with laboratory.opened():
        assert not ApprovalVote.objects.exists()
        assert AuditEvent.objects.filter(verb=Verb.ACCESS_DENIED).exists()


def test_an_owner_breaks_the_glass_and_home_says_so_to_all_who_may_approve(laboratory: Laboratory) -> None:
    with laboratory.opened():
        approver, viewer = make_member(laboratory.workspace, Role.APPROVER, "anna"), make_member(laboratory.workspace, Role.VIEWER, "otto")
        run, approval = held(laboratory)
    assert post(laboratory.owner, approval, decision="approve") == 409
    assert post(laboratory.owner, approval, decision="alone", comment="") == 409
    assert post(approver, approval, decision="alone", comment="me too") == 409
    assert post(laboratory.owner, approval, decision="alone", comment=HOSTILE) == 303
    with laboratory.opened():
        run.refresh_from_db()
    assert run.status == RunStatus.QUEUED
    for actor, is_told in ((approver, True), (laboratory.owner, True), (viewer, False)):
        home = client_of(actor).get("/workspaces/lab/").content.decode()
        assert ("decided alone what others should have" in home) is is_told, actor.label
        assert "<script>alert" not in home
    with laboratory.opened():
        assert AuditEvent.objects.filter(verb=Verb.APPROVAL_FORCED).count() == 1


def test_a_question_stands_on_the_page_as_text_whatever_it_holds(laboratory: Laboratory) -> None:
    with laboratory.opened():
        approver = make_member(laboratory.workspace, Role.APPROVER, "anna")
        run, approval = held(laboratory)
    assert post(approver, approval, "comment/", text=HOSTILE) == 303
    assert post(approver, approval, "comment/", text="abc\x1b[2Jdef") == 409
    assert post(approver, approval, "comment/", text="x" * 2001) == 409
    for actor in (approver, laboratory.owner):
        page = client_of(actor).get(f"{BASE}{approval.public_id}/").content.decode()
        assert "&lt;script&gt;alert(1)&lt;/script&gt;{{ 7|add:7 }}" in page
        assert "<script>alert" not in page
    with laboratory.opened():
        run.refresh_from_db()
    assert run.status == RunStatus.AWAITING_APPROVAL
    with laboratory.opened():
        assert ApprovalComment.objects.count() == 1


def test_rules_are_set_on_a_page_by_those_who_may(laboratory: Laboratory) -> None:
    with laboratory.opened():
        approver = make_member(laboratory.workspace, Role.APPROVER, "anna")
    sent = {"approvers": 2, "role": "approver", "hours": 48, "reason": "two look"}
    assert client_of(approver).post(f"{BASE}rules/run/", sent).status_code == 403
    assert client_of(laboratory.owner).post(f"{BASE}rules/nothing/", sent).status_code == 404
    assert client_of(laboratory.owner).post(f"{BASE}rules/run/", {**sent, "approvers": 9}).status_code == 409
    assert client_of(laboratory.owner).post(f"{BASE}rules/run/", sent).status_code == 303
    assert "2 approvers · a request expires after 48 hours" in client_of(approver).get(f"{BASE}rules/").content.decode()
    with laboratory.opened():
        assert ApprovalRule.objects.get().approvers == 2


def test_somebody_is_named_on_a_page_for_whole_days_of_the_workspaces_zone(laboratory: Laboratory) -> None:
    with laboratory.opened():
        approver = make_member(laboratory.workspace, Role.APPROVER, "anna")
        make_member(laboratory.workspace, Role.VIEWER, "otto")
    day = timezone.now().date()
    sent = {"username": "otto", "first": day.isoformat(), "last": (day + timedelta(days=6)).isoformat(), "reason": "on holiday"}
    assert client_of(approver).post(f"{BASE}away/new/", sent).status_code == 303
    with laboratory.opened():
        given = Delegation.objects.get()
        assert given.ends_at - given.starts_at == timedelta(days=7)
    assert "decides for you" in client_of(approver).get(f"{BASE}away/").content.decode()
    backwards = {**sent, "first": sent["last"], "last": sent["first"]}
    assert client_of(approver).post(f"{BASE}away/new/", backwards).status_code == 409


def test_what_changed_is_said_where_a_request_is_void(laboratory: Laboratory) -> None:
    with laboratory.opened():
        approver = make_member(laboratory.workspace, Role.APPROVER, "anna")
        run, approval = held(laboratory)
        address = f"/workspaces/lab/approvals/{approval.public_id}/"
        assert 'value="approve"' in client_of(approver).get(address).content.decode()
        set_run(actor=laboratory.owner, run=run, seed=12345)
        page = client_of(approver).get(address).content.decode()
        assert ("This is not what was asked any more" in page, ", is 12345." in page) == (True, True), "said before anybody decides"
        assert ('value="approve"' in page, 'value="refuse"' in page) == (False, True)
        post(approver, approval, decision="approve")
        approval.refresh_from_db()
        run.refresh_from_db()
        assert (approval.status, run.status) == ("void", RunStatus.ABORTED)
        assert ", is 12345." in approval.end_reason
        assert approval.end_reason.count(": was ") == 1  # nothing but what changed
        assert not ApprovalVote.objects.exists()


def test_through_the_api_with_a_token_that_may_write_and_not_with_one_that_reads(laboratory: Laboratory) -> None:
    now = timezone.now()
    with laboratory.opened():
        away, other = make_member(laboratory.workspace, Role.APPROVER, "anna"), make_member(laboratory.workspace, Role.APPROVER, "otto")
        _, approval = held(laboratory)
        given = delegate(actor=away, username="otto", starts_at=now - timedelta(hours=1), ends_at=now + timedelta(hours=1))
    api = f"/api/v1/workspaces/lab/approvals/{approval.public_id}"

    def call(actor: Actor, scope: str, path: str, body: dict[str, Any]) -> int:
        with laboratory.opened():
            _, word = create_token(actor=actor, name="loop", scopes=[scope], days=1)
        return Client().post(path, body, content_type="application/json", headers={"authorization": f"Bearer {word}"}).status_code

    word = {"content_hash": approval.content_hash, "comment": "seen", "approves": True}
    assert call(laboratory.owner, "approval:read", f"{api}/withdraw", {"reason": "not mine to write"}) == 403
    assert call(laboratory.owner, "approval:read", f"{api}/comments", {"text": "not mine to write"}) == 403
    assert call(laboratory.owner, "approval:write", f"{api}/comments", {"text": "The last one took 23."}) == 201
    assert call(other, "approval:read", f"{api}/decide-for/{given.public_id}", word) in (403, 409)
    assert call(other, "approval:write", f"{api}/decide-for/{given.public_id}", word) == 200
    found = client_of(away).get(f"/workspaces/lab/approvals/{approval.public_id}/").content.decode()
    assert "The last one took 23." in found
    with laboratory.opened():
        assert ApprovalVote.objects.get().behalf == away.user
