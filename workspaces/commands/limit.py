"""Setting, changing and removing the limits of a workspace; the window that is open follows by a transfer."""

from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone

from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import fund, limits_of, lock_ledger, locked, window_at
from workspaces.audit import Draft, Refusal, command
from workspaces.commands import approval as requests
from workspaces.ledger import begin_month
from workspaces.models import Limit, NotFound, Unit
from workspaces.queries.approval_rule import rule_of
from workspaces.reasons import because
from workspaces.standings import CALENDAR, amount_words, name_of
from workspaces.thresholds import note_crossings
from workspaces.verbs import Verb

# A limit is on what runs spend in a time, on what one run may ask for, or on what is there at once.
WINDOWS: dict[str, tuple[str, ...]] = {
    Unit.GPU_MS: (Limit.Window.RUN, Limit.Window.WEEK, Limit.Window.MONTH),
    Unit.API_MICROS: (Limit.Window.RUN, Limit.Window.WEEK, Limit.Window.MONTH),
    Unit.STORAGE_BYTES: (Limit.Window.NOW,),
    Unit.RUNS: (Limit.Window.NOW,),
    Unit.WALL_SECONDS: (Limit.Window.RUN,),
    Unit.SLOTS: (Limit.Window.RUN,),
}
MOST_THRESHOLDS = 10
SUBJECT = "limit"  # what the subject of an approval of a larger one is called
LARGEST = 2**62  # of a 64-bit column, with room for the sums


@command(Verb.LIMIT_SET, needs=Permission.MANAGE_BUDGET, kind=Kind.BUDGET)
def set_limit(
    event: Draft, *, actor: Actor, unit: str, window: str, amount: int, mode: str, reason: str = "", thresholds: Sequence[int] | None = None
) -> Limit:
    """Set the limit of (unit, window, mode) to `amount` of the unit's integers. A change of one that stands wants a reason. What is already
    spent or promised stays so, even where the new amount is smaller: nothing new starts until there is room, and what waits and no longer fits
    goes on waiting.

    Where the workspace's rule wants another person for a larger one, that has to be asked for (`limit_raise.change_limit`).

    `thresholds` are whole percent of it that, spent in a window, are told of; None: as they were, at first 80 and 100. A change lets them be
    crossed anew.
    """
    check_amount(unit, window, mode, amount)
    marks = marks_of(window, thresholds)
    lock_ledger()
    event.reason = reason.strip()[:1000]
    limit = Limit.objects.select_for_update(no_key=True).filter(unit=unit, window=window, mode=mode).first()
    if limit is None:
        limit = Limit(unit=unit, window=window, mode=mode, amount=amount)
        limit.thresholds = marks if marks is not None else limit.thresholds if window in CALENDAR else []
        limit.save(force_insert=True)
        event.created(limit)
        event.note(limit, {"amount": (None, amount)})
    elif limit.amount == amount and marks in (None, limit.thresholds):
        raise Refusal(f"{name_of(unit, window)}: the limit is {amount_words(amount, unit)} already.", field="amount")
    else:
        because(reason, "Say why the limit changes; it stands in the record.")
        if wants_approval(limit, amount):
            raise Refusal(NEEDS_ANOTHER, field="amount")
        change(event, limit, amount, marks)
        return limit
    _fund_again(event, unit, window, timezone.now())
    return limit


@command(Verb.LIMIT_REMOVED, needs=Permission.MANAGE_BUDGET, kind=Kind.BUDGET)
def remove_limit(event: Draft, *, actor: Actor, unit: str, window: str, mode: str, reason: str) -> None:
    """Remove the limit of (unit, window, mode), with a reason. The weekly GPU-hours and the runs at once of a workspace must keep one."""
    lock_ledger()
    event.reason = reason.strip()[:1000]
    limit = Limit.objects.select_for_update(no_key=True).filter(unit=unit, window=window, mode=mode).first()
    if limit is None:
        raise NotFound("limit")
    because(reason, "Say why the limit goes; it stands in the record.")
    if wants_approval(limit, None):
        raise Refusal(NEEDS_ANOTHER)
    remove(event, limit)


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------

