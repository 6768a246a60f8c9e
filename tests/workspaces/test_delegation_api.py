"""Delegating and breaking the glass by API: for people who are signed in, and for no token."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.factories import make_workspace
from tests.factories_people import bearer, make_token, signed_in
from tests.factories_resources import join
from tests.factories_runs import launch, make_laboratory
from workspaces import scope
from workspaces.access import Role
from workspaces.commands.limit import set_limit
from workspaces.models import Approval, AuditEvent, Delegation, Limit, Unit
from workspaces.units import MS_PER_HOUR

pytestmark = pytest.mark.django_db(transaction=True)
API = "/api/v1/workspaces/lab/"


def test_a_signed_in_person_names_who_decides_and_a_token_does_not() -> None:
    workspace, owner = make_workspace("lab")
    with scope.open_workspace(workspace.pk):
        join(owner, "anna", Role.VIEWER)
        _, secret = make_token(workspace, owner, "approval:write", "approval:read")
    now = timezone.now()
    body: dict[str, Any] = {
        "username": "anna",
        "starts_at": now.isoformat(),
        "ends_at": (now + timedelta(days=3)).isoformat(),
        "reason": "away",
    }
    client = signed_in(owner)

    def post(**changed: Any) -> int:
        return client.post(f"{API}delegations", body | changed, "application/json").status_code

    assert bearer(secret).post(f"{API}delegations", body, "application/json").status_code == 409
    assert post(username="nobody") == 422
    assert post(ends_at=body["starts_at"]) == 422
    assert post(starts_at="2026-11-29T10:00:00") == 422, "a time has its zone"
    answer = client.post(f"{API}delegations", body, "application/json")
    assert answer.status_code == 201, answer.content
    assert answer.json()["delegate"] == "Anna"
    assert post() == 422, "one at a time"
    with scope.open_workspace(workspace.pk):
        given = Delegation.objects.get()
        assert (given.giver, given.reason) == (owner.user, "away")
    assert client.post(f"{API}delegations/{answer.json()['id']}/end", {}, "application/json").status_code == 200


def test_an_owner_breaks_the_glass_signed_in_with_a_reason_and_by_no_token() -> None:
    laboratory = make_laboratory(weekly_gpu_hours=100)
    with laboratory.opened():
        set_limit(actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=MS_PER_HOUR, mode=Limit.Mode.APPROVAL)
        launch(laboratory, gpu_ms=2 * MS_PER_HOUR)
        asked = Approval.objects.get()
        _, secret = make_token(laboratory.workspace, laboratory.owner, "approval:write")
    body = {"content_hash": asked.content_hash, "comment": "The others are away"}
    address = f"{API}approvals/{asked.public_id}/approve-alone"
    client = signed_in(laboratory.owner)
    token = bearer(secret).post(address, body, "application/json")
    assert (token.status_code, "not a token" in token.json()["detail"]) == (409, True)
    assert client.post(address, {"content_hash": asked.content_hash}, "application/json").status_code == 422
    assert client.post(address, body | {"content_hash": "0" * 64}, "application/json").status_code == 409
    assert client.post(address, body, "application/json").json()["status"] == "approved"
    with laboratory.opened():
        assert AuditEvent.objects.filter(verb="approval.forced").count() == 1
