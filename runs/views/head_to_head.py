"""Two artifacts of an arena held against each other by a sequential test, as page and as CSV of what the page shows."""

from collections.abc import Sequence
from typing import NamedTuple

from django.http import HttpResponseBase
from django.shortcuts import render

from runs.forms.head_to_head import HeadToHeadForm
from runs.models import Artifact
from runs.queries.arena import Arena, arena
from runs.queries.head_to_head import HeadToHead, Played, head_to_head
from workspaces.access import Kind, Permission
from workspaces.audit import Denied, Refusal
from workspaces.models import Benchmark
from workspaces.pages import PageRequest
from workspaces.units import number, plural
from workspaces.views.csv_file import Cell, csv_file

HEAD = ("run", "name", "ended at", "0 points", "1/2", "1", "3/2", "2", "pairs so far", "points so far", "log-likelihood ratio", "accepted")


class Asked(NamedTuple):
    benchmark: Benchmark
    form: HeadToHeadForm
    has_games: bool
    found: HeadToHead | None


def benchmark_sequential(request: PageRequest, benchmark: str) -> HttpResponseBase:
    """`first`, `second`: artifacts; `elo0`, `elo1`, `alpha`, `beta`: the test."""
    asked = _asked(request, benchmark)
    context = {
        "benchmark": asked.benchmark,
        "form": asked.form,
        "has_games": asked.has_games,
        "found": asked.found,
        "answer": _answer(asked.found) if asked.found else "",
        "curves": _curves(asked.found) if asked.found else [],
        "query": request.GET.urlencode(),
        "sees_artifacts": True,
    }
    return render(request, "runs/head_to_head.html", context)


def benchmark_sequential_csv(request: PageRequest, benchmark: str) -> HttpResponseBase:
    asked = _asked(request, benchmark)
    if asked.found is None:
        raise Refusal(*([fault for _, fault in asked.form.faults] or ["No artifacts have played here."]))
    rows = [_row(each) for each in asked.found.played]
    name = f"{request.workspace.slug}-{asked.benchmark.slug}-sequential"
    return csv_file(name, HEAD, lambda _: (rows, ""), workspace_id=request.workspace.pk)


def _row(each: Played) -> Sequence[Cell]:
    ended = each.run.ended_at.isoformat() if each.run.ended_at else ""
    said = each.after
    after = (said.pairs, said.points, said.ratio, said.accepted) if said else (None, None, None, "")
    return (each.run.public_id, each.run.name, ended, *each.pairs, *after)


def _asked(request: PageRequest, text: str) -> Asked:
    """For whoever may see artifacts and runs too. Raises Denied, NotFound."""
    for kind in (Kind.ARTIFACT, Kind.RUN):
        if not request.rights.allows(Permission.VIEW, kind):
            raise Denied(Permission.VIEW, kind)
    benchmark = Benchmark.objects.find(text)
    board = arena(benchmark)
    form = HeadToHeadForm(board, request.GET.dict())
    return Asked(benchmark, form, bool(board.entrants), _found(board, form))


def _found(board: Arena, form: HeadToHeadForm) -> HeadToHead | None:
    if board.contract is None or not board.entrants or not form.is_valid():
        return None
    try:
        return head_to_head(board.contract, *form.both, form.question)
    except Refusal as refusal:
        form.add_error(refusal.field, str(refusal))
        return None


def _answer(found: HeadToHead) -> str:
    first, second, said = _name(found.first), _name(found.second), found.said
    if not found.played:
        return f"{first} and {second} have not met"
    after = plural(said.pairs, "pair of games", "pairs of games")
    if said.accepted == "H1":
        return f"{first} is at least {number(found.question.elo1)} Elo stronger than {second}: accepted after {after}"
    if said.accepted == "H0":
        return f"{first} is no more than {number(found.question.elo0)} Elo stronger than {second}: accepted after {after}"
    return f"Whether {first} is stronger than {second} is not decided after {after}"


def _name(artifact: Artifact) -> str:
    return f"{(artifact.name or artifact.path)[:40]} of {artifact.run.name[:40]}"


def _curves(found: HeadToHead) -> list[tuple[str, list[tuple[float, float]]]]:
    """The ratio after each run, between the two bounds."""
    said, asked = found.said, found.question
    ratio = [(0.0, 0.0)] + [(float(each.after.pairs), each.after.ratio) for each in found.counted if each.after]
    return [
        ("log-likelihood ratio", ratio),
        (f"H1 accepted, {number(asked.elo1)} Elo", [(0.0, said.high), (ratio[-1][0], said.high)]),
        (f"H0 accepted, {number(asked.elo0)} Elo", [(0.0, said.low), (ratio[-1][0], said.low)]),
    ]
