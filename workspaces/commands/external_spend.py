"""API spend that happened beside labsite: entered by a person or a service account, taken back by a line of its own (feature 88)."""

import uuid
from datetime import datetime, timedelta

from django.utils import timezone

from workspaces import ids, ledger
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.models import ExternalSpend, Pool, Unit, User
from workspaces.units import money
from workspaces.verbs import Verb

OLDEST = timedelta(days=92)
MOST_MICROS = 10**15


@command(Verb.SPEND_ENTERED, needs=Permission.LAUNCH_RUN, kind=Kind.BUDGET)
def enter_spend(
    event: Draft,
    *,
    actor: Actor,
    amount_micros: int,
    currency: str,
    what: str,
    spent_at: datetime,
    run_id: uuid.UUID | None = None,
    run_label: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> ExternalSpend:
    """Enter money spent at `spent_at`, in millionths of `currency`, for a run of this workspace or for none. It counts in the windows of that
    instant and is never refused by a limit, since it has been spent; thresholds that it reaches are told of."""
    person = _who(actor)
    lock_ledger()
    if isinstance(amount_micros, bool) or not 1 <= amount_micros <= MOST_MICROS:
        raise Refusal(f"An amount lies between 1 and {MOST_MICROS:,} millionths.", field="amount_micros")
    counted = sorted(set(Pool.objects.order_by().values_list("currency", flat=True)))
    if counted and currency not in counted:
        raise Refusal(f"The limits here count in {' or '.join(counted)}; enter the amount in that.", field="currency")
    if not what.strip():
        raise Refusal("Say what the money was spent on.", field="what")
    now = timezone.now()
    if not now - OLDEST <= spent_at <= now + timedelta(minutes=5):
        raise Refusal(f"It was spent in the last {OLDEST.days} days, and not in the future.", field="spent_at")
    spend = ExternalSpend.objects.create(
        id=id or ids.uuid7(), run_id=run_id, run_label=run_label[:200], amount_micros=amount_micros, currency=currency,
        what=what.strip()[:300], spent_at=spent_at, entered_by=person,
    )  # fmt: skip
    _enter(event, spend, reason=spend.what)
    return spend


@command(Verb.SPEND_CORRECTED, needs=Permission.LAUNCH_RUN, kind=Kind.BUDGET)
def take_spend_back(event: Draft, *, actor: Actor, spend: ExternalSpend, reason: str) -> ExternalSpend:
    """Take back what a line entered, by a line of the opposite amount in the same windows; enter it anew to correct it. Once for each line."""
    person = _who(actor)
    lock_ledger()
    event.reason = reason.strip()[:1000]
    if not event.reason:
        raise Refusal("Say why it is taken back; it stands in the record.", field="reason")
    if spend.amount_micros < 0:
        raise Refusal("This line takes another back; enter the amount anew instead.")
    if ExternalSpend.objects.filter(corrects=spend).exists():
        raise Refusal("This line has been taken back already.")
    back = ExternalSpend.objects.create(
        run_id=spend.run_id, run_label=spend.run_label, amount_micros=-spend.amount_micros, currency=spend.currency, what=spend.what,
        spent_at=spend.spent_at, entered_by=person, corrects=spend,
    )  # fmt: skip
    _enter(event, back, reason=event.reason)
    return back


def _enter(event: Draft, spend: ExternalSpend, *, reason: str) -> None:
    event.created(spend)
    event.about = spend
    event.details |= {"amount": money(spend.amount_micros, spend.currency), "run": spend.run_label}
    ledger.enter(
        event, unit=Unit.API_MICROS, amount=spend.amount_micros, when=spend.spent_at, run_id=spend.run_id, run_label=spend.run_label,
        reason=reason,
    )  # fmt: skip


def _who(actor: Actor) -> User:
    if actor.user is None or actor.run_id is not None:
        raise Refusal("Spend is entered by a person or a service account; a run reports its own by its events.")
    return actor.user
