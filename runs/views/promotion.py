"""Promotions: the list, one with its checks and its signed statement, putting an artifact forward, taking it back, the address that stays."""

import json

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from runs.checks.candidate import candidate_of
from runs.checks.eligibility import facts_of
from runs.checks.making import READ_AT_ONCE_BYTES
from runs.checks.score import placed
from runs.commands.promotion import propose_promotion, withdraw_promotion
from runs.eligibility import Fact, Verdict, summary
from runs.forms.promotion import ProposeForm, WithdrawForm
from runs.models import Artifact, Promotion
from runs.queries.promotion import find_promoted, find_restable, page_of_promotions, promotion_page, standing_promotions
from runs.queries.reading import read_back
from runs.queries.trace import find_traced, trace_of
from workspaces import dsse, ids
from workspaces.audit import Refusal
from workspaces.checklist import fact_checks
from workspaces.checkpoint import public_key
from workspaces.downloads import stored_file
from workspaces.models import NotFound
from workspaces.pages import PageRequest, redirect
from workspaces.queries.paging import BadCursor
from workspaces.text import is_storable
from workspaces.views.form_page import form_page

UNDECIDED = "undecided"  # of those that are kept as refused: void, expired, or asked for no more


def promotion_list(request: PageRequest) -> HttpResponseBase:
    status = request.GET.get("status", "")
    status = status if status in (*Promotion.Status.values, UNDECIDED) else ""
    refused = Promotion.Status.REFUSED
    by_person = {refused: True, UNDECIDED: False}.get(status)
    kept = refused if status == UNDECIDED else status
    try:
        page = page_of_promotions(status=kept, by_person=by_person, cursor=request.GET.get("after", "")[:300])
    except BadCursor:
        page = page_of_promotions(status=kept, by_person=by_person)
    standing = standing_promotions()
    context = {
        "rows": page.items,
        "next_cursor": page.next or "",
        "standing": standing,
        "suspended": sum(bool(one.suspended) for one in standing),
        "status": status,
        "statuses": [("", "All"), *Promotion.Status.choices, (UNDECIDED, "ended undecided")],
    }
    return render(request, "runs/promotion_list.html", context)


def promotion(request: PageRequest, promotion: str) -> HttpResponseBase:
    found = Promotion.objects.find(
        promotion,
        "artifact__blob",
        "artifact__run",
        "evaluation__contract__benchmark",
        "requested_by",
        "decided_by",
        "supersedes__artifact",
    )
    context = {"page": promotion_page(found), "promotion": found, "key_id": dsse.key_id(public_key())}
    return render(request, "runs/promotion.html", context)


def promotion_trace(request: PageRequest, promotion: str) -> HttpResponseBase:
    """From what stands down to its sources, step by step, with what is missing."""
    found = find_traced(promotion)
    context = {"promotion": found, "trace": trace_of(found, request.rights, request.workspace.slug)}
    return render(request, "runs/promotion_trace.html", context)


def promotion_statement(request: PageRequest, promotion: str) -> HttpResponseBase:
    """The signed envelope, as it was made."""
    found = Promotion.objects.find(promotion)
    if found.statement is None:
        raise NotFound("statement")
    response = HttpResponse(json.dumps(found.statement, indent=2) + "\n", content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{found.name}-{found.number}.dsse.json"'
    return response


def promotion_propose(request: PageRequest, artifact: str) -> HttpResponseBase:
    """GET shows the checks under the name in the address; POST puts it forward."""
    found = Artifact.objects.find(artifact, "blob", "run__contract")
    given = request.POST if request.method == "POST" else request.GET if "name" in request.GET else None
    form = ProposeForm(given)
    reasons: tuple[str, ...] = ()
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                made = propose_promotion(actor=request.actor, artifact=found, **form.cleaned_data)
            except Refusal as refusal:
                reasons, status = refusal.reasons, 409
            else:
                return redirect("promotion", request.workspace.slug, made.public_id)
    facts = _look(found, form)
    context = {
        "artifact": found,
        "form": form,
        "checks": fact_checks(fact.stored for fact in facts),
        "summary": summary(facts),
        "may_propose": all(fact.verdict is Verdict.PASS or fact.observed == "not read yet" for fact in facts),
        "reasons": reasons,
    }
    return render(request, "runs/promotion_propose.html", context, status=status)


def promotion_withdraw(request: PageRequest, promotion: str) -> HttpResponseBase:
    found = Promotion.objects.find(promotion, "artifact")
    back = reverse("promotion", args=[request.workspace.slug, found.public_id])

    def save(form: WithdrawForm) -> HttpResponseBase:
        withdraw_promotion(actor=request.actor, promotion=found, reason=form.cleaned_data["reason"])
        messages.success(request, f"{found.label} is withdrawn.")
        return redirect("promotion", request.workspace.slug, found.public_id)

    lead = f"Nothing will stand as {found.name} then. The artifact stays; what stood before it does not come back by itself."
    if found.status == Promotion.Status.PROPOSED:
        lead = "Nobody needs to decide on it any more."
    form = WithdrawForm(request.POST or None)
    trail = (("Promotions", reverse("promotion-list", args=[request.workspace.slug])), (found.label, back))
    return form_page(request, form, save, title=f"Withdraw {found.label}", submit="Withdraw promotion", lead=lead, trail=trail, back=back)


def promoted(request: PageRequest, name: str) -> HttpResponseBase:
    """The address that stays: leads to the artifact that stands under the name now; where none does, to what became of the last."""
    found = find_promoted(name)
    if found.status != Promotion.Status.PROMOTED:
        return HttpResponseRedirect(reverse("promotion", args=[request.workspace.slug, found.public_id]))
    return HttpResponseRedirect(reverse("artifact", args=[request.workspace.slug, found.artifact.public_id]))


def promoted_file(request: PageRequest, name: str) -> HttpResponseBase:
    """The file of what stands under the name now; 409 with the reason where that is suspended."""
    found = find_restable(name).artifact
    return stored_file(request, found.blob, path=found.path)


def _look(artifact: Artifact, form: ProposeForm) -> list[Fact]:
    """The checks under the form's name, as far as it is one; the file is read where that does not take long."""
    given = str(form["name"].value() or "")[:64]
    name = ids.same_name(given) if is_storable(given) else ""
    read = read_back(artifact.blob) if artifact.blob.bytes <= READ_AT_ONCE_BYTES else None
    return facts_of(placed(candidate_of(artifact, name or "champion", read=read)))
