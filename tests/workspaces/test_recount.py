"""The count from zero: kept with its result, once a night by itself; what is wrong is told, and corrected by a person alone."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import make_workspace
from tests.factories_resources import join, spoil_balance
from tests.workspaces.test_ledger import promise, weekly
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.audit import Denied, Refusal
from workspaces.commands.recount import correct_ledger, is_due, recount_if_due, recount_ledger
from workspaces.models import AuditEvent, LedgerEntry, Notification, Recount
from workspaces.queries.ledger import recount


@pytest.fixture
def lab() -> Iterator[Actor]:
    workspace, owner = make_workspace("lab", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        yield owner


@pytest.mark.django_db
def test_a_count_is_kept_with_what_was_compared(lab: Actor) -> None:
    weekly(lab, 10)
    promise(lab, 4)
    counted = recount_ledger(actor=lab)
    assert (counted.is_right, counted.accounts, counted.entries) == (True, 4, LedgerEntry.objects.count())
    assert counted.asked_by == lab.user
    assert not Notification.objects.exists()


@pytest.mark.django_db
def test_a_difference_is_an_alarm_and_only_a_person_corrects_it_with_a_reason(lab: Actor) -> None:
    weekly(lab, 10)
    promise(lab, 4)
    spoil_balance(actor=lab)
    counted = recount_ledger(actor=lab)
    assert [(one["balance"], one["counted"]) for one in counted.wrong][:1] == [(5, 0)]
    (told,) = Notification.objects.all()
    assert told.cause == Notification.Cause.LEDGER_WRONG
    assert recount(), "counting corrects nothing"
    with pytest.raises(Refusal, match="Say why"):
        correct_ledger(actor=lab, reason=" ")
    with pytest.raises(Denied):
        correct_ledger(actor=join(lab, "ida", Role.OPERATOR), reason="mine")
    assert correct_ledger(actor=lab, reason="A defect of the week before.").is_right
    assert recount() == []
    with pytest.raises(Refusal, match="nothing to correct"):
        correct_ledger(actor=lab, reason="again")
    assert AuditEvent.objects.filter(verb="ledger.corrected").count() == 1


@pytest.mark.django_db
def test_it_counts_once_a_night(lab: Actor) -> None:
    system = Actor.system(job_id="the clock")
    recount_if_due(system)
    assert not Recount.objects.exists(), "there is nothing to count yet"
    weekly(lab, 10)
    promise(lab, 4)
    recount_ledger(actor=lab)  # one that a person asks for is none of the night's
    recount_if_due(system)
    recount_if_due(system)
    assert Recount.objects.filter(asked_by=None).count() == 1
    assert not is_due(timezone.now())
    assert is_due(timezone.now() + timedelta(days=1))
