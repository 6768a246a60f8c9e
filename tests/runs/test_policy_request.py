"""What an approver of a policy's version reads: each thing once, in words."""

import re

import pytest

from runs.commands.decision import decide_now
from runs.commands.policy import propose_version
from tests.factories_pages import client_of
from tests.factories_runs import make_laboratory
from tests.runs.test_policy import DOCUMENT, approved, approver
from workspaces.models import Approval


@pytest.mark.django_db(transaction=True)
def test_the_request_names_the_policy_once_and_dumps_no_simulation() -> None:
    laboratory = make_laboratory(weekly_gpu_hours=1000)
    with laboratory.opened():
        policy = approved(laboratory)
        decide_now(actor=laboratory.owner, policy=policy)
        version = propose_version(actor=laboratory.owner, policy=policy, document=DOCUMENT | {"conditions": []}, reason="Ask less")
        request = Approval.objects.get(subject_id=version.pk)
        assert request.content["simulation"], "what is bound is kept whole"
        client = client_of(approver(laboratory))
    page = client.get(f"/workspaces/lab/approvals/{request.public_id}/").content.decode()
    rows = re.findall(r"<dt>(.*?)</dt>", page)
    assert rows.count("Policy") == 1
    assert "Simulation" not in rows
    assert "unread: " not in page
    assert "Would have changed" in rows, "it is told in a sentence"
    assert "/workspaces/lab/policies/next-sweep/versions/2/" in page, "and in full there"
