"""What a run has made for live datasets, as it said in `dataset` lines: part of the command that ends the run.

How many records a piece holds is counted where that can be told from its bytes, while they are collected: by a run's word windows would be cut late,
and growth that is too fast would raise no flag. Of other files the run's word is kept, and said to be that.
"""

from typing import Any

from django.db.models import QuerySet

from runs import queue
from runs.commands.harvest import set_apart
from runs.models import Artifact, Attempt, KeptFile, Run, RunLine
from runs.queries.egress import strictest_read_by
from workspaces import kept_query, scope
from workspaces.audit import Draft
from workspaces.commands.egress import tighten
from workspaces.commands.live_dataset import Piece, grow
from workspaces.models import Dataset, DatasetPiece, NotFound
from workspaces.records import may_have_header

MAX_PIECES = 100  # of one run
SHOWN = 20


def grow_datasets(event: Draft, run: Run, attempt: Attempt) -> None:
    """Add each named output to the live dataset that its line names, unless it was added before. What cannot be added is kept as an artifact and
    named in the event: a run may name a file that it did not write, or a dataset that is not here or does not grow."""
    [lines] = kept_query.ask_together([dataset_lines(attempt)])
    said = {(str(line.body["name"]), str(line.body["path"]).removeprefix("outputs/")): line.body for line in lines}
    if not said:
        return
    apart = {path: set_apart(path, attempt.number) for _, path in said}  # where it stands if its path was taken before
    rows = Artifact.objects.filter(run=run, deleted_at=None, path__in=[*apart, *apart.values()]).select_related("blob")
    kept = {row.path: row for row in rows}
    counted = {(row.path, row.sha256): row.rows for row in kept_query.rows(KeptFile, attempt=attempt, rows__isnull=False)}
    otherwise: dict[str, list[int]] = {}
    pieces: dict[str, list[Piece]] = {}
    missed: list[str] = []
    for (name, path), body in said.items():
        made = kept.get(apart[path]) or kept.get(path)
        if made is None or not made.blob.bytes:
            missed.append(f"{path[:80]}: no such output, or an empty one")
        else:
            told, counts = _count(body), counted.get((path, made.blob.sha256))
            records = told if counts is None else _records(path, counts, told)
            if records != told and body.get("records") is not None:
                otherwise[path[:80]] = [told, records]
            pieces.setdefault(name, []).append(
                Piece(path=path, blob=made.blob, records=records, is_counted=counts is not None, artifact_id=made.pk)
            )
    live = {name: _live(name) for name in sorted(pieces)}
    if run.is_terminal:  # what was collected later, beside what was added at its end
        known = set(DatasetPiece.objects.filter(made_by_run_id=run.pk).values_list("dataset__slug", "path"))
        slugs = {name: dataset.slug for name, dataset in live.items() if dataset is not None}
        pieces = {name: [piece for piece in pieces[name] if (slug, piece.path) not in known] for name, slug in slugs.items()}
    missed.extend(f"{name[:80]}: no live dataset of this workspace" for name, dataset in live.items() if dataset is None)
    growing = [(dataset, pieces[name]) for name, dataset in live.items() if dataset is not None and pieces[name]]
    if growing:
        strictest = strictest_read_by(run.pk)
        closed = tighten(event, [dataset.pk for dataset, _ in growing], strictest)  # all at once: one order of locks for all runs
        named = {dataset.pk: dataset.slug for dataset, _ in growing}
        for key in dict.fromkeys(row.window_of_id or row.pk for row in closed):
            event.details.setdefault("closed", []).append({"dataset": named[key], "egress": strictest})
    for dataset, found in growing:
        added = grow(event, dataset=dataset, pieces=found, run_id=run.pk, by=run.requested_by)
        event.details.setdefault("grown", []).append(
            {"dataset": dataset.slug, "pieces": len(added), "records": sum(row.records for row in added)}
        )  # fmt: skip
    if "windows" in event.details:
        queue.ring("check_overlap", subject=scope.current_id())
    if otherwise:
        event.details["records_said_and_counted"] = dict(list(otherwise.items())[:SHOWN])
    if missed:
        event.details["not_added_to_datasets"] = missed[:SHOWN]


def dataset_lines(attempt: Attempt) -> kept_query.Question:
    """What `grow_datasets` asks first, for one who asks for more in the same round trip."""
    return kept_query.Question(_lines, (), {"attempt": attempt.pk})


def _lines(attempt: Any) -> "QuerySet[RunLine]":
    return RunLine.objects.filter(attempt=attempt, type="dataset").order_by("number")[:MAX_PIECES]


def _live(name: str) -> Dataset | None:
    try:
        dataset = Dataset.objects.find(name)
    except NotFound:
        return None
    return dataset if dataset.is_live else None


def _count(body: dict[str, Any]) -> int:
    """Records as the run says; lines that say nothing count none."""
    records = body.get("records")
    return records if isinstance(records, int) and not isinstance(records, bool) and records > 0 else 0


def _records(path: str, rows: int, told: int) -> int:
    """Of a table with so many rows. Whether the first of CSV is a header only its run knows: it is one, as in an upload, where the run says nothing
    that fits."""
    return rows if told == rows or not may_have_header(path) else max(rows - 1, 0)
