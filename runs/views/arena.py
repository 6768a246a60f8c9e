"""The arena of a benchmark: who beats whom, as page and as CSV of what the page shows."""

from django.http import HttpResponseBase
from django.shortcuts import render

from runs.queries.arena import Arena, arena
from workspaces.access import Kind, Permission
from workspaces.models import Benchmark
from workspaces.pages import PageRequest
from workspaces.units import plural
from workspaces.views.csv_file import Piece, csv_file

HEAD = (
    "rank",
    "artifact",
    "name",
    "made by",
    "elo",
    "standard error",
    "95 % from",
    "95 % to",
    "points",
    "games",
    "opponents",
    "is the reference",
)


def benchmark_arena(request: PageRequest, benchmark: str) -> HttpResponseBase:
    """Artifacts by their ratings."""
    found = Benchmark.objects.find(benchmark)
    board = arena(found)
    context = {"benchmark": found, "arena": board, "answer": _answer(board, request), "sees_artifacts": _sees(request)}
    return render(request, "runs/arena.html", context)


def benchmark_arena_csv(request: PageRequest, benchmark: str) -> HttpResponseBase:
    found = Benchmark.objects.find(benchmark)
    board, sees = arena(found), _sees(request)

    def piece(cursor: str) -> Piece:
        return [
            (
                player.rank, player.artifact.public_id if sees else "", player.artifact.name or player.artifact.path if sees else "",
                player.artifact.run.name if sees else "", player.rating.elo, player.rating.error, player.rating.low, player.rating.high,
                player.points, player.games, player.opponents, "yes" if player.is_reference else "no",
            )
            for player in board.players
        ], ""  # fmt: skip

    return csv_file(f"{request.workspace.slug}-{found.slug}-arena", HEAD, piece, workspace_id=request.workspace.pk)


def _sees(request: PageRequest) -> bool:
    return request.rights.allows(Permission.VIEW, Kind.ARTIFACT)


def _answer(board: Arena, request: PageRequest) -> str:
    """Who is strongest, and whether the next one may be as strong; empty where nobody has met."""
    if len(board.players) < 2:
        return ""
    first, second = board.players[:2]
    artifact = first.artifact
    name = f"{(artifact.name or artifact.path)[:60]} of {artifact.run.name[:60]}" if _sees(request) else "One artifact"
    lead = f"{name} is rated highest, {first.rating.elo - second.rating.elo:,.0f} Elo ahead"
    overlap = first.rating.low <= second.rating.high
    return f"{lead} over {plural(board.games, 'game', 'games')}{'; their intervals overlap' if overlap else ''}"
