"""Pages of the budget: what is left, the limits, and the ledger beneath them."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from workspaces.commands.limit_raise import change_limit, drop_limit
from workspaces.commands.recount import correct_ledger, recount_ledger
from workspaces.forms.resource import LimitChangeForm, LimitForm, ReasonForm
from workspaces.models import Approval, Limit, Unit
from workspaces.pages import PageRequest, redirect
from workspaces.queries.budget import differences, last_recount, leading, limit_changes, limit_rows, reached
from workspaces.queries.ledger import EntryRow, entries, entry_row, lines
from workspaces.queries.overrun import overruns
from workspaces.queries.paging import BadCursor, newest_first
from workspaces.standings import amount_words, name_of
from workspaces.units import plural
from workspaces.views.csv_file import Piece, csv_file
from workspaces.views.form_page import form_page

HEAD = ("time", "unit", "window", "window_starts_at", "act", "from", "to", "amount", "run", "run_id", "reason")
CSV_ROWS = 1000
SHOWN = 10  # alarms of a kind


def budget(request: PageRequest) -> HttpResponseBase:
    now = timezone.now()
    rows = limit_rows(now)
    context = {
        "lead": leading(rows),
        "rows": rows,
        "lines": lines(size=8).items,
        "unit": Unit.GPU_MS,
        "reached": reached(now),
        "overruns": overruns(now=now, limit=SHOWN),
    }
    return render(request, "workspaces/budget.html", context)


def _done(request: PageRequest, made: Limit | Approval | None) -> HttpResponseBase:
    if isinstance(made, Approval):
        messages.info(request, "It waits for another person's decision; until then the limit stays as it is.")
        return redirect("approval", request.workspace.slug, made.public_id)
    return redirect("budget", request.workspace.slug)


def limit_set(request: PageRequest) -> HttpResponseBase:
    form = LimitForm(request.POST or None)

    def save(form: LimitForm) -> HttpResponseBase:
        return _done(request, change_limit(actor=request.actor, **form.cleaned_data))

    above = reverse("budget", args=[request.workspace.slug])
    return form_page(request, form, save, title="New limit", submit="Set limit", trail=(("Budget", above),), back=above)


def limit_change(request: PageRequest, limit: str) -> HttpResponseBase:
    found = Limit.objects.find(limit)
    form = LimitChangeForm(request.POST or None, limit=found)

    def save(form: LimitChangeForm) -> HttpResponseBase:
        return _done(request, change_limit(actor=request.actor, unit=found.unit, window=found.window, mode=found.mode, **form.cleaned_data))

    above = reverse("budget", args=[request.workspace.slug])
    title = f"Change {name_of(found.unit, found.window)}, {found.get_mode_display()}"
    lead = "What is spent and promised stays so; a smaller amount only stops what is new."
    return form_page(request, form, save, title=title, submit="Change limit", lead=lead, trail=(("Budget", above),), back=above)


def limit_history(request: PageRequest, limit: str) -> HttpResponseBase:
    found = Limit.objects.find(limit)
    context = {
        "limit": found,
        "name": name_of(found.unit, found.window),
        "amount": amount_words(found.amount, found.unit),
        "changes": limit_changes(found),
    }
    return render(request, "workspaces/limit_history.html", context)


def limit_remove(request: PageRequest, limit: str) -> HttpResponseBase:
    found = Limit.objects.find(limit)
    form = ReasonForm(request.POST or None)

    def save(form: ReasonForm) -> HttpResponseBase:
        return _done(request, drop_limit(actor=request.actor, limit=found, reason=form.cleaned_data["reason"]))

    above = reverse("budget", args=[request.workspace.slug])
    title = f"Remove {name_of(found.unit, found.window)}, {found.get_mode_display()}"
    lead = f"The limit of {amount_words(found.amount, found.unit)} ends; what is spent stays in the ledger."
    return form_page(request, form, save, title=title, submit="Remove limit", lead=lead, trail=(("Budget", above),), back=above)


def ledger(request: PageRequest) -> HttpResponseBase:
    unit = Unit.API_MICROS if request.GET.get("unit") == Unit.API_MICROS else Unit.GPU_MS
    is_lost = False
    try:
        page = lines(unit=unit, cursor=request.GET.get("after", "")[:300])
    except BadCursor:
        is_lost = True
        page = lines(unit=unit)
    counted = last_recount()
    context = {
        "lines": page.items,
        "next_cursor": page.next or "",
        "unit": unit,
        "units": [(Unit.GPU_MS.value, Unit.GPU_MS.label), (Unit.API_MICROS.value, Unit.API_MICROS.label)],
        "is_lost": is_lost,
        "counted": counted,
        "differences": differences(counted),
    }
    return render(request, "workspaces/ledger.html", context)


def ledger_recount(request: PageRequest) -> HttpResponseBase:
    counted = recount_ledger(actor=request.actor)
    if counted.is_right:
        messages.success(request, f"Everything adds up: {plural(counted.entries, 'entry', 'entries')} counted.")
    else:
        messages.error(request, f"{plural(len(counted.wrong), 'balance is', 'balances are')} not what the entries say.")
    return redirect("ledger", request.workspace.slug)


def ledger_correct(request: PageRequest) -> HttpResponseBase:
    form = ReasonForm(request.POST or None)

    def save(form: ReasonForm) -> HttpResponseBase:
        correct_ledger(actor=request.actor, reason=form.cleaned_data["reason"])
        return redirect("ledger", request.workspace.slug)

    above = reverse("ledger", args=[request.workspace.slug])
    lead = "Each balance that differs is set to the sum of its entries; entries are never changed. First find out how it came to differ."
    return form_page(
        request, form, save, title="Correct balances", submit="Correct balances", lead=lead, trail=(("Ledger", above),), back=above
    )


def ledger_csv(request: PageRequest) -> HttpResponseBase:
    unit = request.GET.get("unit", "")
    unit = unit if unit in Unit.values else ""

    def piece(cursor: str) -> Piece:
        page = newest_first(entries(unit=unit), cursor=cursor, size=CSV_ROWS)
        return [_cells(entry_row(entry)) for entry in page.items], page.next or ""

    return csv_file(f"{request.workspace.slug}-ledger", HEAD, piece, workspace_id=request.workspace.pk)


def _cells(row: EntryRow) -> list[str | int | float | None]:
    entry = row.entry
    return [
        entry.created_at.isoformat(), row.unit, row.window, row.starts_at.isoformat(), entry.act, row.debit, row.credit, entry.amount,
        entry.run_label, row.run_ref, entry.reason,
    ]  # fmt: skip
