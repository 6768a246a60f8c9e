"""Everything that a withdrawal would reach, or has marked, row by row: what an operator goes through before, and files afterwards."""

from collections.abc import Iterable, Sequence

from django.http import HttpResponseBase

from runs.queries.lineage import Node
from runs.queries.lineage_edges import NodeKind
from runs.queries.lineage_nodes import describe, words_of
from runs.queries.withdrawal import find_subject, marks_of, reached_by
from workspaces.models import Withdrawal
from workspaces.pages import PageRequest
from workspaces.queries.paging import newest_first
from workspaces.views.csv_file import Cell, Piece, csv_file

HEAD = ("kind", "id", "uuid", "name", "steps from what is withdrawn", "made at", "by", "address")
AT_ONCE = 1000


def withdrawal_new_csv(request: PageRequest) -> HttpResponseBase:
    """What withdrawing it now would reach, it first, then the nearest."""
    subject, _ = find_subject(request.GET.get("kind", "")[:20], request.GET.get("id", "")[:100])
    reached = list(reached_by(subject).distance.items())

    def piece(cursor: str) -> Piece:
        begin = int(cursor or 0)
        end = begin + AT_ONCE
        return _cells(request, reached[begin:end]), str(end) if end < len(reached) else ""

    return csv_file(f"{request.workspace.slug}-would-be-withdrawn", HEAD, piece, workspace_id=request.workspace.pk)


def withdrawal_csv(request: PageRequest, withdrawal: str) -> HttpResponseBase:
    """What it has marked, it and what was made since, also where it is undone."""
    found = Withdrawal.objects.find(withdrawal)

    def piece(cursor: str) -> Piece:
        page = newest_first(marks_of(found), cursor=cursor, size=AT_ONCE)
        return _cells(request, [(Node(NodeKind(mark.kind), mark.object_id), mark.distance) for mark in page.items]), page.next or ""

    return csv_file(f"{request.workspace.slug}-{found.public_id}", HEAD, piece, workspace_id=request.workspace.pk)


def _cells(request: PageRequest, things: Iterable[tuple[Node, int]]) -> list[Sequence[Cell]]:
    things = list(things)
    told = describe([node for node, _ in things], request.rights, request.workspace.slug)
    return [
        (
            words_of(node.kind), told[node].public_id, "" if told[node].is_hidden else str(node.id), told[node].label, steps,
            when.isoformat() if (when := told[node].when) else None, told[node].by, told[node].url,
        )
        for node, steps in things
    ]  # fmt: skip