NEEDS_ANOTHER = "The workspace's rule wants another person for a larger limit, so that has to be asked for."


def wants_approval(limit: Limit, amount: int | None) -> bool:
    """Would this let more be spent (None: without any limit), and has the workspace a rule that another person decides on that? A limit that only
    warns holds nothing back."""
    is_larger = limit.mode != Limit.Mode.WARN and (amount is None or amount > limit.amount)
    return is_larger and rule_of(SUBJECT).is_set


def change(event: Draft, limit: Limit, amount: int, marks: list[int] | None) -> None:
    """Of a locked limit, which is another afterwards: what was asked about it is void."""
    event.change(limit, amount=amount, thresholds=limit.thresholds if marks is None else marks)
    limit.revision += 1
    limit.save(update_fields=["revision"])
    requests.void(event, subject_type=SUBJECT, subject_id=limit.pk)
    _fund_again(event, limit.unit, limit.window, timezone.now())


def remove(event: Draft, limit: Limit) -> None:
    """Of a locked limit; what was asked about it is void. Raises Refusal where it has to stay."""
    unit, window = limit.unit, limit.window
    check_removable(limit)
    event.deleting(limit)
    event.note(limit, {"amount": (limit.amount, None)})
    requests.void(event, subject_type=SUBJECT, subject_id=limit.pk)
    Limit.objects.filter(pk=limit.pk).delete()  # the instance keeps its key, which the event names
    _fund_again(event, unit, window, timezone.now())


def check_removable(limit: Limit) -> None:
    """Raises Refusal for the last limit of a kind that a workspace must keep."""
    needed = (limit.unit, limit.window) in ((Unit.GPU_MS, Limit.Window.WEEK), (Unit.RUNS, Limit.Window.NOW))
    if needed and Limit.objects.filter(unit=limit.unit, window=limit.window).count() == 1:
        raise Refusal(f"A workspace keeps a limit on {name_of(limit.unit, limit.window)}; change its amount instead.")


def check_amount(unit: str, window: str, mode: str, amount: int) -> None:
    if unit not in Unit.values:
        raise Refusal(f"Limits are set on {', '.join(Unit.values)}.", field="unit")
    if window not in WINDOWS[unit]:
        raise Refusal(f"A limit on {Unit(unit).label} counts {' or '.join(WINDOWS[unit])}.", field="window")
    if mode not in Limit.Mode.values:
        raise Refusal(f"A limit on {Unit(unit).label} has the mode {' or '.join(Limit.Mode.values)}.", field="mode")
    if unit == Unit.RUNS and mode == Limit.Mode.APPROVAL:
        raise Refusal(
            "How many run at once is known when a run starts, not when it is asked for, so nobody could approve it. "
            "A hard stop lets runs wait; or let it only warn.",
            field="mode",
        )
    if isinstance(amount, bool) or not isinstance(amount, int) or not 0 <= amount <= LARGEST:
        raise Refusal("An amount is a whole number from 0 on.", field="amount")


def marks_of(window: str, thresholds: Sequence[int] | None) -> list[int] | None:
    if thresholds is None:
        return None
    if thresholds and window not in CALENDAR:
        raise Refusal("Thresholds are of what is spent in a week or a month; this limit counts in neither.", field="thresholds")
    if len(thresholds) > MOST_THRESHOLDS or any(isinstance(mark, bool) or not 1 <= mark <= 1000 for mark in thresholds):
        raise Refusal(f"At most {MOST_THRESHOLDS} thresholds, each from 1 to 1,000 percent.", field="thresholds")
    return sorted(set(thresholds))


def _fund_again(event: Draft, unit: str, window: str, now: datetime) -> None:
    """Give the window that is open what the limits now say; a week that is not yet open is funded at first use."""
    if window not in CALENDAR:
        return
    if window == Limit.Window.MONTH and limits_of(unit).funding(window) is not None:
        begin_month(event, unit=unit, now=now)
    accounts = locked(unit, window, window_at(lock_ledger(), window, now).starts_at)
    if accounts is not None:
        limits = limits_of(unit)
        fund(event, accounts, limits.funding(window), reason=event.reason or "limit set")
        note_crossings(event, [accounts], limits)
