"""Links of a chain that are gone: a run is frozen with what it reads, and each of its inputs must still be on record."""

import uuid
from collections import Counter
from collections.abc import Collection

from runs.models import Run, RunInput


def lost_inputs(runs: Collection[uuid.UUID]) -> dict[uuid.UUID, list[str]]:
    """Of each of the runs that has lost one: the names of what it was frozen with and of which no row is left. Two statements."""
    if not runs:
        return {}
    kept: dict[uuid.UUID, Counter[tuple[str, str]]] = {}
    for run, kind, sha256 in RunInput.objects.filter(run__in=runs).values_list("run", "kind", "sha256"):
        kept.setdefault(run, Counter())[kind, sha256] += 1
    lost: dict[uuid.UUID, list[str]] = {}
    for run, frozen in Run.objects.filter(pk__in=runs).values_list("pk", "frozen__inputs"):
        left = kept.get(run, Counter())
        for entry in frozen or ():
            key = (str(entry["kind"]), str(entry["sha256"]))
            if left[key]:
                left[key] -= 1
            else:
                lost.setdefault(run, []).append(str(entry["label"] or entry["slug"]))
    return lost
