"""Cancelling many runs: what it would do in figures, then one command."""

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.shortcuts import render

from runs.commands.cancel_many import cancel_runs
from runs.forms.run_list import RunFilterForm
from runs.models import Run
from runs.queries.cancelling import MOST, cancel_plan, key_of, keys_of
from runs.queries.run_list import choices, matching
from workspaces.audit import Refusal
from workspaces.pages import PageRequest, redirect

CHOSEN = 200  # runs that can be ticked on one page


def run_cancel_many(request: PageRequest) -> HttpResponseBase:
    """GET shows what would happen to the runs that are ticked, or that match the filters; POST does it to exactly those that were shown."""
    reasons: tuple[str, ...] = ()
    reason = request.POST.get("reason", "").replace("\x00", "").strip()[:1000]
    status = 200
    if request.method == "POST":
        keys = keys_of(request.POST.get("runs", ""))
        try:
            done = cancel_runs(actor=request.actor, rights=request.rights, runs=keys, reason=reason)
        except Refusal as refusal:
            reasons, status = refusal.reasons, 409
        else:
            messages.success(request, done.words)
            return redirect("run-list", request.workspace.slug)
        chosen: QuerySet[Run] = Run.objects.filter(pk__in=keys)
    else:
        chosen = _chosen(request)
    plan = cancel_plan(chosen, request.actor, request.rights)
    context = {"plan": plan, "most": MOST, "reasons": reasons, "reason": reason}
    return render(request, "runs/cancel_many.html", context, status=status)


def _chosen(request: PageRequest) -> QuerySet[Run]:
    if request.GET.get("all"):
        return matching(RunFilterForm(request.GET, choices()).wanted(), request.workspace.zone)
    keys = [key_of(text) for text in request.GET.getlist("run")[:CHOSEN]]
    return Run.objects.filter(pk__in=keys)
