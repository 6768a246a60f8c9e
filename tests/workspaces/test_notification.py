"""What people are told about requests: who, once, in which words; and what they do about it."""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories import make_member, make_user, make_workspace
from tests.factories_pages import CJK, HOSTILE, client_of
from tests.factories_people import bearer, make_group, make_operator, make_token
from tests.factories_resources import ask, end_vote, expire, join, remove_member, vote
from workspaces import ids, scope
from workspaces.access import Actor, Role, rights_of
from workspaces.commands.member import add_member, change_member, create_service_account
from workspaces.commands.notification import BATCH, forget_old, notify, see
from workspaces.models import Approval, Membership, Notification, Workspace
from workspaces.queries.notification import MOST, bar_of, told_to

CONTENT = {"asks": "Launch big-run", "limits": {}, "pool": {"slug": "local"}}
Cause = Notification.Cause


@dataclass
class Lab:
    workspace: Workspace
    owner: Actor
    researcher: Actor
    approver: Actor

    def ask(self, **more: Any) -> Approval:
        return ask(actor=self.researcher, content=CONTENT, **more)


@pytest.fixture
def lab(db: None) -> Iterator[Lab]:
    workspace, owner = make_workspace("lab", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        yield Lab(workspace, owner, join(owner, "researcher"), join(owner, "approver", Role.APPROVER))


def told(actor: Actor) -> list[tuple[str, str, str, str]]:
    """(cause, label, outcome, words) of what a person was told, oldest first."""
    rows = Notification.objects.filter(person=actor.user).order_by("created_at", "pk")
    return list(rows.values_list("cause", "subject_label", "outcome", "words"))


def tell(actor: Actor, count: int = 1, label: str = "mine-01", **more: Any) -> None:
    assert actor.user is not None
    for _ in range(count):
        values: dict[str, Any] = {"cause": Cause.RUN_ENDED, "subject_type": "run", "subject_id": ids.uuid7(), "outcome": "succeeded"}
        notify([actor.user], label=label, **values | more)


def unseen(actor: Actor) -> int:
    rights = rights_of(actor, scope.current_id())
    return bar_of(actor, rights, is_in_workspace=True).unseen


# --- Who is told what ---------------------------------------------------------------------------------------------------------------------


def test_whoever_may_decide_is_told_and_whoever_asked_is_not(lab: Lab) -> None:
    join(lab.owner, "viewer", Role.VIEWER)
    lab.ask()
    people = set(Notification.objects.values_list("person__username", "cause"))
    assert people == {("approver", Cause.APPROVAL_ASKED), ("lab-owner", Cause.APPROVAL_ASKED)}
    assert told(lab.approver) == [(Cause.APPROVAL_ASKED, "Launch big-run", "pending", "to see")]


def test_an_approver_who_asks_is_not_called_to_their_own_request(lab: Lab) -> None:
    ask(actor=lab.owner, content=CONTENT)
    assert told(lab.owner) == []
    assert len(told(lab.approver)) == 1


def test_members_of_a_group_are_told_and_the_right_kind_is_asked_for(lab: Lab) -> None:
    through_group, elsewhere = make_user("grace"), make_user("narrow")
    group = make_group(make_operator(), "deciders", through_group)
    add_member(actor=lab.owner, role=Role.APPROVER, group=group)
    add_member(actor=lab.owner, role=Role.APPROVER, user=elsewhere, kinds=["run"])
    lab.ask()
    assert len(told(Actor.of(through_group))) == 1
    assert told(Actor.of(elsewhere)) == []


def test_whoever_made_the_token_that_asked_is_not_called(lab: Lab) -> None:
    service = create_service_account(actor=lab.owner, username="robot", display_name="Robot", role=Role.RESEARCHER).user
    assert service is not None
    token, _ = make_token(lab.workspace, lab.owner, "run:write", holder=service)
    approval = ask(actor=Actor.of(service), content=CONTENT, token_id=token.pk)
    assert (told(lab.owner), len(told(lab.approver))) == ([], 1)
    vote(actor=lab.approver, approval=approval, approves=True)
    assert told(Actor.of(service)) == []  # a program reads no pages


def test_who_has_left_is_not_told(lab: Lab) -> None:
    remove_member(actor=lab.owner, username="approver")
    lab.ask()
    assert told(lab.approver) == []


@pytest.mark.parametrize(
    ("approves", "comment", "outcome"), [(True, "", "approved"), (False, "too much", "refused")], ids=["approved", "refused"]
)
def test_whoever_asked_is_told_of_the_decision(lab: Lab, approves: bool, comment: str, outcome: str) -> None:
    vote(actor=lab.approver, approval=lab.ask(), approves=approves, comment=comment)
    assert told(lab.researcher) == [(Cause.APPROVAL_DECIDED, "Launch big-run", outcome, comment)]


def test_whoever_asked_is_told_that_nobody_decided_or_that_it_is_void(lab: Lab) -> None:
    expire(actor=Actor.system(job_id="sweep"), approval=lab.ask())
    cancelled = lab.ask()
    end_vote(actor=lab.researcher, subject_id=cancelled.subject_id)
    vote(actor=lab.approver, approval=lab.ask(), approves=True, current_hash="ab" * 32)
    assert [outcome for _, _, outcome, _ in told(lab.researcher)] == ["expired", "void", "void"]


def test_one_vote_of_two_decides_nothing_and_tells_nothing(lab: Lab) -> None:
    vote(actor=lab.approver, approval=lab.ask(quorum=2), approves=True)
    assert told(lab.researcher) == []


def test_a_decision_calls_the_others_off(lab: Lab) -> None:
    approval = lab.ask()
    assert (unseen(lab.owner), unseen(lab.approver)) == (1, 1)
    vote(actor=lab.approver, approval=approval, approves=True)
    assert (unseen(lab.owner), unseen(lab.approver)) == (0, 0)
    assert told(lab.owner) == [(Cause.APPROVAL_ASKED, "Launch big-run", "approved", "to see")]
    body = client_of(lab.owner).get("/workspaces/lab/notifications/").content.decode()
    assert "You were asked to decide" in body
    assert "waits for your decision" not in body


def test_a_person_is_told_once_for_each_cause_and_subject(lab: Lab) -> None:
    subject = ids.uuid7()
    tell(lab.researcher, 2, subject_id=subject)
    tell(lab.researcher, subject_id=subject, cause=Cause.SWEEP_ENDED, subject_type="sweep")
    tell(lab.owner, subject_id=subject)
    assert (len(told(lab.researcher)), len(told(lab.owner))) == (2, 1)


def test_long_text_is_cut(lab: Lab) -> None:
    tell(lab.researcher, label="n" * 400, words="w" * 2_000)
    ((_, label, _, words),) = told(lab.researcher)
    assert (len(label), len(words)) == (300, 300)


# --- The bar and the page -----------------------------------------------------------------------------------------------------------------


def bell(client: Client, path: str = "/workspaces/lab/approvals/") -> str:
    found = re.search(r'id="bell".*?aria-label="([^"]*)"', client.get(path).content.decode(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_bell_says_how_much_is_unseen_and_leads_to_it(lab: Lab) -> None:
    client = client_of(lab.researcher)
    assert bell(client) == "Notifications"
    tell(lab.researcher, 3)
    tell(lab.owner, 2)
    assert bell(client) == "Notifications, 3 not seen yet"
    assert 'href="/workspaces/lab/notifications/"' in client.get("/workspaces/lab/approvals/").content.decode()


def test_the_bell_stops_counting_at_a_hundred(lab: Lab) -> None:
    tell(lab.researcher, MOST + 5)
    assert bell(client_of(lab.researcher)) == "Notifications, 99+ not seen yet"


def test_the_count_costs_no_query_of_its_own(lab: Lab) -> None:
    rights = rights_of(lab.researcher, lab.workspace.pk)
    with CaptureQueriesContext(connection) as asked:
        bar = bar_of(lab.researcher, rights, is_in_workspace=True)
    assert (len(asked), bar.workspaces, bar.unseen) == (1, [("Lab", "lab")], 0)


def test_the_list_shows_ones_own_newest_first_with_where_they_lead(lab: Lab) -> None:
    tell(lab.owner, label="of-another")
    run = ids.uuid7()
    tell(lab.researcher, label="older")
    tell(lab.researcher, label="newer", subject_id=run, outcome="failed", words="The program ended with exit code 3.")
    vote(actor=lab.approver, approval=lab.ask(), approves=True)
    body = client_of(lab.researcher).get("/workspaces/lab/notifications/").content.decode()
    assert re.findall(r"<bdi>(Launch big-run|newer|older|of-another)</bdi>", body) == ["Launch big-run", "newer", "older"]
    assert f'href="/workspaces/lab/runs/run_{run.hex}/"' in body
    assert f'href="/workspaces/lab/approvals/approval_{Approval.objects.get().pk.hex}/"' in body
    assert "The program ended with exit code 3." in body
    assert "3 not seen yet" in body


def test_what_people_wrote_is_text(lab: Lab) -> None:
    tell(lab.researcher, label=HOSTILE, words=HOSTILE)
    tell(lab.researcher, label=CJK)
    body = client_of(lab.researcher).get("/workspaces/lab/notifications/").content.decode()
    assert "<script>alert" not in body
    assert 'onload="x' not in body
    assert CJK in body


def test_looking_marks_nothing_and_the_button_marks_one(lab: Lab) -> None:
    tell(lab.researcher, 2)
    client = client_of(lab.researcher)
    client.get("/workspaces/lab/notifications/")
    assert unseen(lab.researcher) == 2
    newest = Notification.objects.filter(person=lab.researcher.user).latest("created_at")
    answer = client.post(f"/workspaces/lab/notifications/{newest.public_id}/seen/", {"only": "unseen"})
    assert (answer.status_code, answer["Location"]) == (303, "/workspaces/lab/notifications/?only=unseen")
    newest.refresh_from_db()
    assert (newest.seen_at is not None, unseen(lab.researcher)) == (True, 1)
    before = newest.seen_at
    client.post(f"/workspaces/lab/notifications/{newest.public_id}/seen/")
    newest.refresh_from_db()
    assert newest.seen_at == before  # seen once


def test_mark_all_leaves_what_came_since(lab: Lab) -> None:
    tell(lab.researcher, 3)
    tell(lab.owner)
    client = client_of(lab.researcher)
    body = client.get("/workspaces/lab/notifications/").content.decode()
    newest = re.search(r'name="newest"\s+value="([^"]+)"', body)
    assert newest is not None
    tell(lab.researcher, label="came-since")
    client.post("/workspaces/lab/notifications/seen/", {"newest": newest[1]})
    assert list(Notification.objects.filter(seen_at=None, person=lab.researcher.user).values_list("subject_label", flat=True)) == [
        "came-since"
    ]
    assert unseen(lab.owner) == 1  # nobody marks for another
    only = client.get("/workspaces/lab/notifications/?only=unseen").content.decode()
    assert "came-since" in only
    assert "mine-01" not in only


def test_pages_walk_through_everything_once(lab: Lab) -> None:
    tell(lab.researcher, 120)
    client, address, found = client_of(lab.researcher), "/workspaces/lab/notifications/", []
    while address:
        body = client.get(address).content.decode()
        found += re.findall(r"runs/(run_[0-9a-f]{32})/", body)
        link = re.search(r'href="([^"]*)"\s+rel="next"', body)
        address = "/workspaces/lab/notifications/" + link[1].replace("&amp;", "&") if link else ""
        assert len(found) < 500
    assert (len(found), len(set(found))) == (120, 120)
    assert client.get("/workspaces/lab/notifications/?after=nonsense").status_code == 200


def test_another_persons_row_is_not_there(lab: Lab) -> None:
    tell(lab.owner)
    row = Notification.objects.get(person=lab.owner.user)
    client = client_of(lab.researcher)
    assert client.post(f"/workspaces/lab/notifications/{row.public_id}/seen/").status_code == 404
    assert client.post("/workspaces/lab/notifications/seen/", {"newest": row.public_id}).status_code == 404
    assert client.post("/workspaces/lab/notifications/seen/", {"newest": "x\x00y" * 400}).status_code == 404
    assert client.post("/workspaces/lab/notifications/seen/").status_code == 404
    assert client.get("/workspaces/lab/notifications/seen/").status_code == 405
    assert unseen(lab.owner) == 1


def test_an_ex_member_sees_nothing(lab: Lab) -> None:
    tell(lab.researcher)
    client = client_of(lab.researcher)
    remove_member(actor=lab.owner, username="researcher")
    assert client.get("/workspaces/lab/notifications/").status_code == 404
    assert told_to(lab.researcher, rights_of(lab.researcher, lab.workspace.pk)).count() == 0


def test_a_member_narrowed_since_is_told_only_of_what_they_may_still_view(lab: Lab) -> None:
    tell(lab.approver)
    lab.ask()
    assert unseen(lab.approver) == 2
    member = Membership.objects.get(user=lab.approver.user)
    change_member(actor=lab.owner, member=member.public_id, role=Role.APPROVER, kinds=["approval"])
    assert unseen(lab.approver) == 1
    assert "mine-01" not in client_of(lab.approver).get("/workspaces/lab/notifications/").content.decode()


# --- The API, old rows, many at once ------------------------------------------------------------------------------------------------------


def test_the_api_lists_and_marks(lab: Lab) -> None:
    tell(lab.researcher, 3)
    tell(lab.owner)
    _, secret = make_token(lab.workspace, lab.researcher, "workspace:read", "run:read")
    client = bearer(secret)
    page = client.get("/api/v1/workspaces/lab/notifications?limit=2").json()
    rest = client.get("/api/v1/workspaces/lab/notifications", {"limit": 2, "cursor": page["next"]}).json()
    assert (len(page["items"]), len(rest["items"]), rest["next"]) == (2, 1, None)
    first = page["items"][0]
    assert (first["status"], first["cause"], first["outcome"], first["sentence"]) == (
        "unseen", "run_ended", "succeeded", "Your run ended",
    )  # fmt: skip
    one = client.post(f"/api/v1/workspaces/lab/notifications/{page['items'][1]['id']}/seen").json()
    assert (one["status"], one["seen_at"] is not None) == ("seen", True)
    answer = client.post("/api/v1/workspaces/lab/notifications/seen", {"newest": first["id"]}, content_type="application/json")
    assert answer.json() == {"seen": 2, "url": "/workspaces/lab/notifications/"}
    assert client.get("/api/v1/workspaces/lab/notifications?unseen=true").json()["items"] == []
    other = Notification.objects.get(person=lab.owner.user)
    assert client.post(f"/api/v1/workspaces/lab/notifications/{other.public_id}/seen").status_code == 404
    bad = client.post("/api/v1/workspaces/lab/notifications/seen", {"newest": "x", "more": 1}, content_type="application/json")
    assert bad.status_code == 422


def age(label: str, days: int, *, is_seen: bool) -> None:
    values = {"created_at": Now() - timedelta(days=days), "seen_at": Now() if is_seen else None}
    Notification.objects.filter(subject_label=label).update(**values)


def test_old_ones_are_forgotten(lab: Lab) -> None:
    for label, days, is_seen in (("a", 29, True), ("b", 31, True), ("c", 31, False), ("d", 181, False), ("e", 181, True)):
        tell(lab.researcher, label=label)
        age(label, days, is_seen=is_seen)
    assert forget_old() == 3
    assert sorted(label for _, label, _, _ in told(lab.researcher)) == ["a", "c"]
    assert forget_old() == 0
    assert BATCH <= 10_000


@pytest.mark.django_db(transaction=True)
def test_two_tabs_mark_everything_once() -> None:
    workspace, _ = make_workspace("lab")
    reader = make_member(workspace, Role.RESEARCHER, "reader")
    with scope.open_workspace(workspace.pk):
        tell(reader, 300)
    counts: list[int] = []

    def mark() -> None:
        try:
            with scope.open_workspace(workspace.pk):
                counts.append(see(told_to(reader, rights_of(reader, workspace.pk))))
        finally:
            connection.close()

    threads = [threading.Thread(target=mark) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == 4
    assert sum(counts) == 300
    with scope.open_workspace(workspace.pk):
        assert unseen(reader) == 0


@pytest.mark.django_db(transaction=True)
def test_another_workspaces_rows_are_neither_counted_nor_shown() -> None:
    _, owner = make_workspace("first")
    second, _ = make_workspace("second", owner=owner.user)
    with scope.open_workspace(second.pk):
        tell(owner, label="elsewhere")
        theirs = Notification.objects.get()
    client = client_of(owner)
    assert bell(client, "/workspaces/first/notifications/") == "Notifications"
    assert bell(client, "/workspaces/second/notifications/") == "Notifications, 1 not seen yet"
    assert "elsewhere" not in client.get("/workspaces/first/notifications/").content.decode()
    assert client.post(f"/workspaces/first/notifications/{theirs.public_id}/seen/").status_code == 404
