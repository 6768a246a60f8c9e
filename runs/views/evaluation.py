"""Evaluations: one of them with what it rests on, what else was measured of the same, its samples, and two held against each other."""

from django.http import HttpResponseBase
from django.shortcuts import render

from runs.models import Evaluation
from runs.queries.evaluation import measurement
from runs.queries.samples import comparable_with, compare, find_with_samples, page_of_samples, summary_of
from runs.sample_results import Status
from workspaces.access import Kind, Permission
from workspaces.audit import Denied
from workspaces.pages import PageRequest

STATUSES = (*(status.value for status in Status), "fault")


def evaluation(request: PageRequest, evaluation: str) -> HttpResponseBase:
    """`after=<cursor>`: older ones of the history."""
    found = measurement(evaluation, cursor=request.GET.get("after", ""))
    context = {"found": found, "evaluation": found.evaluation, "run": found.run, "summary": summary_of(found.evaluation)}
    return render(request, "runs/evaluation.html", context)


def evaluation_samples(request: PageRequest, evaluation: str) -> HttpResponseBase:
    """`status=<ok, errored, abstained or fault>`: these alone; `from=<line>`: from there on. They tell the truth of a holdout: as its file does."""
    found = _with_samples(request, evaluation, Kind.ARTIFACT)
    status, start = request.GET.get("status", ""), request.GET.get("from", "")
    status = status if status in STATUSES else ""
    page = page_of_samples(found, status=status, start=int(start) if start.isascii() and start.isdigit() and len(start) < 9 else 1)
    context = {"evaluation": found, "summary": summary_of(found), "page": page, "status": status, "statuses": STATUSES}
    return render(request, "runs/evaluation_samples.html", context)


def evaluation_compare(request: PageRequest, evaluation: str) -> HttpResponseBase:
    """`against=<evaluation>`: that one is the champion; without it, which there are."""
    found = _with_samples(request, evaluation, Kind.ARTIFACT, Kind.RUN)
    against = request.GET.get("against", "")
    context = {
        "evaluation": found,
        "comparison": compare(found, find_with_samples(against)) if against else None,
        "others": comparable_with(found),
        "against": against,
    }
    return render(request, "runs/evaluation_compare.html", context)


def _with_samples(request: PageRequest, text: str, *kinds: Kind) -> Evaluation:
    """For whoever may see these kinds too. Raises Denied, NotFound."""
    for kind in kinds:
        if not request.rights.allows(Permission.VIEW, kind):
            raise Denied(Permission.VIEW, kind)
    return find_with_samples(text)
