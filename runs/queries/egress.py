"""What class the work of runs is of: a run that has read something closed makes nothing that is open, and so on down the line."""

import uuid
from collections.abc import Collection

from django.db.models import Q

from runs.models import RunInput, UndeclaredInput
from workspaces.models import Dataset, DatasetPiece

Egress = Dataset.Egress
READINGS: tuple[type[RunInput] | type[UndeclaredInput], ...] = (RunInput, UndeclaredInput)  # declared or not


def runs_that_read(egress: str) -> set[uuid.UUID]:
    """Runs that have read a dataset of this class, or what such a run has made, however far back: an artifact, or a window with a piece of it.
    Two queries for each step of the way."""
    found: set[uuid.UUID] = set()
    fresh: set[uuid.UUID] = set()
    for model in READINGS:
        fresh |= set(model.objects.filter(dataset_version__dataset__egress=egress).values_list("run_id", flat=True))
    while fresh:
        found |= fresh
        windows = DatasetPiece.objects.filter(made_by_run_id__in=fresh).exclude(window=None).values("window")
        reached = Q(artifact__run__in=fresh) | Q(dataset_version__dataset__in=windows)
        fresh = {run for model in READINGS for run in model.objects.filter(reached).values_list("run_id", flat=True)} - found
    return found


def strictest_read_by(run_id: uuid.UUID) -> str:
    """The strictest class among what a run has read, however far back; public where it has read nothing. Two queries for each step of the way."""
    seen: set[uuid.UUID] = set()
    fresh: Collection[uuid.UUID] = {run_id}
    classes: set[str] = set()
    while fresh:
        seen.update(fresh)
        known = Q(dataset_version__isnull=False) | Q(artifact__isnull=False)
        rows = [
            row
            for model in READINGS
            for row in model.objects.filter(known, run__in=fresh).values_list("dataset_version__dataset__egress", "artifact__run_id")
        ]
        classes.update(egress for egress, _ in rows if egress)
        fresh = {maker for _, maker in rows if maker and maker not in seen}
    return next((egress for egress in (Egress.RESTRICTED, Egress.INTERNAL) if egress in classes), Egress.PUBLIC)
