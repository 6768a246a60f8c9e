"""How the best score of a benchmark came about: each run that was better than all before it, as page and as CSV. `by=<metric>` and `contract=<n>`
mean what they do on the board."""

from typing import NamedTuple

from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from runs.queries.over_time import Course, course_of, note_of
from runs.queries.scoreboard import BoardView, Ranking, ranking_of
from runs.views.benchmark import address
from runs.views.numbers import whole_number
from workspaces.models import Benchmark
from workspaces.pages import PageRequest
from workspaces.units import number, plural
from workspaces.views.csv_file import Piece, csv_file

HEAD = (
    "scored at",
    "score",
    "standard error",
    "better by",
    "evaluation",
    "run",
    "name",
    "agent",
    "agent version",
    "made by",
    "metric",
    "contract",
)
UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60))


class Curve(NamedTuple):
    x_words: str
    series: list[tuple[str, list[tuple[float, float]]]]


def benchmark_over_time(request: PageRequest, benchmark: str) -> HttpResponseBase:
    found = Benchmark.objects.find(benchmark)
    ranking = _ranking(request, found)
    course = course_of(ranking)
    context = {"benchmark": found, "course": course, "answer": _answer(course), "curve": _curve(course), "note": note_of(ranking)}
    return render(request, "runs/over_time.html", {**context, "address": _address(ranking)})


def benchmark_over_time_csv(request: PageRequest, benchmark: str) -> HttpResponseBase:
    found = Benchmark.objects.find(benchmark)
    course = course_of(_ranking(request, found))

    def piece(cursor: str) -> Piece:
        return [
            (
                row.created_at.isoformat(), row.value, row.standard_error, step.by, row.public_id, row.run.public_id, row.run.name,
                made.agent.slug, made.agent_version.number, made.public_id, row.metric, row.contract.version,
            )
            for step in course.steps
            for row, made in [(step.score.evaluation, step.score.made_by)]
        ], ""  # fmt: skip

    return csv_file(f"{request.workspace.slug}-{found.slug}-over-time", HEAD, piece, workspace_id=request.workspace.pk)


def _address(ranking: Ranking | None) -> str:
    """The query string that asks for this course, and for the board that it belongs to."""
    if ranking is None:
        return ""
    is_first = ranking.leading == ranking.contract.primary
    return address(BoardView(by="" if is_first else ranking.leading.metric, version=ranking.contract.version if ranking.is_past else 0))


def _ranking(request: PageRequest, found: Benchmark) -> Ranking | None:
    return ranking_of(found, by=request.GET.get("by", ""), version=whole_number(request.GET.get("contract")) or 0)


def _answer(course: Course) -> str:
    """How often and since when; empty where nothing is scored."""
    if course.best is None or course.ranking is None:
        return ""
    unit = f" {course.ranking.leading.unit}" if course.ranking.leading.unit else ""
    best = f"{number(course.best.value, course.best.standard_error)}{unit}"
    if course.count == 1:
        return f"{course.best.run.name} came first with {best}, and nothing has been better since"
    return f"The best score has been beaten {plural(course.count - 1, 'time', 'times')}, last by {course.best.run.name} with {best}"


def _curve(course: Course) -> Curve:
    """The best score as stairs: it holds until it is beaten. In the largest unit of time of which the whole has two or more."""
    if course.ranking is None or not course.steps:
        return Curve("", [])
    now, points = timezone.now(), list[tuple[float, float]]()
    first = (now - course.steps[-1].score.evaluation.created_at).total_seconds()
    unit, seconds = next(((unit, seconds) for unit, seconds in UNITS if first >= 2 * seconds), UNITS[-1])
    for step in reversed(course.steps):
        row = step.score.evaluation
        at = (row.created_at - now).total_seconds() / seconds
        points += [(at, points[-1][1])] if points else []
        points.append((at, row.value))
    return Curve(f"{unit} before now", [(course.ranking.leading.metric, [*points, (0.0, points[-1][1])])])
