"""Which runs deserve a person, and who has seen them."""

from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from runs.commands.review import review_run, take_back_review
from runs.forms.review import ReviewForm
from runs.models import Review, Run
from runs.queries.review import LOOKED_AT, LOOKED_BACK, deserving, findings_of, seen_lately
from runs.review import BOUND, EARLIER_LEAST, EARLIER_MOST, FAR, LIKE_LEAST, LIKE_MOST, TITLES, WEIGHTS, Reason
from workspaces.access import Kind, Permission
from workspaces.audit import Refusal
from workspaces.pages import PageRequest, redirect

RULES = {"least": EARLIER_LEAST, "most": EARLIER_MOST, "bound": BOUND, "far": FAR, "like_least": LIKE_LEAST, "like_most": LIKE_MOST}


def review_list(request: PageRequest) -> HttpResponseBase:
    return _list(request)


def run_review(request: PageRequest, run: str) -> HttpResponseBase:
    found = Run.objects.find(run)
    form = ReviewForm(request.POST)
    if not form.is_valid():
        return _list(request, of=found, form=form, status=422)
    shown = request.POST.getlist("finding")
    findings = [one for one in findings_of(found, timezone.now(), may_see=lambda kind: _may_see(request, kind)) if one.key in shown]
    try:
        review_run(actor=request.actor, run=found, findings=findings, comment=form.cleaned_data["comment"])
    except Refusal as refusal:
        form.add_error("comment", list(refusal.reasons))
        return _list(request, of=found, form=form, status=409)
    return redirect("review-list", request.workspace.slug)


def review_take_back(request: PageRequest, review: str) -> HttpResponseBase:
    take_back_review(actor=request.actor, review=Review.objects.find(review))
    return redirect("review-list", request.workspace.slug)


def _list(request: PageRequest, *, of: Run | None = None, form: ReviewForm | None = None, status: int = 200) -> HttpResponseBase:
    asked = request.GET.get("reason", "")
    reason = Reason(asked) if asked in set(Reason) else None
    found = deserving(timezone.now(), may_see=lambda kind: _may_see(request, kind), reason=reason)
    context = {
        "found": found,
        "reason": reason or "",
        "reasons": [(one, TITLES[one], WEIGHTS[one], found.counts[one]) for one in Reason],
        "seen": seen_lately(),
        "days": LOOKED_BACK.days,
        "most": LOOKED_AT,
        "rules": RULES,
        "of": of,
        "form": form,
    }
    return render(request, "runs/review_list.html", context, status=status)


def _may_see(request: PageRequest, kind: Kind) -> bool:
    return request.rights.allows(Permission.VIEW, kind)
