"""Evaluations: one of them with what it rests on, and what else was measured of the same."""

from django.http import HttpResponseBase
from django.shortcuts import render

from runs.queries.evaluation import measurement
from workspaces.pages import PageRequest


def evaluation(request: PageRequest, evaluation: str) -> HttpResponseBase:
    """`after=<cursor>`: older ones of the history."""
    found = measurement(evaluation, cursor=request.GET.get("after", ""))
    return render(request, "runs/evaluation.html", {"found": found, "evaluation": found.evaluation, "run": found.run})
