"""API spend from outside: the list, entering a line, and taking one back."""

from datetime import date, datetime

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from runs.models import Run
from workspaces.audit import Refusal
from workspaces.commands.external_spend import enter_spend, take_spend_back
from workspaces.forms.spend import SpendForm, TakeBackForm
from workspaces.models import ExternalSpend, NotFound
from workspaces.pages import PageRequest, redirect
from workspaces.queries.paging import newest_first
from workspaces.queries.spend import entered_in_all, spend_rows
from workspaces.units import money
from workspaces.views.form_page import form_page
from workspaces.windows import clock_of, first_instant

LIST = "API spend from outside"


def spend_list(request: PageRequest) -> HttpResponseBase:
    page = newest_first(ExternalSpend.objects.select_related("entered_by"), cursor=request.GET.get("after", "")[:300])
    context = {"rows": spend_rows(page.items), "next_cursor": page.next or "", "entered": entered_in_all() if page.items else ""}
    return render(request, "runs/spend_list.html", context)


def spend_enter(request: PageRequest) -> HttpResponseBase:
    form = SpendForm(request.POST or None)

    def save(form: SpendForm) -> HttpResponseBase:
        cleaned = form.cleaned_data
        run = _run(cleaned["run"])
        enter_spend(
            actor=request.actor, amount_micros=cleaned["amount"], currency=cleaned["currency"], what=cleaned["what"],
            spent_at=_moment(cleaned["spent_on"], request.workspace.zone), run_id=run.pk if run else None, run_label=run.name if run else "",
        )  # fmt: skip
        return redirect("spend-list", request.workspace.slug)

    above = reverse("spend-list", args=[request.workspace.slug])
    lead = "It counts in the week and month of its day, for a run or for the workspace; no limit refuses what has been spent."
    return form_page(request, form, save, title="Enter API spend", submit="Enter spend", lead=lead, trail=((LIST, above),), back=above)


def spend_take_back(request: PageRequest, spend: str) -> HttpResponseBase:
    found = ExternalSpend.objects.find(spend)
    form = TakeBackForm(request.POST or None)

    def save(form: TakeBackForm) -> HttpResponseBase:
        take_spend_back(actor=request.actor, spend=found, reason=form.cleaned_data["reason"])
        return redirect("spend-list", request.workspace.slug)

    above = reverse("spend-list", args=[request.workspace.slug])
    lead = f"{money(found.amount_micros, found.currency)} for “{found.what[:120]}” go back by a line of their own; both lines stay."
    return form_page(request, form, save, title="Take spend back", submit="Take back", lead=lead, trail=((LIST, above),), back=above)


def _run(text: str) -> Run | None:
    if not text.strip():
        return None
    try:
        return Run.objects.find(text.strip())
    except NotFound as missing:
        raise Refusal(f"There is no run {text.strip()[:80]} here.", field="run") from missing


def _moment(day: date | None, zone: str) -> datetime:
    """The first instant of a day on the workspace's clock; now, where none is said or it is today."""
    now = timezone.now()
    place = clock_of(zone)
    if day is None or day == now.astimezone(place).date():
        return now
    return first_instant(day, place)
