"""Counting the ledger from zero: at night by the clock, or when a person asks; a difference is an alarm, and only a person corrects it."""

from datetime import datetime, timedelta

from django.utils import timezone

from workspaces import scope
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.notification import notify
from workspaces.models import LedgerAccount, LedgerEntry, Notification, Recount, Workspace
from workspaces.queries.ledger import miscounted, recount
from workspaces.thresholds import stewards
from workspaces.units import plural
from workspaces.verbs import Verb
from workspaces.windows import clock_of

NIGHT_HOUR = 3  # on the workspace's clock: its windows have turned by then
SHOWN = 1_000  # differences that are kept of one count
STILL_COUNTED = "what goes on in an archive is settled, and a count changes no balance"


@command(Verb.LEDGER_RECOUNTED, needs=Permission.MANAGE_BUDGET, kind=Kind.BUDGET, in_archive=STILL_COUNTED)
def recount_ledger(event: Draft, *, actor: Actor) -> Recount:
    """Count every account anew from its entries, and keep the result. No balance changes."""
    return _count(event, actor)


@command(Verb.LEDGER_RECOUNTED, needs=None, by_system=True, in_archive=STILL_COUNTED)
def recount_at_night(event: Draft, *, actor: Actor) -> Recount:
    """The same by the clock."""
    return _count(event, actor)


@command(Verb.LEDGER_CORRECTED, needs=Permission.MANAGE_BUDGET, kind=Kind.BUDGET)
def correct_ledger(event: Draft, *, actor: Actor, reason: str) -> Recount:
    """Set each balance that is not the sum of its entries to that sum, with a reason, and count anew. Entries are never changed."""
    event.reason = reason.strip()[:1000]
    if not event.reason:
        raise Refusal("Say why the balances are corrected; it stands in the record.", field="reason")
    lock_ledger()
    wrong = {account.pk: int(account.counted) for account in miscounted()}
    if not wrong:
        raise Refusal("Every balance is the sum of its entries; there is nothing to correct.")
    for account in LedgerAccount.objects.select_for_update(no_key=True).filter(pk__in=wrong).order_by("pk"):
        event.change(account, balance=wrong[account.pk])
    return _count(event, actor)


def is_due(now: datetime) -> bool:
    """Has the ledger of the open workspace not been counted since its last night?"""
    workspace = Workspace.objects.get(pk=scope.current_id())
    local = now.astimezone(clock_of(workspace.zone))
    night = local.replace(hour=NIGHT_HOUR, minute=0, second=0, microsecond=0)
    if local < night:
        night -= timedelta(days=1)
    return LedgerAccount.objects.exists() and not Recount.objects.filter(asked_by=None, created_at__gte=night).exists()


def recount_if_due(actor: Actor) -> None:
    """What the clock asks of each workspace, as often as it likes: one count a night."""
    if is_due(timezone.now()):
        recount_at_night(actor=actor)


def _count(event: Draft, actor: Actor) -> Recount:
    lock_ledger()  # no command moves anything while it is counted, and two that count at once do so one after the other
    wrong = recount()
    counted = Recount.objects.create(
        asked_by=actor.user,
        accounts=LedgerAccount.objects.count(),
        entries=LedgerEntry.objects.count(),
        wrong=[one.as_json() for one in wrong[:SHOWN]],
    )
    event.created(counted)
    event.about = counted
    event.details |= {"accounts": counted.accounts, "entries": counted.entries, "wrong": len(wrong)}
    if wrong:
        notify(
            stewards(),
            cause=Notification.Cause.LEDGER_WRONG,
            subject_type="recount",
            subject_id=counted.pk,
            label="The ledger does not add up",
            words=f"{plural(len(wrong), 'balance is', 'balances are')} not what the entries say.",
        )
    return counted
