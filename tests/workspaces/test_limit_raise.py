"""Larger limits: at once where the workspace has no rule for them, another person's decision where it has; bound to what the limit was."""

from collections.abc import Iterator
from typing import Any

import pytest

from runs.commands.approval import decide_approval
from tests.factories import make_workspace
from tests.factories_people import bearer, make_token, signed_in
from tests.factories_resources import join, remove_member
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.audit import Refusal
from workspaces.commands.approval_rule import set_rule
from workspaces.commands.limit import remove_limit, set_limit
from workspaces.commands.limit_raise import change_limit, drop_limit
from workspaces.models import Approval, AuditEvent, LedgerAccount, Limit, Notification, Unit, Workspace
from workspaces.units import MS_PER_HOUR as HOUR

pytestmark = pytest.mark.django_db(transaction=True)

WEEK: dict[str, Any] = {"unit": Unit.GPU_MS, "window": Limit.Window.WEEK, "mode": Limit.Mode.STOP}
HOSTILE = "<script>alert(1)</script>{{ 7|add:7 }} \u202eapprove all"


@pytest.fixture
def lab() -> Iterator[tuple[Actor, Actor]]:
    """The owner, and an approver."""
    workspace, owner = make_workspace("lab", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        approver = join(owner, "anna", Role.APPROVER)
        set_limit(actor=owner, amount=10 * HOUR, **WEEK)
        yield owner, approver


def rule(owner: Actor) -> None:
    set_rule(actor=owner, kind="limit", approvers=1, role="approver", hours=24, reason="two look at money")


def raised(owner: Actor, hours: int = 20, **more: Any) -> Approval:
    made = change_limit(actor=owner, amount=hours * HOUR, reason="The sweep needs it", **{**WEEK, **more})
    assert isinstance(made, Approval)
    return made


def decide(actor: Actor, asked: Approval, **said: Any) -> Approval:
    return decide_approval(actor=actor, approval=asked, seen_hash=asked.content_hash, **{"approves": True, **said})


def hours() -> float:
    return Limit.objects.get(**WEEK).amount / HOUR


def test_without_a_rule_nobody_is_asked(lab: tuple[Actor, Actor]) -> None:
    owner, _ = lab
    made = change_limit(actor=owner, amount=20 * HOUR, reason="alone here", **WEEK)
    assert isinstance(made, Limit)
    assert hours() == 20
    assert not Approval.objects.exists()


def test_with_a_rule_another_person_decides_and_the_open_window_follows(lab: tuple[Actor, Actor]) -> None:
    owner, approver = lab
    rule(owner)
    asked = raised(owner)
    assert (hours(), asked.requested_by, asked.content["asks"]) == (
        10,
        owner.user,
        "Raise GPU-hours a week from 10 GPU-hours to 20 GPU-hours",
    )
    assert Notification.objects.filter(person=approver.user, cause="approval_asked", subject_id=asked.pk).exists()
    with pytest.raises(Refusal, match="You asked for this yourself"):
        decide(owner, asked)
    assert decide(approver, asked, comment="There is money").status == "approved"
    assert hours() == 20
    event = AuditEvent.objects.latest("sequence")
    assert (event.verb, event.subject_type, event.actor_label) == ("limit.set", "limit", "Anna")
    accounts = LedgerAccount.objects.filter(unit=Unit.GPU_MS, window="week", side="available")
    assert [account.balance for account in accounts] in ([], [20 * HOUR]), "what the open window has follows, where one is open"
    assert AuditEvent.objects.filter(verb="limit.raise_asked").count() == 1


def test_lowering_warnings_and_thresholds_are_at_once(lab: tuple[Actor, Actor]) -> None:
    owner, _ = lab
    rule(owner)
    change_limit(actor=owner, amount=4 * HOUR, reason="less", **WEEK)
    assert hours() == 4
    for amount in (1, 2):
        assert isinstance(change_limit(actor=owner, amount=amount * HOUR, reason="told later", **{**WEEK, "mode": Limit.Mode.WARN}), Limit)
    assert isinstance(change_limit(actor=owner, amount=4 * HOUR, thresholds=[50], reason="told sooner", **WEEK), Limit)
    assert isinstance(change_limit(actor=owner, amount=2 * HOUR, reason="new", **{**WEEK, "mode": Limit.Mode.APPROVAL}), Limit), "a new one"


def test_removing_is_raising(lab: tuple[Actor, Actor]) -> None:
    owner, approver = lab
    rule(owner)
    with pytest.raises(Refusal, match="A workspace keeps a limit"):
        drop_limit(actor=owner, limit=Limit.objects.get(**WEEK), reason="free")
    each = set_limit(actor=owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, mode=Limit.Mode.STOP, amount=HOUR)
    asked = drop_limit(actor=owner, limit=each, reason="free")
    assert asked is not None
    assert Limit.objects.filter(pk=each.pk).exists()
    decide(approver, asked)
    assert not Limit.objects.filter(pk=each.pk).exists()
    assert AuditEvent.objects.filter(verb="limit.removed", actor_label="Anna").count() == 1


def test_no_other_door_lets_it_through(lab: tuple[Actor, Actor]) -> None:
    owner, _ = lab
    rule(owner)
    with pytest.raises(Refusal, match="has to be asked for"):
        set_limit(actor=owner, amount=11 * HOUR, reason="quickly", **WEEK)
    set_limit(actor=owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, mode=Limit.Mode.STOP, amount=HOUR)
    with pytest.raises(Refusal, match="has to be asked for"):
        remove_limit(actor=owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, mode=Limit.Mode.STOP, reason="quickly")
    assert hours() == 10


@pytest.mark.parametrize("how", ["lowered", "thresholds", "removed", "asked anew"])
def test_a_request_is_void_once_the_limit_is_another(lab: tuple[Actor, Actor], how: str) -> None:
    owner, approver = lab
    rule(owner)
    each = {**WEEK, "window": Limit.Window.RUN}
    limit = set_limit(actor=owner, amount=HOUR, **each)
    asked = raised(owner, 5, **each)
    if how == "lowered":
        change_limit(actor=owner, amount=HOUR // 2, reason="less", **each)
    elif how == "thresholds":
        week = raised(owner)
        change_limit(actor=owner, amount=10 * HOUR, thresholds=[50], reason="told sooner", **WEEK)
        week.refresh_from_db()
        assert week.status == "void"
        return
    elif how == "removed":
        gone = drop_limit(actor=owner, limit=limit, reason="not needed")
        assert gone is not None
        decide(approver, gone)
    else:
        raised(owner, 7, **each)
    asked.refresh_from_db()
    assert asked.status == "void"
    with pytest.raises(Refusal, match="decided before"):
        decide(approver, asked)
    left = Limit.objects.filter(**each).first()
    assert left is None or left.amount <= HOUR


def test_what_changed_behind_the_request_is_found_when_it_is_decided(lab: tuple[Actor, Actor], monkeypatch: pytest.MonkeyPatch) -> None:
    owner, approver = lab
    rule(owner)
    asked = raised(owner)
    with monkeypatch.context() as forgets:
        forgets.setattr("workspaces.commands.limit.requests.void", lambda *args, **named: None)
        change_limit(actor=owner, amount=5 * HOUR, reason="less", **WEEK)
    assert decide(approver, asked).status == "void"
    assert hours() == 5
    asked.refresh_from_db()
    assert "amount now" in asked.end_reason


def test_whoever_lost_the_right_gets_no_larger_limit_and_the_first_decision_stands(lab: tuple[Actor, Actor]) -> None:
    owner, approver = lab
    rule(owner)
    admin = join(owner, "otto", Role.ADMIN)
    asked = raised(admin)
    remove_member(actor=owner, username="otto")
    with pytest.raises(Refusal, match="may no longer change limits here"):
        decide(approver, asked)
    with pytest.raises(Refusal, match="Say why you refuse"):
        decide(approver, asked, approves=False)
    decide(approver, asked, approves=False, comment=HOSTILE)
    with pytest.raises(Refusal, match="The first decision stands"):
        decide(owner, asked, approves=False, comment="no")
    assert hours() == 10


def test_an_owner_alone_breaks_the_glass(lab: tuple[Actor, Actor]) -> None:
    owner, _ = lab
    rule(owner)
    decide(owner, raised(owner), comment="The others are away, and it is Friday", is_alone=True)
    assert hours() == 20
    assert AuditEvent.objects.filter(verb="approval.forced").count() == 1


def test_pages_lead_to_the_request_and_say_what_waits(lab: tuple[Actor, Actor]) -> None:
    owner, approver = lab
    client = signed_in(owner)
    rules = client.get("/workspaces/lab/approvals/rules/").content.decode()
    assert "Nobody is asked: whoever manages budgets raises and removes limits at once" in rules
    rule(owner)
    limit = Limit.objects.get(**WEEK)
    answer = client.post(
        f"/workspaces/lab/budget/limits/{limit.public_id}/change/", {"amount": "20", "thresholds": "80", "reason": HOSTILE}
    )
    asked = Approval.objects.get()
    assert answer["Location"] == f"/workspaces/lab/approvals/{asked.public_id}/"
    for address in ("budget/", "approvals/", f"approvals/{asked.public_id}/", "", "audit/"):
        text = signed_in(approver).get(f"/workspaces/lab/{address}").content.decode()
        assert "<script>alert" not in text, address
        assert "20 GPU-hours" in text or address == "audit/", address
    page = signed_in(approver).post(
        f"/workspaces/lab/approvals/{asked.public_id}/decide/", {"decision": "approve", "seen_hash": asked.content_hash}
    )
    assert page.status_code == 303
    assert hours() == 20


def test_the_api_answers_with_the_limit_as_it_stands_and_the_request(lab: tuple[Actor, Actor]) -> None:
    owner, approver = lab
    rule(owner)
    _, secret = make_token(Workspace.objects.get(slug="lab"), owner, "budget:write", "budget:read")
    body = {"unit": "gpu_ms", "window": "week", "amount": 20 * HOUR, "mode": "stop", "reason": "The sweep needs it"}
    answer = bearer(secret).post("/api/v1/workspaces/lab/budgets", body, "application/json")
    assert answer.status_code == 201, answer.content
    assert answer.json()["amount"] == 10 * HOUR
    asked = Approval.objects.get()
    assert answer.json()["waiting"] == asked.public_id
    with pytest.raises(Refusal, match="asked for this yourself"):
        decide(owner, asked)
    decide(approver, asked)
    kept = bearer(secret).get(f"/api/v1/workspaces/lab/budgets/{Limit.objects.get(**WEEK).public_id}").json()
    assert (kept["amount"], kept["waiting"]) == (20 * HOUR, None)
