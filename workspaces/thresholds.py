"""Thresholds of limits: reached in a window, whoever manages budgets is told once. A piece of every command that spends (`workspaces/ledger.py`).

A crossing is a row, unique for window, limit, its revision and the percentage, written under the lock of the ledger with the spending that
reached it: however many runs settle at once, it is written once, and a recount, or spending that goes down and up again, writes none.
"""

from workspaces.access import Kind, Permission
from workspaces.accounts import Accounts, Limits
from workspaces.audit import Draft
from workspaces.commands.notification import notify
from workspaces.models import Crossing, Limit, Notification, User
from workspaces.queries.member import people
from workspaces.standings import amount_words, name_of


def note_crossings(event: Draft, windows: list[Accounts], limits: Limits) -> None:
    """Write what the spending of these locked windows has reached of the limits of their unit, and tell of it. No look at the database where
    nothing is reached, since every end of a run comes here."""
    spent = {accounts.source.window: accounts for accounts in windows if accounts.spent.balance > 0}
    if not spent:
        return
    marked = sorted((row for row in limits.rows if row.window in spent), key=lambda row: row.mode)
    marked.sort(key=lambda row: row.window, reverse=True)
    reached = {limit: marks for limit in marked if (marks := _reached(limit, spent[limit.window].spent.balance))}
    if not reached:
        return
    starts = [accounts.window.starts_at for accounts in spent.values()]
    known = Crossing.objects.filter(limit_id__in=[limit.pk for limit in reached], starts_at__in=starts)
    noted = set(known.values_list("limit_id", "revision", "starts_at", "percent"))
    for limit, marks in reached.items():
        accounts = spent[limit.window]
        fresh = [percent for percent in marks if (limit.pk, limit.revision, accounts.window.starts_at, percent) not in noted]
        if fresh:
            _note(event, limit, accounts, fresh)


def _reached(limit: Limit, spent: int) -> list[int]:
    return sorted(percent for percent in limit.thresholds if 100 * spent >= percent * limit.amount)


def _note(event: Draft, limit: Limit, accounts: Accounts, fresh: list[int]) -> None:
    starts_at, ends_at = accounts.window.starts_at, accounts.window.ends_at
    rows = [
        Crossing(
            limit_id=limit.pk, revision=limit.revision, unit=limit.unit, window=limit.window, starts_at=starts_at, ends_at=ends_at,
            percent=percent, amount=limit.amount, spent=accounts.spent.balance,
        )
        for percent in fresh
    ]  # fmt: skip
    Crossing.objects.bulk_create(rows)
    event.created(*rows)
    name, highest = name_of(limit.unit, limit.window), rows[-1]
    event.details.setdefault("thresholds", []).extend(f"{name}: {percent} %" for percent in fresh)
    notify(
        stewards(),
        cause=Notification.Cause.LIMIT_CROSSED,
        subject_type="crossing",
        subject_id=highest.pk,
        label=f"{name}: {highest.percent} % reached",
        words=f"{amount_words(highest.spent, limit.unit)} of {amount_words(limit.amount, limit.unit)} are spent; {limit.get_mode_display()}.",
    )


def stewards() -> list[User]:
    """Who may manage budgets here: whom a budget's alarms are told to."""
    return [person.user for person in people() if person.may(Permission.MANAGE_BUDGET, Kind.BUDGET)]
