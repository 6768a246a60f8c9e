"""Withdrawals: what one would reach, the ones that were made, and taking one back."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import render

from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.forms.withdrawal import WithdrawForm
from runs.queries.withdrawal import (
    Radius,
    copies_now,
    counts_of,
    find_subject,
    marked_promotions,
    marked_runs,
    memory_now,
    radius,
    withdrawals,
)
from workspaces.audit import Refusal
from workspaces.forms.resource import ReasonForm
from workspaces.models import Withdrawal
from workspaces.pages import PageRequest, redirect

SHOWN = 200  # withdrawals on the list


def withdrawal_list(request: PageRequest) -> HttpResponseBase:
    found = list(withdrawals().order_by("-created_at", "-pk")[: SHOWN + 1])
    return render(request, "runs/withdrawal_list.html", {"withdrawals": found[:SHOWN], "is_cut": len(found) > SHOWN, "most": SHOWN})


def withdrawal_new(request: PageRequest) -> HttpResponseBase:
    """GET shows everything that rests on the subject; POST withdraws exactly that."""
    node, label = find_subject(request.GET.get("kind", "")[:20], request.GET.get("id", "")[:100])
    form, status = WithdrawForm(request.POST or None), 200
    reasons: tuple[str, ...] = ()
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                made = withdraw(actor=request.actor, subject=node, label=label, **form.cleaned_data)
            except Refusal as refusal:
                reasons, status = refusal.reasons, 409
            else:
                messages.success(request, f"{made.subject_label} is withdrawn.")
                return redirect("withdrawal", request.workspace.slug, made.public_id)
    found = radius(node, label)
    if reasons or request.method == "GET":  # what is confirmed next is what is shown now
        form = WithdrawForm(initial={"fingerprint": found.fingerprint, "reason": request.POST.get("reason", "")[:1000]})
    return render(request, "runs/withdrawal_new.html", _shown(found) | {"form": form, "reasons": reasons}, status=status)


def withdrawal(request: PageRequest, withdrawal: str) -> HttpResponseBase:
    return _withdrawal(request, withdrawals().get(pk=Withdrawal.objects.find(withdrawal).pk), ReasonForm())


def withdrawal_undo(request: PageRequest, withdrawal: str) -> HttpResponseBase:
    found = withdrawals().get(pk=Withdrawal.objects.find(withdrawal).pk)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _withdrawal(request, found, form, status=422)
    try:
        undo_withdrawal(actor=request.actor, withdrawal=found, reason=form.cleaned_data["reason"])
    except Refusal as refusal:
        form.add_error("reason", list(refusal.reasons))
        return _withdrawal(request, found, form, status=409)
    messages.success(request, f"The withdrawal of {found.subject_label} is undone.")
    return redirect("withdrawal", request.workspace.slug, found.public_id)


def _withdrawal(request: PageRequest, found: Withdrawal, form: ReasonForm, *, status: int = 200) -> HttpResponseBase:
    context = {"withdrawal": found, "counts": counts_of(found), "runs": marked_runs(found), "form": form}
    context["promotions"] = marked_promotions(found)
    context["copies"] = copies_now(found) if found.undone_at is None else None
    context["memory"] = memory_now(found) if found.undone_at is None else None
    return render(request, "runs/withdrawal.html", context, status=status)


def _shown(found: Radius) -> dict[str, object]:
    return {
        "radius": found,
        "counts": found.counts,
        "boards": found.boards,
        "at_work": found.at_work,
        "promotions": found.promotions,
        "copies": found.copies,
        "memory": found.memory,
    }
