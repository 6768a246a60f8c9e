"""Two approvers decide on one promotion at the same moment: one decision, one statement, and one clear refusal."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from runs.commands.approval import decide_approval
from runs.models import Promotion
from tests.factories import make_member
from tests.factories_promotions import make_candidate, propose
from tests.factories_runs import make_laboratory
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.models import Approval, AuditEvent


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("second_approves", [True, False])
def test_two_who_decide_at_once(second_approves: bool) -> None:
    laboratory = make_laboratory()
    people = [make_member(laboratory.workspace, "approver", name) for name in ("ada", "emmy")]
    with laboratory.opened():
        promotion, approval = propose(laboratory.owner, make_candidate(laboratory))
    ready = Barrier(2, timeout=60)

    def decide(actor: Actor, approves: bool) -> str:
        try:
            with laboratory.opened():
                found = Approval.objects.get(pk=approval.pk)
                ready.wait()
                decide_approval(actor=actor, approval=found, approves=approves, comment="Seen", seen_hash=found.content_hash)
                return ""
        except Refusal as refusal:
            return str(refusal)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(decide, people, (True, second_approves)))
    with laboratory.opened():
        promotion.refresh_from_db()
        decided = AuditEvent.objects.filter(
            verb__in=["promotion.decided", "approval.refused"], actor_id__in=[one.user.pk for one in people if one.user]
        )
        assert sorted(bool(words) for words in told) == [False, True], told
        assert "The first decision stands." in max(told, key=len), told
        assert promotion.decided_by is not None
        assert promotion.decided_by.username == ("ada", "emmy")[told.index("")]
        is_promoted = told[0] == "" or second_approves
        assert promotion.status == (Promotion.Status.PROMOTED if is_promoted else Promotion.Status.REFUSED)
        assert decided.count() == 1
        assert bool(promotion.statement) == is_promoted
