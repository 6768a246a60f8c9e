"""Policies: the list, one, proposing a version with what it would have changed, its decisions, and people's hand on it."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from runs.commands.decision import decide_now
from runs.commands.policy import create_policy, pause_policy, propose_version, resume_policy, retire_policy
from runs.forms.policy import PolicyForm, VersionForm
from runs.forms.policy_editor import BOTH, edited, opened
from runs.models import Decision, Policy, PolicyVersion
from runs.policy.catalogue import catalogue
from runs.policy.changes import changes, lines_of
from runs.policy.decide import Outcome
from runs.policy.starters import STARTERS
from runs.queries.policy import (
    MOST_WAITED_FOR,
    STANDS_STILL_DAYS,
    decision_page,
    page_of_decisions,
    policy_page,
    policy_rows,
    preview,
    with_use,
)
from runs.queries.policy_names import names_here, standing_faults
from runs.views.once import OnceForm, form_key, id_of
from workspaces.audit import Refusal
from workspaces.forms.resource import ReasonForm
from workspaces.models import Approval, NotFound
from workspaces.pages import PageRequest, is_fragment, redirect
from workspaces.queries.paging import BadCursor
from workspaces.views.form_page import form_page

DECISIONS = 25  # on a page
# Verb of an address -> command, title, button, what it means.
HANDS = {
    "pause": (
        pause_policy,
        "Pause",
        "It decides nothing until it goes on. What happens meanwhile is not made up for; what it launched goes on.",
    ),
    "resume": (resume_policy, "Let go on", "It decides again on what happens from now on."),
    "retire": (retire_policy, "Retire", "It acts no more, for good. Its versions and decisions stay."),
}


def policy_list(request: PageRequest) -> HttpResponseBase:
    return render(request, "runs/policy_list.html", {"rows": with_use(policy_rows()), "still_days": STANDS_STILL_DAYS})


def policy(request: PageRequest, policy: str) -> HttpResponseBase:
    found = Policy.objects.find(policy, "benchmark", "created_by")
    outcome = request.GET.get("outcome", "")
    outcome = outcome if outcome in list(Outcome) else ""
    try:
        decisions = page_of_decisions(found, outcome=outcome, cursor=request.GET.get("after", "")[:300], size=DECISIONS)
    except BadCursor:
        decisions = page_of_decisions(found, outcome=outcome, size=DECISIONS)
    context = {
        "policy": found,
        "page": policy_page(found),
        "decisions": decisions.items,
        "next_cursor": decisions.next or "",
        "outcome": outcome,
        "outcomes": [
            ("", "All"),
            ("acts", "Acted"),
            ("holds", "Nothing to do"),
            ("barred", "Gate shut"),
            ("limited", "Limit"),
            ("failed", "Failed"),
        ],
    }
    return render(request, "runs/policy.html", context)


def policy_new(request: PageRequest) -> HttpResponseBase:
    form = PolicyForm(request.POST or None)
    back = reverse("policy-list", args=[request.workspace.slug])

    def save(form: PolicyForm) -> HttpResponseBase:
        made = create_policy(actor=request.actor, **form.cleaned_data)
        return redirect("policy-propose", request.workspace.slug, made.slug)

    lead = "A name first; what it does is a version, which acts once another person has approved it."
    return form_page(request, form, save, title="New policy", submit="Make policy", lead=lead, trail=(("Policies", back),), back=back)


def policy_propose(request: PageRequest, policy: str) -> HttpResponseBase:
    """GET shows the editor; POST with `check` says what the document would have changed, with `add`, `remove` or `fill`, or from a part of the page,
    it only redraws the editor; without any of them it proposes."""
    found = Policy.objects.find(policy, "benchmark")
    reasons: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    status, seen = 200, None
    if request.method == "POST":
        editor = edited(request.POST.dict(), partial(standing_faults, found))
        if is_fragment(request):
            return render(request, "runs/policy_editor_look.html", {"policy": found, "editor": editor, "is_part": True})
        form = VersionForm({"document": editor.text, "reason": request.POST.get("reason", "")})
        is_look = not {"add", "remove", "fill"}.isdisjoint(request.POST)
        is_check = "check" in request.POST
        if is_check or is_look:
            form.fields["reason"].required = False
        status = 200 if is_look else 422
        if is_look:
            pass
        elif editor.is_conflict or not form.is_valid():
            # Said where the page is looked at next: fields with their faults may stand far below.
            told = (BOTH,) if editor.is_conflict else _told(form)
            unread, reasons = (told, ()) if is_check else ((), told)
        elif is_check:
            status, seen = 200, preview(found, form.cleaned_data["document"], most=MOST_WAITED_FOR)
        else:
            try:
                version = propose_version(actor=request.actor, policy=found, **form.cleaned_data)
            except Refusal as refusal:
                reasons, status = refusal.reasons, 409
            else:
                messages.success(request, f"Version {version.number} waits for another person's decision.")
                return redirect("policy", request.workspace.slug, found.slug)
        if is_look:
            form = VersionForm(initial={"reason": request.POST.get("reason", "")[:1000]})
    else:
        form = VersionForm()
        editor = opened(_first(found, request.GET.get("from", "")), partial(standing_faults, found))
    context = {
        "policy": found,
        "form": form,
        "editor": editor,
        "seen": seen,
        "reasons": reasons,
        "unread": unread,
        "names": names_here(),
        "catalogue": catalogue(),
        "starters": sorted(STARTERS),
    }
    return render(request, "runs/policy_propose.html", context, status=status)


def policy_version(request: PageRequest, policy: str, number: str) -> HttpResponseBase:
    """One version: what it says, how it differs, what it would have changed as that was found when it was proposed, and who decided."""
    found = Policy.objects.find(policy)
    version = _version(found, number)
    before = (
        found.versions.filter(number__lt=version.number, decided_at__isnull=False).exclude(status="refused").order_by("-number").first()
    )
    approval = Approval.objects.filter(subject_id=version.pk).order_by("-created_at").first()
    asked = approval.content if approval is not None else {}
    context = {
        "policy": found,
        "version": version,
        "before": before,
        "lines": lines_of(version.document),
        "changes": changes(before.document, version.document) if before else [],
        "simulation": asked.get("simulation"),
        "words": asked.get("would_have_changed", ""),
        "approval": approval,
    }
    return render(request, "runs/policy_version.html", context)


def policy_decide(request: PageRequest, policy: str) -> HttpResponseBase:
    found = Policy.objects.find(policy)
    back = reverse("policy", args=[request.workspace.slug, found.slug])

    def save(form: forms.Form) -> HttpResponseBase:
        made = decide_now(actor=request.actor, policy=found, cause_id=id_of(request, key))
        return redirect("decision", request.workspace.slug, made.public_id)

    lead = "It looks at the facts of this moment and does what it says, within its limits. The decision is kept whatever it is."
    key = form_key(request)
    form = OnceForm(request.POST if request.method == "POST" else None, initial={"once": key})
    return form_page(
        request, form, save, title=f"Ask {found.name} now", submit="Decide now", lead=lead, trail=((found.name, back),), back=back
    )  # fmt: skip


def policy_hand(request: PageRequest, policy: str, verb: str) -> HttpResponseBase:
    found = Policy.objects.find(policy)
    act, words, lead = HANDS[verb]
    back = reverse("policy", args=[request.workspace.slug, found.slug])

    def save(form: ReasonForm) -> HttpResponseBase:
        act(actor=request.actor, policy=found, reason=form.cleaned_data["reason"])
        return redirect("policy", request.workspace.slug, found.slug)

    form = ReasonForm(request.POST or None)
    return form_page(request, form, save, title=f"{words}: {found.name}", submit=words, lead=lead, trail=((found.name, back),), back=back)


def policy_pause(request: PageRequest, policy: str) -> HttpResponseBase:
    return policy_hand(request, policy, "pause")


def policy_resume(request: PageRequest, policy: str) -> HttpResponseBase:
    return policy_hand(request, policy, "resume")


def policy_retire(request: PageRequest, policy: str) -> HttpResponseBase:
    return policy_hand(request, policy, "retire")


def decision(request: PageRequest, decision: str) -> HttpResponseBase:
    found = Decision.objects.find(decision, "policy", "version__proposed_by", "version__decided_by")
    return render(request, "runs/decision.html", {"page": decision_page(found), "decision": found})


def _told(form: VersionForm) -> tuple[str, ...]:
    """What is wrong with each field, the field named where it is not the document."""
    return tuple(
        str(fault) if name == "document" else f"{form.fields[name].label}: {fault}"
        for name, found in form.errors.items()
        for fault in found
    )


def _first(policy: Policy, starter: str) -> Any:
    """What the editor begins with: the version that waits or acts, else a starter."""
    version = policy.versions.filter(status__in=("proposed", "active")).order_by("-number").first()
    return STARTERS.get(starter) or (version.document if version else STARTERS["next-sweep"])


def _version(policy: Policy, number: str) -> PolicyVersion:
    is_number = number.isascii() and number.isdigit() and len(number) < 9
    rows = policy.versions.filter(number=int(number)) if is_number else policy.versions.none()
    version = rows.select_related("proposed_by", "decided_by").first()
    if version is None:
        raise NotFound("policy version")
    return version
